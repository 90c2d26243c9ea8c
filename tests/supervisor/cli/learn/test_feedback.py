"""`midwatch feedback`, with a real journal."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_tests.command import Cli, assignment, midwatch, new_attempt, new_task, write
from midwatch_tests.factories import AT, change, ended, feedback, transition
from midwatch_tests.reading import records_of

DONE, STUCK = ended(reason="it passed"), ended(r.Ending.STUCK, reason="stop")
COMMENT = "The total in totals.py is rounded before the discount is taken off."
REJECT = ("feedback", "totals", "reject", "--comment", COMMENT)
Attempted = Callable[..., Awaitable[r.Attempt]]


@pytest.fixture(autouse=True)
def _named_by_the_environment(journal_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    monkeypatch.chdir(journal_file.parent.parent)


@pytest.fixture
def make_attempt(journal: Journal) -> Attempted:
    """A task of the project `p` with one attempt that says these things of itself."""

    async def make(*records: r.Record, name: str = "totals", reflector: str = "") -> r.Attempt:
        models = {Role.REFLECTOR: ModelSpec(name=reflector)} if reflector else {}
        wanted = assignment(name, models=models, named=tuple(models), project="p")
        spec = wanted.model_dump_json()
        attempt = await new_attempt(journal, await new_task(journal, name, spec=spec, project="p"))
        await write(journal, attempt, AT, *records)
        return attempt

    return make


async def test_r2_an_acceptance_is_stored(
    journal: Journal, make_attempt: Attempted, cli: Cli
) -> None:
    await make_attempt(DONE)
    said = await cli.said("feedback", "totals", "accept", "--from", "ada")
    assert said.startswith("accepted totals#1 (")
    assert await records_of(journal, r.Feedback) == [r.Feedback(accepted=True, author="ada")]
    assert await records_of(journal, r.Study) == []


@pytest.mark.parametrize("name", ["tot", "totals#1", "1"])
async def test_r9_an_attempt_is_named(journal: Journal, make_attempt: Attempted, name: str) -> None:
    await make_attempt(DONE)
    assert await midwatch("feedback", name, "reject", "--comment", COMMENT) == 0
    (verdict,) = await records_of(journal, r.Feedback)
    said = (verdict.accepted, verdict.comment, verdict.sign)
    assert said == (False, COMMENT, r.VerdictBasis.SAID)


async def test_the_verdict_is_on_the_attempt_of_the_run_that_is_named(
    journal: Journal, make_attempt: Attempted, cli: Cli
) -> None:
    first, _ = await make_attempt(DONE), await make_attempt(DONE)
    assert await midwatch("feedback", "totals", "accept", "--run", "1", "--from", "ada") == 0
    (entry,) = await journal.entries(kinds=(r.Feedback,))
    assert entry.attempt == first.id
    lines = await cli.read("feedback", "list")
    assert [line[line.index("run") :] for line in lines] == [
        *(f"run {n}, totals#1 accepted by midwatch (automatic: ended): it passed" for n in (1, 2)),
        "run 1, totals#1 accepted by ada",
    ]


async def test_r6_r19_a_rejection_becomes_a_lesson_in_the_same_process_and_the_answer_names_it(
    journal: Journal, make_attempt: Attempted, cli: Cli
) -> None:
    attempt = await make_attempt(DONE)
    answered = await cli.ask(*REJECT)
    (verdict,) = await journal.entries(kinds=(r.Feedback,))
    (lesson,) = await journal.entries(kinds=(r.Lesson,))
    assert isinstance(lesson.record, r.Lesson)
    assert (lesson.record.origin, COMMENT in lesson.record.text) == (r.Origin.EXPLICIT, True)
    (told,) = answered
    assert (told["attempt"], told["verdict"], told["lesson"]) == (attempt.id, verdict.id, lesson.id)


async def test_what_is_rejected_again_after_it_was_accepted_is_learned_again(
    journal: Journal, make_attempt: Attempted, cli: Cli
) -> None:
    await make_attempt(DONE)
    for argv in (REJECT, ("feedback", "totals", "accept"), REJECT):
        said = await cli.said(*argv)
    known = {each.id: each for each in await Learned(journal).lessons()}
    old, new = sorted(known)
    assert said.endswith(f"lesson {new} was drawn from it\n")
    assert known[old].lesson.text == known[new].lesson.text
    assert (known[old].obsolete, known[new].obsolete) == (True, False)
    assert "no lesson: a lesson that says the same is known already" in await cli.said(*REJECT)


@pytest.mark.parametrize(
    "options", [[], *(["--comment", each] for each in (" \n", "\ufeff \u200e"))]
)
async def test_r48_a_verdict_needs_no_comment_and_one_of_which_nothing_can_be_seen_is_none(
    journal: Journal, make_attempt: Attempted, cli: Cli, options: list[str]
) -> None:
    await make_attempt(DONE)
    assert "no lesson: " in await cli.said("feedback", "totals", "reject", *options)
    (verdict,) = await records_of(journal, r.Feedback)
    assert (verdict.accepted, verdict.comment) == (False, "")
    assert await records_of(journal, r.Lesson) == []


async def test_c11_the_verdict_is_there_although_the_lesson_fails(
    journal: Journal, make_attempt: Attempted, cli: Cli
) -> None:
    # A model that cannot be built: there is no such file.
    await make_attempt(DONE, reflector="scripted:nowhere.yaml")
    (answer,) = await cli.ask(*REJECT)
    assert answer["lesson"] is None
    assert answer["reason"].endswith("; the next `run` or `learn` tries again")
    (verdict,) = await records_of(journal, r.Feedback)
    assert verdict.comment == COMMENT
    (study,) = await records_of(journal, r.Study)
    assert study.state is r.StudyState.FAILED


async def test_c11_lessons_that_are_switched_off_leave_the_verdict(
    journal: Journal, make_attempt: Attempted, cli: Cli, tmp_path: Path
) -> None:
    await make_attempt(DONE)
    (file := tmp_path / "off.yaml").write_text("learning: {lessons: {enabled: false}}\n")
    said = await cli.said(*REJECT, "--config", str(file))
    assert said.endswith("no lesson: lessons are switched off\n")
    assert len(await records_of(journal, r.Feedback)) == 1


async def test_what_is_open_is_not_judged_and_who_only_watches_cannot_tell_it(
    make_attempt: Attempted, cli: Cli
) -> None:
    await make_attempt(transition(), change(acts=()))
    said = "totals#1 is not over (working): wait until it is\n"
    assert await cli.refused("feedback", "totals", "accept") == said


async def test_r20_a_list_of_more_than_one_page_is_whole(make_attempt: Attempted, cli: Cli) -> None:
    verdicts = [feedback(accepted=n % 2 == 0, comment=str(n)) for n in range(600)]
    for name in ("totals", "other"):
        await make_attempt(*verdicts, name=name)
    listed = [(each["task"], each["comment"]) for each in await cli.ask("feedback", "list")]
    assert listed == [(name, str(n)) for name in ("totals", "other") for n in range(600)]
