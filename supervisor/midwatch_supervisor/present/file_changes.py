"""Which files were changed, and by how many lines, as people read it. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief

_SHOWN = 200
"""Files that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that is other than before."""

    name: str
    added: int = 0
    """Lines."""
    removed: int = 0
    binary: bool = False
    """Whether it has no lines to count."""

    @property
    def lines(self) -> str:
        """`+14 -3`; `binary` without lines."""
        return "binary" if self.binary else f"+{self.added:,} -{self.removed:,}"


def changes_text(files: Sequence[FileChange]) -> str:
    """The sum: `2 files, +14 -3`; `no changes` of nothing."""
    if not files:
        return "no changes"
    added, removed = sum(each.added for each in files), sum(each.removed for each in files)
    lines = "" if all(each.binary for each in files) else f", +{added:,} -{removed:,}"
    return f"{count_noun(len(files), 'file')}{lines}"


def change_lines(files: Sequence[FileChange]) -> Iterator[str]:
    """A line for each file, its counts first, so that long names need no room beside them."""
    shown = files[:_SHOWN]
    width = max((len(each.lines) for each in shown), default=0)
    for each in shown:
        yield f"{each.lines:<{width}}  {brief(each.name)}"
    if len(files) > len(shown):
        yield f"… and {count_noun(len(files) - len(shown), 'more file')}"
