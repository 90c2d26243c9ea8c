"""The dialog for jumping to a pane, a task, an attempt or a step by name."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest
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

_IN_TITLE = 3
"""The rank of a match in the title only."""
SHOWN = 100
"""Maximum number of listed targets: typing another letter is easier than reading more."""
_NEAR = 3
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


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row, with lower-case texts for searching."""

    row: Row
    name: str
    label: str
    title: str

    @classmethod
    def of(cls, row: Row) -> "NamedRow":
        name = row.name.lower()
        return cls(row, name, f"{name}#{row.number}", row.title.lower())

    def fit(self, wanted: str) -> int | None:
        """Return how well a text matches, 0 best; `None` if not at all."""
        if wanted in self.label:
            return min(_match_rank(wanted, self.name), _match_rank(wanted, self.label))
        return _IN_TITLE if wanted in self.title else None

    @property
    def target(self) -> JumpTarget:
        row = self.row
        title = f": {one_line(row.title)}" if row.title else ""
        return JumpTarget(name=one_line(row.label), what=f"{row.status}{title}", row=row)


def targets(
    text: str, known: Sequence[JumpTarget], rows: Iterable[NamedRow], *, in_attempt: bool
) -> list[JumpTarget]:
    """Return the targets that match a text, best first; an empty text matches all `known` places.

    Equal names come first, then names that begin with the text, then names and titles that contain
    it; of one task's attempts, the newest. A number means a step of the shown attempt.
    """
    wanted = text.strip().lower()
    if not wanted:
        return [*known]
    found = nsmallest(SHOWN, _ranked_matches(wanted, known, rows), key=lambda each: each[:-1])
    return [
        *(_step_targets(wanted) if in_attempt else ()),
        *(each if isinstance(each, JumpTarget) else each.target for *_, each in found),
    ]


def _step_targets(wanted: str) -> list[JumpTarget]:
    """Return the step that a text names, if it is a valid step number."""
    if not wanted.isdecimal() or len(wanted) > _DIGITS:
        return []
    number = int(wanted)  # Textual parses the action as Python, where 07 is not a number
    what = "Show this step of the attempt"
    return [JumpTarget(name=str(number), what=what, action=f"screen.step({number})")]


_Ranked = tuple[int, str, int, int, JumpTarget | NamedRow]


def _ranked_matches(
    wanted: str, known: Sequence[JumpTarget], rows: Iterable[NamedRow]
) -> Iterator[_Ranked]:
    """Yield matches with their ranks."""
    for place, target in enumerate(known):
        if wanted in target.name:
            yield _match_rank(wanted, target.name), "", place, 0, target
    for each in rows:
        fit = each.fit(wanted)
        if fit is not None:
            yield fit, each.name, -each.row.number, -each.row.task, each


def _match_rank(wanted: str, name: str) -> int:
    return 0 if name == wanted else 1 if name.startswith(wanted) else 2


def near(text: str, names: Iterable[str]) -> list[str]:
    """Return names that share at least half of a text's letter pairs, best first."""
    wanted = text.strip().lower()
    pairs = {wanted[place : place + 2] for place in range(len(wanted) - 1)}

    def shared(name: str) -> int:
        return sum(pair in name for pair in pairs)

    best = nlargest(_NEAR, dict.fromkeys(name.lower() for name in names), key=shared)
    return [name for name in best if pairs and shared(name) * 2 >= len(pairs)]


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
        self._rows = tuple(map(NamedRow.of, rows))
        self._in_attempt = in_attempt
        self._places = places(in_attempt=in_attempt)
        several_runs = len({each.row.run for each in self._rows}) > 1
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
        found = ", ".join(map(one_line, near(text, names)))
        said = f"Nothing is named {one_line(text)!r}."
        return f"{said} Similar: {found}." if found else said

    @on(Input.Submitted, "#jump")
    @on(LineList.Opened)
    def _take_chosen(self) -> None:
        if self._found.current is not None:
            self.dismiss(self._found.current)

    def action_move(self, lines: int) -> None:
        self._found.list.action_move(lines)
