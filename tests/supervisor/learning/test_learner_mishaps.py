"""The learner in the course of a run, and where something goes wrong."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import Connection

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.learning import FactSettings, LearningSettings, LessonSettings
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Chore,
    Ending,
    Entry,
    Fact,
    FactReview,
    FactState,
    Fault,
    Feedback,
    Hint,
    Lesson,
    Record,
    ReviewState,
    Study,
    StudyState,
)
from midwatch_stage.harness import PastAttempts, assigned
from midwatch_supervisor.learning.learner import Learner

NO_KEY = ModelSpec(name="m", base_url="http://127.0.0.1:9/v1", api_key_env="MIDWATCH_NO_SUCH_KEY")
SCRIPTED = ModelSpec(name=f"scripted:{__name__}")
PENDING = Fact(text="The port of the tests is 8765.", state=FactState.PENDING)
REJECTION = Feedback(accepted=False, comment="Refunds are wrong in totals.py.")
FAILED = (Chore.SUMMARY, StudyState.FAILED)
DONE = (Chore.SUMMARY, StudyState.DONE)
_down: list[str] = []
"""Tasks whose reflector is out of order."""
_asked: list[str] = []


def model_for(role: Role, key: str) -> Model:
    """A reflector of which nothing can be used, or nothing comes."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _asked.append(key)
        if key in _down:
            raise ModelHTTPError(400, key, "out of order")
        if key == "silent":
            await asyncio.Event().wait()
        return ModelResponse(parts=[TextPart("I would rather not.")])

    return FunctionModel(answer, model_name=key)


@pytest.fixture(autouse=True)
def _in_order() -> None:  # pyright: ignore[reportUnusedFunction]
    _down.clear()
    _asked.clear()


async def attempt(past: PastAttempts, name: str = "totals", spec: ModelSpec = SCRIPTED) -> Attempt:
    models = {Role.REFLECTOR: spec}
    return await past.attempt(task=assigned(name, models=models, named=(Role.REFLECTOR,)))


async def ended(past: PastAttempts, name: str = "totals", spec: ModelSpec = SCRIPTED) -> Attempt:
    of = await attempt(past, name, spec)
    await past.end(of, Ending.DONE)
    return of


def learner(past: PastAttempts, **learning: Any) -> Learner:
    settings = Settings(learning=LearningSettings.model_validate(learning))
    return Learner(past.journal, settings=settings, clock=lambda: past.at)


async def studies(past: PastAttempts, of: Attempt) -> list[tuple[Chore, StudyState]]:
    return [(each.chore, each.state) for each in await past.told(Study, of)]


async def for_a_person(past: PastAttempts) -> list[bool]:
    """Whether facts wait for a person, and no longer for a review."""
    return [each.waiting for each in await past.learned.facts(project="shop")]


# -- a reflector that cannot be built --------------------------------------------------------


async def test_v25_facts_do_not_wait_for_a_missing_reflector(past: PastAttempts) -> None:
    of = await attempt(past, spec=NO_KEY)
    await past.say(of, PENDING)
    await past.end(of, Ending.DONE)
    await learner(past, facts=FactSettings(review=True)).study_all()
    assert await for_a_person(past) == [True]
    (review,) = await past.told(FactReview, of)
    assert review.state is ReviewState.SKIPPED
    assert "there is no model for the review: model m" in review.error
    assert (Chore.REVIEW, StudyState.DONE) in await studies(past, of)


async def test_c11_without_a_key_a_lesson_has_its_fixed_form_at_last(past: PastAttempts) -> None:
    of = await ended(past, spec=NO_KEY)
    await past.say(of, REJECTION)
    for _ in range(4):
        await learner(past).study_all()
    chores = (Chore.LESSON, Chore.SUMMARY)
    states = (StudyState.FAILED, StudyState.FAILED, StudyState.DONE)
    assert await studies(past, of) == [(chore, state) for state in states for chore in chores]
    (lesson,) = await past.told(Lesson, of)
    assert (lesson.model, REJECTION.comment in lesson.text) == ("", True)
    faults = await past.told(Fault, of)
    assert [each.part for each in faults] == 2 * ["learning: reflector"]
    assert "MIDWATCH_NO_SUCH_KEY" in faults[0].error


# -- reviews that fail -----------------------------------------------------------------------


