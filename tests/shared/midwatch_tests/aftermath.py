"""What a run through chaos came to, counted from the journal and from the marks. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from midwatch_monitor import records as r
from midwatch_tests.watched import uncoded

_R = TypeVar("_R", bound=r.Record)

LONG_ENOUGH = 3
"""Steps that an attempt must have gone on for before what it was not given counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line that a worker's command has left outside of its worktree."""

    label: str
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is left of a run."""

    tasks: Sequence[r.Task]
    attempts: Sequence[r.Attempt]
    entries: Sequence[r.Entry]
    """The whole log, in the order of its ids."""
    incarnations: Mapping[int, int] = field(default_factory=dict[int, int])
    """How often each attempt was claimed."""
    prompts: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    """What each attempt's worker was told, in its history."""
    marks: Mapping[int, Sequence[Mark]] = field(default_factory=dict[int, Sequence[Mark]])
    """By attempt, in the order in which they were made."""
    late: bool = False
    """Whether nobody waited any longer though work still got on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What is right and what is wrong; each list says what exactly."""

    tasks: int
    completed: int
    """Tasks."""
    attempts: int
    ended_once: int
    restarted: int
    moved: int
    """Attempts that more than one process has worked on."""
    alerted: int
    """Attempts with an escalation."""
    interventions: int
    delivered: int
    failed: tuple[str, ...]
    """Tasks that are over, and not completed."""
    unfinished: tuple[str, ...]
    """What may still have been getting on."""
    lost: tuple[str, ...]
    """What was not over, and did not get on."""
    doubled: tuple[str, ...]
    lost_interventions: tuple[str, ...]
    doubled_interventions: tuple[str, ...]
    sequence_gaps: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong. What was still getting on is not."""
        return (
            *self.failed,
            *self.lost,
            *self.doubled,
            *self.lost_interventions,
            *self.doubled_interventions,
            *self.sequence_gaps,
        )


def counted(evidence: Evidence) -> Counts:
    """Count all of it."""
    entries, attempts = evidence.entries, evidence.attempts
    records = _by_attempt(entries)
    ends = {each.id: _ends(records[each.id]) for each in attempts}
    stamps = [each for _, each in _of(entries, r.Delivery)]
    last = {each.task: each.record for each in entries if isinstance(each.record, r.TaskTransition)}
    completed = [one for one in last.values() if one.lifecycle is r.Lifecycle.COMPLETED]
    unended = list(_unended(evidence, ends))
    return Counts(
        tasks=len(evidence.tasks),
        completed=len(completed),
        attempts=len(attempts),
        ended_once=sum(len(each) == 1 for each in ends.values()),
        restarted=sum(end.ending is r.Ending.RESTARTED for each in ends.values() for end in each),
        moved=sum(len({mark.process for mark in each}) > 1 for each in evidence.marks.values()),
        alerted=len({each.attempt for _, each in _of(entries, r.Escalation)}),
        interventions=sum(1 for _ in _of(entries, r.Intervention)),
        delivered=sum(stamp.state is r.DeliveryState.DELIVERED for stamp in stamps),
        failed=tuple(_failed(evidence, last)),
        unfinished=tuple(text for text, moves in unended if moves),
        lost=tuple(text for text, moves in unended if not moves),
        doubled=tuple(_doubled(evidence, records, ends)),
        lost_interventions=tuple(_lost(evidence, records)),
        doubled_interventions=tuple(_doubled_interventions(evidence)),
        sequence_gaps=tuple(_gaps(evidence, records)),
    )


def _by_attempt(entries: Sequence[r.Entry]) -> Mapping[int, list[r.Entry]]:
    found: dict[int, list[r.Entry]] = defaultdict(list)
    for entry in entries:
        if entry.attempt is not None:
            found[entry.attempt].append(entry)
    return found


def _ends(entries: Iterable[r.Entry]) -> list[r.AttemptTransition]:
    states = [each.record for each in entries if isinstance(each.record, r.AttemptTransition)]
    return [state for state in states if state.lifecycle.over]


def _of(entries: Iterable[r.Entry], kind: type[_R]) -> Iterator[tuple[int, _R]]:
    for entry in entries:
        if isinstance(entry.record, kind):
            yield entry.id, entry.record


def _failed(evidence: Evidence, last: Mapping[int, r.TaskTransition]) -> Iterator[str]:
    for task in evidence.tasks:
        state = last.get(task.id)
        if state and state.lifecycle.over and state.lifecycle is not r.Lifecycle.COMPLETED:
            yield f"task {task.name} is {state.lifecycle}"


# -- what is not over ----------------------------------------------------------------------------


def _unended(
    evidence: Evidence, ends: Mapping[int, Sequence[r.AttemptTransition]]
) -> Iterator[tuple[str, bool]]:
    """What never ended, and whether it may still have been getting on."""
    over = {
        each.task
        for each in evidence.entries
        if isinstance(each.record, r.TaskTransition) and each.record.lifecycle.over
    }
    for task in evidence.tasks:
        if task.id not in over:
            yield f"task {task.name} never ended", evidence.late
    for attempt in evidence.attempts:
        if not ends[attempt.id]:
            yield f"attempt {attempt.id} never ended", evidence.late and attempt.task not in over
    state: dict[int, r.Escalation] = {
        each.id: each for _, each in _of(evidence.entries, r.Escalation)
    }
    for id, escalation in state.items():
        if escalation.state is r.EscalationState.OPEN:
            text = f"escalation {id} of attempt {escalation.attempt} was never answered"
            yield text, evidence.late


# -- work done twice -----------------------------------------------------------------------------


def _doubled(
    evidence: Evidence,
    records: Mapping[int, Sequence[r.Entry]],
    ends: Mapping[int, Sequence[r.AttemptTransition]],
) -> Iterator[str]:
    over = Counter(
        each.task
        for each in evidence.entries
        if isinstance(each.record, r.TaskTransition) and each.record.lifecycle.over
    )
    yield from (f"task {task} ended {times} times" for task, times in over.items() if times > 1)
    for attempt in evidence.attempts:
        states = ends[attempt.id]
        if len(states) > 1:
            yield f"attempt {attempt.id} ended {len(states)} times"
        checks = Counter(each.check for _, each in _of(records[attempt.id], r.Acceptance))
        for check, times in checks.items():
            if times > 1:
                yield f"attempt {attempt.id}: {check!r} was recorded {times} times"
        if not checks and any(state.ending is r.Ending.DONE for state in states):
            yield f"attempt {attempt.id} is done and no acceptance check is recorded"
        marks = evidence.marks.get(attempt.id, ())
        yield from _at_once(attempt.id, marks, evidence.incarnations.get(attempt.id, 0))


def _at_once(attempt: int, marks: Sequence[Mark], incarnations: int) -> Iterator[str]:
    """Each incarnation is one process from its first mark to its last, and runs a call once."""
    turns = [process for process, _ in groupby(mark.process for mark in marks)]
    if len(turns) > incarnations:
        who = ", ".join(turns)
        yield f"attempt {attempt}, incarnation {incarnations}, was worked on in turn by {who}"
    for label, times in Counter(mark.label for mark in marks).items():
        if times > incarnations:
            yield f"attempt {attempt}, incarnation {incarnations}, did {label} {times} times"


# -- interventions -------------------------------------------------------------------------------


def _lost(evidence: Evidence, records: Mapping[int, Sequence[r.Entry]]) -> Iterator[str]:
    for attempt in evidence.attempts:
        told = records[attempt.id]
        stamps: dict[int, set[r.DeliveryState]] = defaultdict(set)
        for _, stamp in _of(told, r.Delivery):
            stamps[stamp.intervention].add(stamp.state)
        steps = [id for id, _ in _of(told, r.Step)]
        for id, intervention in _of(told, r.Intervention):
            later = sum(step > id for step in steps)
            heard = _times_told(evidence, attempt.id, id) > 0
            if why := _loss(intervention, stamps[id], later, heard=heard):
                yield f"{intervention.action} ({id}) for attempt {attempt.id} {why}"


def _loss(
    intervention: r.Intervention, stamps: set[r.DeliveryState], later: int, *, heard: bool
) -> str:
    """How an intervention was lost, by its stamps and the steps since; empty if it was not."""
    action, settled = intervention.action, stamps - {r.DeliveryState.APPROVED}
    if settled:
        silent = action.spoken and r.DeliveryState.DELIVERED in settled and not heard
        return "is stamped as delivered, and its worker was not told" if silent else ""
    if action.of_alerts or (intervention.needs_approval and not stamps):
        return ""
    return "" if later < LONG_ENOUGH else f"was not delivered in {later} steps"


def _times_told(evidence: Evidence, attempt: int, intervention: int) -> int:
    opening = f"[midwatch #{intervention} "
    return sum(uncoded(text).count(opening) for text in evidence.prompts.get(attempt, ()))


def _doubled_interventions(evidence: Evidence) -> Iterator[str]:
    entries = evidence.entries
    stamps = Counter(
        each.intervention
        for _, each in _of(entries, r.Delivery)
        if each.state is r.DeliveryState.DELIVERED
    )
    yield from _more_than_once(stamps, "intervention {} was delivered {} times")
    outcomes = Counter(each.intervention for _, each in _of(entries, r.OutcomeReport))
    yield from _more_than_once(outcomes, "intervention {} was judged {} times")
    decided = Counter(each.escalation for _, each in _of(entries, r.Decision) if not each.refused)
    yield from _more_than_once(decided, "escalation {} was decided {} times")
    issued = Counter(
        each.escalation
        for _, each in _of(entries, r.Intervention)
        if each.escalation is not None and each.by is not r.Actor.OPERATOR
    )
    yield from _more_than_once(issued, "escalation {} was answered by {} interventions")
    for entry in entries:
        if isinstance(entry.record, r.Intervention) and entry.attempt is not None:
            times = _times_told(evidence, entry.attempt, entry.id)
            if times > 1:
                yield f"attempt {entry.attempt} was told intervention {entry.id} {times} times"


def _more_than_once(counter: Mapping[int, int], words: str) -> Iterator[str]:
    return (words.format(id, times) for id, times in counter.items() if times > 1)


# -- what is missing -----------------------------------------------------------------------------


def _gaps(evidence: Evidence, records: Mapping[int, Sequence[r.Entry]]) -> Iterator[str]:
    for attempt in evidence.attempts:
        told = records[attempt.id]
        numbers = [each.seq for each in told if each.seq is not None]
        if gap := _gap(numbers):
            yield f"attempt {attempt.id}: after seq {gap - 1} comes {_after(numbers, gap)}"
        steps = [each.number for _, each in _of(told, r.Step)]
        if gap := _gap(steps):
            yield f"attempt {attempt.id}: after step {gap - 1} comes {_after(steps, gap)}"


def _gap(numbers: Sequence[int]) -> int:
    """The first of 1, 2, 3 … that is not in its place; 0 if all are."""
    return next((at for at, number in enumerate(numbers, start=1) if at != number), 0)


def _after(numbers: Sequence[int], gap: int) -> int:
    return numbers[gap - 1]
