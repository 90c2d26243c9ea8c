"""The learner: lessons, summaries and facts out of what ended, whatever the model does."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.learning.text_safety import BY_A_MODEL
from midwatch_monitor.config.learning import FactSettings, LearningSettings, LessonSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Change,
    Chore,
    Ending,
    Fact,
    FactState,
    Feedback,
    Lesson,
    Origin,
    Spending,
    Study,
    StudyState,
    Summary,
)
from midwatch_stage.factories import edit, step
from midwatch_stage.harness import PastAttempts, assigned
from midwatch_supervisor.learning.chores import LessonResult
from midwatch_supervisor.learning.learner import Learner

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
BACK: dict[str, Any] = {
    "summary": "Totals were rounded in totals.py. A person found refunds wrong.",
    "quote": "make check passes",
    "topics": ["totals", "rounding", "refunds"],
    "facts": [
        {
            "text": "`make check` runs the tests of totals.py.",
            "quote": "make check passes",
            "step": 1,
        }
    ],
}


_hanging: list[str] = []
"""Tasks whose reflector gives no second answer, and was asked for it."""


def model_for(role: Role, key: str) -> Model:
    """The model of `scripted:{__name__}`: what it does follows from the task's name."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if key.startswith("broken"):
            raise ModelHTTPError(400, "reflector", "no such deployment")
        if key.startswith("breaking") and len(messages) > 1:
            raise ModelHTTPError(400, "reflector", "too long")
        if key.startswith("slow") and len(messages) > 1:
            _hanging.append(key)
        if key.startswith("silent") or _hanging:
            await asyncio.Event().wait()
        if key.startswith(("loose", "breaking", "slow")):
            return ModelResponse(parts=[TextPart("I would rather not.")])
        tool = info.output_tools[0]
        args = LESSON if "failure_class" in str(tool.parameters_json_schema) else BACK
        return ModelResponse(parts=[ToolCallPart(tool.name, args)])

    return FunctionModel(answer, model_name="reflector")


class School(PastAttempts):
    """Tasks that were done, and learners who learn from them."""

    async def begun(self, name: str = "totals", *, model: bool = False) -> Attempt:
        """An attempt at a new task that has changed a file."""
        models = {Role.REFLECTOR: ModelSpec(name=f"scripted:{__name__}")} if model else {}
        task = assigned(name, tags=("py",), models=models, named=(Role.REFLECTOR,))
        attempt = await self.attempt(task=task)
        edits = (edit("totals.py"),)
        await self.say(attempt, step(1, request=1, output="make check passes", edits=edits))
        return attempt

    async def ended(self, name: str = "totals", *, model: bool = False) -> Attempt:
        """An attempt that ended well."""
        attempt = await self.begun(name, model=model)
        await self.end(attempt, Ending.DONE)
        return attempt

    async def rejected(self, name: str = "totals", *, model: bool = False) -> Attempt:
        """An attempt that a person rejected."""
        attempt = await self.ended(name, model=model)
        await self.say(attempt, REJECTION)
        return attempt

    def learner(self, learning: LearningSettings | None = None) -> Learner:
        settings = Settings(learning=learning or LearningSettings())
        return Learner(self.journal, settings=settings, clock=lambda: self.at)

    async def studies(self, attempt: Attempt) -> list[tuple[Chore, StudyState]]:
        return [(each.chore, each.state) for each in await self.told(Study, attempt)]


@pytest.fixture
def school(journal: Journal, at: datetime) -> School:
    _hanging.clear()
    return School(journal, at)


# -- lessons ---------------------------------------------------------------------------------


async def test_r21_a_rejections_lesson_names_it_and_its_attempt(school: School) -> None:
    attempt = await school.ended(model=True)
    verdict = await school.say(attempt, REJECTION)
    studied = await school.learner().study(attempt=attempt.id)
    (lesson,) = await school.told(Lesson, attempt)
    assert studied.lesson is not None
    assert lesson == Lesson(
        text=LESSON["text"],
        failure_class="untested",
        insights=("Try a refund.",),
        tags=("py",),
        kind="coder",
        files=("totals.py",),
        steps=(1,),
        model="reflector",
        verdict=verdict,
        origin=Origin.EXPLICIT,
        sources=(attempt.id,),
        waits=BY_A_MODEL,
    )


async def test_r21_a_success_makes_no_lesson(school: School) -> None:
    attempt = await school.ended()
    assert await school.learner().study(attempt=attempt.id) == LessonResult(
        reason="there is no rejection to learn from"
    )
    await school.learner().study_all()
    assert await school.told(Lesson, attempt) == []


