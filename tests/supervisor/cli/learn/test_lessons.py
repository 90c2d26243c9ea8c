"""`midwatch lessons` over a real journal."""

from datetime import timedelta

import pytest

from midwatch_monitor.config.learning import LessonSettings
from midwatch_monitor.config.section import parse_duration
from midwatch_monitor.records import (
    Ending,
    Feedback,
    LearnedQuery,
    Lesson,
    Method,
    Origin,
    Recall,
    Recalled,
    VerdictBasis,
)
from midwatch_stage.command import Cli, midwatch
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.cli.learn.lessons import LISTED
from midwatch_supervisor.learning.reflection import archive
from midwatch_supervisor.operator.actions import LearningMark, OperatorActions

TEXT = "It edited src/cart.py only.\nThe rounding is in src/money.py: change it there."
NO = Feedback(accepted=False, comment="still rounds down", author="ada")


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def taught(past: PastAttempts) -> int:
    """A rejected attempt and its lesson, which was given to one attempt that was accepted."""
    first = await past.attempt()
    await past.end(first, Ending.DONE)
    verdict = await past.say(first, NO)
    lesson = Lesson(
        text=TEXT,
        failure_class="wrong_location",
        insights=("Change src/money.py.",),
        tags=("python",),
        kind="coder",
        files=("src/money.py",),
        steps=(3, 5),
        verdict=verdict,
        origin=Origin.EXPLICIT,
        sources=(first.id,),
    )
    id = await past.say(first, lesson)
    second = await past.attempt()
    await past.say(second, Recall(lessons=(Recalled(lesson=id, method=Method.TASK, score=0.9),)))
    await past.end(second, Ending.DONE)
    return id


async def test_r50_the_list_has_one_object_a_lesson(cli: Cli, taught: int) -> None:
    (line,) = await cli.ask("lessons", "list")
    assert {key: line[key] for key in list(line)[1:10]} == {
        "id": taught,
        "text": TEXT,
        "failure_class": "wrong_location",
        "tags": ["python"],
        "source_attempt": 1,
        "used": 1,
        "helped": 1,
        "hurt": 0,
        "rating": None,
    }
    assert (line["obsolete"], line["project"], line["task"]) == (False, "shop", "fix")
    assert (line["origin"], line["born"], line["sources"]) == ("explicit", "verdict", [1])


async def test_the_list_for_people_is_a_line_each_of_bounded_width(
    cli: Cli, past: PastAttempts, taught: int
) -> None:
    attempt = await past.attempt(task="t" * 90)
    await past.say(attempt, Lesson(text="long " * 90, failure_class="x" * 90))
    heads, newest, oldest = await cli.read("lessons", "list")
    assert heads.split() == ["id", "class", "from", "used", "helped", "hurt", "rated", "lesson"]
    assert len(newest) <= 150
    assert oldest.split()[:2] == [str(taught), "wrong_location"]


async def test_people_see_the_newest_lessons(cli: Cli, past: PastAttempts, taught: int) -> None:
    attempt = await past.attempt()
    await past.say(attempt, *(Lesson(text=f"number {n}") for n in range(LISTED)))
    assert len(await cli.ask("lessons", "list")) == LISTED + 1
    *listed, last = (await cli.read("lessons", "list"))[1:]
    assert (len(listed), last) == (LISTED, "these are the newest 50; --json prints all of them")
    assert "number 49" in listed[0]


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ((), ["b", "a"]),
        (("--all",), ["c", "b", "a"]),
        (("--task", "fix"), ["a"]),
        (("--class", "loop"), ["b"]),
        (("--class", "loop", "--all"), ["c", "b"]),
        (("--task", "fix", "--class", "loop"), []),
        (("--project", "sh"), ["b", "a"]),
        (("--project", "other"), ["elsewhere"]),
    ],
)
async def test_a_list_is_narrowed_by_project_task_class_and_use(
    cli: Cli, past: PastAttempts, argv: tuple[str, ...], found: list[str]
) -> None:
    other = await past.attempt("other")
    await past.say(other, Lesson(text="elsewhere"))
    await past.say(await past.attempt(), Lesson(text="a"))
    build = await past.attempt(task="build")
    for text in ("b", "c"):
        id = await past.say(build, Lesson(text=text, failure_class="loop"))
    await midwatch("lessons", "retire", str(id))
    argv = argv if "--project" in argv else (*argv, "--project", "shop")
    assert [line["text"] for line in await cli.ask("lessons", "list", *argv)] == found


