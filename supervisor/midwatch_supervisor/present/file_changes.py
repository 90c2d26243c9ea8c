"""Changed files with their numbers of lines, for people. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief

_SHOWN = 200
"""Number of files that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One changed file."""

    name: str
    added: int = 0
    """Number of lines."""
    removed: int = 0
    binary: bool = False
    """Whether it has no lines to count."""

    @property
    def lines(self) -> str:
        """`+14 -3`; `binary` without lines."""
        return "binary" if self.binary else f"+{self.added:,} -{self.removed:,}"


def changes_text(files: Sequence[FileChange]) -> str:
    """Return the sum: `2 files, +14 -3`; `no changes` if there are none."""
    if not files:
        return "no changes"
    added, removed = sum(each.added for each in files), sum(each.removed for each in files)
    lines = "" if all(each.binary for each in files) else f", +{added:,} -{removed:,}"
    return f"{count_noun(len(files), 'file')}{lines}"


def change_lines(files: Sequence[FileChange], notes: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each file, with the counts first, so that long names need no column.

    `notes` has remarks on some of them, by name; if there are too many files, these come first.
    """
    many = len(files) > _SHOWN
    shown = sorted(files, key=lambda each: many and each.name not in notes)[:_SHOWN]
    width = max((len(each.lines) for each in shown), default=0)
    for each in shown:
        note = f" ({brief(notes[each.name])})" if each.name in notes else ""
        yield f"{each.lines:<{width}}  {brief(each.name)}{note}"
    if many:
        yield f"… and {count_noun(len(files) - len(shown), 'more file')}"
