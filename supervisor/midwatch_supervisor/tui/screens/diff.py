"""The diff of an attempt's workspace, line by line; the sign of each line says what it is."""

from collections.abc import Sequence

from midwatch_supervisor.present.plain import plain
from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.tui.screens.attempt_tab import Facet, tone_style
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette

_SEEN = 500
"""Characters of a line that can matter: no terminal is wider. The detail has all of them."""
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "rename ", "similarity ")


def diff() -> Facet[str]:
    """The lines of a diff."""
    return Facet(
        [Column(title="+ is new, - is gone", width=20, rank=0, draw=_line, grow=1)],
        id="diff",
        detail=plain,
        empty="Reading the workspace…",
    )


def lines(text: str) -> Sequence[str]:
    """A diff in lines. They end at line feeds only: other ends are part of a file's text."""
    return text.removesuffix("\n").split("\n") if text else ()


def tone(line: str) -> Tone:
    """How a line of a diff is meant."""
    if line.startswith(_HEADS):
        return Tone.DIM
    if line.startswith("@@"):
        return Tone.ACCENT
    return {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1], Tone.PLAIN)


def _line(line: str, colours: Palette) -> Cell:
    return flat(line), tone_style(tone(line), colours)


def flat(line: str) -> str:
    """A line of code as it stands, harmless: its indentation matters, its end may be cut."""
    return plain(line[:_SEEN]).replace("\n", " ")
