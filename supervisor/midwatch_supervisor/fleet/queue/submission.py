"""Submits a task file to a fleet: checked here, run elsewhere."""

import hashlib
import json
import re
from collections.abc import Sequence

from midwatch_agents.models import NONE, SCRIPTED
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import ModelSpec
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet import submission
from midwatch_monitor.journal.fleet.submission import NewTask, SubmissionKey
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Run
from midwatch_supervisor.fleet.queue.queue import queues_of
from midwatch_supervisor.present.assignment import Assignment, models_named
from midwatch_supervisor.workspaces.workspace import head_of

_KEY = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_ELSEWHERE = {"base", "project"}
"""Fields that depend on where and when a task file is read, not on what it asks for."""


async def submit(
    journal: Journal,
    wanted: Sequence[Assignment],
    *,
    source: str,
    settings: Settings,
    clock: Clock,
    key: str | None = None,
) -> tuple[Run, bool]:
    """Store a run with all its tasks, or nothing; the commits that tasks start from are fixed.

    Returns the run, and whether it was there already: if the fleet has a run with the same key,
    that one is returned. Raises UsageError if it has other tasks, WorkspaceError if a repository
    cannot be asked, and JournalError.
    """
    fleet = settings.fleet.name
    # First, because then an unreachable repository does not matter.
    if key and (there := await submitted(journal, wanted, fleet=fleet, key=key)):
        return there, True
    tasks = [
        NewTask(
            name=each.task.id,
            title=each.task.label,
            spec=each.model_dump_json(),
            project=each.project,
        )
        for each in await pin_commits(wanted)
    ]
    return await journal.write(
        submission.submit,
        tasks,
        source=source,
        settings=settings.for_run(),
        at=clock(),
        key=_submission_key(wanted, fleet, key) if key else None,
    )


async def submitted(
    journal: Journal, wanted: Sequence[Assignment], *, fleet: str, key: str
) -> Run | None:
    """Return the run that these tasks were submitted as under a key; `None` if there is none.

    Raises UsageError if the run of that key has other tasks, and JournalError.
    """
    return await journal.read(submission.find_submission, _submission_key(wanted, fleet, key))


def _submission_key(wanted: Sequence[Assignment], fleet: str, key: str) -> SubmissionKey:
    return SubmissionKey(fleet=fleet, name=key, digest=digest(wanted))


async def pin_commits(wanted: Sequence[Assignment]) -> tuple[Assignment, ...]:
    """Return the tasks, each with the commit that it starts from, the same for every node.

    Raises WorkspaceError for a repository without a commit, or one that does not answer.
    """
    known: dict[str, str] = {}
    for each in wanted:
        if each.source not in known:
            known[each.source] = each.base or await head_of(each.source, url=bool(each.origin))
    return tuple(
        each.model_copy(update={"base": each.base or known[each.source]}) for each in wanted
    )


def digest(wanted: Sequence[Assignment]) -> str:
    """Return a digest of the tasks that does not depend on their repositories' commits. Pure.

    A task file that only looks different has the same digest; defaults are left out, so that a
    newer Midwatch with more of them agrees.
    """
    said = [
        each.model_dump(mode="json", exclude=_ELSEWHERE, exclude_defaults=True) for each in wanted
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def check_key(key: str) -> None:
    """Raise UsageError if this is not a valid key."""
    if not _KEY.fullmatch(key) or key != key.strip():
        raise UsageError(
            f"--key {key!r}: a key has 1 to 200 characters, no control characters, and no leading "
            "or trailing spaces"
        )


def check(wanted: Sequence[Assignment], *, fleet: str) -> None:
    """Raise UsageError for what no node could run: unknown providers of models or kinds of workers,
    too many labels.

    Builds nothing: API keys and the providers' packages may be on the nodes only.
    """
    from midwatch_agents.worker import check_kind

    for each in wanted:
        for name, spec in {each.worker: each.spec, **each.others}.items():
            check_kind(spec, name)
        queues_of(fleet, each.task.labels)
        for spec in models_named(each):
            _check_model(spec, task=each.task.id)


def _check_model(spec: ModelSpec, *, task: str) -> None:
    if spec.name == NONE or spec.name.startswith(SCRIPTED) or spec.base_url is not None:
        return
    from pydantic_ai.providers import infer_provider_class

    provider, colon, _ = spec.name.partition(":")
    try:
        known = bool(colon)
        infer_provider_class(provider.removeprefix("gateway/"))
    except ImportError:
        return  # the package is missing here, which does not matter
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"task {task}: there is no model {spec.name!r}: write `provider:model`")
