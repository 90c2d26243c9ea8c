"""A project is looked back at: what the journal holds before and after."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.learning import GuidelinesSettings, LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Actor,
    Commit,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Message,
    Reflection,
    Spending,
    Summary,
)
from midwatch_supervisor.learning.reflection import NO_MODEL, reflect_project
from midwatch_tests.factories import intervention, plan, reflecting
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import last_words

Look = Callable[..., Awaitable[Reflection | None]]

DOCUMENT = """\
## Working style

- Run the failing test in `tests/test_totals.py` before you edit `totals.py`.
- After two edits without a new result, look at the whole file again.\
"""

TOLD = "It edited the rounding in totals.py five times before it ran the tests."
"""A summary."""

INSIGHT = "The rounding in totals.py was edited before any test was run."


def answer(
    *attempts: int, content: str = INSIGHT, quote: str = "ran the tests", **more: Any
) -> dict[str, Any]:
    """What a look back at attempts comes to."""
    evidence = [{"attempt": each, "quote": quote} for each in attempts]
    insight = {"content": content, "topics": ["rounding"], "evidence": evidence}
    return {"explanation": "It edited blindly.", "insights": [insight], **more}


class Reflector:
    """Answers the first question with an object, made of the attempts in it, the second in words.

    Either may be an error, which is raised, or for the second an event, which is waited for. It
    keeps what it was asked.
    """

    def __init__(
        self,
        first: dict[str, Any] | Exception | None = None,
        second: str | Exception | asyncio.Event = DOCUMENT,
    ) -> None:
        self.first = first
        self.second = second
        self.asked: list[str] = []
        self.model = FunctionModel(self._answer, model_name="reflecting")

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = last_words(messages)
        self.asked.append(prompt)
        said: object = self.second
        if info.output_tools:
            attempts = [int(found) for found in re.findall(r"^- attempt (\d+)", prompt, re.M)]
            said = answer(*attempts) if self.first is None else self.first
        if isinstance(said, Exception):
            raise said
        if isinstance(said, asyncio.Event):
            await said.wait()
        if isinstance(said, dict):
            args: dict[str, Any] = {**said}
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, args)])
        return ModelResponse(parts=[TextPart(str(said))])


@pytest.fixture
def look(journal: Journal, past: PastAttempts) -> Look:
    """Looks back at the project `shop`: `await look(reflector, min_runs=2)`."""

    async def back(
        reflector: Reflector | None, project: str = "shop", *, tries: int = 3, **knobs: Any
    ) -> Reflection | None:
        guidelines = GuidelinesSettings.model_validate({"enabled": True, **knobs})
        learning = LearningSettings(guidelines=guidelines, tries=tries)
        model: Model | None = reflector.model if reflector else None
        return await reflect_project(
            journal, project, model=model, settings=Settings(learning=learning), now=lambda: past.at
        )

    return back


async def ended_attempt(
    past: PastAttempts, *, turns: int = 9, text: str = TOLD, project: str = "shop"
) -> int:
    """An attempt that is over and summed up; its id."""
    attempt = await past.attempt(project)
    await past.end(attempt)
    await past.say(attempt, Summary(text=text, topics=("rounding",), turns=turns))
    return attempt.id


async def test_s1_s37_s41_a_look_back_gives_insights_and_a_document_that_is_only_proposed(
    past: PastAttempts, look: Look
) -> None:
    one = await ended_attempt(past)
    found = await look(Reflector())
    assert found is not None
    assert (found.attempts, found.insights, found.proposed, found.error) == ((one,), 1, True, "")
    (insight,) = await past.learned.lessons(project="shop")
    assert (insight.lesson.text, insight.lesson.born) == (INSIGHT, LessonOrigin.REFLECTION)
    assert (insight.lesson.sources, insight.lesson.tags) == ((one,), ("rounding",))
    (version,) = await past.learned.guidelines("shop")
    assert (version.guidelines.text, version.guidelines.sources) == (DOCUMENT, (one,))
    assert (version.guidelines.version, version.state) == (1, GuidelinesState.PROPOSED)
    assert await past.learned.live_guidelines("shop") is None
    costs = await past.told(Spending)
    assert [(each.role, each.requests) for each in costs] == [("reflector", 1)] * 2


async def test_s40_s50_s59_without_news_nothing_is_asked_or_stored_and_counts_alone_are_logged(
    past: PastAttempts, look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="midwatch_supervisor")
    await ended_attempt(past)
    await look(Reflector())
    before, reflector = await past.journal.last_id(), Reflector()
    found = await look(reflector)
    assert found is not None
    assert (found.skipped, reflector.asked) == ("no qualifying attempts", [])
    assert await past.journal.last_id() == before
    words = len(DOCUMENT.split())
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (
            "INFO",
            f"looked back at 1 attempts of shop: 1 insights, 0 dropped, {words} words proposed",
        ),
        ("DEBUG", "did not look back at shop: no qualifying attempts"),
    ]


async def test_requirement_20_each_attempt_is_used_once(past: PastAttempts, look: Look) -> None:
    attempts = [await ended_attempt(past) for _ in range(3)]
    seen = [await look(Reflector(), max_runs=2) for _ in range(3)]
    used = [each.attempts for each in seen if each]
    assert used == [tuple(attempts[:2]), tuple(attempts[2:]), ()]


async def test_too_few_attempts_wait_for_the_next_time(past: PastAttempts, look: Look) -> None:
    shallow, deep = await ended_attempt(past, turns=1), await ended_attempt(past)
    found = await look(Reflector(), min_runs=2)
    assert found is not None
    assert found.skipped == "1 of the 2 attempts that a look back needs"
    (passed,) = await past.learned.summaries("shop", after=0, limit=1)
    assert (passed.attempt, found.watermark) == (shallow, passed.id)
    second = await ended_attempt(past)
    found = await look(Reflector(), min_runs=2)
    assert found is not None
    assert found.attempts == (deep, second)


async def test_s47_shallow_attempts_are_passed_once(past: PastAttempts, look: Look) -> None:
    await ended_attempt(past, turns=2)
    first = await look(Reflector())
    again = await look(Reflector())
    assert [each.skipped for each in (first, again) if each] == [
        "no attempts with sufficient depth",
        "no qualifying attempts",
    ]


async def test_s24_c3_the_version_in_force_is_built_upon_and_kept(
    past: PastAttempts, look: Look
) -> None:
    first_attempt = await ended_attempt(past)
    await look(Reflector())
    (first,) = await past.learned.guidelines("shop")
    mark = GuidelinesMark(guidelines=first.id, act=GuidelinesAct.APPROVED)
    await past.say(await past.journal.attempt(first_attempt), mark)
    attempts = [await ended_attempt(past), await ended_attempt(past)]
    content = "Tests of totals.py ran after five rounding edits."
    found = answer(*attempts, content=content)
    reflector = Reflector(found, f"{DOCUMENT}\n- Ask for the rounding rule.")
    await look(reflector)
    second, _ = await past.learned.guidelines("shop")
    assert DOCUMENT in reflector.asked[1]
    assert (second.guidelines.version, second.guidelines.base) == (2, first.id)
    insight, before = await past.learned.lessons(project="shop")
    assert (insight.lesson.sources, insight.attempt) == (tuple(attempts), attempts[-1])
    assert before.lesson.text == INSIGHT


async def test_s34_a_failed_document_keeps_the_insights_for_the_next_one(
    past: PastAttempts, look: Look
) -> None:
    one = await ended_attempt(past)
    found = await look(Reflector(second=ConnectionError("gone")))
    assert found is not None
    assert (found.attempts, found.insights, found.proposed) == ((one,), 1, False)
    assert "ConnectionError: gone" in found.error
    (fault,) = await past.told(Fault)
    assert (fault.part, fault.error) == ("learning: guidelines", found.error)
    second = await ended_attempt(past, text="It wrote the login form, and ran pytest at once.")
    content = "The login form was tried by pytest at once."
    reflector = Reflector(answer(second, content=content, quote="the login form"))
    await look(reflector)
    assert f"- {INSIGHT}" in reflector.asked[1]
    assert len(await past.learned.lessons(project="shop")) == 2


async def test_s34_a_failed_look_is_retried_and_at_last_passed(
    past: PastAttempts, look: Look
) -> None:
    one = await ended_attempt(past)
    found = await look(Reflector(ConnectionError("gone")))
    assert found is not None
    assert (found.watermark, found.attempts) == (0, ())
    assert await past.told(Lesson) == await past.told(Guidelines) == []
    again = await look(Reflector())
    assert again is not None
    assert again.attempts == (one,)
    await ended_attempt(past)
    broken = Reflector({"insights": "none"})
    marks = [found.watermark for _ in range(2) if (found := await look(broken, tries=2))]
    assert marks == [again.watermark, (await past.learned.summaries("shop"))[-1].id]
    assert await look(broken, tries=2) == Reflection(
        watermark=marks[1], skipped="no qualifying attempts"
    )


@pytest.mark.parametrize(
    ("model", "knobs", "reason"),
    [(None, {}, NO_MODEL), (Reflector(), {"enabled": False}, "guidelines are switched off")],
)
async def test_without_a_model_or_switched_off_attempts_wait(
    past: PastAttempts, look: Look, model: Reflector | None, knobs: dict[str, Any], reason: str
) -> None:
    one = await ended_attempt(past)
    assert await look(model, **knobs) == Reflection(watermark=0, skipped=reason)
    found = await look(Reflector())
    assert found is not None
    assert found.attempts == (one,)


async def test_projects_never_see_each_other(past: PastAttempts, look: Look) -> None:
    await ended_attempt(
        past, text="It edited the rounding in totals.py for the site.", project="site"
    )
    shop = await ended_attempt(past)
    reflector = Reflector()
    found = await look(reflector)
    assert found is not None
    assert (found.attempts, "for the site" in "".join(reflector.asked)) == ((shop,), False)
    assert await past.learned.guidelines("site") == []
    assert await past.learned.watermark("site") == 0


@pytest.mark.parametrize(
    ("reflector", "requests"),
    [(Reflector({"insights": "none"}), [3]), (Reflector(second=""), [1, 3])],
    ids=["first question", "second question"],
)
async def test_what_a_look_costs_that_comes_to_nothing_is_recorded(
    past: PastAttempts, look: Look, reflector: Reflector, requests: list[int]
) -> None:
    await ended_attempt(past)
    await look(reflector)
    assert [each.requests for each in await past.told(Spending)] == requests


async def test_what_a_canceled_look_costs_is_recorded(past: PastAttempts, look: Look) -> None:
    await ended_attempt(past)
    reflector = Reflector(second=asyncio.Event())
    work = asyncio.ensure_future(look(reflector))
    while len(reflector.asked) < 2:
        await asyncio.wait({work}, timeout=0.01)
    work.cancel()
    await asyncio.wait({work})
    assert [each.requests for each in await past.told(Spending)] == [1]


async def test_how_the_attempts_before_fared_costs_the_next_ones_no_try(
    past: PastAttempts, look: Look
) -> None:
    await ended_attempt(past)
    await look(Reflector(second=ConnectionError("gone")), tries=2)
    mark = await past.learned.watermark("shop")
    await ended_attempt(past)
    await look(Reflector({"insights": "none"}), tries=2)
    assert await past.learned.watermark("shop") == mark > 0


async def test_s50_what_is_known_or_retired_does_not_come_back(
    past: PastAttempts, look: Look
) -> None:
    of = await past.journal.attempt(await ended_attempt(past))
    await look(Reflector())
    (known,) = await past.learned.lessons()
    for act in (LessonAct.RETIRED, LessonAct.RESTORED):
        await past.say(of, LessonMark(lesson=known.id, act=act))
        await ended_attempt(past)
        found = await look(Reflector())
        assert found is not None
        assert not found.proposed
    assert [each.id for each in await past.learned.lessons(project="shop")] == [known.id]
    assert len(await past.learned.guidelines("shop")) == 1


DETAIL = "zweihundert"
"""Stands in everything that an attempt leaves but its summary and what was said of it."""


@pytest.fixture
async def attempt_with_all_records(past: PastAttempts) -> None:
    """An attempt of which everything is known that can be."""
    attempt = await past.attempt()
    step = replace(reflecting(notes=DETAIL, blockers=(DETAIL,)), args=DETAIL, output=DETAIL)
    said = intervention(by=Actor.OPERATOR, message="Look at halves.")
    await past.say(attempt, step, plan(DETAIL), said, intervention(message=DETAIL))
    message = Message(index=0, body=f'["{DETAIL}"]'.encode())
    await past.journal.commit(Commit(attempt=attempt.id, messages=(message,)))
    await past.end(attempt)
    await past.say(attempt, Feedback(accepted=False, comment="Bankers' halves."))
    await past.say(attempt, Lesson(text="Halves were rounded up in totals.py."))
    await past.say(attempt, Summary(text=TOLD, turns=9))


LESSONS = ("  - lesson: Halves were rounded up in totals.py.",)
OPERATORS = (
    "  - an operator said (nudge): Look at halves.",
    "  - a person rejected the result: Bankers' halves.",
)


@pytest.mark.parametrize(
    ("more", "shown"),
    [({}, ()), ({"with_lessons": True}, LESSONS), ({"with_operators": True}, OPERATORS)],
    ids=["s42 summaries alone", "s52 lessons", "s60 what operators said"],
)
@pytest.mark.usefixtures("attempt_with_all_records")
async def test_summaries_are_looked_back_at_with_what_is_wanted_and_no_single_step_or_message(
    look: Look, more: dict[str, bool], shown: tuple[str, ...]
) -> None:
    reflector = Reflector()
    await look(reflector, **more)
    assert len(reflector.asked) == 2
    assert TOLD in reflector.asked[0]
    assert tuple(each for each in (*LESSONS, *OPERATORS) if each in reflector.asked[0]) == shown
    assert DETAIL not in "".join(reflector.asked)
