"""What a task still has that an action would need: attempts, models, workers, budget. Pure."""

from collections.abc import Sequence

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.records import Attempt
from midwatch_supervisor.decide.grants import room
from midwatch_supervisor.decide.history import History
from midwatch_supervisor.decide.standing import Means
from midwatch_supervisor.present.assignment import Assignment


def means_of(
    task: TaskSpec,
    assignment: Assignment | None,
    attempts: Sequence[Attempt],
    history: History,
    *,
    model: str,
    policy: PolicySettings,
) -> Means:
    """The means of the newest of a task's attempts, which has `model` now.

    A task that was not started from a task file has no other models or workers, and no parts.
    """
    now = attempts[-1]
    had = {each.worker for each in attempts}
    others = assignment.worker_spec(now.worker).other_models if assignment else ()
    return Means(
        attempts=max(0, task.max_attempts - now.number),
        models=tuple(each.name for each in others if each.name not in {model} | history.models),
        workers=tuple(each for each in task.other_workers if each not in had),
        grant=room(task.budget, history.granted, grants=len(history.grants), policy=policy),
        may_split=assignment is not None and not assignment.parent,
    )
