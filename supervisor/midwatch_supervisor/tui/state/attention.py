"""The attention queue: what is waiting for a person, why, and since when. Pure."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AttemptTransition,
    BudgetRequest,
    Change,
    Delivery,
    Entry,
    Escalation,
    Intervention,
    KnownGuidelines,
    Lifecycle,
    PermissionRequest,
    PlanCheck,
    Record,
    Severity,
)
from midwatch_supervisor.present.intervention_text import action_text, request_text
from midwatch_supervisor.present.text_line import (
    LIFECYCLE_SIGNS,
    LOST_SIGN,
    Tone,
    blocker_words,
    one_line,
)
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.node_list import LostNode, Unplaced
from midwatch_supervisor.tui.state.row import Need, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """Something that waits for a person: one line of the queue, with sanitized texts."""

    key: Hashable
    """Identifies it: an attempt, a node, labels, a version of the guidelines."""
    mark: Hashable
    """Distinguishes this need from earlier or later ones of the same attempt."""
    known: frozenset[Hashable] = frozenset()
    """Needs of the attempt that a person learns of together with this one."""
    name: str
    kind: str
    """The kind of need, in a word."""
    what: str
    """The question, the waiting decision, the alert's text, or the request."""
    since: datetime | None
    sign: str
    tone: Tone
    call: str = ""
    """The text that calls a person for it; empty if nobody is called."""
    fresh: bool | None = None
    """Whether it began while the console was open; `None` if `since` tells."""
    row: Row | None = None
    """The attempt, if it is one that needs a person."""
    version: KnownGuidelines | None = None
    """The guidelines, if it is a proposed version."""
    want: str = ""
    """What an attempt wants, without its worker's blockers."""
    need: Hashable = None
    """Equal for attempts with the same need; `None` for anything else."""
    equal: tuple["QueueItem", ...] = ()
    """Attempts with the same need, if it stands for several."""

    def began(self, opened_at: datetime) -> bool:
        """Whether it began when the console was opened, or later."""
        if self.fresh is not None:
            return self.fresh
        return self.since is not None and self.since >= opened_at

    @property
    def rules(self) -> str:
        return "" if self.row is None else self.row.rules

    @property
    def text(self) -> str:
        """The text that a filter searches."""
        worker = "" if self.row is None else self.row.state.attempt.worker
        return f"{self.name} {worker} {self.kind} {self.what} {self.rules}"


_TIMES = "\N{MULTIPLICATION SIGN}"
_PAUSED = "paused", "‖", Tone.WARN, "is paused"
_ASKS = "asks", "·", Tone.ACCENT, ""
_NEEDS = {
    Need.ANSWER: ("answer", "?", Tone.WARN, "waits for an answer"),
    Need.APPROVAL: ("approval", "!", Tone.WARN, "waits for approval"),
    Need.STUCK: ("stuck", "■", Tone.BAD, "is stuck"),
}


def waiting_attempt(row: Row) -> QueueItem:
    """Return the item of a waiting attempt; nobody is called for what others may also answer."""
    want, since = _want_of(row)
    since = since or row.state.last_at
    paused = row.state.paused and row.need is Need.ANSWER
    need = _NEEDS.get(row.need, _ASKS) if row.called else _ASKS
    kind, sign, tone, call = _PAUSED if paused else need
    if paused and _paused_by(row) is Actor.OPERATOR:
        call = ""  # whoever paused it knows
    marks = _need_marks(row)
    what = _with_blockers(row, want)
    return QueueItem(
        key=("attempt", row.attempt),
        mark=marks[0],
        known=frozenset(marks),
        want=one_line(want) or one_line(what),
        need=("equal", kind, want),
        name=one_line(row.label),
        kind=kind,
        what=one_line(what),
        since=since,
        sign=sign,
        tone=tone,
        call=call and f"{row.label} {call}: {what}",
        row=row,
    )


def _paused_by(row: Row) -> Actor:
    return [each for each in row.state.waits if each.action is Action.PAUSE][-1].intervention.by


