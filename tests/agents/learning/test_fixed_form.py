"""Lessons and summaries that no model wrote: a fixed form of what was said and seen."""

from dataclasses import replace
from typing import Any

import pytest

from midwatch_agents.learning.case import Case
from midwatch_agents.learning.fixed_form import changed_files, fixed_lesson, fixed_summary
from midwatch_agents.learning.text_safety import objection
from midwatch_monitor.records import (
    Action,
    Actor,
    Feedback,
    Lesson,
    Origin,
    Outcome,
    Summary,
    VerdictBasis,
)
from midwatch_tests.factories import acceptance, alert, analysis, feedback, judged

DIFF = """\
diff --git a/app.py b/app.py
--- a/app.py
+++ b/app.py
@@ -1,4 +1,4 @@
 def total(x):
-    return int(x)
---- old
+    return ceil(x)
diff --git a/notes.md b/notes.md
--- /dev/null
+++ b/notes.md
@@ -0,0 +1 @@
+Totals are rounded up.
"""
CASE = Case(
    task="totals",
    title="Round the totals",
    goal="Totals are rounded up.",
    kind="coder",
    tags=("Billing",),
    files=("app.py", "tests/test_app.py"),
    verdict=feedback(accepted=False, comment="Negative amounts\nare wrong"),
    verdict_id=99,
    ending="unaccepted",
    reason="1 of 2 checks failed",
    analyses=(analysis(5, what="Off by one", root="int() cuts", remedy="Use ceil"),),
    alarms=(alert(summary="edit and test, 3 times", evidence=(3, 5, 7)),),
    interventions=(
        judged(Action.NUDGE, Outcome.NO_EFFECT, by=Actor.POLICY, message="Look"),
        judged(Action.REPLAN, Outcome.RECOVERED, by=Actor.SUPERVISOR, message="List negatives"),
    ),
    turns=8,
    steps=9,
    checks=(acceptance(passed=False, check="pytest -q", detail="1 failed"),),
    sources=(12,),
)
SECRET = "ghp_" + "a1B2" * 9
BARE = replace(CASE, verdict=None, analyses=(), alarms=(), interventions=(), checks=())
SILENT = feedback(accepted=False)
ENDED = replace(SILENT, origin=Origin.AUTOMATIC, sign=VerdictBasis.ENDED)
EDITED = replace(SILENT, origin=Origin.IMPLIED, sign=VerdictBasis.EDITED, diff=DIFF)


def make_lesson(case: Case = CASE, **more: Any) -> Lesson:
    lesson = fixed_lesson(replace(case, **more))
    assert lesson is not None
    return lesson


def test_r22_a_persons_words_are_told_with_what_was_seen_and_wait_for_nobody() -> None:
    assert fixed_lesson(CASE) == Lesson(
        text=(
            "A person rejected the result: Negative amounts are wrong. "
            "Check failed: pytest -q. Alarm cycle at steps 3, 5, 7."
        ),
        failure_class="loop",
        tags=("billing", "py", "pytest"),
        kind="coder",
        files=("app.py", "tests/test_app.py"),
        steps=(3, 5, 7),
        verdict=99,
        origin=Origin.EXPLICIT,
        sources=(12,),
    )


def test_what_an_operator_said_that_helped_is_a_persons_word_too() -> None:
    said = judged(Action.REPLAN, Outcome.RECOVERED, by=Actor.OPERATOR, message="List negatives")
    assert make_lesson(interventions=(said,)).insights == ("This helped (replan): List negatives.",)


@pytest.mark.parametrize("verdict", [ENDED, EDITED], ids=["checks", "an edit"])
def test_words_of_workers_are_told_where_no_person_spoke_and_wait(verdict: Feedback) -> None:
    lesson = make_lesson(verdict=verdict)
    assert "The worker's own analysis: int() cuts." in lesson.text
    assert {"Use ceil.", "This helped (replan): List negatives."} <= {*lesson.insights}
    assert lesson.waits


def test_a_rejection_without_a_word_that_nothing_else_explains_waits_with_the_workers() -> None:
    lesson = make_lesson(verdict=SILENT, alarms=(), checks=())
    assert lesson.text.endswith("The worker's own analysis: int() cuts.")
    assert lesson.waits


