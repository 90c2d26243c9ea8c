"""The queue of what waits for a person: what it wants, and for how long."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records import (
    Alert,
    AttemptTransition,
    BudgetRequest,
    Change,
    Delivery,
    Entry,
    Intervention,
    KnownGuidelines,
    Lifecycle,
    PlanCheck,
    Record,
    Severity,
)
from midwatch_supervisor.decide.worker_request import petition_words
from midwatch_supervisor.present.intervention_text import terms_text
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.text_line import bracketed
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.node_list import Loss
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.state.waiting_tasks import Unplaced
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.filtered import Filtered, holds
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import LIFECYCLE_SIGNS, LOST_SIGN, Palette


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One attempt that needs a person."""

    row: Row
    need: Need
    since: datetime | None
    what: str
    """The question, the decision that is held back, what the alert says, or what it asks for."""

    @property
    def calls(self) -> bool:
        """Whether a person is called for it; what a worker asks for, others may answer too."""
        return self.need <= Need.STUCK

    @property
    def kind(self) -> str:
        """What it needs, in a word."""
        return _KINDS.get(self.need, _ASKS)

    @property
    def name(self) -> str:
        """What people call the attempt."""
        return one_line(f"{self.row.name}#{self.row.number}")

    @property
    def rules(self) -> str:
        """The rules that fire."""
        return ", ".join(dict.fromkeys(key.rule for key in self.row.firing))

    @property
    def mark(self) -> Hashable:
        """What tells this need from an earlier or later one of the same attempt."""
        return self.row.attempt, self.need, self.since

    def began(self, opened_at: datetime) -> bool:
        """Whether it began after the console was opened, or as it was."""
        return self.since is not None and self.since >= opened_at

    @property
    def said(self) -> str:
        """How a person is called for it."""
        word = {Need.ANSWER: "waits for an answer", Need.APPROVAL: "waits for approval"}
        return f"{self.row.name}#{self.row.number} {word.get(self.need, 'is stuck')}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNode:
    """A node that is lost; others go on with what it had, as far as there are others."""

    loss: Loss
    adrift: int = 0
    """How many of its attempts no other goes on with yet."""
    calls: bool = True
    kind: str = "lost"
    rules: str = ""

    @property
    def name(self) -> str:
        """The node's name."""
        return one_line(self.loss.status.name)

    @property
    def since(self) -> datetime:
        """When it was last heard."""
        return self.loss.status.beat_at

    @property
    def what(self) -> str:
        """What is known of it."""
        if not self.adrift:
            return "the node is lost; others go on with what it had"
        waits = "1 attempt waits" if self.adrift == 1 else f"{self.adrift} attempts wait"
        return f"the node is lost; {waits} for another one"

    @property
    def mark(self) -> Hashable:
        """Which start of which node."""
        return self.loss.key

    def began(self, opened_at: datetime) -> bool:
        """Whether it was lost while the console looked."""
        del opened_at  # of another clock than its beats
        return not self.loss.old

    @property
    def said(self) -> str:
        """How a person is called for it."""
        return f"{self.name}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeless:
    """Tasks of the same labels that no node will take; one line, however many they are."""

    tasks: Unplaced
    calls: bool = True
    kind: str = "a node"
    rules: str = ""

    @property
    def name(self) -> str:
        """The first of them, and how many more there are."""
        more = len(self.tasks.rows) - 1
        return one_line(f"{self.tasks.rows[0].name}{f' +{more}' if more else ''}")

    @property
    def since(self) -> datetime | None:
        """When the first of them was handed over."""
        return self.tasks.since

    @property
    def what(self) -> str:
        """What is missing, and what would help."""
        labels = self.tasks.labels
        named = f"the label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
        options = " ".join(f"--label {each}" for each in labels)
        return one_line(f"no node has {named}; `midwatch node {options}` starts one that has")

    @property
    def mark(self) -> Hashable:
        """What they ask for."""
        return self.tasks.labels

    def began(self, opened_at: datetime) -> bool:
        """Whether they were handed over after the console was opened."""
        return self.since is not None and self.since >= opened_at

    @property
    def said(self) -> str:
        """How a person is called for it."""
        return f"{self.name}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A version of the guidelines that waits for a person; nobody is called for it."""

    known: KnownGuidelines
    calls: bool = False
    kind: str = "approval"
    name: str = "guidelines"
    rules: str = ""

    @property
    def since(self) -> datetime:
        """Since when it waits."""
        return self.known.at

    @property
    def what(self) -> str:
        """What is wanted of a person."""
        version = self.known.guidelines
        length = len(version.text.split())
        said = f"version {version.version} ({length} words) is proposed for {self.known.project}"
        return one_line(f"{said}: enter shows what it changes")


