"""Columns of a line: the less important go first when the terminal is narrow. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.style import Style

from midwatch_supervisor.tui.widgets.palette import Palette

T = TypeVar("T")
Drawn = tuple[str, Style]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[T]):
    """One column: how wide, how important, and what it says of an item."""

    title: str
    width: int
    """In cells; at least this much."""
    rank: int
    """Columns with the highest rank are left out first; rank 0 always stays."""
    draw: Callable[[T, Palette], Drawn]
    grow: int = 0
    """Its share of the width that is left over."""


def fitted(columns: Sequence[Column[T]], width: int) -> list[tuple[Column[T], int]]:
    """The columns that fit into a width, in their order, with the width of each."""
    kept = list(columns)
    while len(kept) > 1 and _needed(kept) > width:
        worst = max(kept, key=lambda column: column.rank)
        if worst.rank == 0:
            break
        kept.remove(worst)
    spare = max(0, width - _needed(kept))
    shares = sum(column.grow for column in kept)
    return [
        (column, column.width + (spare * column.grow // shares if shares else 0)) for column in kept
    ]


def _needed(columns: Sequence[Column[T]]) -> int:
    return sum(column.width for column in columns) + len(columns) - 1


def draw(item: T, layout: Sequence[tuple[Column[T], int]], colours: Palette) -> list[Drawn]:
    """One line of an item; neighbours of one style are one piece, since each piece costs time."""
    cells: list[Drawn] = []
    line, last = "", colours.text
    for column, width in layout:
        text, style = column.draw(item, colours)
        if style is not last and line:
            cells.append((line, last))
            line = ""
        line, last = f"{line}{sized(text, width)} ", style
    cells.append((line, last))
    return cells


def heading(layout: Sequence[tuple[Column[T], int]], colours: Palette) -> list[Drawn]:
    """The line of the titles."""
    return [(f"{sized(column.title, width)} ", colours.heading) for column, width in layout]


def sized(text: str, width: int) -> str:
    """The text in exactly `width` cells; what does not fit ends in an ellipsis."""
    if text.isascii() and len(text) <= width:
        return text.ljust(width)
    # Characters without a width of their own could go on for ever in one cell.
    kept = text[: 4 * width]
    if len(kept) == len(text) and cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(kept, width - 1)}…" if width > 0 else ""
