"""`midwatch lessons add` and `give`: a person writes a lesson, or hands one to a task."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from midwatch_agents.learning.classes import OTHER, UNKNOWN, named_class
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Attempt, KnownLesson, Lesson, LessonAct, Task
from midwatch_supervisor.cli.journals import RunOption
from midwatch_supervisor.cli.learn.options import UNSAID, Remark
from midwatch_supervisor.cli.learn.projects import ProjectOption, project_named
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, settings_in_force
from midwatch_supervisor.present.lookup import account_of, find

MAX_TEXT = 2000
"""Characters of a lesson, and of each thing to do instead: what a prompt shows of one."""

Several = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What a lesson has beside its text."""

    instead: Annotated[
        Several, Parameter(negative="", help="What to do instead; may be repeated.")
    ] = ()
    tag: Annotated[Several, Parameter(negative="", help="A tag; may be repeated.")] = ()
    file: Annotated[
        Several, Parameter(negative="", help="A file that it is about; may be repeated.")
    ] = ()
    failure_class: Annotated[
        str, Parameter(name="--class", help="The class of the failure, one of the configuration.")
    ] = UNKNOWN

    def lesson(self, text: str, classes: Mapping[str, Several]) -> Lesson:
        """The lesson with this text. Raises UsageError."""
        return Lesson(
            text=_checked(text),
            failure_class=_class(self.failure_class, classes),
            insights=tuple(map(_checked, self.instead)),
            tags=self.tag,
            files=self.file,
        )


_PLAIN = Fields()


async def add(
    text: Annotated[
        str | None,
        Parameter(name="TEXT", help="What to know, do or avoid. Default: read from stdin."),
    ] = None,
    *,
    fields: Fields = _PLAIN,
    project: ProjectOption = None,
    task: Annotated[
        str | None, Parameter(help="The task that it is about. Default: the newest one.")
    ] = None,
    remark: Remark = UNSAID,
    config: ConfigOption = None,
) -> None:
    """Write a lesson of your own: like all others it is given where it fits, and waits for nobody.

    It is kept with an attempt of the project, and deleted with the project.
    """
    if remark.comment:
        raise UsageError("the text of a lesson needs no --comment")
    classes = settings_in_force(config).learning.lessons.failure_classes
    lesson = fields.lesson(await _from_stdin() if text is None else text, classes)
    async with await remark.opened() as opened:
        name, attempt = await _place(opened, project, task)
        actions = remark.shelf(opened)
        id = None if remark.dry_run else await actions.add_lesson(lesson, attempt)
    if not remark.json:
        write_line(
            f"would add a lesson to {name}" if id is None else f"added lesson {id} to {name}"
        )
        return
    told = {"project": name, "source_attempt": attempt.id, "text": lesson.text}
    by = {"author": actions.author, "dry_run": remark.dry_run}
    write_json({"type": "lesson", "id": id, **told, **by})


async def give(
    id: Annotated[int, Parameter(name="LESSON", help="The lesson's id, from `lessons list`.")],
    task: Annotated[
        str, Parameter(name="TASK", help="A task's id, or the unique beginning of one.")
    ],
    *,
    run: RunOption = None,
    remark: Remark = UNSAID,
) -> None:
    """Give a lesson to the next attempt of a task, whether or not it would be found for it.

    A task of a comparison of runs with and without lessons then belongs to neither group.
    """
    async with await remark.opened() as opened:
        known = await lesson_with(opened, id)
        found = (await find(opened, task, run=run)).task
        await _require_use(opened, known, found)
        actions = remark.shelf(opened)
        mark = None
        if not remark.dry_run:
            mark = await actions.give_lesson(id, found.id, remark.comment)
    if remark.json:
        write_json(
            {
                "type": "lesson_mark",
                "id": mark,
                "lesson": id,
                "act": LessonAct.GIVEN.value,
                "task": found.name,
                "dry_run": remark.dry_run,
            }
        )
        return
    verb = "would give" if remark.dry_run else "gave"
    write_line(f"{verb} lesson {id} to the next attempt of {found.name}")


async def lesson_with(journal: Journal, id: int) -> KnownLesson:
    """The lesson of that journal id. Raises UsageError."""
    found = await Learned(journal).lessons(ids=[id])
    if not found:
        raise UsageError(f"there is no lesson {id}; `midwatch lessons list --all` lists them")
    return found[0]


async def _from_stdin() -> str:
    if sys.stdin.isatty():
        raise UsageError("say what the lesson is, or pipe it in")
    return await asyncio.to_thread(sys.stdin.read)


def _checked(text: str) -> str:
    if not (stripped := text.strip()):
        raise UsageError("a lesson needs a text")
    if len(stripped) > MAX_TEXT:
        raise UsageError(f"{len(stripped)} characters are too many; at most {MAX_TEXT} are shown")
    return stripped


def _class(name: str, known: Mapping[str, Several]) -> str:
    found = named_class(name, known)
    if found == OTHER and name != OTHER:
        raise UsageError(f"there is no class `{name}`; there is: {', '.join((*known, OTHER))}")
    return found


async def _place(journal: Journal, project: str | None, task: str | None) -> tuple[str, Attempt]:
    """The project of a new lesson, and the attempt of it that the lesson is kept with."""
    if task is not None:
        found = await find(journal, task)
        tasks: Sequence[Task] = (found.task,)
        name = found.task.project
        if not name or project not in (None, name):
            raise UsageError(f"task {found.task.name} is none of project {project or 'at all'}")
    else:
        name = await project_named(Learned(journal), project)
        runs = (await journal.runs())[::-1]
        tasks = [each for run in runs for each in (await journal.tasks(run.id))[::-1]]
    for each in tasks:
        if each.project == name and (attempts := await journal.attempts(each.id)):
            return name, attempts[-1]
    raise UsageError(f"nothing was tried in {name} yet; a lesson is kept with an attempt")


async def _require_use(journal: Journal, known: KnownLesson, task: Task) -> None:
    """Raise UsageError where no attempt would be given it."""
    if known.project != task.project:
        raise UsageError(f"lesson {known.id} is of {known.project}; {task.name} is not")
    if known.waiting or known.obsolete:
        verb = "approve" if known.waiting else "restore"
        raise UsageError(f"lesson {known.id} is not in use; `midwatch lessons {verb} {known.id}`")
    if (await account_of(journal, task)).lifecycle.over:
        raise UsageError(f"task {task.name} is over: it has no next attempt")