def refuse(connection: Connection, kept: str) -> None:
    """Let the journal take no review but of one state."""
    connection.exec_driver_sql("DROP TRIGGER IF EXISTS refuse")
    connection.exec_driver_sql(
        "CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.kind = 'fact_review'"
        f" AND NEW.body NOT LIKE '%\"{kept}\"%' BEGIN SELECT RAISE(ABORT, 'no review'); END"
    )


async def waiting(past: PastAttempts, name: str = "totals") -> Attempt:
    of = await attempt(past, name)
    await past.say(of, PENDING)
    about = await past.end(of, Ending.DONE)
    await past.say(of, Study(about=about, chore=Chore.SUMMARY, state=StudyState.DONE))
    return of


async def test_v25_facts_wait_for_a_person_when_the_last_try_fails(
    past: PastAttempts,
) -> None:
    of = await waiting(past)
    await past.journal.write(refuse, "skipped")
    seen: list[list[bool]] = []
    for _ in range(3):
        await learner(past, facts=FactSettings(review=True)).study_all()
        seen.append(await for_a_person(past))
    assert seen == [[False], [False], [True]]
    (review,) = await past.told(FactReview, of)
    assert "it failed at its last try" in review.error


async def test_v25_facts_that_no_try_could_settle_wait_for_a_person(
    past: PastAttempts,
) -> None:
    of = await waiting(past)
    await past.journal.write(refuse, "nothing")
    for _ in range(4):
        await learner(past, facts=FactSettings(review=True)).study_all()
    assert await for_a_person(past) == [False]
    await past.journal.write(refuse, "skipped")
    await learner(past, facts=FactSettings(review=True)).study_all()
    assert await for_a_person(past) == [True]
    (review,) = await past.told(FactReview, of)
    assert "it failed 4 times" in review.error


async def test_v25_a_slow_review_leaves_its_facts_to_a_person(past: PastAttempts) -> None:
    of = await waiting(past, "silent")
    await learner(past, facts=FactSettings(review=True), timeout_seconds=0.05).study_all()
    assert await for_a_person(past) == [True]
    (review,) = await past.told(FactReview, of)
    assert review.state is ReviewState.FALLBACK


# -- outages ---------------------------------------------------------------------------------


async def test_what_an_outage_put_off_is_done_once_it_is_over(past: PastAttempts) -> None:
    _down.append("totals")
    attempts = [await ended(past) for _ in range(5)]
    same = learner(past)
    assert await same.study_all() == Counter(failed=3)
    _down.clear()
    assert await same.study_all() == Counter()
    past.at += timedelta(minutes=5)
    assert await same.study_all() == Counter(done=2)
    assert [await studies(past, each) for each in attempts] == 2 * [[DONE]] + 3 * [[FAILED]]


async def test_an_outage_that_goes_on_costs_one_question_a_pause(past: PastAttempts) -> None:
    _down.append("totals")
    for _ in range(5):
        await ended(past)
    same = learner(past)
    await same.study_all()
    for asked in (4, 5):
        past.at += timedelta(minutes=5)
        await same.study_all()
        assert len(_asked) == asked


async def test_a_runs_end_tries_an_outage_again(past: PastAttempts, tmp_path: Path) -> None:
    _down.append("totals")
    for _ in range(4):
        await ended(past)
    same = learner(past)
    await same.study_all()
    _down.clear()
    await same.finish(["shop"], seconds=5)
    assert len(await past.learned.summaries("shop")) == 1


async def test_an_outage_of_one_model_stops_no_other(past: PastAttempts) -> None:
    _down.append("broken")
    fine = await ended(past, "fine")
    for _ in range(4):
        await ended(past, "broken")
    assert await learner(past).study_all() == Counter(done=1, failed=3)
    assert await studies(past, fine) == [DONE]


# -- chores that pile up ---------------------------------------------------------------------


async def test_lessons_that_are_switched_off_hold_up_no_older_summary(past: PastAttempts) -> None:
    of = await ended(past)
    for _ in range(4):
        await past.say(of, REJECTION)
    off = LessonSettings(enabled=False)
    assert await learner(past, lessons=off, look_back=2).study_all() == Counter(done=1)


