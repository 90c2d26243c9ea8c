"""What the policy says, made from what was seen, its cause and the terms."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import (
    Action,
    Checkpoint,
    CheckpointDecision,
    Diagnosis,
    Grant,
    Part,
    Step,
    Terms,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_stage.factories import alert, editing, step
from midwatch_supervisor.decide.context import ConcurrentEdit
from midwatch_supervisor.decide.diagnosis import (
    RefusedCalls,
    RepeatedFailure,
    find_refused,
    repeated_failure,
)
from midwatch_supervisor.decide.wording import MessageSubject, message


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (Diagnosis.MISSING_DEPENDENCY, "name exactly what must be installed"),
        (Diagnosis.ENVIRONMENT, "lies outside your files"),
        (Diagnosis.BUDGET, "`request_budget`"),
        (Diagnosis.NEEDS_SPLIT, "the smallest part of it"),
        (Diagnosis.WRONG_WORKER, "name what is missing"),
        (Diagnosis.WRONG_APPROACH, "read the last output again"),
    ],
)
def test_a_nudge_says_what_the_cause_asks_for(cause: Diagnosis, told: str) -> None:
    text = message(Action.NUDGE, MessageSubject(alerts=(alert(),), cause=cause))
    assert text.startswith("cycle was seen. ")
    assert told in text


@pytest.mark.parametrize(
    ("action", "terms", "told"),
    [
        (Action.GRANT_BUDGET, Terms(grant=Grant(requests=15)), "You are given 15 requests more."),
        (Action.SWITCH_MODEL, Terms(model="big"), "Another model goes on from here."),
        (Action.SPLIT, Terms(parts=(Part(title="a", goal="a"),)), "smaller ones: a."),
        (Action.RESTART, Terms(after="other"), "Task other worked on the same files"),
        (Action.RESTART, Terms(), "Do not repeat that approach."),
    ],
)
def test_an_action_says_its_terms(action: Action, terms: Terms, told: str) -> None:
    assert told in message(action, MessageSubject(alerts=(alert(),), terms=terms))


def test_a_person_is_told_the_cause_where_it_is_known() -> None:
    known = MessageSubject(alerts=(alert(),), cause=Diagnosis.MISSING_DEPENDENCY)
    guess = MessageSubject(alerts=(alert(),))
    assert "Likely cause: missing dependency." in message(Action.ASK_OPERATOR, known)
    assert "looks like" not in message(Action.ASK_OPERATOR, guess)


def test_who_yields_is_told_which_file_and_to_whom() -> None:
    rival = ConcurrentEdit(path="a.py", task="other", elder=True)
    conflict = alert("workspace_conflict", subject="a.py")
    text = message(Action.NUDGE, MessageSubject(alerts=(conflict,), concurrent=(rival,)))
    assert "Another worker is at work on `a.py` in task other: leave it to them" in text


def test_a_worker_that_asks_for_help_is_spoken_to_and_a_person_reads_for_what() -> None:
    asked = Checkpoint(
        progress_percent=40,
        confidence=20,
        decision=CheckpointDecision.ESCALATE,
        blockers=("no key for the bank",),
        notes="I tried the test key.",
    )
    matter = MessageSubject(alerts=(alert("explicit_escalation"),), report=asked)
    assert message(Action.NUDGE, matter).startswith("You asked for help. Write down what exactly")
    told = message(Action.ASK_OPERATOR, matter)
    assert "no key for the bank; I tried the test key. Nothing has been tried so far." in told


OUTPUT = """F
======================================================================
FAIL: test_width (tests.test_app.T.test_width)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_app.py", line 5, in test_width
AssertionError: 3 != 4

