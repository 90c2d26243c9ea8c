"""What a person should know about files before they take them: links, and very large files."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from midwatch_supervisor.present.numbers import megabytes
from midwatch_tools.git import git

_LARGE = 10_000_000
"""Size in bytes above which a file is called large."""
_LINK = "120000"
"""Git's mode of a link."""
_LONGEST = 4_096
"""Longest target of a link, in bytes, that the kernel allows."""
_TARGETS = 200
"""Number of links in a commit whose targets are read."""


async def notes_at(home: Path, commit: str, names: Iterable[str]) -> dict[str, str]:
    """Return what to know about files of a commit, by name."""
    # All files, because git would not find a name that is not UTF-8.
    said = await git(home, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    wanted, notes, read = set(names), dict[str, str](), 0
    for row in filter(None, said.split("\0")):
        about, _, name = row.partition("\t")
        mode, _, blob, size = about.split()
        if name not in wanted or not size.isdigit():
            continue
        if mode == _LINK:
            short = read < _TARGETS and int(size) <= _LONGEST
            read += short
            notes[name] = _link_note(await git(home, "cat-file", "blob", blob) if short else "")
        elif int(size) > _LARGE:
            notes[name] = megabytes(int(size))
    return notes


def notes_below(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return what to know about files below a folder, by name."""
    notes: dict[str, str] = {}
    for name in names:
        path = folder / name
        with suppress(OSError):  # it may be gone
            if path.is_symlink():
                notes[name] = _link_note(str(path.readlink()))
            elif (size := path.lstat().st_size) > _LARGE:
                notes[name] = megabytes(size)
    return notes


def _link_note(target: str) -> str:
    return f"a link to {target}" if target else "a link"
