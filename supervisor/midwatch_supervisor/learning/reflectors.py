"""Finds the model that looks back at a task: the one of its role `reflector`, if there is one."""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from midwatch_agents.model_retries import Breakers, PatientModel
from midwatch_agents.models import NONE, SCRIPTED, model_for
from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Task
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.lookup import assignment_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model

FAILURES = 3
"""Consecutive failures of a model after which it is left alone."""
PAUSE = timedelta(minutes=5)
"""How long it is left alone; then one question tests it."""


def reflector_of(assignment: Assignment | None) -> ModelSpec | None:
    """Return a task's reflector: its own model, by default the worker's; `None` if there is none.

    With `supervisor: none` there is no reflector by default. Nor is a scripted worker one by
    default, because its script does not cover looking back.
    """
    if assignment is None:
        return None
    spec = assignment.model(Role.REFLECTOR) or assignment.model(Role.WORKER)
    if spec is None or Role.REFLECTOR in assignment.named:
        return spec
    supervisor = assignment.model(Role.SUPERVISOR)
    unwanted = supervisor is not None and supervisor.name == NONE
    return None if unwanted or spec.name.startswith(SCRIPTED) else spec


def reflects(assignment: Assignment | None) -> bool:
    spec = reflector_of(assignment)
    return spec is not None and spec.name != NONE


class Reflectors:
    """Builds the reflectors of tasks, each once.

    They have their own breakers: a failing reflector must not make a worker wait.
    """

    def __init__(self, settings: ProviderSettings) -> None:
        self._breakers = Breakers(settings, refusing=True)
        self._models: dict[tuple[str, str], Model | None] = {}

    def of(self, task: Task) -> "Model | None":
        """Return the model to ask about a task, or `None`.

        Raises UsageError and MissingExtraError as `model_for` does.
        """
        spec = reflector_of(assignment_of(task))
        if spec is None:
            return None
        # A scripted model has a script for each task.
        key = (spec.model_dump_json(), task.name if spec.name.startswith(SCRIPTED) else "")
        if key not in self._models:
            model = model_for(spec, role=Role.REFLECTOR, key=task.name)
            self._models[key] = model and PatientModel(
                model, tries=spec.tries, breaker=self._breakers.of(model), role=Role.REFLECTOR
            )
        return self._models[key]


async def newest_task(journal: Journal, project: str) -> Task | None:
    """Return a project's newest task, whose reflector stands for the project; else `None`."""
    for run in reversed(await journal.runs()):
        for task in reversed(await journal.tasks(run.id)):
            if task.project == project:
                return task
    return None


class Outages:
    """Models that failed several times in a row.

    If they were asked during an outage, each chore would lose one of its tries.
    """

    def __init__(self) -> None:
        # By identity: models need not be hashable, and `Reflectors` keeps them alive.
        self._failures: Counter[int] = Counter()
        self._until: dict[int, datetime] = {}

    def __bool__(self) -> bool:
        """Whether any model is left alone, or was until just now."""
        return bool(self._until)

    def resting(self, model: "Model | None", at: datetime) -> bool:
        """Whether a model is not to be asked at that time; `None` never rests."""
        until = self._until.get(id(model))
        return until is not None and at < until

    def note_failure(self, model: "Model | None", at: datetime) -> None:
        """Note that a question was not answered."""
        if model is not None:
            self._failures[id(model)] += 1
            if self._failures[id(model)] >= FAILURES:
                self._until[id(model)] = at + PAUSE

    def note_success(self, model: "Model | None") -> None:
        """Note that a question was answered."""
        self._failures.pop(id(model), None)
        self._until.pop(id(model), None)

    def probe(self) -> None:
        """Permit one question to each of them now."""
        self._until.clear()
