"""What a person may do about what was learned, what is asked, and what is shown of it."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import (
    Chore,
    Fact,
    FactAct,
    FactState,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    Record,
    Study,
    StudyState,
)
from midwatch_supervisor.operator.actions import LearningMark as Mark
from midwatch_supervisor.operator.actions import refusal
from midwatch_supervisor.present.known_text import Known, fact_standing, lesson_detail, version_diff
from midwatch_supervisor.present.text_line import paragraphs
from midwatch_supervisor.tui.learned.lists import question, rating_in
from midwatch_supervisor.tui.learned.statistics import EMPTY, statistics_text
from midwatch_supervisor.tui.state.learning import HISTORY, LearningCounts, LearningView
from midwatch_supervisor.tui.widgets.palette import palette
from midwatch_tests.factories import AT, after, ended, entry, known_fact, known_lesson

COLOURS = palette({})
LESSON = known_lesson(text="Too early.")
OBSOLETE = replace(LESSON, obsolete=True)
FACT = known_fact(2, "Cold.", state=FactState.UNREVIEWED)
REPLACED = replace(
    FACT, id=3, live=False, ended=FactAct.REPLACED, instead=2, fact=Fact(text="Warm.")
)


def version(id: int, text: str, state: GuidelinesState, *, decided: int = 0) -> KnownGuidelines:
    return KnownGuidelines(
        id=10 + id,
        at=AT,
        project="p",
        guidelines=Guidelines(version=id, text=text),
        state=state,
        decided_at=after(minutes=decided) if decided else None,
    )


LIVE = version(2, "# How\n- Wait.\n", GuidelinesState.LIVE, decided=3)
PROPOSED = version(3, "# How\n- Wait long.\n", GuidelinesState.PROPOSED)
FORMER = version(1, "- Go.", GuidelinesState.FORMER, decided=1)
LORE = LearningView(lessons=(LESSON,), facts=(FACT, REPLACED), guidelines=(PROPOSED, LIVE, FORMER))


@pytest.mark.parametrize(
    ("mark", "known", "why"),
    [
        (Mark.RATE, LESSON, ""),
        (Mark.RATE, FACT, "only lessons can be rated"),
        (Mark.RETIRE, LESSON, ""),
        (Mark.RETIRE, OBSOLETE, "it is already retired"),
        (Mark.RESTORE, OBSOLETE, ""),
        (Mark.RESTORE, FACT, "it is already in use"),
        (Mark.RESTORE, REPLACED, ""),
        (Mark.RESTORE, replace(LESSON, waiting=True), "it is waiting: approve it"),
        (Mark.APPROVE, FACT, "it is not waiting for approval"),
        (Mark.REJECT, FACT, "only guidelines can be rejected or rolled back"),
        (Mark.APPROVE, replace(FACT, state=FactState.WAITING), ""),
        (Mark.APPROVE, PROPOSED, ""),
        (Mark.APPROVE, LIVE, "it is not proposed; it is live"),
        (Mark.REJECT, FORMER, "it is not proposed; it is former"),
        (Mark.ROLL_BACK, LIVE, ""),
        (Mark.ROLL_BACK, PROPOSED, "it is not in force; it is proposed"),
        (Mark.RETIRE, LIVE, "guidelines can only be approved, rejected or rolled back"),
    ],
)
def test_a_mark_that_makes_no_sense_is_refused(mark: Mark, known: Known, why: str) -> None:
    assert refusal(mark, known) == why


def test_a_proposed_version_is_approved_only_after_its_diff_was_shown() -> None:
    asked = question(Mark.APPROVE, PROPOSED, LORE)
    assert asked is not None
    assert asked.confirm
    assert asked.quote.splitlines()[-2:] == ["-- Wait.", "+- Wait long."]


def test_rolling_back_names_what_is_in_force_again() -> None:
    again = version(4, "- Stay.", GuidelinesState.FORMER, decided=2)
    asked = question(Mark.ROLL_BACK, LIVE, replace(LORE, guidelines=(*LORE.guidelines, again)))
    assert asked is not None
    assert asked.title == (
        "Roll back version 2 of the guidelines: version 4 of the guidelines is in force again. Why?"
    )
    only = question(Mark.ROLL_BACK, LIVE, LearningView(guidelines=(LIVE,)))
    assert only is not None
    assert "no guidelines are in force again" in only.title


@pytest.mark.parametrize(
    ("words", "rating"),
    [("4", (4, "")), (" 5 \nsaved us", (5, "saved us")), ("6", (0, "")), ("good", (0, ""))],
)
def test_a_rating_is_a_number_from_one_to_five(words: str, rating: tuple[int, str]) -> None:
    assert rating_in(words) == rating


def test_what_a_version_changed_is_told_against_its_base_and_the_first_is_all_new() -> None:
    based = replace(LIVE, guidelines=replace(LIVE.guidelines, base=FORMER.id))
    diff = version_diff(LORE.before(based), based)
    assert diff.splitlines()[:2] == ["--- version 1", "+++ version 2"]
    assert version_diff(LORE.before(FORMER), FORMER).splitlines()[-1] == "+- Go."


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (FACT, "unreviewed"),
        (replace(FACT, state=FactState.REVIEWED), "reviewed"),
        (REPLACED, "replaced → 2"),
        (replace(FACT, live=False, ended=FactAct.REMOVED), "removed"),
        (replace(FACT, live=False, ended=FactAct.RETIRED), "retired"),
    ],
)
def test_a_fact_says_where_it_stands(known: KnownFact, told: str) -> None:
    assert fact_standing(known) == told


def test_a_lesson_that_nobody_was_given_says_so() -> None:
    assert ("use", "not given to any attempt yet") in lesson_detail(LESSON)
    assert "state:\nretired or archived" in paragraphs(lesson_detail(OBSOLETE))


def tally_of(*records: Record) -> LearningCounts:
    tally = LearningCounts()
    for id, record in enumerate(records, start=1):
        tally.fold(entry(id, record, attempt=id), f"fix#{id}")
    return tally


def plain_statistics(tally: LearningCounts) -> str:
    return statistics_text(tally, tally.figures(), COLOURS, AT).plain


def test_statistics_tell_what_failed_with_the_reason_and_of_nothing_how_a_verdict_comes() -> None:
    failed = Study(about=1, chore=Chore.LESSON, state=StudyState.FAILED, reason="no answer")
    tally = tally_of(failed, Fault(part="learning: facts", error="no time"))
    assert "  lesson 1, facts 1: no time\n" in plain_statistics(tally)
    assert plain_statistics(LearningCounts()) == EMPTY


def test_r73_verdicts_of_two_origins_never_stand_in_one_rate() -> None:
    tally = tally_of(ended(), Feedback(accepted=False, author="ada"))
    shares = {each.origin.value: each.accepted.rate for each in tally.figures().acceptance}
    assert shares == {"explicit": 0.0, "automatic": 1.0}


def test_r20_old_verdicts_leave_the_history_as_diffs_do_and_still_count() -> None:
    verdict = Feedback(accepted=False, comment="the wrong file", diff="-a")
    tally = tally_of(*[verdict] * (HISTORY + 1))
    assert (tally.history[0].name, len(tally.history)) == ("fix#2", HISTORY)
    assert {each.verdict for each in tally.history} == {replace(verdict, diff="")}
    assert tally.figures().acceptance[0].accepted.of == HISTORY + 1
