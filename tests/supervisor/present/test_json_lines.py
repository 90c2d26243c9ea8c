"""What is printed of a run: the lines, and the sum at its end."""

import json
from collections.abc import Sequence
from datetime import timedelta, timezone

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertState,
    CheckpointDecision,
    DeliveryState,
    Diagnosis,
    Ending,
    Entry,
    Grant,
    Lifecycle,
    Record,
    Severity,
    TaskTransition,
    Terms,
)
from midwatch_stage import factories as make
from midwatch_supervisor.present.json_lines import JsonLine, Transcript

KEY = make.alert("repeated_edits", subject="a.py").key
NUDGE = make.intervention(message="Look up.", escalation=9, answers=(KEY, KEY))


def alert(
    state: AlertState = AlertState.FIRING,
    severity: Severity = Severity.WARNING,
    value: float = 5.0,
) -> Alert:
    return make.alert(
        "repeated_edits", severity, state, subject="a.py", step=8, value=value, evidence=(3, 5)
    )


def entries(records: Sequence[Record], attempt: int = 4) -> list[Entry]:
    return [
        make.entry(
            id, record, at=make.AT, attempt=None if isinstance(record, TaskTransition) else attempt
        )
        for id, record in enumerate(records, start=1)
    ]


def alerts_in(*told: Entry) -> int:
    """How many alerts the only task has after all that."""
    transcript = Transcript([make.task(name="totals")], [make.attempt(4, model="m")])
    for entry in told:
        transcript.line(entry)
    (task,) = transcript.tasks
    return task.alerts


def lines(*records: Record) -> list[JsonLine | None]:
    transcript = Transcript([make.task(name="totals")], [make.attempt(4, model="m")])
    return [transcript.line(entry) for entry in entries(records)]


def printed(record: Record) -> object:
    """A line as another program reads it, without what all lines begin with."""
    (line,) = lines(record)
    assert line is not None
    read = json.loads(json.dumps(line))
    head = {"task": "totals", "attempt": 4, "number": 1, "at": "2026-11-21T20:00:00.000Z"}
    assert {name: read.pop(name) for name in head} == head
    return read


def test_a_task_line_has_no_attempt() -> None:
    state = make.task_transition(Lifecycle.FAILED, reason="no", passed=1, total=2)
    (line,) = lines(state)
    assert line is not None
    assert line == {
        "type": "task",
        "at": "2026-11-21T20:00:00.000Z",
        "task": "totals",
        "attempt": None,
        "number": None,
        "status": "failed",
        "title": "totals",
        "reason": "no",
        "acceptance": {"passed": 1, "total": 2},
    }


def test_an_attempt_line_repeats_the_attempt_as_its_id() -> None:
    assert printed(make.ended(Ending.OUT_OF_BUDGET, reason="slow")) == {
        "type": "attempt",
        "id": 4,
        "status": "failed",
        "worker": "coder",
        "model": "m",
        "reason": "slow",
        "ending": "out-of-budget",
    }


def test_a_step_line_names_the_files_that_it_changed() -> None:
    step = make.step(
        2,
        "edit_file",
        args='{"path":"a.py"}',
        edits=(make.edit(),),
        exit_code=0,
        output="done",
        text="Now the sum.",
        tokens=812,
    )
    assert printed(step) == {
        "type": "step",
        "step": 2,
        "kind": "tool",
        "tool": "edit_file",
        "args": '{"path":"a.py"}',
        "ok": True,
        "exit_code": 0,
        "output": "done",
        "text": "Now the sum.",
        "edits": ["a.py"],
        "tokens": 812,
    }


def test_no_text_of_a_step_is_longer_than_five_hundred_characters() -> None:
    long = "x" * 501
    (line,) = lines(make.step(args=long, output=long, text=long))
    assert line is not None
    assert all(len(str(line[name])) <= 500 for name in ("args", "output", "text"))


def test_a_step_with_a_checkpoint_is_a_checkpoint_line() -> None:
    told = make.reflecting(3, decision=CheckpointDecision.PIVOT, blockers=("no key",), plan_step=2)
    assert printed(told) == {
        "type": "checkpoint",
        "step": 3,
        "progress_percent": 40,
        "confidence": 70,
        "decision": "pivot",
        "blockers": ["no key"],
        "files_done": [],
        "notes": "",
        "estimated_steps_left": None,
        "plan_step": 2,
    }


def test_a_checkpoint_is_of_no_plan_step_beyond_the_plan() -> None:
    *_, line = lines(make.plan("a", "b", done=2), make.reflecting(3, plan_step=3))
    assert line is not None
    assert line["plan_step"] == 2


def test_an_alert_line_says_what_and_why() -> None:
    assert printed(alert()) == {
        "type": "alert",
        "rule": "repeated_edits",
        "subject": "a.py",
        "state": "firing",
        "severity": "warning",
        "step": 8,
        "value": 5,
        "summary": "repeated_edits was seen",
        "evidence": [3, 5],
        "resolution": None,
    }


@pytest.mark.parametrize(
    ("value", "shown"), [(5.0, 5), (0.5, 0.5), (float("inf"), None), (float("nan"), None)]
)
def test_a_value_is_a_number_that_json_can_say(value: float, shown: object) -> None:
    (line,) = lines(alert(value=value))
    assert line is not None
    assert line["value"] == shown


