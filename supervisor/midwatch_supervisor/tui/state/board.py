"""The whole fleet as the console shows it, folded from the journal. Pure; nothing is drawn here."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import (
    Actor,
    Alert,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Checkpoint,
    Decision,
    Entry,
    Fault,
    Intervention,
    Lifecycle,
    NodeStatus,
    Outcome,
    Plan,
    Record,
    Run,
    Step,
    SupervisedBy,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus, planned
from midwatch_monitor.state.intervention import Interventions, said_by_person
from midwatch_monitor.state.need import needs_person
from midwatch_monitor.state.run import judges
from midwatch_monitor.state.task import refusal
from midwatch_monitor.state.usage import Usage, WorkerUsage
from midwatch_supervisor.present.waiting import TURN, Wait, adrift, fleet_nodes, fleet_of, refused
from midwatch_supervisor.tui.state.feed import FeedBatch
from midwatch_supervisor.tui.state.learning import LearningCounts
from midwatch_supervisor.tui.state.node_list import NodeList, Unplaced, WaitingTasks
from midwatch_supervisor.tui.state.row import Need, Row

STREAM = 5_000
"""Number of checkpoints kept in the stream; the journal has all of them."""

_TIMES = 24 * 60 * 6
"""Number of ten-second spans kept: a day's worth, or more if some are empty."""


_FIELDS: Mapping[str, Callable[[Row], object]] = {
    "plan": lambda row: planned(row.state.plan_step, row.state.plan_steps),
    "progress": lambda row: row.state.progress,
    "confidence": lambda row: row.state.confidence,
    "budget": lambda row: row.used,
}
"""What not every fleet has; each function returns `None` for a row without it."""