def test_r46_an_edit_by_a_person_teaches_by_what_was_changed_in_which_files() -> None:
    lesson = make_lesson(BARE, verdict=EDITED)
    assert lesson.text == "A person changed the merged result afterwards, in app.py, notes.md."
    assert lesson.insights == (
        "The person's change begins: - return int(x) / ---- old / + return ceil(x) / "
        "+Totals are rounded up.",
    )
    assert (lesson.files, lesson.origin) == (("app.py", "notes.md"), Origin.IMPLIED)


def test_r46_work_that_was_taken_back_says_so() -> None:
    taken = replace(EDITED, sign=VerdictBasis.REVERTED, diff="", comment="Revert: too slow")
    lesson = make_lesson(BARE, verdict=taken)
    assert lesson.text == "The merged result was taken back: Revert: too slow."
    assert lesson.failure_class == "unknown"


@pytest.mark.parametrize(
    "verdict",
    [None, feedback(comment="Good."), SILENT, replace(ENDED, comment="stopped")],
    ids=["no verdict", "accepted", "without a word", "it only ended"],
)
def test_r53_where_nothing_specific_is_known_there_is_no_lesson(verdict: Feedback | None) -> None:
    assert fixed_lesson(replace(BARE, verdict=verdict)) is None


def test_s30_a_lesson_rests_on_its_own_attempt_and_on_steps_that_were_seen() -> None:
    lesson = make_lesson(verdict=ENDED, shown=(9,), steps=6)
    assert (lesson.steps, lesson.sources) == ((3, 5), (12,))


def test_s12_a_summary_is_short_has_topics_and_the_turns_of_the_case() -> None:
    assert fixed_summary(CASE) == Summary(
        text=(
            "The task was: Round the totals. "
            "The attempt ended unaccepted after 8 turns: 1 of 2 checks failed. "
            "It changed app.py, tests/test_app.py; it raised cycle; "
            "it received nudge, replan."
        ),
        topics=("billing", "app.py", "test_app.py", "cycle", "round", "totals", "coder"),
        turns=8,
    )


@pytest.mark.parametrize(
    ("ending", "reason", "said"),
    [
        ("unaccepted", "1 of 2 checks failed", "ended unaccepted{}: 1 of 2 checks failed"),
        ("out-of-budget", "out of budget: 3 of 3 requests", "ran out of budget{}: 3 of 3 requests"),
        ("restarted", "restart by supervisor: Go", "was restarted{}: restart by supervisor: Go"),
        ("done", "every acceptance check passed", "was completed{}: every acceptance check passed"),
    ],
)
def test_r22_an_attempts_end_is_said_once_in_english(ending: str, reason: str, said: str) -> None:
    case = replace(CASE, ending=ending, reason=reason)
    assert f"The attempt {said.format(' after 8 turns')}. " in fixed_summary(case).text
    lesson = make_lesson(case, verdict=replace(ENDED, comment=reason))
    assert lesson.text.startswith(f"The attempt {said.format('')}. ")
    assert lesson.origin is Origin.AUTOMATIC


@pytest.mark.parametrize("case", [Case(), Case(title="Go", ending="done"), BARE, CASE])
def test_s12_every_summary_has_three_to_seven_different_topics(case: Case) -> None:
    summary = fixed_summary(case)
    assert 3 <= len(set(summary.topics)) == len(summary.topics) <= 7
    assert summary.text.count(". ") in {1, 2}


def test_s48_a_summary_never_holds_what_may_not_stand_in_a_prompt() -> None:
    case = replace(BARE, reason=f"It used {SECRET}.", tags=(SECRET,))
    summary = fixed_summary(case)
    assert summary.text == "The task was totals. The attempt ended unaccepted after 8 turns."
    assert objection(*summary.topics) == ""


def test_a_diff_names_its_files() -> None:
    assert changed_files(DIFF) == ("app.py", "notes.md")
    assert changed_files("--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os\n") == ("old.py",)
    assert changed_files("-x\n+y\n") == ()
