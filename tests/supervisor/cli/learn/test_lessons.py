"""`midwatch lessons` over a real journal."""

from datetime import timedelta

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.config.section import parse_duration
from midwatch_supervisor.cli.learn.lessons import LISTED
from midwatch_supervisor.learning.reflection import archive
from midwatch_supervisor.operator.actions import LearningMark, OperatorActions
from midwatch_tests.command import Cli, midwatch
from midwatch_tests.harness import PastAttempts

TEXT = "It edited src/cart.py only.\nThe rounding is in src/money.py: change it there."

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def recalled_lesson(past: PastAttempts) -> int:
    """A lesson of an attempt, which was given to one attempt that was accepted."""
    id = await past.say(await past.attempt(), r.Lesson(text=TEXT, failure_class="wrong_location"))
    second = await past.attempt()
    used = r.Recalled(lesson=id, method=r.Method.TASK, score=0.9)
    await past.say(second, r.Recall(lessons=(used,)))
    await past.end(second, r.Ending.DONE)
    return id


async def test_people_see_the_newest_lessons_in_a_line_each_of_bounded_width(
    cli: Cli, past: PastAttempts, recalled_lesson: int
) -> None:
    heads, oldest = await cli.read("lessons", "list")
    assert heads.split() == ["id", "class", "from", "used", "helped", "hurt", "rated", "lesson"]
    assert oldest.split()[:2] == [str(recalled_lesson), "wrong_location"]
    attempt = await past.attempt(task="t" * 90)
    await past.say(attempt, *(r.Lesson(text=f"number {n}") for n in range(LISTED - 1)))
    await past.say(attempt, r.Lesson(text="long " * 90, failure_class="x" * 90))
    assert len(await cli.ask("lessons", "list")) == LISTED + 1
    _, newest, *listed, last = await cli.read("lessons", "list")
    assert len(newest) <= 150
    assert (len(listed), last) == (LISTED - 1, "these are the newest 50; --json prints all of them")
    assert "number 48" in listed[0]


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ((), ["b", "a"]),
        (("--all",), ["c", "b", "a"]),
        (("--task", "fix"), ["a"]),
        (("--class", "loop"), ["b"]),
        (("--task", "fix", "--class", "loop"), []),
        (("--project", "other"), ["elsewhere"]),
    ],
)
async def test_a_list_is_narrowed_by_project_task_class_and_use(
    cli: Cli, past: PastAttempts, argv: tuple[str, ...], found: list[str]
) -> None:
    other = await past.attempt("other")
    await past.say(other, r.Lesson(text="elsewhere"))
    await past.say(await past.attempt(), r.Lesson(text="a"))
    build = await past.attempt(task="build")
    for text in ("b", "c"):
        id = await past.say(build, r.Lesson(text=text, failure_class="loop"))
    await midwatch("lessons", "retire", str(id))
    argv = argv if "--project" in argv else (*argv, "--project", "shop")
    assert [line["text"] for line in await cli.ask("lessons", "list", *argv)] == found


async def test_r71_r49_a_retired_lesson_stays_away_and_is_not_lost(
    cli: Cli, past: PastAttempts, recalled_lesson: int
) -> None:
    wanted = r.LearnedQuery(project="shop", task="fix", text="rounding money")
    assert await midwatch("lessons", "retire", str(recalled_lesson)) == 0
    assert await past.learned.candidates(wanted) == []
    (line,) = await cli.ask("lessons", "list", "--all")
    assert (line["obsolete"], line["text"]) == (True, TEXT)
    assert await midwatch("lessons", "restore", str(recalled_lesson)) == 0
    assert [each.known.id for each in await past.learned.candidates(wanted)] == [recalled_lesson]


async def test_where_nothing_was_learned_the_list_is_empty(cli: Cli, past: PastAttempts) -> None:
    assert await cli.read("lessons", "list") == [f"no lesson yet in {past.journal.name}"]
    await past.attempt()
    assert await cli.ask("lessons", "list") == []
    assert await cli.read("lessons", "list") == ["no lesson yet in shop"]


SETTINGS = LessonSettings(archive_unused_after=parse_duration("30d"))


async def archive_after(
    past: PastAttempts, days: float, settings: LessonSettings = SETTINGS
) -> int:
    """How many lessons are archived so many days from now on."""
    later = past.at + timedelta(days=days)
    return await archive(past.journal, ["shop"], settings=settings, now=later)


async def test_r59_long_unused_lessons_are_archived_but_not_by_default(
    past: PastAttempts, recalled_lesson: int
) -> None:
    assert await archive_after(past, 4_000, LessonSettings()) == 0
    old = await past.say(await past.attempt(), r.Lesson(text="old"))
    fresh = await past.attempt()
    past.at += timedelta(days=29)
    await past.say(
        fresh, r.Recall(lessons=(r.Recalled(lesson=recalled_lesson, method=r.Method.TEXT),))
    )
    assert [await archive_after(past, days) for days in (1, 1)] == [1, 0]
    assert [(await past.lesson(id)).obsolete for id in (recalled_lesson, old)] == [False, True]
    assert [await archive_after(past, days) for days in (29, 31)] == [0, 1]


async def test_r59_a_lesson_that_a_person_restored_stays(
    past: PastAttempts, recalled_lesson: int
) -> None:
    past.at += timedelta(days=40)
    assert await archive_after(past, 0) == 1
    (known,) = await past.learned.lessons(ids=[recalled_lesson])
    actions = OperatorActions(past.journal, author="ada", clock=lambda: past.at)
    await actions.mark(LearningMark.RESTORE, known)
    assert [await archive_after(past, days) for days in (0, 31)] == [0, 1]
