"""Compares a folder with the one that it was copied from, in git's format. Reads only."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.workspaces.staging import is_rubbish
from midwatch_supervisor.workspaces.workspace_files import entries_below, open_file
from midwatch_tools.tree import IGNORED

_MAX_BYTES = 1_000_000
"""Size in bytes above which a file is not compared line by line."""
_FILE, _PROGRAM, _LINK = "100644", "100755", "120000"
"""Git's modes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """A file as it is on one side."""

    mode: str = ""
    """Git's mode; empty if there is no such file."""
    content: bytes | None = b""
    """`None` if it is too large to be compared, or unreadable."""
    size: int = 0

    @property
    def lines(self) -> list[str] | None:
        """Its lines with their ends, split at line feeds only, as in git; `None` if binary."""
        if self.content is None or b"\0" in self.content:
            return None
        text = self.content.decode(errors="replace")
        return [each for each in re.split(r"(?<=\n)", text) if each]


_ABSENT = FileVersion()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs from the folder it was copied from."""

    name: str
    old: FileVersion
    new: FileVersion

    @property
    def change(self) -> FileChange:
        """Numbers of added and removed lines."""
        old, new = self.old.lines, self.new.lines
        if old is None or new is None:
            return FileChange(name=self.name, binary=True)
        lines = [*unified_diff(old, new, n=0)][2:]
        return FileChange(
            name=self.name,
            added=sum(line.startswith("+") for line in lines),
            removed=sum(line.startswith("-") for line in lines),
        )

    @property
    def text(self) -> str:
        """The diff in git's format, which `git apply` takes."""
        modes = (self.old.mode, self.new.mode)
        if all(modes) and modes.count(_LINK) == 1:  # git has no other form for it
            gone, made = replace(self, new=_ABSENT), replace(self, old=_ABSENT)
            return gone.text + made.text
        old, new = (_quote_path(f"{side}/{self.name}") for side in "ab")
        head = f"diff --git {old} {new}\n{_mode_lines(*modes)}"
        before, after = (
            name if mode else "/dev/null" for name, mode in zip((old, new), modes, strict=True)
        )
        old_lines, new_lines = self.old.lines, self.new.lines
        if old_lines is None or new_lines is None:
            return f"{head}Binary files {before} and {after} differ\n"
        found = unified_diff(old_lines, new_lines, before, after)
        return head + "".join(map(_with_end, found))


def _mode_lines(old: str, new: str) -> str:
    if old == new:
        return ""
    if not old:
        return f"new file mode {new}\n"
    return f"old mode {old}\nnew mode {new}\n" if new else f"deleted file mode {old}\n"


def _with_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _quote_path(name: str) -> str:
    """Return a path as git writes it in a diff: in quotes if a character could be misread."""
    if not _QUOTED.search(name):
        return name
    return '"' + _QUOTED.sub(lambda found: f"\\{ord(found[0]) & 0xFF:03o}", name) + '"'


_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f\udc80-\udcff]')
"""The last ones are bytes that are not UTF-8."""


def changed_in(source: Path | None, folder: Path) -> Iterator[ChangedFile]:
    """Yield the files that differ, by name; without a source, all files."""
    names = set(names_below(folder)) | set(names_below(source) if source else ())
    for name in sorted(names):
        old = _file_version(source, name) if source else _ABSENT
        new = _file_version(folder, name)
        if old != new:
            yield ChangedFile(name=name, old=old, new=new)


def names_below(folder: Path) -> Iterator[str]:
    """Yield the names of the files below a folder, without rubbish."""
    for entry in entries_below(folder, hidden=IGNORED):
        name = Path(entry.path).relative_to(folder).as_posix()
        if not entry.is_dir(follow_symlinks=False) and not is_rubbish(name):
            yield name


def _file_version(folder: Path, name: str) -> FileVersion:
    path = folder / name
    if any((folder / above).is_symlink() for above in [*Path(name).parents][:-1]):
        return _ABSENT
    if path.is_symlink():
        return FileVersion(mode=_LINK, content=bytes(path.readlink()))
    try:
        with open_file(folder, name) as opened:
            about, content = os.fstat(opened.fileno()), opened.read(_MAX_BYTES + 1)
    except OSError:
        return FileVersion(mode=_FILE, content=None) if path.is_file() else _ABSENT
    mode = _PROGRAM if about.st_mode & stat.S_IXUSR else _FILE
    known = content if len(content) <= _MAX_BYTES else None
    return FileVersion(mode=mode, content=known, size=about.st_size)
