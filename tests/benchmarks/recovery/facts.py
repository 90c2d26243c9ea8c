"""What the journal says came of one task."""

from collections.abc import Sequence
from dataclasses import dataclass

from scene import Nature, Scene

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    AttemptTransition,
    Change,
    Decision,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
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
    requests: int
    actions: tuple[str, ...]
    """Delivered, in their order."""
    handed_over_at: int | None
    """Requests used when it was parked with a question, or stopped; `None` if it was not."""
    named: bool | None
    """Whether the last diagnosis names the fault; `None` where nothing was decided."""


async def _entries(journal: Journal, task: Task) -> list[Entry]:
    """All entries of one task and of its parts, where it was split."""
    entries: list[Entry] = []
    for part in await journal.tasks(task.run):
        last = 0
        if part.id == task.id or part.name.startswith(f"{task.name}."):
            while page := await journal.entries(last, task=part.id):
                entries += page
                last = page[-1].id
    return sorted(entries, key=lambda each: each.id)


async def gather(journal: Journal, task: Task, scene: Scene, *, scripted: bool) -> Facts:
    """Read what came of a task."""
    entries = await _entries(journal, task)
    own = [entry for entry in entries if entry.task == task.id]
    end, used, diagnoses = _end(own), _used(entries), _diagnoses(entries)
    return Facts(
        task=task.name,
        fault=scene.fault,
        nature=scene.nature,
        heed=scene.heed.name.lower() if scripted and scene.nature is Nature.RECOVERABLE else "",
        completed=end.lifecycle is Lifecycle.COMPLETED,
        ending=f"{end.lifecycle.value}: {end.reason}",
        requests=int(used[-1][1]) if used else 0,
        actions=_actions(entries),
        handed_over_at=_handed_over_at(entries, task, used),
        named=diagnoses[-1] in scene.causes if diagnoses and scene.causes else None,
    )


def _end(own: Sequence[Entry]) -> TaskTransition | AttemptTransition:
    """The last state of the task; of a parked one that of its attempt, which says the question."""
    last: TaskTransition | AttemptTransition = TaskTransition(lifecycle=Lifecycle.SUBMITTED)
    for entry in own:
        if isinstance(entry.record, TaskTransition | AttemptTransition):
            last = entry.record
    return last


def _used(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """Requests used in all, each with the entry from which on that is so; parts count apart."""
    used: dict[int, float] = {}
    found: list[tuple[int, float]] = []
    for entry in entries:
        if isinstance(entry.record, Change) and entry.record.budget is not None:
            used[entry.task] = entry.record.budget.requests.used
            found.append((entry.id, sum(used.values())))
    return found


def _actions(entries: Sequence[Entry]) -> tuple[str, ...]:
    issued = {
        entry.id: entry.record.action for entry in entries if isinstance(entry.record, Intervention)
    }
    return tuple(
        issued[entry.record.intervention].value
        for entry in entries
        if isinstance(entry.record, Delivery) and entry.record.state is DeliveryState.DELIVERED
    )


def _diagnoses(entries: Sequence[Entry]) -> list[str]:
    """What was diagnosed, but for what was refused and for what nothing was done about."""
    return [
        entry.record.diagnosis.value
        for entry in entries
        if isinstance(entry.record, Decision)
        and not entry.record.refused
        and entry.record.action is not Action.OBSERVE
    ]


def _handed_over_at(
    entries: Sequence[Entry], task: Task, used: Sequence[tuple[int, float]]
) -> int | None:
    """Requests used when a person was asked, or when the task failed for its true reason."""
    for entry in entries:
        record = entry.record
        failed = (
            entry.task == task.id
            and isinstance(record, TaskTransition)
            and record.lifecycle is Lifecycle.FAILED
        )
        asked = (
            isinstance(record, AttemptTransition) and record.lifecycle is Lifecycle.INPUT_REQUIRED
        )
        if asked or failed:
            return int(max((count for id, count in used if id <= entry.id), default=0.0))
    return None
