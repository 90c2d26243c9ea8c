"""The learner: lessons, summaries and facts out of what ended, whatever models and journals do."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import Connection

from midwatch_agents.learning.text_safety import BY_A_MODEL
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.learning import FactSettings, LearningSettings, LessonSettings
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Change,
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
    Origin,
    Record,
    ReviewState,
    Spending,
    Study,
    StudyState,
    Summary,
)
from midwatch_supervisor.learning.chores import LessonResult
from midwatch_supervisor.learning.learner import Learner
from midwatch_tests.factories import edit, step
from midwatch_tests.harness import PastAttempts, assigned

DONE, FAILED, REFUSED = StudyState.DONE, StudyState.FAILED, StudyState.REFUSED
SCRIPTED = ModelSpec(name=f"scripted:{__name__}")
NO_KEY = ModelSpec(name="m", base_url="http://127.0.0.1:9/v1", api_key_env="MIDWATCH_NO_SUCH_KEY")
REVIEW = LearningSettings(facts=FactSettings(review=True))
PENDING = Fact(text="The port of the tests is 8765.", state=FactState.PENDING)
REJECTION = Feedback(
    accepted=False, comment="Negative amounts are wrong in totals.py.", author="me"
)
SECRETIVE = "The worker rounded in totals.py and never tried amounts below zero."
LESSON: dict[str, Any] = {
    "text": f"{SECRETIVE} Try a refund in totals.py before you say that it is done.",
    "failure_class": "untested",
    "insights": ["Try a refund."],
    "quote": "make check passes",
    "steps": [1],
}
FACT = {"text": "`make check` runs the tests of totals.py.", "quote": "make check passes"}
BACK: dict[str, Any] = {
    "summary": "Totals were rounded in totals.py. A person found refunds wrong.",
    "quote": "make check passes",
    "topics": ["totals", "rounding", "refunds"],
    "facts": [{**FACT, "step": 1}],
}
_hanging: list[str] = []
"""Tasks whose reflector gives no second answer, and was asked for it."""
_down: list[str] = []
"""Tasks whose reflector is out of order."""
_asked: list[str] = []


def model_for(role: Role, key: str) -> Model:
    """The reflector: what it does follows from the task's name."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _asked.append(key)
        if key in ("broken", *_down) or (key == "breaking" and len(messages) > 1):
            raise ModelHTTPError(400, "reflector", "no such deployment")
        if key == "slow" and len(messages) > 1:
            _hanging.append(key)
        if key == "silent" or _hanging:
            await asyncio.Event().wait()
        if key in ("loose", "breaking", "slow"):
            return ModelResponse(parts=[TextPart("I would rather not.")])
        tool = info.output_tools[0]
        args = LESSON if "failure_class" in str(tool.parameters_json_schema) else BACK
        return ModelResponse(parts=[ToolCallPart(tool.name, args)])

    return FunctionModel(answer, model_name="reflector")