async def test_r50_show_tells_where_it_comes_from_and_what_became_of_its_uses(
    cli: Cli, past: PastAttempts, taught: int
) -> None:
    await midwatch("lessons", "rate", str(taught), "4", "--comment", "good")
    (line,) = await cli.ask("lessons", "show", str(taught))
    accepted = {"accepted": True, "origin": "automatic", "sign": "ended"}
    assert line["source_attempts"] == [{"attempt": 1, "task": "fix", "number": 1}]
    assert line["explains"]["comment"] == "still rounds down"
    (use,) = line["uses"]
    assert (use["attempt"], use["method"], use["score"]) == (2, "task", 0.9)
    assert use["verdicts"] == [{**accepted, "author": "midwatch", "comment": ""}]
    assert [(mark["act"], mark["rating"]) for mark in line["marks"]] == [("rated", 4)]
    assert line["rating"] == 4


async def test_show_for_people_says_it_all_in_words(cli: Cli, taught: int) -> None:
    said = await cli.said("lessons", "show", str(taught))
    for words in (
        f"lesson:\n  {taught} of shop\n",
        "what to do instead:\n  - Change src/money.py.\n",
        "evidence:\n  steps 3, 5\n",
        "attempts:\n  fix#1 (1)\n",
        "it explains:\n  rejected by ada: still rounds down\n",
        "use:\n  given to 1 attempt; 1 of them accepted, 0 rejected or failed\n",
        "given to:\n  - fix#1 (2), found by task: accepted by midwatch (automatic: ended)\n",
    ):
        assert words in said


async def test_r71_a_retired_lesson_stays_away(cli: Cli, past: PastAttempts, taught: int) -> None:
    wanted = LearnedQuery(project="shop", task="fix", text="rounding money")
    assert await cli.ask("lessons", "retire", str(taught), "--comment", "it moved") == [
        {
            "type": "lesson_mark",
            "id": await past.journal.last_id(),
            "lesson": taught,
            "act": "retired",
            "rating": None,
            "dry_run": False,
        }
    ]
    assert await past.learned.candidates(wanted) == []
    assert await midwatch("lessons", "restore", str(taught)) == 0
    assert [each.known.id for each in await past.learned.candidates(wanted)] == [taught]


async def test_r49_rolling_back_is_retiring_and_nothing_is_lost(cli: Cli, taught: int) -> None:
    assert (
        await cli.said("lessons", "retire", str(taught))
        == f"lesson {taught} is retired: it is no longer given to attempts\n"
    )
    (line,) = await cli.ask("lessons", "list", "--all")
    assert (line["obsolete"], line["text"]) == (True, TEXT)


async def test_r58_a_persons_last_rating_counts(cli: Cli, past: PastAttempts, taught: int) -> None:
    for rating in ("2", "5"):
        said = await cli.read("lessons", "rate", str(taught), rating, "--from", "ada")
        assert said == [f"lesson {taught} is rated {rating} of 5"]
    assert (await past.lesson(taught)).rating == 5