Calling = Waiting | LostNode | Placeless
"""What a person may be called for."""
Line = Calling | Proposal


def waiting(row: Row) -> Waiting:
    """What an attempt waits for, and since when."""
    need = row.need
    return Waiting(row=row, need=need, since=_since(row, need), what=one_line(_what(row, need)))


def _critical(row: Row) -> list[Alert]:
    return [alert for alert in row.firing.values() if alert.severity is Severity.CRITICAL]


def _since(row: Row, need: Need) -> datetime | None:
    if need <= Need.APPROVAL:
        return row.needed_since or row.last_at
    if need > Need.STUCK:
        return row.asked_since or row.last_at
    times = [at for alert in _critical(row) if (at := alert.at or alert.since_at) is not None]
    return min(times, default=row.last_at)


def _what(row: Row, need: Need) -> str:
    if need is Need.ANSWER:
        return row.reason or "it is paused, and waits to be let go on"
    if need is Need.APPROVAL and row.held:
        held = next(iter(row.held.values()))
        more = f" (and {len(row.held) - 1} more)" if len(row.held) > 1 else ""
        what = f"{held.action}{bracketed(terms_text(held.terms))}{more}"
        return f"{held.by} wants to {what}: {held.message or '(no message)'}"
    if need > Need.STUCK:
        return "; ".join(petition_words(each) for each in row.petitions.values())
    return " ".join(alert.summary or alert.key.rule for alert in _critical(row))


def next_of(queue: Sequence[Row], after: int | None) -> Row | None:
    """The row of the queue that follows an attempt, around the end; the first for others."""
    places = [row.attempt for row in queue]
    if not queue:
        return None
    return queue[(places.index(after) + 1) % len(queue)] if after in places else queue[0]


_MATTERS = (AttemptTransition, Alert, BudgetRequest, Delivery, Intervention, PlanCheck)


def _matters(record: Record) -> bool:
    moved = isinstance(record, Change) and record.node is not None
    return moved or isinstance(record, _MATTERS)


