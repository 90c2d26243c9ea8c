"""What the journal says came of one task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mind import ONSETS, Onset
from scene import Nature, Scene

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Alert,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Decision,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
    Spending,
    Step,
    Task,
    TaskTransition,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One task at the end of its run."""

    task: str
    fault: str
    nature: Nature
    heed: str
    """The gentlest thing that a scripted worker reacts to."""
    completed: bool
    ending: str
    """How it stands, with the reason."""
    attempts: int
    steps: int
    requests: int
    tokens: int
    supervision_tokens: int
    alarms: int
    actions: tuple[str, ...]
    """Delivered, in their order."""
    found_after: int | None
    """Steps from the onset of the fault until somebody was told; `None` if nobody was."""
    handed_over_at: int | None
    """Requests used when it was parked with a question, or stopped; `None` if it was not."""
    diagnoses: tuple[str, ...]
    named: bool | None
    """Whether the last diagnosis names the fault; `None` where nothing was decided."""


@dataclass(slots=True, kw_only=True)
class _Story:
    """All entries of one task and of its parts, where it was split, read once."""

    task: Task
    attempts: Sequence[Attempt]
    entries: Sequence[Entry]

    @classmethod
    async def read(cls, journal: Journal, task: Task) -> "_Story":
        """The story as the journal holds it."""
        parts = [
            each
            for each in await journal.tasks(task.run)
            if each.id == task.id or each.name.startswith(f"{task.name}.")
        ]
        entries: list[Entry] = []
        attempts: list[Attempt] = []
        for part in parts:
            attempts += await journal.attempts(part.id)
            last = 0
            while page := await journal.entries(last, task=part.id):
                entries += page
                last = page[-1].id
        return cls(task=task, attempts=attempts, entries=sorted(entries, key=lambda each: each.id))

    def all(self, kind: type) -> list[Entry]:
        return [entry for entry in self.entries if isinstance(entry.record, kind)]


async def gather(
    journal: Journal, task: Task, scene: Scene, *, watched: bool, scripted: bool
) -> Facts:
    """Read what came of a task; nobody is told of an alarm where nobody watches."""
    story = await _Story.read(journal, task)
    end = _end(story)
    used = _used(story)
    diagnoses = _diagnoses(story)
    return Facts(
        task=task.name,
        fault=scene.fault,
        nature=scene.nature,
        heed=scene.heed.name.lower() if scripted and scene.nature is Nature.RECOVERABLE else "",
        completed=end.lifecycle is Lifecycle.COMPLETED,
        ending=f"{end.lifecycle.value}: {end.reason}",
        attempts=len(story.attempts),
        steps=len(story.all(Step)),
        requests=int(used[-1][1]) if used else 0,
        tokens=_tokens(story),
        supervision_tokens=sum(
            each.record.tokens for each in story.all(Spending) if isinstance(each.record, Spending)
        ),
        alarms=len(_alarms(story)),
        actions=_actions(story),
        found_after=_found_after(story, ONSETS.get(task.name), watched=watched),
        handed_over_at=_handed_over_at(story, used),
        diagnoses=tuple(diagnoses),
        named=diagnoses[-1] in scene.causes if diagnoses and scene.causes else None,
    )


def _end(story: _Story) -> TaskTransition | AttemptTransition:
    """The last state of the task; of a parked one that of its attempt, which says the question."""
    last: TaskTransition | AttemptTransition = TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    for entry in story.entries:
        if entry.task == story.task.id and isinstance(
            entry.record, TaskTransition | AttemptTransition
        ):
            last = entry.record
    return last


def _used(story: _Story) -> list[tuple[int, float]]:
    """Requests used in all, each with the entry from which on that is so."""
    return _sum(story, lambda budget: budget.requests.used)


def _sum(story: _Story, of: Callable[[Budget], float]) -> list[tuple[int, float]]:
    """What was used over all parts of the task, as it grew; each part counts for itself."""
    used: dict[int, float] = {}
    found: list[tuple[int, float]] = []
    for entry in story.entries:
        if isinstance(entry.record, Change) and entry.record.budget is not None:
            used[entry.task] = of(entry.record.budget)
            found.append((entry.id, sum(used.values())))
    return found


def _tokens(story: _Story) -> int:
    return int(max((count for _, count in _sum(story, lambda each: each.tokens.used)), default=0))


def _alarms(story: _Story) -> list[Entry]:
    return [
        entry
        for entry in story.entries
        if isinstance(entry.record, Alert) and entry.record.firing and entry.record.severity.alarm
    ]


def _actions(story: _Story) -> tuple[str, ...]:
    issued = {
        entry.id: entry.record.action
        for entry in story.entries
        if isinstance(entry.record, Intervention)
    }
    return tuple(
        issued[entry.record.intervention].value
        for entry in story.entries
        if isinstance(entry.record, Delivery) and entry.record.state is DeliveryState.DELIVERED
    )


def _diagnoses(story: _Story) -> list[str]:
    """What was diagnosed, but for what was refused and for what nothing was done about."""
    return [
        entry.record.diagnosis.value
        for entry in story.entries
        if isinstance(entry.record, Decision)
        and not entry.record.refused
        and entry.record.action is not Action.OBSERVE
    ]


def _found_after(story: _Story, onset: Onset | None, *, watched: bool) -> int | None:
    """Steps until an alarm; where there was none, until the task ended in failure."""
    onset = onset or Onset(attempt=1, step=1)
    first = next((each.id for each in story.attempts if each.number == onset.attempt), 0)
    alarms = {each.id for each in _alarms(story)}
    steps = 0
    for entry in story.entries:
        if entry.attempt is not None and entry.attempt < first:
            continue
        if isinstance(entry.record, Step):
            steps += 1
        told = watched and entry.id in alarms
        if (told or _failed(entry, story)) and steps >= onset.step:
            return steps - onset.step + 1
    return None


def _failed(entry: Entry, story: _Story) -> bool:
    own = entry.task == story.task.id
    record = entry.record
    return own and isinstance(record, TaskTransition) and record.lifecycle is Lifecycle.FAILED


def _handed_over_at(story: _Story, used: Sequence[tuple[int, float]]) -> int | None:
    """Requests used when a person was asked, or when the task failed for its true reason."""
    for entry in story.entries:
        asked = (
            isinstance(entry.record, AttemptTransition)
            and entry.record.lifecycle is Lifecycle.INPUT_REQUIRED
        )
        if asked or _failed(entry, story):
            return int(max((count for id, count in used if id <= entry.id), default=0.0))
    return None
