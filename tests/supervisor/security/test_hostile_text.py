"""No command lets the text of others steer a terminal, or forge a line of what it prints."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclopts import App

from midwatch_agents.hooks.adapters import ADAPTERS
from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.app import build
from midwatch_supervisor.present.assignment import assignments
from midwatch_tests.hostile import FORGED, HOSTILE, HostilePast, hostile
from midwatch_tests.sessions import DIALECTS, NOON, write

Capture = pytest.CaptureFixture[str]

NAME = f"x\n{FORGED}\r{FORGED}\x1b[2J\x9b31m\u202e"
"""The same as the name of a file, which has an end."""


def script_for(role: Role, key: str) -> Script:
    del role, key
    calls = (Call(tool="repeat_text", args=json.dumps({"text": HOSTILE})),)
    return Script(phases=(Phase(turns=(Turn(say=HOSTILE, calls=calls), Turn(say=HOSTILE))),))


async def repeat_text(text: str) -> str:
    """Say a text again."""
    return text


TASKS: dict[str, Any] = {
    "models": {"worker": f"scripted:{__name__}@0", "supervisor": "none"},
    "workers": {"clerk": {"kind": "task", "tools": [f"{__name__}:repeat_text"]}},
    "tasks": [
        {
            "id": "fix",
            "workspace": NAME,
            "title": hostile("Fix it"),
            "goal": hostile("Fix it."),
            "labels": ["gpu"],
            "acceptance": [f"echo {HOSTILE!r}; false"],
            "max_attempts": 1,
        }
    ],
}


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The journal's file, and the ids of its records."""
    file = tmp_path_factory.mktemp("past") / "journal.db"

    async def write_past() -> dict[str, int]:
        async with await Journal.open(str(file)) as journal:
            (wanted,) = assignments(TaskFile.model_validate(TASKS), Path("/"))
            written = HostilePast(journal, spec=wanted.model_dump_json())
            await written.write()
            return written.ids

    return file, asyncio.run(write_past())


