"""What `midwatch run` is asked to do: a task file, one on stdin, or a goal in a sentence with the
project's own test command.
"""

import json
import os
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any

from midwatch_agents.model_choice import choose_model
from midwatch_monitor.config.document import MAX_CHARACTERS
from midwatch_monitor.config.source import load_tasks
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, TaskSpec
from midwatch_monitor.errors import UsageError, WorkspaceError
from midwatch_supervisor.present.text_line import brief
from midwatch_tools.git import run_git

STDIN = Path("stdin")
"""Name of a task file on stdin."""
_DASHES = ("-", "/dev/stdin")
_EXAMPLE = '`midwatch run "fix the failing tests" --check "pytest -q"`'
_TITLE = 60
_ID = 40
"""Length of a task's id that is made from its goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The tasks to run and where they come from."""

    tasks: TaskFile
    source: str
    """Where the run is recorded to come from."""
    folder: Path
    """Folder that relative workspaces start from."""
    notice: str = ""
    """One line that says what was chosen for the person; empty for a task file, which states it."""


def run_request(
    text: str, *, checks: Sequence[str], model: str | None, environ: Mapping[str, str]
) -> RunRequest:
    """Return what the argument of `midwatch run` means in the current folder.

    A file, or a name that ends like one, is a task file; `-` is one on stdin; anything else is a
    goal. Raises UsageError for what is none of these, and ConfigError for an invalid file.
    """
    if _is_file(text):
        if checks or model:
            raise UsageError(
                "--check and --model go with a goal; a task file has `acceptance` and `models`"
            )
        return _of_file(text)
    if os.path.isdir(text):  # noqa: PTH112 - a goal may be longer than a path can be
        raise UsageError(f"{text} is a folder: name a task file, or give a goal as in {_EXAMPLE}")
    if not text.strip() or not (checks or re.search(r"\s", text.strip())):
        raise UsageError(f"{text!r} is not a file, and one word is not a goal; try {_EXAMPLE}")
    if not all(each.strip() for each in checks):
        raise UsageError("--check is empty: it would always pass")
    return _of_goal(" ".join(text.split()), checks=checks, model=model, environ=environ)


def _is_file(text: str) -> bool:
    named = text.lower().endswith((".yaml", ".yml")) and not re.search(r"\s", text)
    # Not by pathlib: it raises for a goal that is longer than a path can be.
    there = os.path.exists(text) and not os.path.isdir(text)  # noqa: PTH110, PTH112
    return named or there or text in _DASHES


def _of_file(text: str) -> RunRequest:
    if text in _DASHES:
        tasks = load_tasks(STDIN, _read_stdin())
        return RunRequest(tasks=tasks, source=str(STDIN), folder=Path.cwd())
    file = Path(text)
    if not file.exists():
        beside = [str(each) for each in file.parent.glob("*.y*ml")] if file.parent.is_dir() else []
        close = get_close_matches(text, beside, n=1)
        hint = f" (did you mean `{close[0]}`?)" if close else ""
        raise UsageError(f"{file}: there is no such file{hint}")
    return RunRequest(tasks=load_tasks(file), source=text, folder=file.resolve().parent)


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read(4 * MAX_CHARACTERS + 4).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{STDIN}: is not UTF-8 text") from error


def _of_goal(
    goal: str, *, checks: Sequence[str], model: str | None, environ: Mapping[str, str]
) -> RunRequest:
    folder = _repository_root(Path.cwd())
    if folder in (Path.home(), Path(folder.anchor)):
        raise UsageError(
            f"{folder} is not a project, and all of it would be copied: "
            "change to a project's folder first"
        )
    found = None if checks else find_check(folder)
    if not checks and found is None:
        raise UsageError(
            f"no test command was found in {folder}: name with --check a command that passes once "
            f"the goal is reached, as in {_EXAMPLE}"
        )
    commands = tuple(checks) if found is None else (found.command,)
    choice = None if model else choose_model(environ)
    name = model or (choice.name if choice else "")
    task = TaskSpec(
        id=_goal_id(goal),
        title=brief(goal, _TITLE),
        goal=goal,
        workspace=str(folder),
        acceptance=commands,
    )
    whys = (f" ({found.found_in})" if found else "", f" ({choice.why})" if choice else "")
    return RunRequest(
        tasks=TaskFile(models={Role.WORKER: ModelSpec(name=name)}, tasks=(task,)),
        source="a goal",
        folder=folder,
        notice=f"{folder}: check `{'`, `'.join(commands)}`{whys[0]}, model {name}{whys[1]}",
    )


