"""Where the demo takes place: its project, written into a folder as a git repository."""

import os
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError

_SUFFIX = ".txt"
"""Of every bundled file, so that no tool takes them for Midwatch's own; taken off when written."""

_IDENTITY = {
    "user.name": "Midwatch demo",
    "user.email": "demo@midwatch.invalid",
    "commit.gpgsign": "false",
    "core.hooksPath": os.devnull,
    "init.defaultBranch": "main",
}


def make_project(folder: Path) -> Path:
    """Write the project into a new folder below `folder`; returns the path of its task file.

    The folder is `midwatch-demo-1`, or the next number that is free. Raises WorkspaceError if it
    cannot be written or git is missing.
    """
    try:
        root = _new_folder(folder)
        for name, text in _contents():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise WorkspaceError(f"the demo's project cannot be written: {error}") from error
    _git(root, "init", "--quiet")
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "A small shop's orders")
    return root / "tasks.yaml"


def _new_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        root = folder / f"midwatch-demo-{number}"
        try:
            root.mkdir()
        except FileExistsError:
            continue
        return root
    raise AssertionError("count() ended")


def _contents() -> Iterator[tuple[Path, str]]:
    """The files of the project: relative path and text."""
    bundle = files(__package__ or __name__)
    yield Path("tasks.yaml"), bundle.joinpath("tasks.yaml").read_text(encoding="utf-8")
    yield from _walk(bundle.joinpath("project"), Path())


def _walk(entry: Traversable, at: Path) -> Iterator[tuple[Path, str]]:
    for child in sorted(entry.iterdir(), key=lambda each: each.name):
        if child.is_dir():
            yield from _walk(child, at / child.name)
        elif child.name.endswith(_SUFFIX):
            yield at / child.name.removesuffix(_SUFFIX), child.read_text(encoding="utf-8")


def _git(root: Path, *command: str) -> None:
    options = [part for key, value in _IDENTITY.items() for part in ("-c", f"{key}={value}")]
    # GIT_DIR and the like, set where Midwatch runs in a git hook, would name another repository.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        subprocess.run(
            ["git", *options, *command],
            cwd=root,
            env=environ,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    except FileNotFoundError as error:
        raise WorkspaceError("the demo needs git, which is not installed") from error
    except subprocess.CalledProcessError as error:
        raise WorkspaceError(f"git {command[0]} failed: {error.stderr.strip()}") from error