class Queue:
    """What waits for a person; the fleet is gone through only after something that matters."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._rows: list[Row] = []
        self._stale = True
        self.proposals: tuple[Proposal, ...] = ()
        """The guidelines that wait, the newest first: they come after every attempt."""

    def hear(self, entries: Iterable[Entry], *, of_nodes: bool = False) -> None:
        """Learn whether new entries can change the queue; `of_nodes` tells that nodes did."""
        self._stale = self._stale or of_nodes or any(_matters(entry.record) for entry in entries)

    @property
    def rows(self) -> list[Row]:
        """The attempts, the most urgent first."""
        if self._stale:
            self._rows, self._stale = self._board.attention(), False
        return self._rows

    @property
    def all(self) -> list[Waiting]:
        """The same, with what each waits for."""
        return [waiting(row) for row in self.rows]

    @property
    def losses(self) -> list[LostNode]:
        """The nodes that are lost, by name."""
        losses = self._board.muster.losses
        if not losses:
            return []
        adrift = Counter(row.node for row in self._board.rows.values() if row.adrift)
        return [LostNode(loss=loss, adrift=adrift[loss.status.name]) for loss in losses]

    @property
    def unplaced(self) -> list[Placeless]:
        """The tasks that no node will take, by their labels."""
        return [Placeless(tasks=each) for each in self._board.unplaced]

    @property
    def calling(self) -> list[Calling]:
        """Everything that a person may be called for."""
        return [*self.losses, *self.all, *self.unplaced]


_KINDS = {Need.ANSWER: "answer", Need.APPROVAL: "approval", Need.STUCK: "stuck"}
_SIGNS = {Need.ANSWER: "?", Need.APPROVAL: "!"}
_ASKS = "asks"
"""What is said of one that only asked for something."""


def columns(now: Callable[[], datetime]) -> list[Column[Line]]:
    """The columns of the queue."""
    return [
        Column(title="!", width=1, rank=0, draw=_sign),
        Column(title="age", width=4, rank=0, draw=_age(now)),
        Column(title="needs", width=8, rank=2, draw=_kind),
        Column(title="task", width=14, rank=0, grow=1, draw=_task),
        Column(title="what", width=36, rank=1, grow=6, draw=_shown),
        Column(title="alerts", width=16, rank=3, grow=1, draw=_rules),
    ]


def _sign(line: Line, colours: Palette) -> Cell:
    if isinstance(line, Proposal) or not line.calls:
        return "·", colours.accent
    if isinstance(line, LostNode):
        return LOST_SIGN, colours.bad
    if isinstance(line, Placeless):
        return LIFECYCLE_SIGNS[Lifecycle.SUBMITTED], colours.warn
    sign = _SIGNS.get(line.need)
    return (sign, colours.warn) if sign else ("■", colours.bad)


def _age(now: Callable[[], datetime]) -> Callable[[Line, Palette], Cell]:
    def age(line: Line, colours: Palette) -> Cell:
        if line.since is None:
            return "-", colours.dim
        return span((now() - line.since).total_seconds()), colours.text

    return age


def _kind(line: Line, colours: Palette) -> Cell:
    return line.kind, colours.text


def _task(line: Line, colours: Palette) -> Cell:
    return line.name, colours.strong


def _shown(line: Line, colours: Palette) -> Cell:
    return line.what or "-", colours.text


def _rules(line: Line, colours: Palette) -> Cell:
    return line.rules or "-", colours.dim


def text(line: Line) -> str:
    """What a filter looks at."""
    worker = line.row.worker if isinstance(line, Waiting) else ""
    return f"{line.name} {worker} {line.kind} {line.what} {line.rules}"


class AttentionPane(Filtered[Line]):
    """The queue as a table, the most urgent first."""

    def __init__(self, queue: Queue, now: Callable[[], datetime]) -> None:
        super().__init__(
            columns(now),
            name="attention",
            hint="task, worker, what it needs, or rule",
            nothing="Nothing waits for a person, or nothing that the filter lets through.",
        )
        self._queue = queue

    @property
    def chosen(self) -> Row | None:
        """The attempt of the cursor."""
        return self.current.row if isinstance(self.current, Waiting) else None

    @property
    def about_nodes(self) -> bool:
        """Whether the line of the cursor is about nodes: one that is lost, or that is missing."""
        return isinstance(self.current, LostNode | Placeless)

    @property
    def proposal(self) -> Proposal | None:
        """The proposed guidelines of the cursor."""
        return self.current if isinstance(self.current, Proposal) else None

    def refresh_board(self) -> None:
        """Show the queue as it is now; the cursor stays on what it was on."""
        before = self.current
        every = (*self._queue.calling, *self._queue.proposals)
        self.lines = [line for line in every if holds(text(line), self.wanted)]
        cursor = (n for n, line in enumerate(self.lines) if before and _same(line, before))
        self.show(next(cursor, None))


def _same(line: Line, before: Line) -> bool:
    """Whether two lines are about the same attempt, or the same version."""
    match line:
        case Waiting():
            return isinstance(before, Waiting) and line.row is before.row
        case LostNode():
            return isinstance(before, LostNode) and line.mark == before.mark
        case Placeless():
            return isinstance(before, Placeless) and line.mark == before.mark
        case Proposal():
            return isinstance(before, Proposal) and line.known.id == before.known.id