@pytest.mark.parametrize("name", ["broken", "silent"])
async def test_r24_a_verdict_outlives_the_failure_of_the_model(school: School, name: str) -> None:
    attempt = await school.rejected(name, model=True)
    learner = school.learner(LearningSettings(timeout_seconds=0.05))
    studied = await learner.study(attempt=attempt.id)
    assert await school.told(Feedback, attempt) == [REJECTION]
    assert await school.studies(attempt) == [(Chore.LESSON, StudyState.FAILED)]
    assert studied.lesson is None
    assert "the reflector reflector failed: " in studied.reason


async def test_c11_what_failed_is_tried_again_by_the_next_run_and_at_last_given_up(
    school: School, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await school.rejected("broken", model=True)
    for _ in range(5):
        learner = school.learner()
        await learner.study_all()
        await learner.study_all()  # the same learner does not try again
    assert await school.studies(attempt) == 3 * [
        (Chore.LESSON, StudyState.FAILED),
        (Chore.SUMMARY, StudyState.FAILED),
    ]
    assert "#1 of run 1 teaches no lesson: " in caplog.messages[0]


async def test_c11_a_useless_answer_is_refused_and_not_tried_again(school: School) -> None:
    attempt = await school.rejected("loose", model=True)
    await school.learner().study_all()
    await school.learner().study_all()
    assert await school.studies(attempt) == [
        (Chore.LESSON, StudyState.REFUSED),
        (Chore.SUMMARY, StudyState.DONE),
    ]
    assert await school.told(Lesson, attempt) == []


async def test_requirement_18_two_learners_at_once_write_one_lesson(school: School) -> None:
    attempt = await school.rejected(model=True)
    done = await asyncio.gather(*(school.learner().study_all() for _ in range(4)))
    assert len(await school.told(Lesson, attempt)) == 1
    assert len(await school.told(Summary, attempt)) == 1
    assert sum(each[StudyState.DONE] for each in done) == 2


async def test_without_a_model_a_lesson_has_a_fixed_form_with_the_comment(school: School) -> None:
    attempt = await school.rejected()
    await school.learner().study_all()
    (lesson,) = await school.told(Lesson, attempt)
    assert lesson.text.startswith(f"A person rejected the result: {REJECTION.comment}")
    assert lesson.model == ""


async def test_a_persons_word_is_a_lesson_though_checks_taught_the_same(school: School) -> None:
    attempt = await school.begun()
    await school.end(attempt, Ending.UNACCEPTED)
    await school.say(attempt, replace(REJECTION, comment="totals.py is wrong"))
    await school.learner().study_all()
    assert {each.origin for each in await school.told(Lesson, attempt)} >= {Origin.EXPLICIT}


async def test_lessons_that_are_switched_off_are_left_for_later(school: School) -> None:
    attempt = await school.rejected()
    off = LearningSettings(lessons=LessonSettings(enabled=False))
    assert await school.learner(off).study(attempt=attempt.id) == LessonResult(
        reason="lessons are switched off"
    )
    assert (await school.learner().study(attempt=attempt.id)).lesson is not None


# -- summaries and facts ---------------------------------------------------------------------


async def test_s12_every_ended_attempt_gets_a_summary_with_topics_and_turns(
    school: School,
) -> None:
    attempt = await school.ended(model=True)
    await school.learner().study_all()
    (summary,) = await school.told(Summary, attempt)
    assert summary == Summary(
        text=BACK["summary"],
        topics=("totals", "rounding", "refunds"),
        turns=1,
        model="reflector",
    )


@pytest.mark.parametrize("ending", [Ending.ERROR, Ending.CANCELED, Ending.SPLIT])
async def test_s12_a_silent_attempt_is_summed_up_too(school: School, ending: Ending) -> None:
    attempt = await school.begun()
    await school.end(attempt, ending)
    await school.learner().study_all()
    assert await school.studies(attempt) == [(Chore.SUMMARY, StudyState.DONE)]
    assert 3 <= len((await school.told(Summary, attempt))[0].topics) <= 7


async def test_v25_facts_are_taken_out_of_an_attempt_when_it_is_over(school: School) -> None:
    attempt = await school.ended(model=True)
    await school.learner().study_all()
    (fact,) = await school.learned.facts(project="shop")
    assert (fact.attempt, fact.waiting) == (attempt.id, True)
    assert fact.fact.text == BACK["facts"][0]["text"]


async def test_v25_waiting_facts_are_reviewed_when_the_attempt_is_over(school: School) -> None:
    attempt = await school.begun()
    await school.say(attempt, Fact(text="The port of the tests is 8765.", state=FactState.PENDING))
    review = LearningSettings(facts=FactSettings(review=True))
    await school.learner(review).study_all()
    assert [each.shared for each in await school.learned.facts(project="shop")] == [False]
    await school.end(attempt, Ending.DONE)
    await school.learner(review).study_all()
    assert [each.waiting for each in await school.learned.facts(project="shop")] == [True]
    assert (Chore.REVIEW, StudyState.DONE) in await school.studies(attempt)


async def test_v25_no_review_comes_before_the_facts_of_a_failed_summary(school: School) -> None:
    attempt = await school.begun("broken", model=True)
    await school.say(attempt, Fact(text="The port of the tests is 8765.", state=FactState.PENDING))
    await school.end(attempt, Ending.DONE)
    review = LearningSettings(tries=1, facts=FactSettings(review=True))
    await school.learner(review).study_all()
    # Tried as often as it may be, the summary is waited for no longer.
    chores = [chore for chore, _ in await school.studies(attempt)]
    assert chores == [Chore.SUMMARY, Chore.REVIEW]


# -- isolation, time and money ---------------------------------------------------------------


async def test_s34_a_chore_that_fails_harms_no_other_one(school: School) -> None:
    good, broken = await school.rejected(model=True), await school.rejected("broken", model=True)
    progress = await school.learner().study_all()
    assert progress == Counter(done=2, failed=2)
    assert len(await school.told(Lesson, good)) == 1
    assert await school.told(Lesson, broken) == []


async def test_what_the_reflector_uses_is_no_budget_of_a_worker(school: School) -> None:
    attempt = await school.rejected(model=True)
    await school.learner().study_all()
    spent = await school.told(Spending, attempt)
    assert [(each.role, each.model, each.requests) for each in spent] == [
        ("reflector", "reflector", 1),
        ("reflector", "reflector", 1),
    ]
    assert await school.told(Change, attempt) == []


async def test_what_a_chore_costs_that_fails_is_recorded(school: School) -> None:
    attempt = await school.ended("breaking", model=True)
    assert await school.learner().study_all() == Counter(failed=1)
    assert [each.requests for each in await school.told(Spending, attempt)] == [1]


async def test_the_end_of_a_run_waits_only_so_long(
    school: School, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = await school.rejected("silent", model=True)
    await school.learner().finish(["shop"], seconds=0.05)
    assert await school.studies(attempt) == []
    assert "learning took longer than 0.05 s: the next run continues it" in caplog.text
    await school.learner().finish(["shop"], seconds=0)


async def test_what_a_chore_costs_that_is_canceled_is_recorded(school: School) -> None:
    attempt = await school.ended("slow", model=True)
    work = asyncio.create_task(school.learner().study_all())
    while not _hanging:
        await asyncio.wait({work}, timeout=0.01)
    work.cancel()
    await asyncio.wait({work})
    assert [each.requests for each in await school.told(Spending, attempt)] == [1]
    assert await school.studies(attempt) == []


async def test_a_learner_that_is_cancelled_leaves_its_chore_as_it_was(school: School) -> None:
    attempt = await school.rejected("silent", model=True)
    learner = school.learner()
    work = asyncio.create_task(learner.run())
    done, _ = await asyncio.wait({work}, timeout=0.1)
    assert not done
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work
    assert await school.studies(attempt) == []


async def test_requirement_21_no_text_of_a_lesson_or_a_transcript_is_logged(
    school: School, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("totals", "loose", "broken"):
        await school.rejected(name, model=True)
    await school.rejected("fixed")
    await school.learner().study_all()
    assert "the lesson of attempt 1: done" in caplog.text
    for text in (SECRETIVE, "Negative amounts", "refund", "make check", "rather not"):
        assert text not in caplog.text


async def test_an_outage_does_not_cost_every_chore_a_try(school: School) -> None:
    attempts = [await school.rejected("broken", model=True) for _ in range(4)]
    assert await school.learner().study_all() == Counter(failed=3)
    assert await school.studies(attempts[0]) == []
    assert await school.learner().study_all() == Counter(failed=3)


async def test_an_outage_stops_nothing_that_needs_no_model(school: School) -> None:
    plain = await school.rejected()
    for _ in range(4):
        await school.rejected("broken", model=True)
    await school.learner().study_all()
    assert len(await school.told(Lesson, plain)) == 1
