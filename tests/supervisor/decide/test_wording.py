"""What the policy says, made from what was seen, its cause and the terms.

The messages stand in `messages.txt` beside this file; `MIDWATCH_UPDATE=1` writes it anew.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.records import Action, CheckpointDecision, Diagnosis, Grant, Part, Step, Terms
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_supervisor.decide.context import ConcurrentEdit
from midwatch_supervisor.decide.diagnosis import (
    RefusedCalls,
    RepeatedFailure,
    find_refused,
    repeated_failure,
)
from midwatch_supervisor.decide.policy import ACTIONS
from midwatch_supervisor.decide.wording import MessageSubject, message
from midwatch_tests.factories import alert, checkpoint, editing, step

MESSAGES = Path(__file__).with_name("messages.txt")
OUTPUT = """F
======================================================================
FAIL: test_width (tests.test_app.T.test_width)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_app.py", line 5, in test_width
AssertionError: 3 != 4

FAILED (failures=1)
"""
UNREAD = "File has not been read yet. Read it first before writing to it."


def make_check(number: int, output: str = OUTPUT, *, ok: bool = False) -> Step:
    args = '{"command": "python -m unittest"}'
    return step(number, "shell", args=args, exit_code=1 - ok, ok=ok, output=output)


def edit(number: int) -> Step:
    return editing(number, "app.py", args=f'{{"n": {number}}}')


def refused_edit(number: int, output: str = UNREAD) -> Step:
    return editing(number, "app.py", edits=(), ok=False, output=output)


def refused_call(number: int) -> Step:
    return step(number, "shell", ok=False, output=f"{HELD_BACK}this is attempt 2. Call `a` first.")


LOOP = (edit(1), make_check(2), edit(3), make_check(4), edit(5), make_check(6))
FAILURE = RepeatedFailure(
    check="python -m unittest",
    told="test_width: AssertionError: 3 != 4",
    steps=(2, 4, 6),
    file="app.py",
)
UNEDITED = replace(FAILURE, steps=(2, 4), edit_failure=UNREAD)
UNKNOWN_FILE = replace(FAILURE, file="")
AGAIN = replace(FAILURE, told=f"{HELD_BACK}: report_error first", steps=(2,))
REFUSED = RefusedCalls(told="this is attempt 2. Call `a` first.", steps=(2, 3), asked="a")
HELP = checkpoint(
    decision=CheckpointDecision.ESCALATE,
    blockers=("no key for the bank",),
    notes="I tried the test key.",
)
RIVAL = ConcurrentEdit(path="a.py", task="other", elder=True)
TERMS = {
    Action.GRANT_BUDGET: Terms(grant=Grant(requests=15)),
    Action.SWITCH_MODEL: Terms(model="big"),
    Action.SPLIT: Terms(parts=(Part(title="a", goal="a"), Part(title="b", goal="b"))),
}
RULES = ("same_failure", "repeated_edits", "low_confidence", "declining_confidence")
MORE_RULES = ("multiple_blockers", "stalled_progress", "missed_checkpoint", "budget_burn")
CYCLE = MessageSubject(alerts=(alert(),))


def make_subject(rule: str, subject: str = "") -> MessageSubject:
    return MessageSubject(alerts=(alert(rule, subject=subject),))


def subjects() -> Iterator[tuple[str, Action, MessageSubject]]:
    """What a message is about, and what is done."""
    for action in ACTIONS[1:]:
        yield "cycle", action, replace(CYCLE, terms=TERMS.get(action, Terms()))
    for rule in (*RULES, *MORE_RULES):
        yield rule, Action.NUDGE, make_subject(rule)
    yield "two rules of one advice", Action.NUDGE, replace(CYCLE, alerts=(alert(), alert("drift")))
    yield "edits of a file", Action.NUDGE, make_subject("repeated_edits", "a.py")
    yield "a conflict", Action.NUDGE, make_subject("workspace_conflict", "a.py")
    conflict = replace(make_subject("workspace_conflict", "a.py"), concurrent=(RIVAL,))
    yield "a conflict with an elder", Action.NUDGE, conflict
    yield "its turn after the elder", Action.RESTART, replace(conflict, terms=Terms(after="other"))
    for cause in Diagnosis:
        yield f"cycle, {cause}", Action.NUDGE, replace(CYCLE, cause=cause)
    for cause in (Diagnosis.NEEDS_SPLIT, Diagnosis.MISSING_DEPENDENCY):
        for action in (Action.REPLAN, Action.ASK_OPERATOR):
            yield f"cycle, {cause}", action, replace(CYCLE, cause=cause)
    for action in (Action.NUDGE, Action.ASK_OPERATOR):
        yield "a call for help", action, replace(make_subject("explicit_escalation"), report=HELP)


def repetitions() -> Iterator[tuple[str, Action, MessageSubject]]:
    """What is done about work that repeats itself."""
    for rule in (*RULES[:2], "missed_checkpoint", "budget_burn"):
        yield f"{rule} of a failure", Action.NUDGE, replace(make_subject(rule), failure=FAILURE)
    yield "a failure without edits", Action.NUDGE, replace(CYCLE, failure=UNKNOWN_FILE)
    yield "a failure whose edits failed", Action.NUDGE, replace(CYCLE, failure=UNEDITED)
    yield "a failure that is called again", Action.NUDGE, replace(CYCLE, failure=AGAIN)
    for action in (Action.NUDGE, Action.ASK_OPERATOR):
        yield "refused calls", action, replace(CYCLE, refused=REFUSED)
    for action in (Action.ASK_OPERATOR, Action.STOP):
        for asked in ("report_error", "check_plan"):
            owing = replace(CYCLE, refused=replace(REFUSED, asked=asked))
            yield f"who owes {asked}", action, owing
            yield f"who owes {asked} for", action, replace(owing, failed_before="pytest -q")
            failed = replace(owing, failed_before="pytest -q", failure=FAILURE)
            yield f"who owes {asked} and fails", action, failed


def test_each_message_is_as_the_golden_file_says() -> None:
    told = "\n".join(
        f"## {name}: {action}\n{message(action, matter)}\n"
        for name, action, matter in (*subjects(), *repetitions())
    )
    if os.environ.get("MIDWATCH_UPDATE"):
        MESSAGES.write_text(told, encoding="utf-8")
    assert told == MESSAGES.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        (LOOP, FAILURE),
        ((refused_edit(1), make_check(2), refused_edit(3), make_check(4)), UNEDITED),
        ((*LOOP, refused_edit(7), make_check(8)), replace(FAILURE, steps=(2, 4, 6, 8))),
        (
            (make_check(2), refused_edit(3, f"{HELD_BACK}report first"), make_check(4)),
            replace(FAILURE, steps=(2, 4), file=""),
        ),
        (
            (make_check(2), step(3, "write_file", args="{}", path="app.py"), make_check(4)),
            replace(FAILURE, steps=(2, 4)),
        ),
        (
            (*LOOP[:2], edit(7), replace(make_check(8, AGAIN.told), exit_code=None)),
            replace(AGAIN, told=FAILURE.told),
        ),
        ((*LOOP, make_check(7, "OK", ok=True)), None),
        ((*LOOP, edit(7), make_check(8, OUTPUT.replace("3 != 4", "5 != 4"))), None),
        (LOOP[:3], None),
    ],
    ids=[
        "it outlives edits of a file",
        "an edit that failed is quoted and is no edit",
        "failed edits beside one that succeeded are not the reason",
        "an edit that the gate refused is no edit",
        "the same content again is an edit that was meant",
        "a check that is refused for failing before comes back too",
        "what passes by now is over",
        "what fails otherwise by now is over",
        "once is not again",
    ],
)
def test_what_comes_again(steps: tuple[Step, ...], failure: RepeatedFailure | None) -> None:
    assert repeated_failure(steps) == failure


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ((edit(1), refused_call(2), refused_call(3)), REFUSED),
        ((refused_call(1), edit(2)), None),
        ((refused_call(1), refused_call(2), *map(edit, range(3, 13))), None),
    ],
    ids=["twice of late", "one is nothing to speak of", "nor are two of long ago"],
)
def test_which_calls_the_gate_refuses(steps: tuple[Step, ...], found: RefusedCalls | None) -> None:
    assert find_refused(steps) == found
