"""`midwatch lessons`: read what failures taught; add, give, approve, rate or retire lessons."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from cyclopts import App, Parameter

from midwatch_agents.learning.case import OTHER, UNKNOWN, named_class
from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import Attempt, KnownLesson, Lesson, LessonAct, Task
from midwatch_supervisor.cli.journals import (
    JournalOption,
    RunOption,
    journal_to_read,
    masked_note,
)
from midwatch_supervisor.cli.learn.options import (
    UNMARKED,
    MarkOptions,
    ProjectOption,
    project_named,
    write_note,
    write_parts,
)
from midwatch_supervisor.cli.output import write_columns, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.operator.actions import LearningMark, operator_name
from midwatch_supervisor.present.known_text import (
    lesson_detail,
    lesson_fields,
    lesson_history_fields,
    lesson_standing,
)
from midwatch_supervisor.present.lesson_history import lesson_history
from midwatch_supervisor.present.lookup import find, task_state
from midwatch_supervisor.present.text_line import brief
from midwatch_tools.data_blocks import fold_lines

app = App(name="lessons")
MAX_TEXT = 2000
"""Longest text of a lesson, and of each of its instructions: as much as a prompt shows."""

Several = tuple[str, ...]
LISTED = 50
"""Lessons listed for people; `--json` has all."""
_PAGE = 500

LessonId = Annotated[int, Parameter(name="ID", help="The lesson's id, from `lessons list`.")]
AllOption = Annotated[bool, Parameter(name="--all", help="Include retired and archived ones.")]


@app.command(name="list")
async def list_lessons(
    *,
    project: ProjectOption = None,
    all: AllOption = False,
    task: Annotated[str | None, Parameter(help="Only from the task with this name.")] = None,
    failure_class: Annotated[
        str | None, Parameter(name="--class", help="Only of this failure class.")
    ] = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print a project's lessons, newest first, and how often each was given and helped."""
    async with await journal_to_read(journal) as opened:
        learned = Learned(opened)
        if project is None and not await learned.projects():
            write_note(f"no lesson yet in {opened.name}", json=json)
            return
        name = await project_named(learned, project)
        only = partial(
            learned.lessons, project=name, task=task, failure_class=failure_class, limit=_PAGE
        )
        pages = every(lambda before: only(before=before))
        # A lesson that waits for review is not obsolete, although no attempt is given it.
        found = (known async for known in pages if all or not known.obsolete)
        if json:
            async for known in found:
                write_json(lesson_fields(known))
            return
        lessons = [known async for known in found]
        known = bool(lessons) or bool(await learned.lessons(project=name, limit=1))
    if not lessons:
        write_line(f"no {'such lesson' if known else 'lesson yet'} in {name}")
        return
    write_columns([_HEADS, *map(_row, lessons[:LISTED])])
    if len(lessons) > LISTED:
        write_line(f"these are the newest {LISTED}; --json prints all of them")


_HEADS = ("id", "class", "from", "used", "helped", "hurt", "rated", "lesson")
_TEXT = 60
_NAME = 24


def _row(known: KnownLesson) -> tuple[str, ...]:
    state = "(waits for you) " if known.waiting else "(out of use) " if known.obsolete else ""
    return (
        str(known.id),
        brief(known.lesson.failure_class, _NAME),
        brief(f"{known.task} ({known.attempt})" if known.task else known.lesson.author, _NAME),
        *map(str, (known.used, known.helped, known.hurt, known.rating or "-")),
        f"{state}{brief(known.lesson.text, _TEXT)}",
    )


@app.command
async def show(id: LessonId, /, *, journal: JournalOption = None, json: JsonOption = False) -> None:
    """Print everything about one lesson: its source, its uses and their results."""
    async with await journal_to_read(journal) as opened:
        known = await _lesson_with(opened, id)
        history = await lesson_history(opened, known)
    if json:
        write_json(lesson_history_fields(known, history))
    else:
        write_parts((("lesson", f"{id} of {known.project}"), *lesson_detail(known, history)))


