"""What the policy says, made from what was seen, its cause and the terms."""

import pytest

from midwatch_monitor.records import (
    Action,
    Checkpoint,
    CheckpointDecision,
    Diagnosis,
    Grant,
    Part,
    Terms,
)
from midwatch_stage.factories import alert
from midwatch_supervisor.decide.context import ConcurrentEdit
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


def test_a_restart_also_reads_as_the_reason_of_the_end() -> None:
    assert message(Action.RESTART, MessageSubject(alerts=(alert(),))).startswith(
        "cycle was seen. Do not repeat that approach."
    )


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