class Past(PastAttempts):
    """Tasks that were done, and learners who learn from them."""

    async def working_attempt(
        self, name: str = "totals", spec: ModelSpec | None = SCRIPTED
    ) -> Attempt:
        """An attempt at a new task that has changed a file."""
        models = {Role.REFLECTOR: spec} if spec else {}
        task = assigned(name, tags=("py",), models=models, named=(Role.REFLECTOR,))
        attempt = await self.attempt(task=task)
        edits = (edit("totals.py"),)
        await self.say(attempt, step(1, request=1, output="make check passes", edits=edits))
        return attempt

    async def ended_attempt(
        self, name: str = "totals", spec: ModelSpec | None = SCRIPTED
    ) -> Attempt:
        """An attempt that ended well."""
        attempt = await self.working_attempt(name, spec)
        await self.end(attempt, Ending.DONE)
        return attempt

    async def rejected_attempt(
        self, name: str = "totals", spec: ModelSpec | None = SCRIPTED
    ) -> Attempt:
        """An attempt that a person rejected."""
        attempt = await self.ended_attempt(name, spec)
        await self.say(attempt, REJECTION)
        return attempt

    async def attempt_with_pending_fact(
        self, name: str = "totals", spec: ModelSpec | None = SCRIPTED
    ) -> Attempt:
        """An attempt that has ended with a fact that waits for its review."""
        attempt = await self.working_attempt(name, spec)
        await self.say(attempt, PENDING)
        await self.end(attempt, Ending.DONE)
        return attempt

    async def attempt_with_fact_to_review(self) -> Attempt:
        """One whose fact waits for its review alone."""
        attempt = await self.attempt_with_pending_fact()
        about = await self.journal.last_id()
        await self.say(attempt, Study(about=about, chore=Chore.SUMMARY, state=DONE))
        return attempt

    def learner(
        self, learning: LearningSettings | None = None, bus: LocalBus | None = None
    ) -> Learner:
        settings = Settings(
            learning=learning or LearningSettings(), monitor=MonitorSettings(poll_seconds=0.01)
        )
        return Learner(self.journal, settings=settings, clock=lambda: self.at, bus=bus)

    async def studies(self, attempt: Attempt) -> list[tuple[Chore, StudyState]]:
        return [(each.chore, each.state) for each in await self.told(Study, attempt)]

    async def facts_wait_for_a_person(self) -> list[bool]:
        """Whether facts wait for a person, and no longer for a review."""
        return [each.waiting for each in await self.learned.facts(project="shop")]


@pytest.fixture
def past(journal: Journal, at: datetime) -> Past:
    for each in (_hanging, _down, _asked):
        each.clear()
    return Past(journal, at)


async def test_r21_a_rejections_lesson_names_it_and_its_attempt(past: Past) -> None:
    attempt = await past.ended_attempt()
    verdict = await past.say(attempt, REJECTION)
    studied = await past.learner().study(attempt=attempt.id)
    (lesson,) = await past.told(Lesson, attempt)
    assert studied.lesson is not None
    assert (lesson.text, lesson.model, lesson.waits) == (LESSON["text"], "reflector", BY_A_MODEL)
    assert (lesson.kind, lesson.tags, lesson.files) == ("coder", ("py",), ("totals.py",))
    origin = (lesson.verdict, lesson.origin, lesson.sources, lesson.steps)
    assert origin == (verdict, Origin.EXPLICIT, (attempt.id,), (1,))


@pytest.mark.parametrize("name", ["broken", "silent"])
async def test_r24_a_verdict_outlives_the_failure_of_the_model(past: Past, name: str) -> None:
    attempt = await past.rejected_attempt(name)
    learner = past.learner(LearningSettings(timeout_seconds=0.05))
    studied = await learner.study(attempt=attempt.id)
    assert await past.told(Feedback, attempt) == [REJECTION]
    assert await past.studies(attempt) == [(Chore.LESSON, FAILED)]
    assert studied.lesson is None
    assert "the reflector reflector failed: " in studied.reason


