"""The dialog for jumping to a pane, a task, an attempt or a step by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import nsmallest
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.keys import ATTEMPT, EVERYWHERE
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.dialogs import ClosesOnce
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import Cell
from midwatch_supervisor.tui.widgets.scrolling_text import TextField
from midwatch_supervisor.tui.widgets.table import Column, Table

_IN_TITLE, _NO_MATCH = 3, 4
"""Ranks of a match in the title only, and of none."""
SHOWN = 100
"""Maximum number of listed targets: typing another letter is easier than reading more."""
_DIGITS = 9
"""Maximum number of digits of a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpTarget:
    """Something to jump to by name."""

    name: str
    what: str
    """Its description, for people."""
    action: str = ""
    """Textual's action for it; empty for a row."""
    row: Row | None = None


def places(*, in_attempt: bool) -> tuple[JumpTarget, ...]:
    """Return the targets that have keys: the panes and, in an attempt's view, its tabs."""
    panes = (("app", key) for key in EVERYWHERE if key.action.startswith("pane("))
    sides = (("screen", key) for key in ATTEMPT if key.action.startswith("tab("))
    return tuple(
        JumpTarget(name=key.id.split(".")[-1], what=key.does, action=f"{where}.{key.action}")
        for where, key in (*(sides if in_attempt else ()), *panes)
    )


def targets(
    text: str, known: Sequence[JumpTarget], rows: Iterable[Row], *, in_attempt: bool
) -> list[JumpTarget]:
    """Return the targets that match a text, best first; an empty text matches all `known` places.

    Equal names come first, then names that begin with the text, then names and titles that contain
    it; of one task's attempts, the newest. A number means a step of the shown attempt.
    """
    wanted = text.strip().lower()
    if not wanted:
        return [*known]
    places = ((_name_rank(wanted, each.name), "", n, 0, each) for n, each in enumerate(known))
    named = (
        (_row_rank(wanted, row), row.name.lower(), -row.number, -row.task, row) for row in rows
    )
    matching = (each for each in (*places, *named) if each[0] < _NO_MATCH)
    found = nsmallest(SHOWN, matching, key=lambda each: each[:-1])
    return [
        *(_step_targets(wanted) if in_attempt else ()),
        *(_row_target(each) if isinstance(each, Row) else each for *_, each in found),
    ]


def _row_target(row: Row) -> JumpTarget:
    title = f": {one_line(row.title)}" if row.title else ""
    return JumpTarget(name=one_line(row.label), what=f"{row.status}{title}", row=row)


def _step_targets(wanted: str) -> list[JumpTarget]:
    """Return the step that a text names, if it is a valid step number."""
    if not wanted.isdecimal() or len(wanted) > _DIGITS:
        return []
    number = int(wanted)  # Textual parses the action as Python, where 07 is not a number
    what = "Show this step of the attempt"
    return [JumpTarget(name=str(number), what=what, action=f"screen.step({number})")]


def _name_rank(wanted: str, name: str) -> int:
    """Return how well a name matches, 0 best."""
    if name.startswith(wanted):
        return int(name != wanted)
    return 2 if wanted in name else _NO_MATCH


def _row_rank(wanted: str, row: Row) -> int:
    name = row.name.lower()
    rank = min(_name_rank(wanted, each) for each in (name, f"{name}#{row.number}"))
    return _IN_TITLE if rank == _NO_MATCH and wanted in row.title.lower() else rank


def _run_cell(target: JumpTarget) -> Cell:
    return "" if target.row is None else str(target.row.run), "dim"


class JumpDialog(ModalScreen[JumpTarget | None], ClosesOnce[JumpTarget | None]):
    """Asks where to go; the list shows matches, and enter goes to the selected one."""

    DEFAULT_CSS = """
    JumpDialog { align: center top; }
    JumpDialog > .box {
        width: 76; max-width: 96%; height: 16; max-height: 100%; margin: 4 0 0 0;
        padding: 0 1; border: round $primary; background: $surface;
    }
    JumpDialog Table { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]

    def __init__(self, rows: Iterable[Row], *, in_attempt: bool) -> None:
        """Offer the panes and `rows` and, in an attempt, its tabs and steps."""
        super().__init__()
        self._rows = tuple(rows)
        self._in_attempt = in_attempt
        self._places = places(in_attempt=in_attempt)
        several_runs = len({row.run for row in self._rows}) > 1
        self._found = Table[JumpTarget](
            [
                Column("run", 3, 0, _run_cell, differs=lambda: several_runs),
                Column("name", 20, 0, lambda target: (target.name, "strong"), grow=1),
                Column("description", 20, 1, lambda target: (target.what, "text"), grow=2),
            ],
            name="targets",
            nothing="",
        )
        self._found.list.can_focus = False

    def compose(self) -> ComposeResult:
        step = ", step number" if self._in_attempt else ""
        with Vertical(classes="box") as box:
            box.border_title = "Go to"
            box.border_subtitle = "enter: go · esc: cancel"
            yield TextField(placeholder=f"pane, task, attempt{step}", id="jump", compact=True)
            yield self._found

    def on_mount(self) -> None:
        self.query_one("#jump").focus()
        self._found.show(self._places)

    @on(Input.Changed, "#jump")
    def _after_typing(self, message: Input.Changed) -> None:
        found = targets(message.value, self._places, self._rows, in_attempt=self._in_attempt)
        if not found:
            self._found.say(self._unknown_name_text(message.value))
        self._found.show(found, cursor=0)

    def _unknown_name_text(self, text: str) -> str:
        names = (*(each.name for each in self._places), *(row.name for row in self._rows))
        similar = get_close_matches(text.strip().lower(), {name.lower() for name in names})
        found = ", ".join(map(one_line, similar))
        said = f"Nothing is named {one_line(text)!r}."
        return f"{said} Similar: {found}." if found else said

    @on(Input.Submitted, "#jump")
    @on(LineList.Opened)
    def _take_chosen(self) -> None:
        if self._found.current is not None:
            self.dismiss(self._found.current)

    def action_move(self, lines: int) -> None:
        self._found.list.action_move(lines)
