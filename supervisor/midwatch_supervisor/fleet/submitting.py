"""Hands a task file over to a fleet: checked here, run elsewhere."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from midwatch_agents.models import NONE, SCRIPTED
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import ModelSpec
from midwatch_monitor.errors import JournalTooNewError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.submission import NewTask
from midwatch_monitor.journal.submission import submit as store
from midwatch_monitor.recorder import Clock
from midwatch_monitor.words import Keeper, Run
from midwatch_supervisor.assignment import Assignment, pinned
from midwatch_supervisor.fleet.handout import queues_of


async def submit(
    journal: Journal,
    wanted: Sequence[Assignment],
    *,
    source: str,
    settings: Settings,
    clock: Clock,
) -> Run:
    """Store a run with all its tasks, or nothing; the commits that they begin at are pinned.

    Raises WorkspaceError where a repository cannot be asked, and JournalError.
    """
    tasks = [
        NewTask(
            name=each.task.id,
            title=each.task.label,
            spec=each.model_dump_json(),
            project=each.project,
            trial_of=each.trial_of,
        )
        for each in await pinned(wanted)
    ]
    run, _ = await journal.write(
        store,
        source=source,
        settings=settings.model_dump_json(),
        keeper=Keeper.MONITOR,
        tasks=tasks,
        at=clock(),
    )
    return run


def settings_of(run: Run) -> Settings:
    """What was in force where a run was handed over.

    Raises JournalTooNewError where another version of Midwatch wrote it, and this one knows it not.
    """
    try:
        return Settings.model_validate_json(run.settings)
    except ValidationError as error:
        raise JournalTooNewError(f"cannot read the settings of run {run.id}") from error


def check(wanted: Sequence[Assignment], *, fleet: str) -> None:
    """Raise UsageError for what no node could do: models of unknown providers, too many labels.

    Nothing is built: keys and providers' packages may be on the nodes only.
    """
    for each in wanted:
        queues_of(fleet, each.task.labels)
        for spec in _models(each):
            _check_model(spec, task=each.task.id)


def _models(assignment: Assignment) -> Iterable[ModelSpec]:
    yield from assignment.models.values()
    for worker in (assignment.spec, *assignment.others.values()):
        if worker.model is not None:
            yield worker.model
        yield from worker.other_models


def _check_model(spec: ModelSpec, *, task: str) -> None:
    if spec.name == NONE or spec.name.startswith(SCRIPTED) or spec.base_url is not None:
        return
    from pydantic_ai.providers import infer_provider_class

    provider, colon, _ = spec.name.partition(":")
    try:
        known = bool(colon)
        infer_provider_class(provider.removeprefix("gateway/"))
    except ImportError:
        return  # the provider's package is missing here, which is no matter
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"task {task}: there is no model {spec.name!r}: write `provider:model`")
