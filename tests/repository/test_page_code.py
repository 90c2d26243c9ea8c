"""The Python, YAML and shell that pages show is right, and does what the page says."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from midwatch_monitor.config.document import read_document
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.replay.timeline import check_timeline
from midwatch_tests.page_blocks import NOW, ROOT, blocks, shell, spans
from midwatch_tools import Watch

BLOCKS = [
    (page, language, text)
    for page in NOW
    if page.name != "api.md"
    for language, text in blocks(page)
]
PAGE = Path("page")
"""What stands for the file of a text."""
PICTURES = ("", "text")
"""Languages of what only shows something."""


def blocks_in(*languages: str) -> list[str]:
    """The blocks of some languages."""
    return [text for _, language, text in BLOCKS if language in languages]


def test_every_block_is_in_a_language_that_is_looked_at() -> None:
    known = {*PICTURES, "sh", "console", "python", "yaml", "json"}
    assert {language for _, language, _ in BLOCKS} - known == set()


def test_every_block_for_a_shell_can_be_parsed_by_one() -> None:
    for _, language, text in BLOCKS:
        if language in ("sh", "console"):
            code = shell(language, text)
            done = subprocess.run(
                ["bash", "-n"], input=code, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, ""), code


def test_every_block_of_yaml_is_a_task_file_a_configuration_or_a_timeline_that_holds(
    tmp_path: Path,
) -> None:
    for text in blocks_in("yaml"):
        document = read_document(PAGE, text)
        assert document.data
        assert document.problems == []
        if "timeline" in document.data:
            (tmp_path / "timeline.yaml").write_text(text)
            assert check_timeline(tmp_path / "timeline.yaml") == ()
            continue
        model = TaskFile if "tasks" in document.data else Settings
        model.model_validate(document.data)


def test_every_block_of_json_is_one_value_a_line_or_one_value() -> None:
    for text in blocks_in("json"):
        lines = text.splitlines()
        assert [json.loads(each) for each in (lines if lines[0][-1] == "}" else [text])]


async def test_the_agent_of_each_block_of_python_is_watched(
    journal: Journal, journal_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    for text in blocks_in("python"):
        names: dict[str, object] = {"__name__": "page"}
        exec(compile(text, "page", "exec"), names)
        agent = cast("Agent[None, str]", names["agent"])
        with agent.override(model=TestModel(call_tools=[])):
            assert (await agent.run("Say something.")).output
    runs = await journal.runs()
    tasks = [task for run in runs for task in await journal.tasks(run.id)]
    assert len(tasks) == len(blocks_in("python")) > 1


def test_every_watch_of_the_text_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    Path("midwatch.yaml").write_text("reflect: {remind_every: 7}\n")
    known = {"Watch": Watch, "Path": Path, "tell_me": print, "os": os}
    known |= {"load_settings": load_settings}
    shown = {text for page in NOW for text in spans(page) if re.match(r"Watch\(.*\)$", text)}
    assert len(shown) > 5
    made = [eval(text, known) for text in sorted(shown)]
    assert {each.settings.reflect.remind_every for each in made} == {3, 7}


def test_the_scripts_that_a_page_shows_play_an_agent_and_a_model(tmp_path: Path) -> None:
    (text,) = (text for text in blocks_in("sh") if "fake_agent" in text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "MIDWATCH_STATE": str(tmp_path), "MIDWATCH_RUN__SANDBOX": "off"}
    (folder := tmp_path / "empty").mkdir()
    done = subprocess.run(
        ["bash", "-ec", text],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello: completed" in done.stdout
    assert "bye: completed" in done.stdout


def test_every_key_of_the_configuration_that_a_page_names_exists() -> None:
    known = Settings().model_dump()
    sections = "|".join(name for name, value in known.items() if isinstance(value, dict))
    for page in NOW:
        for text in spans(page) if page.name != "origins.md" else []:  # names modules so
            if re.fullmatch(rf"(?:{sections})\.[a-z_.]+", text) and not text.endswith(".py"):
                assert _reaches(known, text), f"{page.name}: {text}"


def _reaches(known: object, path: str) -> bool:
    for key in path.split("."):
        if not isinstance(known, dict) or key not in known:
            return False
        known = cast("dict[str, object]", known)[key]
    return True


def test_every_value_that_a_text_gives_to_a_key_is_one_that_the_key_takes() -> None:
    shown = {text for page in NOW for text in spans(page) if re.match(r"[a-z_.]+: [^ ]", text)}
    assert len(shown) > 10
    for text in shown:
        ((key, value),) = read_document(PAGE, text).data.items()
        _check_value(key.split("."), value)


def _check_value(keys: list[str], value: object) -> None:
    """Raise ValueError unless a key, or the name of a worker or role, takes a value."""
    if len(keys) > 1:
        for key in reversed(keys):
            value = {key: value}
        Settings.model_validate(value)
    elif keys[0] in {*Role}:
        ModelSpec.model_validate(value)
    else:
        of = (Settings, TaskFile, TaskSpec, WorkerSpec)
        fields = [
            section.model_fields[keys[0]] for section in of if keys[0] in section.model_fields
        ]
        kinds: list[Any] = [field.rebuild_annotation() for field in fields]
        TypeAdapter[Any](kinds[0] if kinds else WorkerSpec).validate_python(value)


def test_every_variable_that_a_text_names_is_read() -> None:
    code = "".join(
        file.read_text("utf-8")
        for package in ("monitor", "tools", "agents", "supervisor")
        for file in (ROOT / package).rglob("*.py")
    )
    for page in NOW:
        for name in re.findall(r"`\$?(MIDWATCH_[A-Z_]+)(?:=\w+)?`", page.read_text("utf-8")):
            keys = tuple(name.removeprefix("MIDWATCH_").lower().split("__"))
            known = f'"{name}"' in code or _reaches(Settings().model_dump(), ".".join(keys))
            assert known or name == "MIDWATCH_REAL_AGENTS", f"{page.name}: {name}"


def test_every_module_that_a_text_runs_exists() -> None:
    named = {
        m[1] for page in NOW for text in spans(page) if (m := re.match(r"python -m (\S+)", text))
    }
    assert named
    assert [name for name in named if find_spec(name) is None] == []