def _repository_root(folder: Path) -> Path:
    """Return the root of the worktree around a folder; outside git the folder itself."""
    try:
        return Path(run_git(folder, "rev-parse", "--show-toplevel").strip() or folder)
    except WorkspaceError:
        return folder


def _goal_id(goal: str) -> str:
    """Make a short id of a goal, cut between words if possible."""
    plain = unicodedata.normalize("NFKD", goal.casefold()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    cut = words if len(words) <= _ID else words[:_ID].rpartition("-")[0] or words[:_ID]
    return cut or "goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCheck:
    """A command that exits with 0 if the project's tests pass."""

    command: str
    found_in: str
    """File that defines it."""


def find_check(folder: Path) -> ProjectCheck | None:
    """Find the project's own test command; the first of several kinds. Runs nothing."""
    return next(_find_checks(folder), None)


def _find_checks(folder: Path) -> Iterator[ProjectCheck]:
    yield from _python_checks(folder)
    yield from _node_checks(folder)
    for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if (folder / name).is_file():
            yield ProjectCheck(command=command, found_in=name)
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if re.search(r"^test\s*:(?!=)", _read_text(folder / name), re.MULTILINE):
            yield ProjectCheck(command="make test", found_in=name)


def _python_checks(folder: Path) -> Iterator[ProjectCheck]:
    project = _read_toml(folder / "pyproject.toml")
    tools = project.get("tool", {})
    runner = next((by for lock, by in _RUNNERS.items() if (folder / lock).is_file()), "")
    found = next((name for name in ("pytest.ini", "conftest.py") if (folder / name).is_file()), "")
    if not found and "[tool:pytest]" in _read_text(folder / "setup.cfg"):
        found = "setup.cfg"
    if not found and ("pytest" in tools or "pytest" in _read_text(folder / "pyproject.toml")):
        found = "pyproject.toml"
    tests = [] if found else [each for pattern in _TESTS for each in sorted(folder.glob(pattern))]
    if found:
        yield ProjectCheck(command=f"{runner}pytest -q", found_in=found)
    elif tests:
        command = runner + (_unittest_command(folder, tests) or "pytest -q")
        yield ProjectCheck(command=command, found_in=str(tests[0].relative_to(folder)))
    elif "tox" in tools or (folder / "tox.ini").is_file():
        yield ProjectCheck(command=f"{runner}tox -q", found_in="tox.ini")


def _unittest_command(folder: Path, tests: Sequence[Path]) -> str:
    """Return the command that runs these tests by unittest; empty if that would miss some."""
    texts = [_read_text(each) for each in tests]
    if any(map(_OF_PYTEST.search, texts)) or not any("unittest" in text for text in texts):
        return ""
    starts = {each.parent for each in tests}
    if all(_is_importable(each, folder) for each in starts):
        return "python3 -m unittest"
    (start, *others) = starts
    # Discovery goes only into folders that are packages.
    return (
        "" if others else f"python3 -m unittest discover -s {quote(str(start.relative_to(folder)))}"
    )


def _is_importable(below: Path, folder: Path) -> bool:
    """Whether each folder from `folder` down to `below` is a package."""
    return below == folder or (
        (below / "__init__.py").is_file() and _is_importable(below.parent, folder)
    )


_OF_PYTEST = re.compile(r"^(?:(?:async )?def test_|(?:import|from) pytest)", re.MULTILINE)
_TESTS = ("test_*.py", "test/**/test_*.py", "tests/**/test_*.py")
_RUNNERS = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
"""The program that runs a project's tools, by the lock file that it keeps."""
_NODE_RUNNERS = {
    "pnpm-lock.yaml": "pnpm test",
    "yarn.lock": "yarn test",
    "bun.lock": "bun run test",
}


def _node_checks(folder: Path) -> Iterator[ProjectCheck]:
    try:
        script = json.loads(_read_text(folder / "package.json") or "{}")["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return
    if "no test specified" not in str(script):  # what `npm init` writes
        command = next(
            (run for lock, run in _NODE_RUNNERS.items() if (folder / lock).is_file()), ""
        )
        yield ProjectCheck(command=command or "npm test", found_in="package.json")


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read_text(file))
    except tomllib.TOMLDecodeError:
        return {}


def _read_text(file: Path) -> str:
    """Read a file; empty if it is missing or not text."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