FAILED (failures=1)
"""


def checked(number: int, output: str = OUTPUT, *, ok: bool = False) -> Step:
    args = '{"command": "python -m unittest"}'
    return step(number, "shell", args=args, exit_code=1 - ok, ok=ok, output=output)


def edit(number: int) -> Step:
    return editing(number, "app.py", args=f'{{"n": {number}}}')


LOOP = (edit(1), checked(2), edit(3), checked(4), edit(5), checked(6))
FAILURE = RepeatedFailure(
    check="python -m unittest",
    told="test_width: AssertionError: 3 != 4",
    steps=(2, 4, 6),
    file="app.py",
)


def test_a_failure_that_outlives_edits_is_named_with_its_test_and_the_file() -> None:
    assert repeated_failure(LOOP) == FAILURE


def test_a_check_that_is_refused_for_failing_before_comes_back_too() -> None:
    output = f"{HELD_BACK}: report_error first"
    refused = step(8, "shell", args=checked(8).args, ok=False, output=output)
    found = repeated_failure((*LOOP[:2], edit(7), refused))
    assert found is not None
    assert found.steps == (2,)
    told = message(Action.NUDGE, MessageSubject(alerts=(alert("cycle"),), failure=found))
    assert told.startswith(
        "`python -m unittest` failed (step 2) and is called again and again, "
        "with `app.py` edited in between: "
    )


def test_the_same_content_again_is_an_edit_that_was_meant() -> None:
    again = step(3, "write_file", args="{}", path="app.py")
    found = repeated_failure((checked(2), again, checked(4)))
    assert found is not None
    assert found.file == "app.py"


def refused_edit(number: int) -> Step:
    refusal = "File has not been read yet. Read it first before writing to it."
    return editing(number, "app.py", edits=(), ok=False, output=refusal)


def test_an_edit_that_failed_is_quoted_and_is_no_edit() -> None:
    found = repeated_failure((refused_edit(1), checked(2), refused_edit(3), checked(4)))
    told = message(Action.NUDGE, MessageSubject(alerts=(alert("cycle"),), failure=found))
    assert told == (
        "`python -m unittest` fails the same way again and again (steps 2, 4): "
        "test_width: AssertionError: 3 != 4. Each edit of `app.py` in between failed: "
        "File has not been read yet. Read it first before writing to it. cycle was seen. "
        "`app.py` is unchanged, so the result is, too: make the edit succeed before you run it "
        "again."
    )


def test_failed_edits_beside_one_that_succeeded_are_not_the_reason() -> None:
    assert repeated_failure((*LOOP, refused_edit(7), checked(8))) == replace(
        FAILURE, steps=(2, 4, 6, 8)
    )


def test_an_edit_that_the_gate_refused_is_no_edit() -> None:
    held_edit = editing(3, "app.py", edits=(), ok=False, output=f"{HELD_BACK}report first")
    found = repeated_failure((checked(2), held_edit, checked(4)))
    assert found is not None
    assert (found.file, found.edit_failure) == ("", "")


def test_what_passes_or_fails_otherwise_by_now_is_over() -> None:
    other = OUTPUT.replace("3 != 4", "5 != 4")
    assert repeated_failure((*LOOP, checked(7, "OK", ok=True))) is None
    assert repeated_failure((*LOOP, edit(7), checked(8, other))) is None
    assert repeated_failure(LOOP[:3]) is None


def test_a_worker_is_told_the_failure_and_the_file_before_anything_else() -> None:
    for rule in ("redundant_steps", "same_failure", "missed_checkpoint"):
        told = message(Action.NUDGE, MessageSubject(alerts=(alert(rule),), failure=FAILURE))
        assert told.startswith(
            "`python -m unittest` fails the same way again and again (steps 2, 4, 6), "
            "with `app.py` edited in between: test_width: AssertionError: 3 != 4. "
        )
        assert "Stop editing `app.py`" in told
        assert "Call `reflect`" not in told


def test_what_has_another_ground_speaks_of_that() -> None:
    told = message(Action.NUDGE, MessageSubject(alerts=(alert("budget_burn"),), failure=FAILURE))
    assert "unittest" not in told


def held(number: int) -> Step:
    return step(number, "shell", ok=False, output=f"{HELD_BACK}this is attempt 2. Call `a` first.")


def test_calls_that_the_gate_turns_away_are_told_with_what_it_asks_for() -> None:
    found = find_refused((edit(1), held(2), held(3)))
    told = "this is attempt 2. Call `a` first."
    assert found == RefusedCalls(told=told, steps=(2, 3), asked="a")
    told = message(Action.NUDGE, MessageSubject(alerts=(alert("cycle"),), refused=found))
    assert told.startswith(
        "Calls were refused before they ran (steps 2, 3): this is attempt 2. Call `a` first. "
    )
    assert "Do what the refusal asks for" in told
    told = message(Action.ASK_OPERATOR, MessageSubject(alerts=(alert("cycle"),), refused=found))
    assert told.startswith(
        "The worker's calls are refused because it does not first do what it is asked "
        '(steps 2, 3). It was told: "this is attempt 2. Call `a` first." cycle was seen. '
    )


@pytest.mark.parametrize("action", [Action.ASK_OPERATOR, Action.STOP])
@pytest.mark.parametrize(
    ("asked", "owed"),
    [
        ("report_error", "does not analyse the failure with `report_error`"),
        ("check_plan", "does not look at its plan with `check_plan`"),
    ],
)
def test_a_person_is_told_what_a_refused_worker_owes(asked: str, owed: str, action: Action) -> None:
    refused = RefusedCalls(told="no", steps=(1, 2), asked=asked)
    matter = MessageSubject(alerts=(alert("cycle"),), refused=refused, failed_before="pytest -q")
    owed = f"The worker {owed}, so 2 of its calls were refused (steps 1, 2). cycle was seen. "
    assert message(action, matter).startswith(
        f"The attempt before this one failed `pytest -q`. {owed}"
    )
    told = message(action, replace(matter, failure=FAILURE))
    assert "The attempt before" not in told
    assert owed in told
    assert message(action, replace(matter, failed_before="")).startswith(owed)


def test_one_refusal_is_nothing_to_speak_of() -> None:
    assert find_refused((held(1), edit(2))) is None
    assert find_refused((held(1), held(2), *map(edit, range(3, 13)))) is None
