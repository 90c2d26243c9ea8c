"""What is printed of a run: what one line does not say, and the sum at its end."""

import json
from datetime import timedelta, timezone

import pytest

from midwatch_monitor import records as r
from midwatch_supervisor.present.json_lines import JsonLine, Transcript
from midwatch_tests import factories as make

NUDGE = make.intervention(message="Look up.", escalation=9, answers=(make.alert().key,) * 2)


def fold(transcript: Transcript, *records: r.Record, attempt: int = 4) -> list[JsonLine]:
    """The lines of what is told of an attempt."""
    entries = (
        make.entry(id, each, attempt=None if isinstance(each, r.TaskTransition) else attempt)
        for id, each in enumerate(records, start=1)
    )
    return [line for entry in entries if (line := transcript.line(entry))]


def lines(*records: r.Record) -> list[JsonLine]:
    return fold(Transcript([make.task()], [make.attempt(4)]), *records)


def test_no_text_of_a_step_is_longer_than_five_hundred_characters() -> None:
    long = "x" * 501
    (line,) = lines(make.step(args=long, output=long, text=long))
    assert all(len(str(line[name])) <= 500 for name in ("args", "output", "text"))


def test_a_checkpoint_is_of_no_plan_step_beyond_the_plan() -> None:
    (line,) = lines(make.plan("a", "b", done=2), make.reflecting(3, plan_step=3))
    assert line["plan_step"] == 2


@pytest.mark.parametrize(
    ("value", "shown"), [(5.0, 5), (0.5, 0.5), (float("inf"), None), (float("nan"), None)]
)
def test_a_value_is_a_number_that_json_can_say(value: float, shown: object) -> None:
    (line,) = lines(make.alert(value=value))
    assert line["value"] == shown


def test_an_intervention_has_a_line_when_issued_when_delivered_and_when_judged() -> None:
    shown = lines(NUDGE, make.delivery(), make.outcome())
    assert [(each["id"], each["state"], each["outcome"], each["reason"]) for each in shown] == [
        (1, "issued", None, ""),
        (1, "delivered", None, ""),
        (1, "delivered", "recovered", "it moves"),
    ]
    assert {(each["action"], each["by"], each["answers"]) for each in shown} == {
        ("nudge", "policy", ("cycle",))
    }
    held = make.intervention(r.Action.RESTART, needs_approval=True)
    for state in (r.DeliveryState.APPROVED, r.DeliveryState.REJECTED):
        seen = lines(held, make.delivery(state=state))
        assert [line["state"] for line in seen] == ["held", state.value]


def test_a_time_is_printed_in_utc() -> None:
    at = make.AT.astimezone(timezone(timedelta(hours=2)))
    line = Transcript([make.task()]).line(make.entry(1, make.task_transition(), at=at))
    assert line is not None
    assert line["at"] == "2026-11-21T20:00:00.000Z"


def test_an_alert_that_fires_again_or_on_another_attempt_is_a_further_one_and_a_rise_is_none() -> (
    None
):
    fires, transcript = make.alert(), Transcript([make.task()], [make.attempt(4)])
    rises = make.alert(severity=r.Severity.CRITICAL)
    pends, gone = (make.alert(state=each) for each in (r.AlertState.PENDING, r.AlertState.RESOLVED))
    fold(transcript, pends, fires, rises, gone, fires)
    assert [task.alerts for task in transcript.tasks] == [2]
    fold(transcript, fires, attempt=5)
    assert [task.alerts for task in transcript.tasks] == [3]


def test_the_end_sums_up_every_task() -> None:
    transcript = Transcript(
        [make.task(name="totals"), make.task(2, "labels")], [make.attempt(4, model="m")]
    )
    fold(
        transcript,
        make.transition(r.Lifecycle.SUBMITTED),
        make.alert(),
        NUDGE,
        make.delivery(3),
        make.outcome(3),
        NUDGE,
        make.delivery(6, r.DeliveryState.EXPIRED),
        make.ended(),
        make.task_transition(r.Lifecycle.COMPLETED, passed=2, total=2),
    )
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
