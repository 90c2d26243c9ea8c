"""What was learned and what was given, as lines of the timeline and as a whole."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import (
    Chore,
    Fact,
    FactAct,
    FactMark,
    FactReview,
    FactState,
    Fault,
    Feedback,
    Group,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    LessonAct,
    LessonMark,
    Method,
    Origin,
    Recall,
    Recalled,
    Record,
    Reflection,
    ReviewState,
    Sign,
    Study,
    StudyState,
    Summary,
    Trial,
)
from midwatch_supervisor.present.learning_text import Given, line, parts
from midwatch_supervisor.present.record_text import detail
from midwatch_supervisor.present.record_text import line as told_line
from midwatch_supervisor.present.text_line import Told, Tone

AT = datetime(2026, 11, 21, tzinfo=UTC)
LESSON = Lesson(text="Too early.\nLater.", failure_class="loop", insights=("Wait.",), steps=(3,))
RECALL = Recall(
    lessons=(Recalled(lesson=7, method=Method.TASK, score=0.5),),
    facts=(8, 9),
    guidelines=4,
    tokens=90,
)
GIVEN = Given(
    lessons=(KnownLesson(id=7, at=AT, project="p", task="t", attempt=1, lesson=LESSON),),
    facts=(
        KnownFact(
            id=8,
            at=AT,
            project="p",
            task="t",
            attempt=1,
            fact=Fact(text="It is cold."),
            state=FactState.REVIEWED,
        ),
    ),
    guidelines=KnownGuidelines(
        id=4,
        at=AT,
        project="p",
        guidelines=Guidelines(version=2, text="- Wait."),
        state=GuidelinesState.LIVE,
    ),
)


def of(sign: str, what: str, text: str, tone: Tone) -> Told:
    return Told(sign=sign, what=what, text=text, tone=tone)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (Feedback(accepted=True), "result accepted"),
        (Feedback(accepted=False, author="ada", comment="no"), "result rejected by ada: no"),
        (
            Feedback(accepted=False, origin=Origin.IMPLIED, sign=Sign.REVERTED, author="eve"),
            "result rejected by eve (implied: reverted)",
        ),
        (
            Feedback(accepted=True, origin=Origin.AUTOMATIC, sign=Sign.REVIEWED, author="m"),
            "result accepted by m (automatic: reviewed)",
        ),
    ],
)
def test_a_verdict_is_told_with_where_it_comes_from(verdict: Feedback, text: str) -> None:
    told = told_line(verdict)
    assert (told.what, told.text) == ("verdict", text)


@pytest.mark.parametrize(
    ("record", "given", "text"),
    [
        (RECALL, GIVEN, "1 lesson, 2 facts, guidelines v2; 90 tokens"),
        (RECALL, Given(), "1 lesson, 2 facts, guidelines; 90 tokens"),
        (Recall(), Given(), "0 lessons, 0 facts, no guidelines"),
        (
            Recall(group=Group.CONTROL),
            Given(),
            "no lessons: it is in the control group, 0 facts, no guidelines",
        ),
    ],
)
def test_what_an_attempt_was_given_is_counted(record: Recall, given: Given, text: str) -> None:
    assert line(record, given) == of("«", "given", text, Tone.ACCENT)


def test_all_that_an_attempt_was_given_is_read_in_its_words() -> None:
    assert parts(RECALL, GIVEN)[1:4] == (
        ("lessons", "- 7 (by task, fits 50%) Too early.\nLater."),
        ("facts", "- 8 It is cold.\n- 9"),
        ("guidelines", "- Wait."),
    )


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (Summary(text="It\nworked."), of("∑", "summary", "It worked.", Tone.DIM)),
        (LESSON, of("✎", "lesson", "loop: Too early. Later.", Tone.ACCENT)),
        (Fact(text="Cold."), of("=", "fact", "unreviewed: Cold.", Tone.PLAIN)),
        (
            LessonMark(lesson=7, act=LessonAct.RATED, rating=4, author="ada"),
            of("✎", "lesson", "lesson 7 rated 4 of 5 by ada", Tone.DIM),
        ),
        (
            FactMark(fact=8, act=FactAct.REPLACED, instead=9, reason="newer", author="m"),
            of("=", "fact", "fact 8 replaced by fact 9 (m): newer", Tone.DIM),
        ),
        (
            Guidelines(version=2, text="- Wait."),
            of("?", "guidelines", "version 2 is proposed: 2 words", Tone.WARN),
        ),
        (
            GuidelinesMark(guidelines=4, act=GuidelinesAct.APPROVED, author="ada"),
            of("✓", "guidelines", "version of entry 4 approved by ada", Tone.GOOD),
        ),
        (
            Study(about=1, chore=Chore.LESSON, state=StudyState.FAILED, reason="no model"),
            of("✗", "study", "its lesson failed: no model", Tone.WARN),
        ),
        (
            Study(about=1, chore=Chore.LESSON, state=StudyState.REFUSED, reason="too generic"),
            of("⊘", "study", "its lesson refused: too generic", Tone.DIM),
        ),
        (
            FactReview(state=ReviewState.FALLBACK, facts=(1, 2), error="timeout"),
            of("⊘", "fact review", "fallback: 2 facts kept unreviewed: timeout", Tone.WARN),
        ),
        (
            FactReview(state=ReviewState.OK, facts=(1, 2), removed=1, conflicts=1),
            of("≟", "fact review", "2 facts: 1 removed, 1 in conflict", Tone.DIM),
        ),
        (
            FactReview(state=ReviewState.OK, facts=(1,)),
            of("≟", "fact review", "1 fact: all kept", Tone.DIM),
        ),
        (
            Reflection(watermark=3, attempts=(1, 2), insights=1, proposed=True),
            of("∑", "look back", "1 insight of 2 attempts, and new guidelines", Tone.DIM),
        ),
        (
            Reflection(watermark=3, skipped="no attempt"),
            of("∑", "look back", "nothing was asked: no attempt", Tone.DIM),
        ),
        (
            Reflection(watermark=3, error="timeout"),
            of("∑", "look back", "0 insights of 0 attempts; it failed: timeout", Tone.WARN),
        ),
        (
            Fault(part="learning: facts", error="no answer"),
            of("✗", "fault", "learning: facts failed: no answer", Tone.BAD),
        ),
        (
            Trial(guidelines=4, reason="no gain"),
            of("≟", "trial", "guidelines tried on 0 tasks: not adopted: no gain", Tone.DIM),
        ),
    ],
)
def test_each_record_of_what_is_learned_is_one_line(record: Record, told: Told) -> None:
    assert told_line(record) == told


def test_a_lesson_is_told_as_a_whole() -> None:
    assert detail(LESSON) == (
        "lesson:\nToo early.\nLater.\n\nclass of failure:\nloop\n\n"
        "what to do instead:\n- Wait.\n\nrests on:\nsteps 3\n\nborn of:\nverdict, automatic\n\n"
        "written by:\nnobody: it is made in the fixed form"
    )


def test_a_verdict_is_told_with_what_a_person_changed() -> None:
    edited = Feedback(accepted=False, origin=Origin.IMPLIED, sign=Sign.EDITED, diff="-a\n+b")
    assert detail(edited) == (
        "verdict:\nrejected (implied: edited)\n\nwhat a person changed afterwards:\n-a\n+b"
    )


def test_the_words_of_a_lesson_cannot_steer_the_terminal() -> None:
    told = line(Lesson(text="\x1b[2Jgone", failure_class="loop"))
    assert told is not None
    assert told.text == "loop: gone"
