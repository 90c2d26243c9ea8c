"""The agents of a task: its workers, supervisor, planner and reviewer, each with its model."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from midwatch_agents.model_retries import Breakers, PatientModel
from midwatch_agents.models import model_for
from midwatch_agents.worker import Worker
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.errors import UsageError
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.present.assignment import Assignment

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class TaskAgents:
    """Builds the agents of a task, each once. The whole run shares one breaker per provider."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        settings: Settings,
        breakers: Breakers,
        built: bool = True,
    ) -> None:
        """Build all agents that may be needed, so that errors show at the start.

        Without `built`, each is built when it is first used: in a fleet, the process that runs a
        task needs no supervisor, and the one that supervises it needs no workers. Raises UsageError
        and MissingExtraError as `Worker` and `model_for` do.
        """
        self._assignment = assignment
        self._settings = settings
        self._breakers = breakers
        self._models: dict[tuple[str, str], Model | None] = {}
        self._workers: dict[tuple[str, str], Worker] = {}
        if built:
            self.build_workers()
            _ = self.supervisor

    def build_workers(self) -> None:
        """Build all agents of the task except its supervisor."""
        for name in self.names:
            for spec in self._model_specs(name):
                self.worker(name, spec.name if spec else "")
        _ = self.planner, self.reviewer

    @cached_property
    def supervisor(self) -> Supervisor:
        """Supervisor of the task's attempts; decides by the policy alone if it has no model."""
        spec = self._assignment.model(Role.SUPERVISOR)
        model = model_for(spec, role=Role.SUPERVISOR, key=self._assignment.task.id)
        return Supervisor(model, self._settings.supervisor)

    @cached_property
    def planner(self) -> "Model | None":
        """Model that writes the plan; `None` if no plan is to be written or there is no model."""
        return self._patient_of(Role.PLANNER) if self._assignment.planned else None

    @cached_property
    def reviewer(self) -> "Model | None":
        """Model that reviews the work; `None` if no review is wanted or there is no model."""
        return self._patient_of(Role.REVIEWER) if self._assignment.task.review else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the task's workers, its own first."""
        return self._assignment.worker, *self._assignment.others

    def models(self, worker: str) -> tuple[str, ...]:
        """Return the names of the models that a worker may use, its own first."""
        return tuple(spec.name if spec else "" for spec in self._model_specs(worker))

    def worker(self, name: str, model: str) -> Worker:
        """Return a worker with one of its models; with its own model if the name is unknown."""
        key = (name, model if model in self.models(name) else self.models(name)[0])
        if key not in self._workers:
            spec = self._assignment.worker_spec(name)
            self._workers[key] = Worker(spec, name=name, model=self._worker_model(*key))
        return self._workers[key]

    def model_named(self, worker: str) -> Callable[[str], "Model"]:
        """Return a function that finds a worker's model by name, or raises UsageError."""

        def named(name: str) -> "Model":
            model = self._worker_model(worker, name) if name in self.models(worker) else None
            if model is None:
                raise UsageError(f"worker {worker} has no model {name!r}")
            return model

        return named

    def _model_specs(self, worker: str) -> tuple[ModelSpec | None, ...]:
        spec = self._assignment.worker_spec(worker)
        return self._assignment.worker_model(worker), *spec.other_models

    def _worker_model(self, worker: str, name: str) -> "Model | None":
        key = (worker, name)
        if key not in self._models:
            specs = self._model_specs(worker)
            spec = next((each for each in specs if each and each.name == name), None)
            self._models[key] = self._patient_model(spec, Role.WORKER)
        return self._models[key]

    def _patient_of(self, role: Role) -> "Model | None":
        return self._patient_model(self._assignment.model(role), role)

    def _patient_model(self, spec: ModelSpec | None, role: Role) -> "Model | None":
        model = model_for(spec, role=role, key=self._assignment.task.id)
        if model is None or spec is None:
            return None
        return PatientModel(model, tries=spec.tries, breaker=self._breakers.of(model), role=role)