async def test_what_fails_holds_up_nothing_that_is_older(past: PastAttempts) -> None:
    _down.append("broken")
    await ended(past, "fine")
    for _ in range(3):
        await ended(past, "broken")
    assert await learner(past, look_back=2).study_all() == Counter(done=1, failed=3)


async def test_every_rejection_of_an_attempt_is_studied_for_who_asks(past: PastAttempts) -> None:
    of = await ended(past, spec=ModelSpec(name="none"))
    for number in range(3):
        await past.say(of, Feedback(accepted=False, comment=f"Order {number} is wrong."))
    await learner(past, look_back=1).study(attempt=of.id)
    assert len(await past.told(Lesson, of)) == 3


NO = Feedback(accepted=False, comment="Negative amounts are wrong in totals.py.")
SOON = Settings(monitor=MonitorSettings(poll_seconds=0.01))


@asynccontextmanager
async def beside(learner: Learner) -> AsyncGenerator[None]:
    """Let a learner learn beside what is done here."""
    work = asyncio.create_task(learner.run())
    await asyncio.wait({work}, timeout=0.1)
    yield
    work.cancel()
    await asyncio.wait({work})


async def test_it_hears_of_what_ends_and_of_what_is_rejected(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        attempt = await past.attempt()
        end = await past.end(attempt, Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=StudyState.DONE))
        verdict = await past.say(attempt, NO)
        bus.publish(Hint(entry=verdict, kind="feedback"))
        await until(Study(about=verdict, chore=Chore.LESSON, state=StudyState.DONE))


async def test_others_hear_of_what_it_learned(past: PastAttempts, bus: LocalBus) -> None:
    await past.end(await past.attempt(), Ending.DONE)
    async with bus.subscribe() as hints:
        learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
        await learner.study_all()
        assert [hint.kind for hint in await hints.wait(1)] == ["summary", "study"]


async def test_one_run_takes_up_only_so_many_older_attempts_the_newest_first(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    ends = [await past.end(await past.attempt(), Ending.DONE) for _ in range(4)]
    few = SOON.model_copy(update={"learning": LearningSettings(look_back=2)})
    learner = Learner(past.journal, settings=few, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        for about in (ends[3], ends[2]):
            await until(Study(about=about, chore=Chore.SUMMARY, state=StudyState.DONE))
    open_chores = await past.learned.chores(tries=3)
    assert [each.about for each in open_chores] == [ends[1], ends[0]]


async def test_a_command_takes_up_all_of_them(past: PastAttempts) -> None:
    for _ in range(5):
        await past.end(await past.attempt(), Ending.DONE)
    few = Settings(learning=LearningSettings(look_back=2))
    progress = await Learner(past.journal, settings=few, clock=lambda: past.at).study_all()
    assert progress[StudyState.DONE] == 5


async def test_a_journal_that_fails_ends_the_learner_and_nothing_else(
    past: PastAttempts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = await Journal.open(tmp_path / "closed.db")
    await closed.close()
    learner = Learner(closed, settings=SOON, clock=lambda: past.at, bus=LocalBus())
    await learner.run()
    await learner.finish(["shop"], seconds=1)
    assert caplog.text.count("nothing more is learned from this run: ") == 2


def test_c16_lessons_feedback_and_facts_are_on() -> None:
    learning = Settings().learning
    on = (learning.lessons.enabled, learning.feedback.implied, learning.facts.enabled)
    assert on == (True, True, True)


def test_c16_guidelines_review_and_control_group_are_off() -> None:
    learning = Settings().learning
    off = (learning.guidelines.enabled, learning.facts.review)
    assert (off, learning.lessons.control_share) == ((False, False), 0)


def refuse_studies(connection: Connection) -> None:
    """Let the journal take no word of what was studied."""
    connection.exec_driver_sql(
        "CREATE TRIGGER refuse_studies BEFORE INSERT ON entry WHEN NEW.kind = 'study'"
        " BEGIN SELECT RAISE(ABORT, 'no study'); END"
    )


def allow(connection: Connection) -> None:
    connection.exec_driver_sql("DROP TRIGGER refuse_studies")


async def test_a_journal_that_fails_for_a_while_does_not_end_the_learner(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    await past.end(await past.attempt(), Ending.DONE)
    await past.journal.write(refuse_studies)
    learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        await past.journal.write(allow)
        end = await past.end(await past.attempt(), Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=StudyState.DONE))
