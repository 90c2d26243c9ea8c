"""`midwatch show` tells what an attempt was given, and what was learned of it."""

from typing import Any

import pytest

from midwatch_monitor.records import (
    Attempt,
    Chore,
    Ending,
    Fact,
    Feedback,
    Group,
    Guidelines,
    Lesson,
    Method,
    Origin,
    Recall,
    Recalled,
    Study,
    StudyState,
    Summary,
)
from midwatch_stage.command import ask, printed
from midwatch_stage.harness import PastAttempts

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
CENT = Lesson(text="Round the price, not the sum.", failure_class="loop", origin=Origin.EXPLICIT)


async def taught(past: PastAttempts) -> Attempt:
    """An attempt that was given something, ended, and was learned from."""
    before = await past.attempt(task="before")
    lesson = await past.say(before, CENT)
    fact = await past.say(before, Fact(text="The port of the tests is 8765."))
    version = await past.say(before, Guidelines(version=1, text="Run the tests."))
    attempt = await past.attempt(task="totals")
    given = Recall(
        lessons=(Recalled(lesson=lesson, method=Method.TAGS, score=0.25),),
        facts=(fact,),
        guidelines=version,
        group=Group.TREATMENT,
        tokens=99,
        seconds=0.01,
    )
    await past.say(attempt, given)
    end = await past.end(attempt, Ending.DONE)
    await past.say(attempt, Summary(text="It went well.", topics=("a", "b", "c"), turns=4))
    verdict = await past.say(attempt, Feedback(accepted=False, comment="No.", author="ann"))
    refused = Study(about=verdict, chore=Chore.LESSON, state=StudyState.REFUSED, reason="too vague")
    done = Study(about=end, chore=Chore.SUMMARY, state=StudyState.DONE)
    await past.say(attempt, refused, done)
    return attempt


async def shown(capsys: Capture, id: str, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind of what `show` says as JSON."""
    return [line for line in await ask(capsys, "show", id) if line["type"] == kind]


async def test_the_lines_tell_what_was_given_by_id_and_in_words(
    past: PastAttempts, capsys: Capture
) -> None:
    attempt = await taught(past)
    (line,) = await shown(capsys, "totals", "recall")
    assert (line["attempt"], line["number"], line["group"]) == (attempt.id, 1, "treatment")
    assert line["lessons"] == [
        {
            "id": 3,
            "method": "tags",
            "score": 0.25,
            "text": CENT.text,
            "failure_class": "loop",
            "origin": "explicit",
            "source_attempt": 1,
        }
    ]
    assert line["facts"] == [{"id": 4, "text": "The port of the tests is 8765."}]
    assert line["guidelines"] == {"id": 5, "version": 1}


async def test_the_lines_tell_the_summary_the_verdict_and_what_could_not_be_drawn(
    past: PastAttempts, capsys: Capture
) -> None:
    await taught(past)
    (summary,) = await shown(capsys, "totals", "summary")
    (verdict,) = await shown(capsys, "totals", "feedback")
    (study,) = await shown(capsys, "totals", "study")
    assert (summary["text"], summary["turns"]) == ("It went well.", 4)
    assert (verdict["accepted"], verdict["origin"], verdict["author"]) == (False, "explicit", "ann")
    assert (study["about"], study["reason"]) == (verdict["id"], "too vague")


async def test_the_lines_of_its_source_tell_the_lesson_and_the_fact(
    past: PastAttempts, capsys: Capture
) -> None:
    await taught(past)
    (lesson,) = await shown(capsys, "before", "lesson")
    (fact,) = await shown(capsys, "before", "fact")
    assert (lesson["text"], fact["certainty"]) == (CENT.text, "inferred")


async def test_people_are_told_the_same_in_short(past: PastAttempts, capsys: Capture) -> None:
    await taught(past)
    output = await printed(capsys, "show", "totals")
    assert (
        "  lessons and facts it was given:\n"
        "    given:\n"
        "    1 lesson, 1 fact, guidelines v1, 99 tokens\n"
        "    lessons:\n"
        "    - 3 (found by tags, fits 25 %) Round the price, not the sum.\n"
        "    facts:\n"
        "    - 4 The port of the tests is 8765.\n"
        "    guidelines:\n"
        "    Run the tests.\n"
        "    group:\n"
        "    treatment\n"
        "    found in:\n"
        "    0.010 seconds\n"
        "  verdicts and lessons:\n"
        "    summary: It went well.\n"
        "    verdict: result rejected by ann: No.\n"
    ) in output
    assert "    learning: no lesson: too vague" in output


async def test_an_attempt_that_nothing_was_learned_of_has_no_such_parts(
    past: PastAttempts, capsys: Capture
) -> None:
    await past.attempt(task="bare")
    assert "learned" not in await printed(capsys, "show", "bare")
