"""`midwatch lessons`: what failures taught; read, write, give, approve, rate or retire it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import KnownLesson, LessonAct
from midwatch_supervisor.cli.journals import (
    JournalOption,
    journal_to_read,
)
from midwatch_supervisor.cli.learn.lessons_by_hand import add, give, lesson_with
from midwatch_supervisor.cli.learn.options import UNSAID, Remark
from midwatch_supervisor.cli.learn.projects import ProjectOption, project_named
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.learning.lesson_words import (
    lesson_fields,
    lesson_story,
    lesson_table,
    story_fields,
)
from midwatch_supervisor.learning.provenance import provenance
from midwatch_supervisor.operator.learning_actions import LearningActions

app = App(name="lessons")
app.command(add)
app.command(give)

LISTED = 50
"""Lessons that are listed for people; `--json` has them all."""
_PAGE = 500

LessonId = Annotated[int, Parameter(name="ID", help="The lesson's id, from `lessons list`.")]
AllOption = Annotated[
    bool, Parameter(name="--all", negative="", help="Retired and archived ones too.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """Which lessons are wanted; what is `None` does not matter."""

    project: str
    task: str | None
    failure_class: str | None
    obsolete: bool


@app.command(name="list")
async def list_lessons(
    *,
    project: ProjectOption = None,
    all: AllOption = False,
    task: Annotated[str | None, Parameter(help="Only from the task of that name.")] = None,
    failure_class: Annotated[
        str | None, Parameter(name="--class", help="Only of that failure class.")
    ] = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print the lessons of a project, newest first, with how often they were given and helped."""
    async with await journal_to_read(journal) as opened:
        learned = Learned(opened)
        if project is None and not await learned.projects():
            _nothing(f"no lesson yet in {opened.name}", json=json)
            return
        name = await project_named(learned, project)
        wanted = _Filter(project=name, task=task, failure_class=failure_class, obsolete=all)
        if json:
            async for known in _every(learned, wanted):
                write_json(lesson_fields(known))
            return
        lessons = [known async for known in _every(learned, wanted)]
    if not lessons:
        _nothing(f"no such lesson in {name}", json=False)
        return
    for line in lesson_table(lessons[:LISTED]):
        write_line(line)
    if len(lessons) > LISTED:
        write_line(f"these are the newest {LISTED}; --json has them all")


async def _every(learned: Learned, wanted: _Filter) -> AsyncIterator[KnownLesson]:
    before: int | None = None
    while page := await _page(learned, wanted, before=before):
        for known in page:
            if wanted.obsolete or not known.obsolete:
                yield known
        before = page[-1].id


async def _page(
    learned: Learned, wanted: _Filter, *, before: int | None = None
) -> list[KnownLesson]:
    return await learned.lessons(
        project=wanted.project,
        task=wanted.task,
        failure_class=wanted.failure_class,
        before=before,
        limit=_PAGE,
    )


def _nothing(text: str, *, json: bool) -> None:
    if not json:
        write_line(text)


@app.command
async def show(id: LessonId, *, journal: JournalOption = None, json: JsonOption = False) -> None:
    """Print everything about one lesson: where it comes from, and what became of its uses."""
    async with await journal_to_read(journal) as opened:
        known = await lesson_with(opened, id)
        found = await provenance(opened, known)
    if json:
        write_json(story_fields(known, found))
        return
    for line in lesson_story(known, found):
        write_line(line)


@app.command
async def approve(*ids: LessonId, remark: Remark = UNSAID) -> None:
    """Let lessons that wait for a person be given to attempts; read them first."""
    for id in ids:
        await _mark(id, _Act(LessonAct.RESTORED, "approve"), remark)


@app.command
async def retire(id: LessonId, *, remark: Remark = UNSAID) -> None:
    """Take a lesson out of use: it never comes back into a prompt, unless it is restored."""
    await _mark(id, _Act(LessonAct.RETIRED, "retire"), remark)


@app.command
async def restore(id: LessonId, *, remark: Remark = UNSAID) -> None:
    """Bring a retired or archived lesson back into use."""
    await _mark(id, _Act(LessonAct.RESTORED, "restore"), remark)


@app.command
async def rate(
    id: LessonId,
    rating: Annotated[
        Literal["1", "2", "3", "4", "5"],
        Parameter(name="RATING", help="What it is worth: 1 is misleading, 5 saved the day."),
    ],
    *,
    remark: Remark = UNSAID,
) -> None:
    """Say what a lesson is worth; the last rating counts, and a 1 keeps it out of prompts."""
    await _mark(id, _Act(LessonAct.RATED, "rate", rating=int(rating)), remark)


@dataclass(frozen=True, slots=True)
class _Act:
    act: LessonAct
    verb: str
    rating: int = 0


async def _mark(id: int, act: _Act, remark: Remark) -> None:
    async with await remark.opened() as opened:
        known = await lesson_with(opened, id)
        _require_change(known, act)
        shelf = remark.shelf(opened)
        mark = None if remark.dry_run else await _write(shelf, id, act, remark.comment)
    if remark.json:
        write_json(
            {
                "type": "lesson_mark",
                "id": mark,
                "lesson": id,
                "act": act.act.value,
                "rating": act.rating or None,
                "dry_run": remark.dry_run,
            }
        )
        return
    value = f" with {act.rating}" if act.rating else ""
    done = "approved" if act.verb == "approve" else act.act.value
    write_line(f"{f'would {act.verb}' if remark.dry_run else done} lesson {id}{value}")


async def _write(shelf: LearningActions, id: int, act: _Act, comment: str) -> int:
    match act.act:
        case LessonAct.RETIRED:
            return await shelf.retire_lesson(id, comment)
        case LessonAct.RESTORED:
            return await shelf.restore_lesson(id, comment)
        case _:
            return await shelf.rate_lesson(id, act.rating, comment)


def _require_change(known: KnownLesson, act: _Act) -> None:
    """Raise UsageError if the act could change nothing."""
    if act.act is LessonAct.RETIRED and known.obsolete:
        raise UsageError(f"lesson {known.id} is out of use already")
    if act.verb == "approve" and not known.waiting:
        raise UsageError(f"lesson {known.id} does not wait for anybody")
    if act.verb == "restore" and not known.obsolete:
        waits = "waits: `midwatch lessons approve` lets it be given"
        raise UsageError(f"lesson {known.id} {waits if known.waiting else 'is in use'}")
