"""How a folder differs from the one that it was copied from, as git would say it. Reads only."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from midwatch_supervisor.present.file_changes import FileChange
from midwatch_supervisor.workspaces.rubbish import is_rubbish
from midwatch_supervisor.workspaces.workspace_files import entries_below, open_file
from midwatch_tools.tree import IGNORED

_MAX_BYTES = 1_000_000
"""Size in bytes above which, without git, a file is not compared line by line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs from the folder it was copied from.

    Its lines are `None` if they cannot be shown.
    """

    name: str
    old: list[str] | None
    new: list[str] | None

    @property
    def change(self) -> FileChange:
        """Numbers of added and removed lines."""
        if self.old is None or self.new is None:
            return FileChange(name=self.name, binary=True)
        lines = [*unified_diff(self.old, self.new, n=0)][2:]
        return FileChange(
            name=self.name,
            added=sum(line.startswith("+") for line in lines),
            removed=sum(line.startswith("-") for line in lines),
        )

    @property
    def text(self) -> str:
        """The diff in git's format."""
        head = f"diff --git a/{self.name} b/{self.name}\n"
        if self.old is None or self.new is None:
            return f"{head}(binary, or too large to be shown)\n"
        old, new = (f"a/{self.name}", f"b/{self.name}")
        return head + "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in unified_diff(self.old, self.new, old, new)
        )


def changed_in(source: Path | None, folder: Path) -> Iterator[ChangedFile]:
    """Yield the files that differ between both, by name; without a source all files."""
    names = set(names_below(folder)) | set(names_below(source) if source else ())
    for name in sorted(names):
        old = _content(source, name) if source else b""
        new = _content(folder, name)
        if old != new or (old is None and not _same_size(source, folder, name)):
            yield ChangedFile(name=name, old=_lines(old), new=_lines(new))


def new_file(folder: Path, name: str) -> FileChange:
    """Return the change that a new file is."""
    return ChangedFile(name=name, old=[], new=_lines(_content(folder, name))).change


def names_below(folder: Path) -> Iterator[str]:
    """Yield the names of the files below a folder, without rubbish."""
    for entry in entries_below(folder, hidden=IGNORED):
        name = Path(entry.path).relative_to(folder).as_posix()
        if not entry.is_dir(follow_symlinks=False) and not is_rubbish(name):
            yield name


def _content(folder: Path, name: str) -> bytes | None:
    """Return the content of a file: empty if there is none, `None` if it is too large."""
    path = folder / name
    if path.is_symlink():
        return bytes(path.readlink())
    try:
        with open_file(folder, name) as opened:
            content = opened.read(_MAX_BYTES + 1)
    except OSError:
        return b""
    return content if len(content) <= _MAX_BYTES else None


def _same_size(source: Path | None, folder: Path, name: str) -> bool:
    sizes = {(each / name).lstat().st_size for each in (source, folder) if each is not None}
    return len(sizes) == 1 and source is not None


def _lines(content: bytes | None) -> list[str] | None:
    if content is None or b"\0" in content:
        return None
    return content.decode(errors="replace").splitlines(keepends=True)