def _may_move_row(record: Record) -> bool:
    """Whether a record may change a row's position; most do not."""
    if isinstance(record, Change):
        return bool(record.node or record.lifecycle or record.outage)
    return not isinstance(record, Step | Plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One checkpoint in the stream over all attempts."""

    row: Row
    at: datetime
    checkpoint: Checkpoint
    change: int | None
    """Change of confidence since the attempt's previous checkpoint."""
    planned: tuple[int, int] | None = None
    """The plan's position at that time, if there was one."""


@dataclass(slots=True, kw_only=True)
class Totals:
    """The counts in the header and the overview."""

    needs: Counter[Need] = field(default_factory=Counter[Need])
    """Attempts, and tasks without one, by need."""
    tasks: Counter[Lifecycle] = field(default_factory=Counter[Lifecycle])
    """Tasks that have entries."""
    ended: set[int] = field(default_factory=set[int])
    """Ids of tasks that ended by themselves without a check."""
    used: Usage = field(default_factory=Usage)
    """What the workers used."""
    alerts: int = 0
    interventions: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])
    acts: Counter[Actor] = field(default_factory=Counter[Actor])
    """Decisions of the policy and the supervisor, and operators' interventions."""
    times: dict[datetime, Counter[str]] = field(default_factory=dict[datetime, Counter[str]])
    """Fired `alerts` and delivered `interventions`, by ten-second span."""

    def count(self, what: str, at: datetime) -> None:
        time = at.replace(second=at.second // 10 * 10, microsecond=0)
        self.times.setdefault(time, Counter())[what] += 1
        while len(self.times) > _TIMES:
            del self.times[next(iter(self.times))]

    @property
    def completed(self) -> int:
        """Number of completed and checked tasks."""
        return self.tasks[Lifecycle.COMPLETED] - len(self.ended)

    @property
    def recovery_rate(self) -> float | None:
        """Share of judged interventions after which the attempt recovered."""
        judged = self.outcomes.total()
        return self.outcomes[Outcome.RECOVERED] / judged if judged else None


class FleetBoard:
    """All tasks and attempts as rows by need, with the data of the other panes."""

    def __init__(self) -> None:
        self.read = 0
        """Number of entries so far."""
        self.loading = True
        """Whether the journal's end has not been reached yet, so that data is incomplete."""
        self.rows: dict[int, Row] = {}
        """By attempt id."""
        self.queued: dict[int, Row] = {}
        """Tasks without an attempt, by task id."""
        self.runs: dict[int, Run] = {}
        self.interrupted: frozenset[int] = frozenset()
        """Runs whose process is gone."""
        self.tasks: dict[int, Task] = {}
        self.attempts: dict[int, Attempt] = {}
        self.reports: deque[Report] = deque(maxlen=STREAM)
        self.totals = Totals()
        self.learning = LearningCounts()
        self.node_list = NodeList()
        self.faults: deque[tuple[datetime, Row | None, Fault]] = deque(maxlen=50)
        self.last_at: datetime | None = None
        self.ended_at: datetime | None = None
        """When a task or an attempt last ended; verdicts and lessons may be later."""
        self.reopened: set[int] = set()
        """Tasks that a person has restarted, until the next attempt begins."""
        self._lifecycles: dict[int, Lifecycle] = {}
        """Lifecycles of tasks with entries, by id."""
        self._refusals: dict[int, str] = {}
        """For tasks that a node refused, by id: the node and the reason."""
        self._interventions = Interventions()
        self._used: dict[int, WorkerUsage] = defaultdict(WorkerUsage)
        """By task: its attempts share one budget."""
        self._places: set[str] = set()
        """All nodes that attempts were on."""
        self.fleets: dict[int, str] = {}
        """The fleets of the runs that nodes share."""
        self._not_judged: set[int] = set()
        self._waiting_tasks = WaitingTasks()
        self._unplaced: tuple[Unplaced, ...] | None = None
        """Tasks that no node will take; `None` if that may have changed."""
        self._waiting: dict[int, Row] = {}
        """Candidates for the queue, by attempt id."""
        self._changed: set[Row] = set()
        self._gone: set[Row] = set()
        self._needs: dict[Row, Need] = {}
        """Needs as last counted."""
        self.longest_name = 0
        """The number of characters of the longest label of a row so far."""
        self.filled: set[str] = set()
        """What some row has had so far: `plan`, `progress`, `confidence`, `budget`."""

    def take(self, batch: FeedBatch) -> None:
        for run in batch.runs:
            self.meet_run(run)
        for task in batch.tasks:
            self.meet_task(task)
        for attempt in batch.attempts:
            self.meet_attempt(attempt)
        for entry in batch.entries:
            self.fold(entry)
        self.read += len(batch.entries)
        self.loading = self.loading and not batch.ends
        if batch.interrupted is not None:
            self.interrupted = frozenset(batch.interrupted)
        if batch.nodes is not None:
            self.meet_nodes(batch.nodes)
        if batch.monitors is not None:
            self.meet_monitors(batch.monitors)

    @property
    def progress(self) -> str:
        """Return how much of the journal has been read; empty once all of it has."""
        if not self.loading:
            return ""
        return f"Reading the journal{f': {self.read:,} entries' if self.read else ''}…"

    def meet_run(self, run: Run) -> None:
        self.runs[run.id] = run
        if run.supervised_by is SupervisedBy.MONITOR:
            self.fleets[run.id] = fleet_of(run)
        if not judges(run):
            self._not_judged.add(run.id)

    def meet_nodes(self, statuses: Iterable[NodeStatus]) -> None:
        """Update the nodes' states: attempts on a lost node are adrift."""
        if self.node_list.take(statuses):
            self._unplaced = None
            for row in self.rows.values():
                self._look_for_node(row)

    def meet_monitors(self, monitors: Iterable[MonitorStatus]) -> None:
        self.node_list.monitors = tuple(monitors)

    def _look_for_node(self, row: Row) -> None:
        self._places.add(row.state.node)
        gone = row.movable and adrift(row.state, self.node_list.nodes.get(row.state.node))
        if gone is not row.adrift:
            row.adrift = gone
            self._update_place(row)

    def meet_task(self, task: Task) -> None:
        self.tasks[task.id] = task
        self.learning.meet(task)
        self._waiting_tasks.meet(task)
        self._unplaced = None
        self._add_queued_row(task)

    def meet_attempt(self, attempt: Attempt) -> None:
        """Add an attempt; its task must be known."""
        task = self.tasks[attempt.task]
        self.attempts[attempt.id] = attempt
        self.reopened.discard(task.id)
        self.totals.ended.discard(task.id)
        self._waiting_tasks.begin(task.id)
        if (waited := self.queued.pop(task.id, None)) is not None:
            self._unplaced = None
            self._changed.discard(waited)
            self._gone.add(waited)
            self.totals.needs[self._needs.pop(waited)] -= 1
        judged = task.run not in self._not_judged
        state = AttemptState(attempt=attempt, detailed=False, judged=judged)
        row = Row.of(task, state, movable=self._is_fleet_task(task))
        self._look_for_node(row)
        self.rows[attempt.id] = row
        self._update_need(row)

    def fold(self, entry: Entry) -> None:
        """Take in the journal's next entry; its task and attempt must be known."""
        if not said_by_person(entry.record):
            self.last_at = max(self.last_at or entry.at, entry.at)
        if isinstance(entry.record, TaskTransition | AttemptTransition):
            self.ended_at = entry.at if entry.record.lifecycle.over else self.ended_at
        if isinstance(entry.record, TaskTransition):
            self._fold_task(entry, entry.record)
        row = self.rows.get(entry.attempt or 0)
        self.learning.fold(entry, "" if row is None else row.label)
        if row is None:
            return
        self._count_entry(row, entry)
        row.fold(entry)
        ended = row.state.status is AttemptStatus.ENDED
        if ended and isinstance(entry.record, AttemptTransition):
            self.totals.ended.add(row.task)
        if isinstance(entry.record, Change) and entry.record.node is not None:
            self._look_for_node(row)
        if _may_move_row(entry.record):
            self._update_place(row)
        if len(self.filled) < len(_FIELDS):
            self.filled.update(name for name, of in _FIELDS.items() if of(row) is not None)

    def _update_need(self, row: Row) -> None:
        """Note that a row may have moved, and count its current need."""
        self._changed.add(row)
        self.longest_name = max(self.longest_name, len(row.label))
        before, needs = self._needs.get(row), self.totals.needs
        need = self._needs[row] = row.need
        if before is not need:
            needs[need] += 1
            if before is not None:
                needs[before] -= 1

    def _update_place(self, row: Row) -> None:
        self._update_need(row)
        if needs_person(row.state, adrift=row.adrift):
            self._waiting[row.state.id] = row
        else:
            self._waiting.pop(row.state.id, None)

    def take_moved(self) -> tuple[set[Row], set[Row]]:
        """Return rows whose need, name or alerts changed since the last call, and those removed.

        For a single caller: the fleet, which keeps its lines in order.
        """
        moved = self._changed, self._gone
        self._changed, self._gone = set(), set()
        return moved

    def _fold_task(self, entry: Entry, state: TaskTransition) -> None:
        before, counts = self._lifecycles.get(entry.task), self.totals.tasks
        self._lifecycles[entry.task] = state.lifecycle
        self._refusals[entry.task] = refusal(state)
        counts[state.lifecycle] += 1
        if before is not None:
            counts[before] -= 1
            self.totals.ended.discard(entry.task)
            if before.over and not state.lifecycle.over:
                self._reopen_task(self.tasks[entry.task])
        row = self.queued.get(entry.task)
        if row is not None:
            transition = AttemptTransition(lifecycle=state.lifecycle, reason=state.reason)
            row.fold(Entry(id=0, record=transition, at=entry.at, task=row.task, attempt=None))
            self._unplaced = None
            self._update_need(row)

    def _add_queued_row(self, task: Task) -> None:
        """Add a row for a task without a working attempt."""
        self.queued[task.id] = row = Row.of(task)
        self._update_need(row)

    def _reopen_task(self, task: Task) -> None:
        """Show a restarted task as waiting for its turn."""
        if task.id not in self.queued:
            self.reopened.add(task.id)
            self._add_queued_row(task)

    def _count_entry(self, row: Row, entry: Entry) -> None:
        """Count what an entry adds to its row's values so far."""
        totals, state = self.totals, row.state
        match entry.record:
            case Step(checkpoint=Checkpoint() as checkpoint):
                before = state.confidence
                change = None if before is None else checkpoint.confidence - before
                report = Report(
                    row=row,
                    at=entry.at,
                    checkpoint=checkpoint,
                    change=change,
                    planned=planned(state.plan_step, state.plan_steps),
                )
                self.reports.append(report)
            case Change(budget=Budget() as budget):
                totals.used += self._used[entry.task].fold(budget)
            case Alert(firing=True, key=key):
                if all(each.key != key for each in state.firing):
                    totals.alerts += 1
                    totals.count("alerts", entry.at)
            case Decision(by=actor):
                totals.acts[actor] += 1
            case Fault() as fault:
                self.faults.append((entry.at, row, fault))
            case _:
                self._count_intervention(entry)

    def _count_intervention(self, entry: Entry) -> None:
        totals, found = self.totals, self._interventions.fold(entry)
        if found is None:
            return
        if found.outcome is not None and entry.record is found.report:
            totals.outcomes[found.outcome] += 1
        elif found.action.of_alerts:
            return
        elif isinstance(entry.record, Intervention):
            totals.acts[Actor.OPERATOR] += entry.record.by is Actor.OPERATOR
        elif entry.record is found.stamp and found.delivered:
            totals.interventions += 1
            totals.count("interventions", entry.at)

    def all_rows(self) -> list[Row]:
        """Return all rows of the fleet, unsorted."""
        return [*self.queued.values(), *self.rows.values()]

    def attention(self) -> list[Row]:
        """Return what waits for a person, the longest first; then what is stuck and not
        acknowledged.

        Requests come last, as the policy or the supervisor may answer them too.
        """
        return sorted(self._waiting.values(), key=_urgency)

    def shared(self, row: Row) -> bool:
        """Whether a row is for nodes to work on, and not over."""
        return row.need is not Need.OVER and self._is_fleet_task(self.tasks[row.task])

    def _is_fleet_task(self, task: Task) -> bool:
        # An agent watched in its own process has no task file.
        return task.run in self.fleets and not task.embedded

    @property
    def open_since(self) -> datetime | None:
        """Return since when nodes have work: the start of the oldest unfinished run."""
        runs = {row.run for row in self.all_rows() if self.shared(row)}
        return min((self.runs[run].started_at for run in runs), default=None)

    @property
    def without_node(self) -> list[Row]:
        """Return what waits for a node in a fleet without running nodes; empty while unknown."""
        manned = {each.fleet for each in self.node_list.at_work}
        if not self.node_list.read or manned.issuperset(self.fleets.values()):
            return []
        shared = filter(self.shared, self.all_rows())
        return [row for row in shared if self.fleets[row.run] not in manned]

    def nodes_of(self, run: int) -> list[NodeStatus]:
        """Return the nodes of the fleet that works on a run."""
        return fleet_nodes(self.fleets[run], self.node_list.nodes.values())

    @property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """Return the tasks that no node will take, in the nodes' current state."""
        if self._unplaced is None:
            of_nodes = (
                (row, self.tasks[row.task], self.fleets[row.run])
                for row in self.queued.values()
                if self.shared(row)
            )
            self._unplaced = self._waiting_tasks.find_unplaced(
                of_nodes, self.node_list.nodes.values()
            )
        return self._unplaced

    def wait(self, row: Row) -> Wait | None:
        """Return what a task waits for before it begins; `None` if it has begun or is unknown."""
        begun = row.attempt is not None and row.lifecycle is not Lifecycle.SUBMITTED
        if begun or row.need is Need.OVER:
            return None
        if said := self._refusals.get(row.task):
            return Wait(what=refused(said), short=said, vain=True)
        if row.attempt is not None:
            return None
        task = self.tasks[row.task]
        nodes = self.nodes_of(task.run) if self._is_fleet_task(task) else None
        return self._waiting_tasks.wait(task, self._lifecycles, nodes)

    def turn(self, row: Row) -> str:
        """Return what a task waits for before it begins, in words; empty if it has begun."""
        wait = self.wait(row)
        return wait.what if wait is not None else TURN * (row.attempt is None)

    @property
    def several_nodes(self) -> bool:
        """Whether there are several nodes, so that naming an attempt's node helps."""
        return len(self._places | self.node_list.nodes.keys()) > 1

    @property
    def several_runs(self) -> bool:
        """Whether tasks of several runs are shown, whose names may be equal."""
        return len(self.runs) > 1

    @property
    def only_waits(self) -> bool:
        """Whether no attempt works and some wait for a person."""
        open_ones = [row.lifecycle for row in self.rows.values() if not row.over]
        return bool(open_ones) and all(each is Lifecycle.INPUT_REQUIRED for each in open_ones)


def _urgency(row: Row) -> tuple[int, float]:
    if row.need > Need.APPROVAL and not row.called:
        return 2, min(row.state.open_requests)
    at = row.state.needed_since or row.state.last_at
    return int(row.need > Need.APPROVAL), at.timestamp() if at else 0.0