async def test_c11_what_failed_is_tried_again_by_the_next_run_and_at_last_given_up(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await past.rejected_attempt("broken")
    for _ in range(4):
        learner = past.learner()
        await learner.study_all()
        await learner.study_all()  # the same learner does not try again
    assert await past.studies(attempt) == 3 * [(Chore.LESSON, FAILED), (Chore.SUMMARY, FAILED)]
    assert "#1 of run 1 teaches no lesson: " in caplog.messages[0]


async def test_c11_a_useless_answer_is_refused_and_not_tried_again(past: Past) -> None:
    attempt = await past.rejected_attempt("loose")
    for _ in range(2):
        await past.learner().study_all()
    assert await past.studies(attempt) == [(Chore.LESSON, REFUSED), (Chore.SUMMARY, DONE)]
    assert await past.told(Lesson, attempt) == []


async def test_c11_without_a_key_a_lesson_has_its_fixed_form_at_last(past: Past) -> None:
    of = await past.rejected_attempt(spec=NO_KEY)
    for _ in range(4):
        await past.learner().study_all()
    chores = (Chore.LESSON, Chore.SUMMARY)
    states = [(chore, state) for state in (FAILED, FAILED, DONE) for chore in chores]
    assert await past.studies(of) == states
    (lesson,) = await past.told(Lesson, of)
    assert (lesson.model, REJECTION.comment in lesson.text) == ("", True)
    faults = await past.told(Fault, of)
    assert [each.part for each in faults] == 2 * ["learning: reflector"]
    assert "MIDWATCH_NO_SUCH_KEY" in faults[0].error


async def test_requirement_18_two_learners_at_once_write_one_lesson(past: Past) -> None:
    attempt = await past.rejected_attempt()
    done = await asyncio.gather(*(past.learner().study_all() for _ in range(4)))
    assert len(await past.told(Lesson, attempt)) == 1
    assert len(await past.told(Summary, attempt)) == 1
    assert sum(each[DONE] for each in done) == 2


async def test_a_persons_word_is_a_lesson_though_checks_taught_the_same(past: Past) -> None:
    attempt = await past.working_attempt(spec=None)
    await past.end(attempt, Ending.UNACCEPTED)
    await past.say(attempt, replace(REJECTION, comment="totals.py is wrong"))
    await past.learner().study_all()
    (said,) = [each for each in await past.told(Lesson, attempt) if each.origin is Origin.EXPLICIT]
    assert said.text.startswith("A person rejected the result: totals.py is wrong")
    assert said.model == ""


# -- summaries and facts ---------------------------------------------------------------------


async def test_s12_every_ended_attempt_gets_a_summary_and_v25_facts_and_costs_no_worker_anything(
    past: Past,
) -> None:
    attempt = await past.ended_attempt()
    await past.learner().study_all()
    (summary,) = await past.told(Summary, attempt)
    assert summary == Summary(
        text=BACK["summary"], topics=("totals", "rounding", "refunds"), turns=1, model="reflector"
    )
    (fact,) = await past.learned.facts(project="shop")
    assert (fact.attempt, fact.waiting, fact.fact.text) == (attempt.id, True, FACT["text"])
    (spent,) = await past.told(Spending, attempt)
    assert (spent.role, spent.model, spent.requests) == ("reflector", "reflector", 1)
    assert await past.told(Change, attempt) == []
    studied = await past.learner().study(attempt=attempt.id)
    assert studied == LessonResult(reason="there is no rejection to learn from")


@pytest.mark.parametrize("ending", [Ending.ERROR, Ending.SPLIT])
async def test_s12_a_silent_attempt_is_summed_up_too(past: Past, ending: Ending) -> None:
    attempt = await past.attempt(task=assigned())
    await past.end(attempt, ending)
    await past.learner().study_all()
    assert await past.studies(attempt) == [(Chore.SUMMARY, DONE)]
    assert 3 <= len((await past.told(Summary, attempt))[0].topics) <= 7


async def test_v25_no_review_comes_before_the_facts_of_a_failed_summary(past: Past) -> None:
    attempt = await past.attempt_with_pending_fact("broken")
    await past.learner(REVIEW.model_copy(update={"tries": 1})).study_all()
    # Tried as often as it may be, the summary is waited for no longer.
    chores = [chore for chore, _ in await past.studies(attempt)]
    assert chores == [Chore.SUMMARY, Chore.REVIEW]


async def test_v25_facts_do_not_wait_for_a_missing_reflector(past: Past) -> None:
    of = await past.attempt_with_pending_fact(spec=NO_KEY)
    await past.learner(REVIEW).study_all()
    assert await past.facts_wait_for_a_person() == [True]
    (review,) = await past.told(FactReview, of)
    assert review.state is ReviewState.SKIPPED
    assert "there is no model for the review: model m" in review.error
    assert (Chore.REVIEW, DONE) in await past.studies(of)


def refuse(connection: Connection, kind: str, kept: str = "nothing") -> None:
    """Let the journal take no record of this kind but with a word in it."""
    connection.exec_driver_sql("DROP TRIGGER IF EXISTS refuse")
    connection.exec_driver_sql(
        f"CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.kind = '{kind}'"
        f" AND NEW.body NOT LIKE '%\"{kept}\"%' BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )


async def test_v25_facts_wait_for_a_person_when_the_last_try_fails(past: Past) -> None:
    of = await past.attempt_with_fact_to_review()
    await past.journal.write(refuse, "fact_review", "skipped")
    seen: list[list[bool]] = []
    for _ in range(3):
        await past.learner(REVIEW).study_all()
        seen.append(await past.facts_wait_for_a_person())
    assert seen == [[False], [False], [True]]
    (review,) = await past.told(FactReview, of)
    assert "it failed at its last try" in review.error


async def test_v25_facts_that_no_try_could_settle_wait_for_a_person(past: Past) -> None:
    of = await past.attempt_with_fact_to_review()
    await past.journal.write(refuse, "fact_review")
    for _ in range(4):
        await past.learner(REVIEW).study_all()
    assert await past.facts_wait_for_a_person() == [False]
    await past.journal.write(refuse, "fact_review", "skipped")
    await past.learner(REVIEW).study_all()
    assert await past.facts_wait_for_a_person() == [True]
    (review,) = await past.told(FactReview, of)
    assert "it failed 4 times" in review.error


async def test_what_a_chore_costs_that_fails_is_recorded(past: Past) -> None:
    attempt = await past.ended_attempt("breaking")
    assert await past.learner().study_all() == Counter(failed=1)
    assert [each.requests for each in await past.told(Spending, attempt)] == [1]


async def test_a_chore_that_is_canceled_stays_to_be_done_and_what_it_cost_is_recorded(
    past: Past,
) -> None:
    attempt = await past.ended_attempt("slow")
    work = asyncio.create_task(past.learner().study_all())
    while not _hanging:
        await asyncio.wait({work}, timeout=0.01)
    work.cancel()
    await asyncio.wait({work})
    assert [each.requests for each in await past.told(Spending, attempt)] == [1]
    assert await past.studies(attempt) == []


async def test_the_end_of_a_run_waits_only_so_long(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await past.rejected_attempt("silent")
    await past.learner().finish(["shop"], seconds=0.05)
    assert await past.studies(attempt) == []
    assert "learning took longer than 0.05 s: the next run continues it" in caplog.text
    await past.learner().finish(["shop"], seconds=0)


async def test_requirement_21_no_text_of_a_lesson_or_a_transcript_is_logged(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("totals", "loose", "broken"):
        await past.rejected_attempt(name)
    await past.rejected_attempt("fixed", None)
    await past.learner().study_all()
    assert "the lesson of attempt 1: done" in caplog.text
    for text in (SECRETIVE, "Negative amounts", "refund", "make check", "rather not"):
        assert text not in caplog.text


# -- outages, and chores that pile up --------------------------------------------------------


async def test_what_an_outage_put_off_is_done_once_it_is_over(past: Past) -> None:
    _down.append("totals")
    attempts = [await past.ended_attempt() for _ in range(5)]
    same = past.learner()
    assert await same.study_all() == Counter(failed=3)
    _down.clear()
    assert await same.study_all() == Counter()
    past.at += timedelta(minutes=5)
    assert await same.study_all() == Counter(done=2)
    states = [[state for _, state in await past.studies(each)] for each in attempts]
    assert states == 2 * [[DONE]] + 3 * [[FAILED]]


async def test_an_outage_costs_one_question_a_pause_and_a_runs_end_tries_again(
    past: Past,
) -> None:
    _down.append("totals")
    for _ in range(6):
        await past.ended_attempt()
    same = past.learner()
    await same.study_all()
    for asked in (4, 5):
        past.at += timedelta(minutes=5)
        await same.study_all()
        assert len(_asked) == asked
    _down.clear()
    await same.finish(["shop"], seconds=5)
    assert len(await past.learned.summaries("shop")) == 1


async def test_what_fails_stops_no_other_model_and_holds_up_nothing_that_is_older(
    past: Past,
) -> None:
    plain, fine = await past.rejected_attempt("plain", None), await past.ended_attempt()
    for _ in range(4):
        await past.ended_attempt("broken")
    learner = past.learner(LearningSettings(look_back=2))
    assert await learner.study_all() == Counter(done=3, failed=3)
    assert await past.studies(fine) == [(Chore.SUMMARY, DONE)]
    assert len(await past.told(Lesson, plain)) == 1


async def test_lessons_that_are_switched_off_are_left_for_later_and_hold_up_no_older_summary(
    past: Past,
) -> None:
    of = await past.ended_attempt(spec=None)
    for number in range(4):
        await past.say(of, replace(REJECTION, comment=f"Order {number} is wrong."))
    off = LearningSettings(lessons=LessonSettings(enabled=False), look_back=2)
    assert await past.learner(off).study_all() == Counter(done=1)
    studied = await past.learner(off).study(attempt=of.id)
    assert studied == LessonResult(reason="lessons are switched off")
    await past.learner(LearningSettings(look_back=1)).study(attempt=of.id)
    assert len(await past.told(Lesson, of)) == 4  # all of them, for who asks


@asynccontextmanager
async def run_learner(learner: Learner) -> AsyncGenerator[None]:
    """Let a learner learn beside what is done here."""
    work = asyncio.create_task(learner.run())
    await asyncio.wait({work}, timeout=0.1)
    yield
    work.cancel()
    await asyncio.wait({work})


Until = Callable[[Record], Awaitable[Entry]]


async def test_it_hears_of_what_ends_and_of_what_is_rejected_and_others_of_what_it_learned(
    past: Past, bus: LocalBus, until: Until
) -> None:
    async with bus.subscribe() as hints, run_learner(past.learner(bus=bus)):
        attempt = await past.attempt()
        end = await past.end(attempt, Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=DONE))
        kinds = [hint.kind for hint in await hints.wait(1)]
        assert kinds[-2:] == ["summary", "study"]
        verdict = await past.say(attempt, REJECTION)
        bus.publish(Hint(entry=verdict, kind="feedback"))
        await until(Study(about=verdict, chore=Chore.LESSON, state=DONE))


async def test_a_run_takes_up_only_so_many_older_attempts_the_newest_first_a_command_all(
    past: Past, bus: LocalBus, until: Until
) -> None:
    ends = [await past.end(await past.attempt(), Ending.DONE) for _ in range(4)]
    few = LearningSettings(look_back=2)
    learner = past.learner(few, bus)
    async with run_learner(learner):
        for about in (ends[3], ends[2]):
            await until(Study(about=about, chore=Chore.SUMMARY, state=DONE))
        await learner.study_all()
    open_chores = await past.learned.chores(tries=3)
    assert [each.about for each in open_chores] == [ends[1], ends[0]]
    for _ in range(3):
        await past.end(await past.attempt(), Ending.DONE)
    assert await past.learner(few).study_all() == Counter(done=5)


async def test_a_journal_that_fails_ends_the_learner_and_nothing_else(
    past: Past, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    past.journal = await Journal.open(tmp_path / "closed.db")
    await past.journal.close()
    learner = past.learner(bus=LocalBus())
    await learner.run()
    await learner.finish(["shop"], seconds=1)
    assert caplog.text.count("nothing more is learned from this run: ") == 2


async def test_a_journal_that_fails_for_a_while_does_not_end_the_learner(
    past: Past, bus: LocalBus, until: Until
) -> None:
    await past.end(await past.attempt(), Ending.DONE)
    await past.journal.write(refuse, "study")
    async with run_learner(past.learner(bus=bus)):
        await past.journal.write(refuse, "no kind")
        end = await past.end(await past.attempt(), Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=DONE))