@app.command
async def approve(*ids: LessonId, options: MarkOptions = UNMARKED) -> None:
    """Allow lessons waiting for review to be given to attempts; read them first."""
    if not ids:
        raise UsageError(f"name lessons by their ids: `{command('lessons list')}` shows them")
    for id in ids:
        await _mark_lesson(id, LearningMark.APPROVE, options)


@app.command
async def retire(id: LessonId, /, *, options: MarkOptions = UNMARKED) -> None:
    """Retire a lesson: it is no longer given to attempts, unless it is restored."""
    await _mark_lesson(id, LearningMark.RETIRE, options)


@app.command
async def restore(id: LessonId, /, *, options: MarkOptions = UNMARKED) -> None:
    """Bring a retired or archived lesson back into use."""
    await _mark_lesson(id, LearningMark.RESTORE, options)


@app.command
async def rate(
    id: LessonId,
    rating: Annotated[
        Literal["1", "2", "3", "4", "5"],
        Parameter(name="RATING", help="From 1, misleading, to 5, very useful."),
    ],
    /,
    *,
    options: MarkOptions = UNMARKED,
) -> None:
    """Rate a lesson; the last rating counts, and a lesson rated 1 is not given to attempts."""
    await _mark_lesson(id, LearningMark.RATE, options, rating=int(rating))


async def _mark_lesson(
    id: int, mark: LearningMark, options: MarkOptions, *, rating: int = 0
) -> None:
    async with await options.open_journal() as opened:
        await options.mark(opened, mark, await _lesson_with(opened, id), rating=rating)


async def _lesson_with(journal: Journal, id: int) -> KnownLesson:
    found = await Learned(journal).lessons(ids=[id])
    if not found:
        raise UsageError(f"there is no lesson {id}; `{command('lessons list --all')}` lists them")
    return found[0]


# -- writing one, and giving one -----------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFields:
    """What a lesson has besides its text."""

    instead: Annotated[Several, Parameter(help="What to do instead; may be repeated.")] = ()
    tag: Annotated[Several, Parameter(help="A tag; may be repeated.")] = ()
    file: Annotated[Several, Parameter(help="A file the lesson is about; may be repeated.")] = ()
    failure_class: Annotated[
        str,
        Parameter(
            name="--class",
            help="Class of the failure: one from the configuration, `other` or `unknown`.",
        ),
    ] = UNKNOWN

    def lesson(self, text: str, classes: Several) -> Lesson:
        """Return the lesson with this text. Raises UsageError."""
        return Lesson(
            text=_check_text(text),
            failure_class=_class_text(self.failure_class, classes),
            insights=tuple(map(_check_text, self.instead)),
            tags=self.tag,
            files=self.file,
        )


_PLAIN = LessonFields()


@app.command
async def add(
    text: Annotated[
        str | None,
        Parameter(name="TEXT", help="What to know, do or avoid. Default: standard input."),
    ] = None,
    /,
    *,
    fields: LessonFields = _PLAIN,
    project: ProjectOption = None,
    task: Annotated[
        str | None, Parameter(help="The task that it is about, to which it is always given.")
    ] = None,
    run: RunOption = None,
    options: MarkOptions = UNMARKED,
    config: ConfigOption = None,
) -> None:
    """Add a lesson of your own: it is given where it fits, like others, and needs no review.

    It is stored with an attempt of the project, and deleted with the project.
    """
    if options.comment:
        raise UsageError("the text of a lesson needs no --comment")
    if run is not None and task is None:
        raise UsageError("--run goes with --task: name one")
    classes = settings_in_force(config).learning.lessons.classes
    lesson = fields.lesson(await _from_stdin() if text is None else text, classes)
    try:
        journal = await options.open_journal()
    except UsageError as error:
        raise UsageError(f"{error}; a lesson is kept with an attempt of its project") from None
    async with journal as opened:
        name, attempt = await _lesson_source(opened, project, task, run)
        await _require_news(opened, name, lesson.text)
        if task is not None:
            lesson = replace(lesson, sources=(attempt.id,))
        note = masked_note(opened, lesson.text, *lesson.insights)
        await options.store(
            opened,
            lambda actions: actions.add_lesson(lesson, attempt),
            kind="lesson",
            fields={
                "project": name,
                "source_attempt": attempt.id,
                "text": opened.masker.text(lesson.text),
                "author": operator_name(options.author),
            },
            text=lambda id: (
                (f"added lesson {id} to {name}" if id else f"would add a lesson to {name}") + note
            ),
        )