def _need_marks(row: Row) -> list[Hashable]:
    """Return the marks of an attempt's needs, the current one first.

    After an answer, what led to the question is no longer news.
    """
    state, of = row.state, row.attempt
    held: list[Hashable] = [(of, each.id) for each in reversed(state.interventions.held)]
    asked = state.parked_since if state.asks_beside is None else state.asks_beside.id
    parked: list[Hashable] = [(of, asked)] if row.need is Need.ANSWER else []
    alerts: list[Hashable] = [
        (of, each.key, each.since_step)
        for each in state.firing
        if each.severity is Severity.CRITICAL
    ]
    return [*parked, *held, *alerts, (of, row.need)]


def _want_of(row: Row) -> tuple[str, datetime | None]:
    """Return what an attempt wants from a person, and since when."""
    state = row.state
    if row.need is Need.ANSWER:
        asked = state.asks_beside
        return asked.intervention.message if asked else state.transition.reason, state.needed_since
    if state.ignored_stop is not None:
        return "told to stop, still running: end it in its terminal", state.needed_since
    if held := state.interventions.held:
        issued = held[0].intervention
        more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
        act = f"{action_text(issued.action, issued.terms)}{more}"
        said = f"{issued.by} wants to {act}: {issued.message or '(no message)'}"
        return said, state.needed_since
    if state.open_requests and not row.called:
        return "; ".join(map(request_text, state.open_requests.values())), state.asked_since
    alerts = [alert for alert in state.firing if alert.severity is Severity.CRITICAL]
    times = [at for alert in alerts if (at := alert.at or alert.since_at) is not None]
    since = min(times, default=None)
    # The blockers themselves say more than their number.
    if _last_blockers(row) and {alert.key.rule for alert in alerts} == {_blocked_rule()}:
        return _last_blockers(row), since
    return "; ".join(alert.summary or alert.key.rule for alert in alerts), since


def _blocked_rule() -> str:
    from midwatch_monitor.rules.reports import MultipleBlockersDetector  # not for the first frame

    return MultipleBlockersDetector.rule


def _with_blockers(row: Row, want: str) -> str:
    """Return what an attempt wants, with its worker's blockers unless there is a question."""
    lacks = _last_blockers(row)
    if row.need is Need.ANSWER:
        resumes = "" if row.state.asks_beside else "p resumes it"
        return want or "; ".join(filter(None, (lacks, resumes)))
    if row.need is not Need.STUCK or lacks in ("", want):
        return want
    return f"{want}; {lacks}"


def _last_blockers(row: Row) -> str:
    """Return the blockers that its worker reported last."""
    said = row.state.checkpoint
    return "" if said is None else blocker_words(said.blockers)


_SEVERAL = 3
"""From this many attempts on, the same need takes one line."""


def collapse(items: Iterable[QueueItem], unfolded: Collection[Hashable]) -> list[QueueItem]:
    """Return the queue with the same need of several attempts as one line, in place of the first.

    The attempts with `unfolded` needs are listed below it.
    """
    by_need: dict[Hashable, list[QueueItem]] = {}
    for item in items:
        by_need.setdefault(item.need or item.key, []).append(item)
    found: list[QueueItem] = []
    for need, equal in by_need.items():
        if len(equal) < _SEVERAL:
            found += equal
            continue
        found.append(_group_item(equal, folded=need not in unfolded))
        found += equal if need in unfolded else ()
    return found


def _group_item(equal: Sequence[QueueItem], *, folded: bool) -> QueueItem:
    """Return one line for attempts with the same need; action keys do nothing on it."""
    first = equal[0]
    name = f"{'▸' if folded else '▾'} {len(equal)} {_TIMES}"
    return replace(
        first, key=first.need, name=name, what=first.want, row=None, call="", equal=tuple(equal)
    )


def lost_node(loss: LostNode, adrift: int = 0) -> QueueItem:
    """Return the item of a lost node; `adrift` of its attempts are not yet continued elsewhere."""
    what = "the node is lost; other nodes continue its attempts"
    if not loss.status.busy:
        what = "the node is lost; it was running no attempt"
    if adrift:
        waits = "1 attempt is" if adrift == 1 else f"{adrift} attempts are"
        what = f"the node is lost; {waits} waiting for another one"
    name = one_line(loss.status.name)
    return QueueItem(
        key=("node", loss.key),
        mark=loss.key,
        name=name,
        kind="lost",
        what=what,
        since=loss.status.beat_at,
        sign=LOST_SIGN,
        tone=Tone.BAD,
        call=f"{name}: {what}",
        fresh=not loss.old,  # its heartbeats have another clock's time
    )


