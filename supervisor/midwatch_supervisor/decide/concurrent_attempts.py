"""Who else is at work on the same files of a project, read from the journal."""

from collections.abc import Collection
from posixpath import normpath

from midwatch_monitor.concurrent_attempts import project_of
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, AttemptTransition, Change, Plan, Step, Writer
from midwatch_supervisor.decide.standing import Rival


async def rivals(journal: Journal, attempt: Attempt, paths: Collection[str]) -> tuple[Rival, ...]:
    """The attempts of other tasks that changed one of the files, or mean to now.

    Only those of the same run and project that are not over; the one that began first counts as
    the elder.
    """
    own = await journal.task(attempt.task)
    project = project_of(own)
    found: list[Rival] = []
    for task in await journal.tasks(own.run) if project and paths else ():
        if task.id == own.id or project_of(task) != project:
            continue
        attempts = await journal.attempts(task.id)
        for other in attempts[-1:]:  # those before it are over
            touched = await _touched(journal, other)
            found += [
                Rival(path=path, task=task.name, elder=other.id < attempt.id)
                for path in sorted(paths)
                if path in touched
            ]
    return tuple(found)


async def _touched(journal: Journal, attempt: Attempt) -> set[str]:
    """What an attempt at work changed or means to change; nothing of one that is over."""
    changed, meant, after = set[str](), set[str](), 0
    kinds = (Step, Change, Plan, AttemptTransition)
    while page := await journal.entries(after, attempt=attempt.id, kinds=kinds):
        for entry in page:
            match entry.record:
                case Step(edits=edits):
                    changed |= {edit.path for edit in edits if edit.writer is Writer.WORKER}
                case Plan() as plan:
                    meant = _files(plan.in_hand.files if plan.in_hand else ())
                case Change(plan_step_files=files) if files is not None:
                    meant = _files(files)
                case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
                    return set()
                case _:
                    pass
        after = page[-1].id
    return changed | meant


def _files(paths: Collection[str]) -> set[str]:
    return {normpath(path) for path in paths}
