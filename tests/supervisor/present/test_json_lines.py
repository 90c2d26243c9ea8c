"""What is printed of a run: the lines, and the sum at its end."""

import json
from collections.abc import Sequence
from datetime import timedelta, timezone

import pytest

from midwatch_monitor.records import (
    Action,
    Alert,
    AlertState,
    DeliveryState,
    Entry,
    Lifecycle,
    Record,
    Severity,
    TaskTransition,
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


def test_no_text_of_a_step_is_longer_than_five_hundred_characters() -> None:
    long = "x" * 501
    (line,) = lines(make.step(args=long, output=long, text=long))
    assert line is not None
    assert all(len(str(line[name])) <= 500 for name in ("args", "output", "text"))


def test_a_checkpoint_is_of_no_plan_step_beyond_the_plan() -> None:
    *_, line = lines(make.plan("a", "b", done=2), make.reflecting(3, plan_step=3))
    assert line is not None
    assert line["plan_step"] == 2


@pytest.mark.parametrize(
    ("value", "shown"), [(5.0, 5), (0.5, 0.5), (float("inf"), None), (float("nan"), None)]
)
def test_a_value_is_a_number_that_json_can_say(value: float, shown: object) -> None:
    (line,) = lines(alert(value=value))
    assert line is not None
    assert line["value"] == shown


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
