"""Finished tasks done again with one text of the guidelines and with another."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_monitor.config.policy import PersonSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Entry,
    Lifecycle,
    Task,
    TaskTransition,
    TrialScore,
)
from midwatch_supervisor.present.assignment import Assignment

if TYPE_CHECKING:
    from midwatch_supervisor.run.context import RunResources

_MINUTES = 30.0
"""How long a task without a limit of its own may take."""


async def done_again(
    journal: Journal,
    tasks: Sequence[Assignment],
    texts: tuple[str, str],
    *,
    source: str,
    settings: Settings,
    home: Path,
    clock: Clock,
) -> tuple[TrialScore, ...]:
    """What each task comes to with each of two texts. Raises as `launch.begin` does.

    Nothing is learned from these runs, nobody is asked in them, and none is left to be resumed.
    """
    if not tasks:
        return ()
    shares = [
        await _shares(
            journal,
            [again(each, text) for each in tasks],
            source=source,
            settings=_bounded(settings),
            home=home,
            clock=clock,
        )
        for text in texts
    ]
    return tuple(
        TrialScore(task=each.task.id, before=before, after=after)
        for each, before, after in zip(tasks, *shares, strict=True)
    )


def again(assignment: Assignment, text: str) -> Assignment:
    """A task once more, with a text of the guidelines of its own and nothing learned from it."""
    task = assignment.task.model_copy(update={"max_attempts": 1, "depends_on": ()})
    tried = {"project": "", "trial_of": assignment.project, "guidelines": text}
    return assignment.model_copy(update={"task": task, **tried})


def _bounded(settings: Settings) -> Settings:
    """The same configuration, where nothing waits for a person."""
    policy = settings.policy.model_copy(update={"person": PersonSettings()})
    return settings.model_copy(update={"policy": policy})


async def _shares(
    journal: Journal,
    tasks: Sequence[Assignment],
    *,
    source: str,
    settings: Settings,
    home: Path,
    clock: Clock,
) -> list[float]:
    """Which share of the checks of each task passed; 0 where it did not come to its checks."""
    # A run learns at its end, and this may be a part of that: the one would import the other.
    from midwatch_supervisor.learning.run_learning import RunLearning
    from midwatch_supervisor.run.launch import begin, conduct

    resources, jobs = await begin(
        journal,
        tasks,
        source=source,
        settings=settings,
        home=home,
        learning=RunLearning,
        clock=clock,
    )
    minutes = sum(each.task.budget.minutes or _MINUTES for each in tasks)
    try:
        async with asyncio.timeout(60 * minutes):
            await conduct(resources, jobs, _ignore)
    except TimeoutError:
        pass  # what did not end comes to nothing
    finally:
        await asyncio.shield(_end(resources))
    return [_share(job.state) for job in jobs]


def _share(state: TaskTransition) -> float:
    ended = state.lifecycle in {Lifecycle.COMPLETED, Lifecycle.FAILED}
    return state.passed / state.total if ended and state.total else 0.0


async def _end(resources: "RunResources") -> None:
    """Cancel what is not over: nobody is to be waited for, and nothing to be gone on with."""
    reason = "the trial is over"
    for task in await resources.journal.tasks(resources.run.id):
        if (await state_of(resources.journal, task)).lifecycle.over:
            continue
        for attempt in (await resources.journal.attempts(task.id))[-1:]:
            canceled = AttemptTransition(
                lifecycle=Lifecycle.CANCELED, reason=reason, ending=Ending.CANCELED
            )
            await _state(resources, task.id, canceled, attempt.id)
        await _state(
            resources, task.id, TaskTransition(lifecycle=Lifecycle.CANCELED, reason=reason)
        )


async def state_of(journal: Journal, task: Task) -> TaskTransition:
    """Where a task stands."""
    entries = await journal.entries(task=task.id, kinds=(TaskTransition,))
    return next(
        entry.record for entry in reversed(entries) if isinstance(entry.record, TaskTransition)
    )


async def _state(
    resources: "RunResources",
    task: int,
    state: TaskTransition | AttemptTransition,
    attempt: int | None = None,
) -> None:
    draft = Draft(record=state, at=resources.clock(), task=task, attempt=attempt)
    with suppress(StaleIncarnationError):  # it is over already
        await resources.journal.commit(Commit(drafts=(draft,)))


async def _ignore(entries: Sequence[Entry]) -> None:
    return
