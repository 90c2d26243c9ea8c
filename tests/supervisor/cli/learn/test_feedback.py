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
    ask,
    assignment,
    midwatch,
    new_attempt,
    new_task,
    objects,
    read,
    write,
)
from midwatch_stage.factories import AT

Capture = pytest.CaptureFixture[str]
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


async def test_r2_an_accepted_result_is_stored_as_said_by_a_person(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", "totals", "accept", "--from", "ada") == 0
    assert capsys.readouterr().out.startswith("accepted totals#1 (")
    assert await told(journal, Feedback) == [Feedback(accepted=True, author="ada")]
    assert await told(journal, Study) == []


@pytest.mark.parametrize("name", ["totals", "tot", "totals#1", "1"])
async def test_r9_an_attempt_is_named_as_everywhere(
    journal: Journal, attempted: Attempted, name: str
) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", name, "reject", "--comment", COMMENT) == 0
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert (verdict.accepted, verdict.comment, verdict.sign) == (False, COMMENT, VerdictBasis.SAID)


async def test_the_verdict_is_on_the_attempt_of_the_run_that_is_named(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    first, _ = await attempted(DONE), await attempted(DONE)
    assert await midwatch("feedback", "totals", "accept", "--run", "1") == 0
    (entry,) = await journal.entries(kinds=(Feedback,))
    assert entry.attempt == first.id
    capsys.readouterr()
    for words, count in (((), 3), (("--run", "1"), 2), (("totals", "--run", "2"), 1)):
        assert await midwatch("feedback", "list", *words, "--json") == 0
        assert len(objects(capsys)) == count
    assert await midwatch("feedback", "list", "--run", "7") == 2


async def test_r6_a_rejection_becomes_a_lesson_in_the_same_process(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", "totals", "reject", "--comment", COMMENT) == 0
    (entry,) = await journal.entries(kinds=(Lesson,))
    assert capsys.readouterr().out.endswith(f"lesson {entry.id} was drawn from it\n")
    assert isinstance(entry.record, Lesson)
    assert (entry.record.origin, COMMENT in entry.record.text) == (Origin.EXPLICIT, True)


async def test_what_is_rejected_again_after_it_was_accepted_is_learned_again(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    await attempted(DONE)
    reject = ("feedback", "totals", "reject", "--comment", COMMENT)
    for argv in (reject, ("feedback", "totals", "accept"), reject):
        assert await midwatch(*argv) == 0
    old, new = await journal.entries(kinds=(Lesson,))
    assert capsys.readouterr().out.endswith(f"lesson {new.id} was drawn from it\n")
    assert isinstance(old.record, Lesson)
    assert isinstance(new.record, Lesson)
    assert old.record.text == new.record.text
    known = await Learned(journal).lessons()
    assert {each.id: each.obsolete for each in known} == {old.id: True, new.id: False}
    assert await midwatch(*reject) == 0
    assert "no lesson: a lesson that says the same is known already" in capsys.readouterr().out


async def test_r19_the_answer_names_the_verdict_and_the_lesson(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    attempt = await attempted(DONE)
    assert await midwatch("feedback", "totals", "reject", "--comment", COMMENT, "--json") == 0
    (verdict,) = await journal.entries(kinds=(Feedback,))
    (lesson,) = await journal.entries(kinds=(Lesson,))
    assert objects(capsys) == [
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
    journal: Journal, attempted: Attempted, capsys: Capture, comment: str
) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", "totals", "reject", "--comment", comment) == 0
    assert "no lesson: " in capsys.readouterr().out
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert verdict.comment == ""
    assert await told(journal, Lesson) == []


async def test_c11_the_verdict_is_there_although_the_lesson_fails(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    # A model that cannot be built: there is no such file.
    await attempted(DONE, reflector="scripted:nowhere.yaml")
    (answer,) = await ask(capsys, "feedback", "totals", "reject", "--comment", COMMENT)
    assert answer["lesson"] is None
    assert answer["reason"].endswith("; the next `run` or `learn` tries again")
    (verdict,) = await told(journal, Feedback)
    assert isinstance(verdict, Feedback)
    assert verdict.comment == COMMENT
    assert [each.state for each in await told(journal, Study) if isinstance(each, Study)] == [
        StudyState.FAILED
    ]


async def test_c11_lessons_that_are_switched_off_leave_the_verdict(
    journal: Journal, attempted: Attempted, capsys: Capture, tmp_path: Path
) -> None:
    await attempted(DONE)
    file = tmp_path / "off.yaml"
    file.write_text("learning: {lessons: {enabled: false}}\n")
    assert await midwatch("feedback", "totals", "reject", "--config", str(file)) == 0
    assert capsys.readouterr().out.endswith("no lesson: lessons are switched off\n")
    assert len(await told(journal, Feedback)) == 1


async def test_a_dry_run_stores_nothing(
    journal: Journal, attempted: Attempted, capsys: Capture
) -> None:
    await attempted(DONE)
    assert await read(capsys, "feedback", "totals", "reject", "--dry-run") == [
        "would reject totals#1, and draw a lesson from it"
    ]
    assert await told(journal, Feedback) == []


@pytest.mark.parametrize("watched", [False, True])
async def test_an_attempt_that_is_not_over_cannot_be_judged(
    attempted: Attempted, capsys: Capture, watched: bool
) -> None:
    await attempted(WORKING, *[Change(acts=())] * watched)
    assert await midwatch("feedback", "totals", "accept") == 2
    tell = "" if watched else ", or send it a message with `midwatch tell`"
    said = f"totals#1 is not over (working): wait until it is{tell}\n"
    assert capsys.readouterr().err == said


async def test_a_verdict_is_accept_or_reject(attempted: Attempted, capsys: Capture) -> None:
    await attempted(DONE)
    assert await midwatch("feedback", "totals", "perhaps") == 2
    assert "perhaps" in capsys.readouterr().err


async def test_r20_all_verdicts_are_listed_oldest_first(
    attempted: Attempted, capsys: Capture
) -> None:
    implied = Feedback(
        accepted=True, origin=Origin.IMPLIED, author="midwatch", sign=VerdictBasis.KEPT
    )
    await attempted(DONE, implied, Feedback(accepted=False, author="ada", comment="no"))
    await attempted(STUCK, name="other")
    assert await midwatch("feedback", "list", "--json") == 0
    listed = [(each["task"], each["origin"], each["sign"]) for each in objects(capsys)]
    assert listed == [
        ("totals", "automatic", "ended"),
        ("totals", "implied", "kept"),
        ("totals", "explicit", "said"),
        ("other", "automatic", "ended"),
    ]


async def test_the_list_names_the_run_of_each_verdict(
    attempted: Attempted, capsys: Capture
) -> None:
    for _ in range(2):
        await attempted(Feedback(accepted=True, author="ada"))
    assert await midwatch("feedback", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[line.index("run") :] for line in lines] == [
        "run 1, totals#1 accepted by ada",
        "run 2, totals#1 accepted by ada",
    ]


@pytest.mark.parametrize(
    ("options", "count"),
    [(["other"], 1), (["totals#1"], 2), (["--project", "p"], 3), (["--project", "q"], 0)],
)
async def test_r20_the_list_is_of_one_task_or_project(
    attempted: Attempted, capsys: Capture, options: list[str], count: int
) -> None:
    await attempted(DONE, Feedback(accepted=False))
    await attempted(STUCK, name="other")
    assert await midwatch("feedback", "list", *options, "--json") == 0
    assert len(objects(capsys)) == count


async def test_r20_a_list_of_more_than_one_page_is_whole(
    attempted: Attempted, capsys: Capture
) -> None:
    verdicts = [Feedback(accepted=n % 2 == 0, comment=str(n)) for n in range(600)]
    for name in ("totals", "other"):
        await attempted(*verdicts, name=name)
    assert await midwatch("feedback", "list", "--json") == 0
    listed = [(each["task"], each["comment"]) for each in objects(capsys)]
    assert listed == [(name, str(n)) for name in ("totals", "other") for n in range(600)]


async def test_r20_people_read_who_said_what(attempted: Attempted, capsys: Capture) -> None:
    await attempted(DONE, Feedback(accepted=False, author="ada", comment="no", diff="-a\n+b\n"))
    automatic, said = await read(capsys, "feedback", "list", "totals")
    assert automatic.endswith("totals#1 accepted by midwatch (automatic: ended): it passed")
    assert said.endswith("rejected by ada: no (diff of 6 characters)")


async def test_a_scan_that_finds_nothing_says_so(attempted: Attempted, capsys: Capture) -> None:
    await attempted(DONE)
    assert await read(capsys, "feedback", "scan") == ["there is nothing new about merged work"]
    assert await midwatch("feedback", "scan", "--json") == 0
    assert capsys.readouterr().out == ""
