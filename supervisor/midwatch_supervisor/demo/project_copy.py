"""Writes the demo's project into a folder as a git repository."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_tools.git import run_git

_SUFFIX = ".txt"
"""Suffix of every bundled file, which keeps tools from taking them for Midwatch's own."""

_AUTHOR = "Midwatch demo <demo@midwatch.invalid>"


def make_project(folder: Path) -> Path:
    """Write the project into a new folder below `folder`; return the path of its task file.

    The folder is `midwatch-demo-1`, or the next free number. Raises WorkspaceError if it cannot be
    written or git is missing.
    """
    try:
        root = _new_folder(folder)
        for name, text in _contents():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise WorkspaceError(f"the demo's project cannot be written: {error}") from error
    run_git(root, "init", "--quiet", "--initial-branch=main")
    run_git(root, "add", "--all")
    run_git(root, "commit", "--quiet", f"--author={_AUTHOR}", "--message", "A small shop's orders")
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
    """Yield the files of the project: relative path and text."""
    bundle = files(__package__ or __name__)
    yield Path("tasks.yaml"), bundle.joinpath("tasks.yaml").read_text(encoding="utf-8")
    yield from _walk(bundle.joinpath("project"), Path())


def _walk(entry: Traversable, at: Path) -> Iterator[tuple[Path, str]]:
    for child in sorted(entry.iterdir(), key=lambda each: each.name):
        if child.is_dir():
            yield from _walk(child, at / child.name)
        elif child.name.endswith(_SUFFIX):
            yield at / child.name.removesuffix(_SUFFIX), child.read_text(encoding="utf-8")