@app.command
async def give(
    id: Annotated[int, Parameter(name="LESSON", help="The lesson's id, from `lessons list`.")],
    task: Annotated[str, Parameter(name="TASK", help="A task's id, or a unique prefix of it.")],
    /,
    *,
    run: RunOption = None,
    options: MarkOptions = UNMARKED,
) -> None:
    """Give a lesson to the next attempt of a task, even if it would not be selected.

    In a comparison of runs with and without lessons, the task then counts in neither group.
    """
    async with await options.open_journal() as opened:
        known = await _lesson_with(opened, id)
        found = (await find(opened, task, run=run)).task
        await _require_use(opened, known, found)
        to = f"to the next attempt of {found.name}"
        await options.store(
            opened,
            lambda actions: actions.give_lesson(id, found.id, options.comment),
            kind="lesson_mark",
            fields={"lesson": id, "act": LessonAct.GIVEN.value, "task": found.name},
            text=lambda mark: f"{'gave' if mark else 'would give'} lesson {id} {to}",
        )


async def _from_stdin() -> str:
    if sys.stdin.isatty():
        raise UsageError("give the lesson's text, or pipe it in")
    return await asyncio.to_thread(sys.stdin.read)


def _check_text(text: str) -> str:
    if not (stripped := text.strip()):
        raise UsageError("a lesson needs text")
    if len(stripped) > MAX_TEXT:
        raise UsageError(f"{len(stripped)} characters are too many; at most {MAX_TEXT} are shown")
    return stripped


def _class_text(name: str, known: Several) -> str:
    found = named_class(name, known)
    if found == OTHER and name != OTHER:
        there = ", ".join(dict.fromkeys((*known, OTHER, UNKNOWN)))
        raise UsageError(f"there is no class `{name}`; known: {there}")
    return found


async def _lesson_source(
    journal: Journal, project: str | None, task: str | None, run: int | None
) -> tuple[str, Attempt]:
    """Return the project of a new lesson, and the attempt it is stored with."""
    if task is not None:
        found = await find(journal, task, run=run)
        tasks: Sequence[Task] = (found.task,)
        name = found.task.project
        if not name or project not in (None, name):
            of = f"does not belong to project {project}" if name and project else "has no project"
            raise UsageError(f"task {found.task.name} {of}")
    else:
        name = await project_named(Learned(journal), project)
        runs = (await journal.runs())[::-1]
        tasks = [each for run in runs for each in (await journal.tasks(run.id))[::-1]]
    for each in tasks:
        if each.project == name and (attempts := await journal.attempts(each.id)):
            return name, attempts[-1]
    raise UsageError(f"{name} has no attempt yet, and a lesson is stored with one")


async def _require_news(journal: Journal, project: str, text: str) -> None:
    """Raise UsageError if a lesson of the project already says the same."""
    learned, wanted = Learned(journal), fold_lines(journal.masker.text(text))
    of_project = partial(learned.lessons, project=project, limit=_PAGE)
    async for known in every(lambda before: of_project(before=before)):
        if fold_lines(known.lesson.text) == wanted:
            standing = lesson_standing(known)
            raise UsageError(
                f"lesson {known.id} already says that{f', and is {standing}' if standing else ''}"
            )


async def _require_use(journal: Journal, known: KnownLesson, task: Task) -> None:
    """Raise UsageError if no attempt would be given the lesson."""
    if known.project != task.project:
        raise UsageError(f"lesson {known.id} belongs to {known.project}, {task.name} does not")
    if known.waiting or known.obsolete:
        verb = "approve" if known.waiting else "restore"
        use = command(f"lessons {verb} {known.id}")
        raise UsageError(f"lesson {known.id} is not in use; `{use}`")
    if (await task_state(journal, task)).lifecycle.over:
        raise UsageError(f"task {task.name} is over: it will have no next attempt")