async def test_a_dry_run_changes_nothing(cli: Cli, past: PastAttempts, taught: int) -> None:
    before = await past.journal.last_id()
    retired = "retired: it is no longer given to attempts"
    for argv, became in (
        (("retire", str(taught)), retired),
        (("rate", str(taught), "1"), "rated 1 of 5"),
    ):
        said = await cli.read("lessons", *argv, "--dry-run")
        assert said == [f"lesson {taught} would be {became}"]
    assert await past.journal.last_id() == before


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("show", "99"), "there is no lesson 99"),
        (("restore", "{id}"), "lesson {id}: it is already in use"),
        (("list", "--project", "nowhere"), "there is no project `nowhere`"),
    ],
)
async def test_what_cannot_be_done_is_bad_usage(
    cli: Cli, taught: int, argv: tuple[str, ...], error: str
) -> None:
    said = await cli.refused("lessons", *(word.format(id=taught) for word in argv))
    assert said.startswith(error.format(id=taught))


async def test_a_rating_is_from_one_to_five(cli: Cli, taught: int) -> None:
    assert await midwatch("lessons", "rate", str(taught), "6") == 2


async def test_where_nothing_was_learned_the_list_is_empty(cli: Cli, past: PastAttempts) -> None:
    assert await cli.ask("lessons", "list") == []
    assert await cli.read("lessons", "list") == [f"no lesson yet in {past.journal.name}"]
    attempt = await past.attempt()
    assert await cli.ask("lessons", "list") == []
    assert await cli.read("lessons", "list") == ["no lesson yet in shop"]
    await past.say(attempt, Lesson(text="x"))
    nothing = await cli.read("lessons", "list", "--class", "other")
    assert nothing == ["no such lesson in shop"]


async def test_a_verdict_of_what_a_person_did_is_told_as_such(cli: Cli, past: PastAttempts) -> None:
    attempt = await past.attempt()
    edited = Feedback(
        accepted=False, origin=Origin.IMPLIED, sign=VerdictBasis.EDITED, comment="a.py"
    )
    verdict = await past.say(attempt, edited)
    id = await past.say(attempt, Lesson(text="x", verdict=verdict, origin=Origin.IMPLIED))
    said = await cli.said("lessons", "show", str(id))
    assert "it explains:\n  rejected (implied: edited): a.py\n" in said


SETTINGS = LessonSettings(archive_unused_after=parse_duration("30d"))


async def test_r59_long_unused_lessons_are_archived(past: PastAttempts, taught: int) -> None:
    old = await past.say(await past.attempt(), Lesson(text="old"))
    now = past.at + timedelta(days=30)
    fresh = await past.attempt()
    past.at = now - timedelta(days=1)
    await past.say(fresh, Recall(lessons=(Recalled(lesson=taught, method=Method.TEXT),)))
    assert await archive(past.journal, ["shop"], settings=SETTINGS, now=now) == 1
    assert await archive(past.journal, ["shop"], settings=SETTINGS, now=now) == 0
    assert [(await past.lesson(id)).obsolete for id in (taught, old)] == [False, True]
    for days, archived in ((28, 0), (30, 1)):
        later = now + timedelta(days=days)
        assert await archive(past.journal, ["shop"], settings=SETTINGS, now=later) == archived


async def test_r59_a_lesson_that_a_person_restored_stays(past: PastAttempts, taught: int) -> None:
    past.at += timedelta(days=40)
    actions = OperatorActions(past.journal, author="ada", clock=lambda: past.at)
    assert await archive(past.journal, ["shop"], settings=SETTINGS, now=past.at) == 1
    (known,) = await past.learned.lessons(ids=[taught])
    await actions.mark(LearningMark.RESTORE, known)
    assert await archive(past.journal, ["shop"], settings=SETTINGS, now=past.at) == 0
    later = past.at + timedelta(days=31)
    assert await archive(past.journal, ["shop"], settings=SETTINGS, now=later) == 1


async def test_r59_by_default_nothing_is_archived(past: PastAttempts, taught: int) -> None:
    later = past.at + timedelta(days=4_000)
    assert await archive(past.journal, ["shop"], settings=LessonSettings(), now=later) == 0