@pytest.fixture
def ids(
    past: tuple[Path, dict[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, int]:
    """The ids of what stands in a copy of the journal, which commands find by themselves."""
    file, found = past
    journal = tmp_path / ".midwatch" / "journal.db"
    journal.parent.mkdir()
    journal.write_bytes(file.read_bytes())
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal))
    monkeypatch.setenv("LOGNAME", hostile("ada"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MIDWATCH_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return found


def write_files(folder: Path) -> None:
    """What commands read beside the journal, with hostile text and hostile names."""
    (folder / NAME).mkdir()
    (folder / "tasks.yaml").write_text(yaml.safe_dump(TASKS), encoding="utf-8")
    (folder / "bad.yaml").write_text(yaml.safe_dump({hostile("a"): 1}), encoding="utf-8")
    named = folder / f"{NAME}.yaml"
    named.write_text("mode: [1]", encoding="utf-8")
    runs = folder / "runs"
    runs.mkdir()
    call = {"kind": "tool", "tool": hostile("look"), "args": hostile("a"), "output": hostile("o")}
    lines = [json.dumps({"step": number, **call}) for number in range(1, 9)]
    (runs / f"{NAME}.jsonl").write_text("\n".join([*lines, HOSTILE]), encoding="utf-8")
    rows = f'path,outcome,task,source\n"runs/{NAME}.jsonl",resolved,t,{FORGED}\n'
    rows += f'"{NAME}.jsonl",unresolved,t,{FORGED}\n'
    (folder / f"{NAME}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "index.csv").write_text(rows, encoding="utf-8")
    session = [*CLAUDE.prompt(HOSTILE, NOON), *CLAUDE.called(HOSTILE, "c1")]
    session += [*CLAUDE.came(HOSTILE, "c1", HOSTILE, 1), *CLAUDE.said(HOSTILE, NOON)]
    sessions = folder / ".claude" / "projects" / "x"
    sessions.mkdir(parents=True)
    lines = [{**each, "cwd": f"/{NAME}", "sessionId": HOSTILE} for each in session]
    write(sessions / f"{NAME}.jsonl", lines)
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": HOSTILE}]}]}}
    (folder / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    timeline = {"rule": hostile("x"), "steps": [call], "expect": []}
    (folder / f"timeline{NAME}.yaml").write_text(yaml.safe_dump(timeline), encoding="utf-8")


CLAUDE = DIALECTS["claude-code"]
AWAY = ["--journal", "postgresql://127.0.0.1:1/x"]
NO_JOURNAL = ["--journal", f"{NAME}.db"]
COMMANDS: dict[str, list[list[str]]] = {
    "run": [["tasks.yaml", "--dry-run"], ["tasks.yaml", "--headless"], ["tasks.yaml", "--json"]],
    "demo": [[f"--pace={HOSTILE}"]],
    "submit": [["tasks.yaml", *AWAY, "--dry-run"], ["tasks.yaml", *AWAY, "--dry-run", "--json"]],
    "cancel": [["done"], ["under", "--dry-run"], ["under", "--json"]],
    "node": [["--config", "bad.yaml"]],
    "monitor": [["--config", "bad.yaml"]],
    "nodes": [[], ["--json"]],
    "resume": [["--dry-run"], NO_JOURNAL],
    "watch": [[], NO_JOURNAL],
    "attach": [["--once"], ["--once", "--json"], [f"{NAME}.none"]],
    "mcp": [["--worker", "a", "--config", "bad.yaml"], ["--http", f"x{HOSTILE}"]],
    "metrics": [[], NO_JOURNAL],
    "notify test": [[f"nobody{HOSTILE}"], ["--config", "bad.yaml"]],
    "doctor": [["--config", "bad.yaml"], ["--json"]],
    **{f"hook {agent}": [["--help"]] for agent in ADAPTERS},
    "hook install": [["claude-code", "--dry-run"], [f"claude-code{HOSTILE}"]],
    "hook uninstall": [["claude-code", "--yes"], [f"claude-code{HOSTILE}"]],
    "status": [["--all"], ["--all", "--json"]],
    "show": [["done"], ["done", "--json"], ["under"], ["nobody" + HOSTILE]],
    "report": [[], ["--json"], ["--html"]],
    "report lessons": [[], ["--json"], ["--html"]],
    "lessons list": [["--all"], ["--all", "--json"], ["--project", "other"]],
    "lessons show": [["{lesson}"], ["{lesson}", "--json"]],
    "lessons approve": [["{lesson}"], ["{lesson}", *NO_JOURNAL]],
    "lessons retire": [["{lesson}"], ["{lesson}", *NO_JOURNAL]],
    "lessons restore": [["{lesson}"], ["{lesson}", *NO_JOURNAL]],
    "lessons rate": [["{lesson}", f"1{HOSTILE}"], ["{lesson}", "1"]],
    "lessons add": [[HOSTILE, "--project", "other"], [HOSTILE, "--project", "other", "--json"]],
    "lessons give": [["{lesson}", "done"], ["{lesson}", "nobody" + HOSTILE]],
    "guidelines list": [[], ["--json"]],
    "guidelines show": [["1"], ["1", "--json"], []],
    "guidelines diff": [["1"], ["1", "--json"]],
    "guidelines approve": [["--dry-run"], [], []],
    "guidelines reject": [[], []],
    "guidelines rollback": [[]],
    "guidelines retire": [["1"]],
    "learn": [["--dry-run"], ["--dry-run", "--json"]],
    "calibration": [[], ["--json"]],
    "approve": [["{held}"], ["{held}"]],
    "reject": [["{held2}"]],
    "tell": [["under", "Hello."], ["done", "Hello."]],
    "grant": [["under", "--requests", "2"], ["done", "--requests", "2"]],
    "switch": [["under", "other", "--dry-run"], ["under", f"m{HOSTILE}"]],
    "feedback": [["done", "reject", "--dry-run"], ["under", "reject"]],
    "feedback list": [[], ["--json"]],
    "feedback scan": [["--dry-run"], NO_JOURNAL],
    "facts list": [["--all"], ["--json"]],
    "facts show": [["{fact}"], ["{gone}"], ["{fact}", "--json"]],
    "facts approve": [["{fact}"], [f"1{HOSTILE}"]],
    "facts retire": [["{fact}", "--dry-run"], [f"1{HOSTILE}"]],
    "facts restore": [["{gone}", "--dry-run"], [f"1{HOSTILE}"]],
    "diff": [["done"], ["done", "--json"], ["nobody" + HOSTILE]],
    "merge": [["done"]],
    "clean": [[], ["nobody" + HOSTILE]],
    "export": [["done"], ["done", "--output", f"new{NAME}.jsonl"], ["--all", NAME]],
    "replay": [["runs"], ["runs", "--json"], [f"{NAME}.none"]],
    "tune": [
        ["runs", f"{NAME}.jsonl", "--outcomes", "index.csv"],
        ["runs", f"{NAME}.jsonl", "--outcomes", "index.csv", "--json"],
        ["runs", "--outcomes", f"{NAME}.csv"],
    ],
    "db upgrade": [[], NO_JOURNAL],
    "db check": [[], ["--json"], NO_JOURNAL],
    "db copy": [[".midwatch/journal.db", f"{NAME}.db", "--dry-run"]],
    "forget": [["shop", "--dry-run"], ["shop", "--dry-run", "--json"], ["shop"]],
    "rules test": [[f"timeline{NAME}.yaml"], [f"timeline{NAME}.yaml", "--json"]],
    "rules list": [[]],
    "config check": [["bad.yaml", f"{NAME}.yaml"], ["bad.yaml", "--json"]],
    "config show": [["--config", "bad.yaml"]],
    "init": [[NAME]],
}

SAY_NOTHING_OF_OTHERS = {"rules list", *(f"hook {agent}" for agent in ADAPTERS)}


def command_names(app: App, *words: str) -> Iterator[str]:
    """Every command that can be called."""
    if app.default_command is not None:
        yield " ".join(words)
    for word in app:
        if not word.startswith("-"):
            yield from command_names(app[word], *words, word)


def test_every_command_is_attacked_here() -> None:
    assert COMMANDS.keys() == set(command_names(build()))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_lets_the_text_of_others_steer_a_terminal_or_forge_a_line(
    ids: dict[str, int], capsys: Capture, command: str
) -> None:
    printed = ""
    for argv in COMMANDS[command]:
        main([*command.split(" "), *(each.format(**ids) for each in argv)])
        printed += "".join(capsys.readouterr())
    # `git apply` needs the tabs of a patch; they move nothing but the cursor, and to the right.
    assert harmful_lines(printed.replace("\t", " ") if "diff" in command else printed) == []
    assert (FORGED in printed) == (command not in SAY_NOTHING_OF_OTHERS), printed
    main([*command.split(" "), f"--none{HOSTILE}"])
    out, err = capsys.readouterr()
    assert FORGED in err
    assert harmful_lines(out + err) == []


def harmful_lines(printed: str) -> list[str]:
    """The lines that hold more than what can be printed, or were forged."""
    return [
        line for line in printed.split("\n") if not line.isprintable() or line.startswith(FORGED)
    ]


def test_on_a_terminal_only_our_own_colours_are_sent(ids: dict[str, int], tmp_path: Path) -> None:
    program = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
    master, slave = pty.openpty()
    with open(master, "rb", buffering=0) as seen:  # noqa: PTH123 - a descriptor is no path
        diff = subprocess.Popen(
            (sys.executable, "-c", program, "guidelines", "diff", "1"),
            stdout=slave,
            cwd=tmp_path,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(slave)
        printed = "".join(iter(lambda: read_terminal(seen), ""))
    assert diff.wait() == 0
    assert "\x1b[32m" in printed
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", printed).replace("\r\n", "\n")
    assert FORGED in uncoloured
    assert harmful_lines(uncoloured.replace("\t", " ")) == []


def test_an_unexpected_error_steers_nothing(tmp_path: Path) -> None:
    program = (
        "import logging, sys; from midwatch_supervisor.cli import main; main(['--version']);"
        "logging.getLogger('any').warning(sys.argv[1]); raise ValueError(sys.argv[1])"
    )
    done = subprocess.run(
        (sys.executable, "-c", program, HOSTILE), capture_output=True, cwd=tmp_path, check=False
    )
    printed = done.stderr.decode()
    assert printed.count("ValueError") == 1
    assert harmful_lines(printed) == []


def read_terminal(seen: FileIO) -> str:
    """What a terminal was sent since; empty once nobody writes to it any more."""
    try:
        return seen.read(4096).decode()
    except OSError:
        return ""
