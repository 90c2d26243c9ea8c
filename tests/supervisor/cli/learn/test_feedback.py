"""`midwatch feedback`, with a real journal."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Change,
    Ending,
    Feedback,
    Lesson,
    Lifecycle,
    Origin,
    Record,
    Study,
    StudyState,
    VerdictBasis,
)
from midwatch_stage.command import (
    Cli,
    assignment,
    midwatch,
    new_attempt,
    new_task,
    write,
)
from midwatch_stage.factories import AT

DONE = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE, reason="it passed")
STUCK = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK, reason="stop")
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
COMMENT = "The total in totals.py is rounded before the discount is taken off."
Attempted = Callable[..., Awaitable[Attempt]]


@pytest.fixture(autouse=True)
def _named_by_the_environment(journal_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    monkeypatch.chdir(journal_file.parent.parent)


@pytest.fixture
def attempted(journal: Journal) -> Attempted:
    """A task of the project `p` with one attempt that says these things of itself."""

    async def make(*records: Record, name: str = "totals", reflector: str = "") -> Attempt:
        models = {Role.REFLECTOR: ModelSpec(name=reflector)} if reflector else {}
        wanted = assignment(name, models=models, named=tuple(models), project="p")
        spec = wanted.model_dump_json()
        attempt = await new_attempt(journal, await new_task(journal, name, spec=spec, project="p"))
        await write(journal, attempt, AT, *records)
        return attempt

    return make


async def told(journal: Journal, kind: type[Record]) -> list[Record]:
    return [entry.record for entry in await journal.entries(kinds=(kind,))]


async def test_r2_an_acceptance_is_stored(journal: Journal, attempted: Attempted, cli: Cli) -> None:
    await attempted(DONE)
    assert (await cli.said("feedback", "totals", "accept", "--from", "ada")).startswith(
        "accepted totals#1 ("
    )
    assert await told(journal, Feedback) == [Feedback(accepted=True, author="ada")]
    assert await told(journal, Study) == []


@pytest.mark.parametrize("name", ["totals", "tot", "totals#1", "1"])
async def test_r9_an_attempt_is_named(journal: Journal, attempted: Attempted, name: str) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", name, "reject", "--comment", COMMENT) == 0
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert (verdict.accepted, verdict.comment, verdict.sign) == (False, COMMENT, VerdictBasis.SAID)


async def test_the_verdict_is_on_the_attempt_of_the_run_that_is_named(
    journal: Journal, attempted: Attempted, cli: Cli
) -> None:
    first, _ = await attempted(DONE), await attempted(DONE)
    assert await midwatch("feedback", "totals", "accept", "--run", "1") == 0
    (entry,) = await journal.entries(kinds=(Feedback,))
    assert entry.attempt == first.id
    for words, count in (((), 3), (("--run", "1"), 2), (("totals", "--run", "2"), 1)):
        assert len(await cli.ask("feedback", "list", *words)) == count
    assert await midwatch("feedback", "list", "--run", "7") == 2


async def test_r6_a_rejection_becomes_a_lesson_in_the_same_process(
    journal: Journal, attempted: Attempted, cli: Cli
) -> None:
    await attempted(DONE)
    said = await cli.said("feedback", "totals", "reject", "--comment", COMMENT)
    (entry,) = await journal.entries(kinds=(Lesson,))
    assert said.endswith(f"lesson {entry.id} was drawn from it\n")
    assert isinstance(entry.record, Lesson)
    assert (entry.record.origin, COMMENT in entry.record.text) == (Origin.EXPLICIT, True)


async def test_what_is_rejected_again_after_it_was_accepted_is_learned_again(
    journal: Journal, attempted: Attempted, cli: Cli
) -> None:
    await attempted(DONE)
    reject = ("feedback", "totals", "reject", "--comment", COMMENT)
    for argv in (reject, ("feedback", "totals", "accept"), reject):
        said = await cli.said(*argv)
    old, new = await journal.entries(kinds=(Lesson,))
    assert said.endswith(f"lesson {new.id} was drawn from it\n")
    assert isinstance(old.record, Lesson)
    assert isinstance(new.record, Lesson)
    assert old.record.text == new.record.text
    known = await Learned(journal).lessons()
    assert {each.id: each.obsolete for each in known} == {old.id: True, new.id: False}
    assert "no lesson: a lesson that says the same is known already" in await cli.said(*reject)


async def test_r19_the_answer_names_the_verdict_and_the_lesson(
    journal: Journal, attempted: Attempted, cli: Cli
) -> None:
    attempt = await attempted(DONE)
    told = await cli.ask("feedback", "totals", "reject", "--comment", COMMENT)
    (verdict,) = await journal.entries(kinds=(Feedback,))
    (lesson,) = await journal.entries(kinds=(Lesson,))
    assert told == [
        {
            "type": "feedback",
            "attempt": attempt.id,
            "accepted": False,
            "origin": "explicit",
            "verdict": verdict.id,
            "lesson": lesson.id,
            "reason": "",
            "dry_run": False,
        }
    ]


async def test_r48_a_verdict_needs_no_comment(journal: Journal, attempted: Attempted) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", "totals", "reject") == 0
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert (verdict.accepted, verdict.comment) == (False, "")


@pytest.mark.parametrize("comment", ["", " \n", "\u200b", "\ufeff \u200e"])
async def test_a_comment_of_which_nothing_can_be_seen_is_none(
    journal: Journal, attempted: Attempted, cli: Cli, comment: str
) -> None:
    await attempted(DONE)
    assert "no lesson: " in await cli.said("feedback", "totals", "reject", "--comment", comment)
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert verdict.comment == ""
    assert await told(journal, Lesson) == []


async def test_c11_the_verdict_is_there_although_the_lesson_fails(
    journal: Journal, attempted: Attempted, cli: Cli
) -> None:
    # A model that cannot be built: there is no such file.
    await attempted(DONE, reflector="scripted:nowhere.yaml")
    (answer,) = await cli.ask("feedback", "totals", "reject", "--comment", COMMENT)
    assert answer["lesson"] is None
    assert answer["reason"].endswith("; the next `run` or `learn` tries again")
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert verdict.comment == COMMENT
    assert [each.state for each in await told(journal, Study) if isinstance(each, Study)] == [
        StudyState.FAILED
    ]


async def test_c11_lessons_that_are_switched_off_leave_the_verdict(
    journal: Journal, attempted: Attempted, cli: Cli, tmp_path: Path
) -> None:
    await attempted(DONE)
    file = tmp_path / "off.yaml"
    file.write_text("learning: {lessons: {enabled: false}}\n")
    assert (await cli.said("feedback", "totals", "reject", "--config", str(file))).endswith(
        "no lesson: lessons are switched off\n"
    )
    assert len(await told(journal, Feedback)) == 1


async def test_a_dry_run_stores_nothing(journal: Journal, attempted: Attempted, cli: Cli) -> None:
    await attempted(DONE)
    assert await cli.read("feedback", "totals", "reject", "--dry-run") == [
        "would reject totals#1, and draw a lesson from it"
    ]
    assert await told(journal, Feedback) == []


@pytest.mark.parametrize("watched", [False, True])
async def test_what_is_open_is_not_judged(attempted: Attempted, cli: Cli, watched: bool) -> None:
    await attempted(WORKING, *[Change(acts=())] * watched)
    tell = "" if watched else ", or send it a message with `midwatch tell`"
    said = f"totals#1 is not over (working): wait until it is{tell}\n"
    assert await cli.refused("feedback", "totals", "accept") == said


async def test_a_verdict_is_accept_or_reject(attempted: Attempted, cli: Cli) -> None:
    await attempted(DONE)
    assert "perhaps" in await cli.refused("feedback", "totals", "perhaps")


async def test_r20_all_verdicts_are_listed_oldest_first(attempted: Attempted, cli: Cli) -> None:
    implied = Feedback(
        accepted=True, origin=Origin.IMPLIED, author="midwatch", sign=VerdictBasis.KEPT
    )
    await attempted(DONE, implied, Feedback(accepted=False, author="ada", comment="no"))
    await attempted(STUCK, name="other")
    listed = [
        (each["task"], each["origin"], each["sign"]) for each in await cli.ask("feedback", "list")
    ]
    assert listed == [
        ("totals", "automatic", "ended"),
        ("totals", "implied", "kept"),
        ("totals", "explicit", "said"),
        ("other", "automatic", "ended"),
    ]


async def test_the_list_names_the_run_of_each_verdict(attempted: Attempted, cli: Cli) -> None:
    for _ in range(2):
        await attempted(Feedback(accepted=True, author="ada"))
    lines = (await cli.said("feedback", "list")).splitlines()
    assert [line[line.index("run") :] for line in lines] == [
        "run 1, totals#1 accepted by ada",
        "run 2, totals#1 accepted by ada",
    ]


@pytest.mark.parametrize(
    ("options", "count"),
    [(["other"], 1), (["totals#1"], 2), (["--project", "p"], 3), (["--project", "q"], 0)],
)
async def test_r20_the_list_is_of_one_task_or_project(
    attempted: Attempted, cli: Cli, options: list[str], count: int
) -> None:
    await attempted(DONE, Feedback(accepted=False))
    await attempted(STUCK, name="other")
    assert len(await cli.ask("feedback", "list", *options)) == count


async def test_r20_a_list_of_more_than_one_page_is_whole(attempted: Attempted, cli: Cli) -> None:
    verdicts = [Feedback(accepted=n % 2 == 0, comment=str(n)) for n in range(600)]
    for name in ("totals", "other"):
        await attempted(*verdicts, name=name)
    listed = [(each["task"], each["comment"]) for each in await cli.ask("feedback", "list")]
    assert listed == [(name, str(n)) for name in ("totals", "other") for n in range(600)]


async def test_r20_people_read_who_said_what(attempted: Attempted, cli: Cli) -> None:
    await attempted(DONE, Feedback(accepted=False, author="ada", comment="no", diff="-a\n+b\n"))
    automatic, said = await cli.read("feedback", "list", "totals")
    assert automatic.endswith("totals#1 accepted by midwatch (automatic: ended): it passed")
    assert said.endswith("rejected by ada: no (diff of 6 characters)")


async def test_a_scan_that_finds_nothing_says_so(attempted: Attempted, cli: Cli) -> None:
    await attempted(DONE)
    assert await cli.read("feedback", "scan") == ["there is nothing new about merged work"]
    assert await cli.said("feedback", "scan", "--json") == ""