def unplaced_tasks(tasks: Unplaced) -> QueueItem:
    """Return one item for tasks with the same labels that no node will take."""
    more = len(tasks.rows) - 1
    name = one_line(f"{tasks.rows[0].name}{f' +{more}' if more else ''}")
    named = f"the label{'s' if len(tasks.labels) > 1 else ''} {', '.join(tasks.labels)}"
    options = " ".join(f"--label {each}" for each in tasks.labels)
    what = one_line(f"no node has {named}; `{command(f'node {options}')}` starts one that does")
    return QueueItem(
        key=("labels", tasks.fleet, tasks.labels),
        mark=(tasks.fleet, tasks.labels),
        name=name,
        kind="a node",
        what=what,
        since=tasks.since,
        sign=LIFECYCLE_SIGNS[Lifecycle.SUBMITTED],
        tone=Tone.WARN,
        call=f"{name}: {what}",
    )


def proposed_guidelines(known: KnownGuidelines) -> QueueItem:
    """Return the item of proposed guidelines; nobody is called for it."""
    version = known.guidelines
    words = len(version.text.split())
    what = f"version {version.version} ({words} words) is proposed for {known.project}"
    return QueueItem(
        key=("guidelines", known.id),
        mark=known.id,
        name="guidelines",
        kind="approval",
        what=one_line(f"{what}: enter shows the changes"),
        since=known.at,
        sign="·",
        tone=Tone.ACCENT,
        version=known,
    )


def next_of(queue: Sequence[Row], after: int | None) -> Row | None:
    """Return the row after an attempt in the queue, cyclically; the first if it is not there."""
    places = [row.attempt for row in queue]
    if not queue:
        return None
    return queue[(places.index(after) + 1) % len(queue)] if after in places else queue[0]


_REQUESTS = (BudgetRequest, PermissionRequest, PlanCheck)
_MATTERS = (AttemptTransition, Alert, Delivery, Escalation, Intervention, *_REQUESTS)


class AttentionQueue:
    """What waits for a person; recomputed only after relevant entries."""

    def __init__(self, board: FleetBoard) -> None:
        self._board = board
        self._rows: list[Row] | None = None
        self.proposals: tuple[QueueItem, ...] = ()
        """Proposed guidelines, the newest first, listed after all attempts."""

    def observe(self, entries: Iterable[Entry], *, of_nodes: bool = False) -> None:
        """Note whether new entries can change the queue; `of_nodes` says that nodes changed."""
        if of_nodes or any(_may_change_queue(entry.record) for entry in entries):
            self._rows = None

    @property
    def rows(self) -> list[Row]:
        """Return the attempts, most urgent first."""
        if self._rows is None:
            self._rows = self._board.attention()
        return self._rows

    @property
    def of_nodes(self) -> list[QueueItem]:
        """Return the lost nodes by name, and the tasks that no node will take."""
        return [*self._lost_nodes, *map(unplaced_tasks, self._board.unplaced)]

    @property
    def _lost_nodes(self) -> list[QueueItem]:
        losses = self._board.node_list.losses
        rows = self._board.rows.values() if losses else ()
        adrift = Counter(row.state.node for row in rows if row.adrift)
        return [lost_node(loss, adrift[loss.status.name]) for loss in losses]

    @property
    def calling(self) -> list[QueueItem]:
        """Return everything a person may be called for: lost nodes, attempts, then tasks."""
        unplaced = map(unplaced_tasks, self._board.unplaced)
        return [*self._lost_nodes, *map(waiting_attempt, self.rows), *unplaced]

    @property
    def count(self) -> int:
        of_nodes = len(self._board.node_list.losses) + len(self._board.unplaced)
        return len(self.rows) + of_nodes + len(self.proposals)


def _may_change_queue(record: Record) -> bool:
    moved = isinstance(record, Change) and record.node is not None
    return moved or isinstance(record, _MATTERS)
