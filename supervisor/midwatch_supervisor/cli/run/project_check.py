"""The command by which a project tests itself, found in the files that stand in its folder."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCheck:
    """A command that exits with 0 if the project's tests pass."""

    command: str
    found_in: str
    """The file that says so."""


def find_check(folder: Path) -> ProjectCheck | None:
    """The project's own test command; the first of several kinds. Nothing is run."""
    return next(_checks(folder), None)


def _checks(folder: Path) -> Iterator[ProjectCheck]:
    yield from _python(folder)
    yield from _node(folder)
    for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if (folder / name).is_file():
            yield ProjectCheck(command=command, found_in=name)
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if re.search(r"^test\s*:(?!=)", _text(folder / name), re.MULTILINE):
            yield ProjectCheck(command="make test", found_in=name)


def _python(folder: Path) -> Iterator[ProjectCheck]:
    project = _toml(folder / "pyproject.toml")
    tools = project.get("tool", {})
    runner = next((by for lock, by in _RUNNERS.items() if (folder / lock).is_file()), "")
    found = next((name for name in ("pytest.ini", "conftest.py") if (folder / name).is_file()), "")
    if not found and "[tool:pytest]" in _text(folder / "setup.cfg"):
        found = "setup.cfg"
    if not found and ("pytest" in tools or "pytest" in _text(folder / "pyproject.toml")):
        found = "pyproject.toml"
    if not found:
        tests = (each for pattern in _TESTS for each in folder.glob(pattern))
        found = next((str(each.relative_to(folder)) for each in tests), "")
    if found:
        yield ProjectCheck(command=f"{runner}pytest -q", found_in=found)
    elif "tox" in tools or (folder / "tox.ini").is_file():
        yield ProjectCheck(command=f"{runner}tox -q", found_in="tox.ini")


_TESTS = ("test_*.py", "test/**/test_*.py", "tests/**/test_*.py")
_RUNNERS = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
"""What runs a program of the project, by the file that it keeps."""
_NODE_RUNNERS = {
    "pnpm-lock.yaml": "pnpm test",
    "yarn.lock": "yarn test",
    "bun.lock": "bun run test",
}


def _node(folder: Path) -> Iterator[ProjectCheck]:
    try:
        script = json.loads(_text(folder / "package.json") or "{}")["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return
    if "no test specified" not in str(script):  # what `npm init` writes
        command = next(
            (run for lock, run in _NODE_RUNNERS.items() if (folder / lock).is_file()), ""
        )
        yield ProjectCheck(command=command or "npm test", found_in="package.json")


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError:
        return {}


def _text(file: Path) -> str:
    """What stands in it; nothing where it is not there, or is no text."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