def test_an_escalation_names_each_rule_once() -> None:
    asked = make.escalation(9, "cycle", "cycle", reason="stuck")
    assert printed(asked) == {
        "type": "escalation",
        "id": 9,
        "state": "open",
        "rules": ["cycle"],
        "reason": "stuck",
    }


def test_a_decision_line_says_who_decided() -> None:
    decision = make.decision(
        escalation=9,
        terms=Terms(model="big"),
        steps=(3, 5),
        by=Actor.SUPERVISOR,
        author="m",
        refused="the attempt is over",
    )
    assert printed(decision) == {
        "type": "decision",
        "escalation": 9,
        "action": "nudge",
        "diagnosis": "wrong_approach",
        "by": "supervisor",
        "author": "m",
        "message": "Try another way.",
        "rationale": "It went in circles.",
        "steps": [3, 5],
        "terms": "model big",
        "refused": "the attempt is over",
    }


def test_an_intervention_line_names_its_cause_and_its_terms() -> None:
    grant = make.intervention(
        Action.GRANT_BUDGET,
        terms=Terms(grant=Grant(requests=20, minutes=5)),
        diagnosis=Diagnosis.BUDGET,
    )
    shown = [line for line in lines(grant, NUDGE) if line is not None]
    assert [(each["diagnosis"], each["terms"]) for each in shown] == [
        ("budget", "20 requests, 5 min"),
        (None, ""),
    ]


def test_an_attempt_line_names_the_model_in_force() -> None:
    *_, last = lines(make.change(model="big"), make.change(plan_step=2), make.transition())
    assert last is not None
    assert last["model"] == "big"


def test_an_outage_has_a_line_when_it_begins_and_when_it_is_over() -> None:
    away, over = lines(make.away(), make.away(since=40, over=True))
    assert away is not None
    assert over is not None
    names = ("type", "state", "url", "reason", "since", "next_try")
    url, since = "http://far.test/v1", "2026-11-21T20:00:00.000Z"
    assert [away[name] for name in names] == [
        *("provider", "away", url, "HTTP 503", since),
        "2026-11-21T20:00:30.000Z",
    ]
    assert [over[name] for name in names] == ["provider", "over", url, "HTTP 503", since, None]


def test_an_intervention_has_a_line_when_issued_when_delivered_and_when_judged() -> None:
    seen = lines(NUDGE, make.delivery(), make.outcome())
    shown = [line for line in seen if line is not None]
    assert [(each["id"], each["state"], each["outcome"], each["reason"]) for each in shown] == [
        (1, "issued", None, ""),
        (1, "delivered", None, ""),
        (1, "delivered", "recovered", "it moves"),
    ]
    assert {(each["action"], each["by"], each["answers"]) for each in shown} == {
        ("nudge", "policy", ("repeated_edits",))
    }


@pytest.mark.parametrize("state", [DeliveryState.APPROVED, DeliveryState.REJECTED])
def test_an_intervention_that_needs_approval_is_held_first(state: DeliveryState) -> None:
    held = make.intervention(Action.RESTART, needs_approval=True)
    seen = lines(held, make.delivery(state=state))
    assert [line["state"] for line in seen if line] == ["held", state.value]


def test_a_time_is_printed_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    entry = make.entry(1, make.task_transition(), at=make.AT.astimezone(zone), attempt=None)
    line = Transcript([make.task(name="totals")]).line(entry)
    assert line is not None
    assert line["at"] == "2026-11-21T20:00:00.000Z"


def test_a_severity_that_rises_is_no_further_alert_but_firing_again_is() -> None:
    told = [
        alert(AlertState.PENDING),
        alert(),
        alert(severity=Severity.CRITICAL),
        alert(AlertState.RESOLVED),
        alert(),
    ]
    assert alerts_in(*entries(told)) == 2


def test_the_same_alert_on_another_attempt_counts_again() -> None:
    assert alerts_in(*entries([alert()]), *entries([alert()], attempt=5)) == 2


def test_the_end_sums_up_every_task() -> None:
    transcript = Transcript(
        [make.task(name="totals"), make.task(2, "labels")], [make.attempt(4, model="m")]
    )
    for entry in entries(
        [
            make.transition(Lifecycle.SUBMITTED),
            alert(),
            NUDGE,
            make.delivery(3),
            make.outcome(3),
            NUDGE,
            make.delivery(6, DeliveryState.EXPIRED),
            make.ended(),
            make.task_transition(Lifecycle.COMPLETED, passed=2, total=2),
        ]
    ):
        transcript.line(entry)
    assert json.loads(json.dumps(transcript.done_line(3, exit_code=1, at=make.AT))) == {
        "type": "done",
        "at": "2026-11-21T20:00:00.000Z",
        "run": 3,
        "exit_code": 1,
        "tasks": [
            {
                "id": "totals",
                "task": "totals",
                "status": "completed",
                "attempts": 1,
                "alerts": 1,
                "interventions": 1,
                "recovered": 1,
                "acceptance": {"passed": 2, "total": 2},
            },
            {
                "id": "labels",
                "task": "labels",
                "status": "submitted",
                "attempts": 0,
                "alerts": 0,
                "interventions": 0,
                "recovered": 0,
                "acceptance": {"passed": 0, "total": 0},
            },
        ],
    }
