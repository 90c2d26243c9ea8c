"""The progress of a run as people read it."""

from datetime import UTC, timedelta, timezone

import pytest

from midwatch_monitor.records import (
    Action,
    AlertState,
    Change,
    DeliveryState,
    Ending,
    EscalationState,
    Lifecycle,
    PermissionRequest,
    Record,
    Resolution,
    Severity,
    TaskTransition,
)
from midwatch_stage import factories as make
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.run_text import progress_line
from midwatch_supervisor.present.text_line import with_reservations

DONE = make.task_transition(Lifecycle.COMPLETED, passed=2, total=2)


def lines(*records: Record, hours: int = 0) -> list[str | None]:
    transcript = Transcript([make.task(name="totals")], [make.attempt(model="m")])
    zone = timezone(timedelta(hours=hours))
    found: list[str | None] = []
    for id, record in enumerate(records, start=1):
        attempt = None if isinstance(record, TaskTransition) else 1
        entry = make.entry(id, record, at=make.AT, attempt=attempt)
        told = transcript.line(entry)
        found.append(None if told is None else progress_line(entry, transcript, zone))
    return found


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (DONE, "totals: completed (2 of 2 checks pass)"),
        (make.transition(), "totals#1: working (coder with m)"),
        (make.ended(reason="it passes"), "totals#1: completed: it passes"),
        (make.step(3, "run", args="pytest"), "totals#1: step 3, run: pytest"),
        (
            make.alert(severity=Severity.CRITICAL, subject="a.py"),
            "totals#1: alert: firing critical cycle (a.py): cycle was seen",
        ),
        (
            make.alert(state=AlertState.RESOLVED, resolution=Resolution.CLEARED),
            "totals#1: alert: resolved warning cycle: cycle was seen",
        ),
        (make.escalation(9), "totals#1: escalation: 9 open: cycle"),
        (
            make.intervention(needs_approval=True, message="Look\nup."),
            "totals#1: message: nudge 1 waits for approval, by policy: Look up.",
        ),
    ],
)
def test_a_line_says_when_who_and_what(record: Record, text: str) -> None:
    assert lines(record) == [f"20:00:00 {text}"]


def test_the_end_of_what_nobody_checked_is_told_once() -> None:
    transcript = Transcript([make.task(name="repo")], [make.attempt()])
    why = "the session ended"
    told = [
        make.task_transition(Lifecycle.COMPLETED, reason=why),
        make.ended(Ending.UNCHECKED, reason=why),
    ]
    said = list[str | None]()
    for id, record in enumerate(told, start=1):
        entry = make.entry(id, record, at=make.AT)
        transcript.line(entry)
        said.append(progress_line(entry, transcript, UTC))
    assert said == [None, "20:00:00 repo#1: ended: the session ended"]


def test_a_permission_is_told_with_the_commands_that_answer_it() -> None:
    asks = "asks to run `make`"
    *_, told = lines(
        make.transition(),
        PermissionRequest(tool="execute", what="run `make`"),
        make.change(lifecycle=Lifecycle.INPUT_REQUIRED),
        make.transition(Lifecycle.INPUT_REQUIRED, reason=asks),
    )
    assert told == (
        f"20:00:00 totals#1: waiting for a person: {asks} (coder with m): `midwatch approve 2` or "
        "`midwatch reject 2`"
    )


def test_an_outage_is_told_when_it_lasts_when_its_reason_changes_and_when_it_is_over() -> None:
    refused = "Connection refused"
    told = lines(
        make.away(seconds=1),
        make.away(since=2, seconds=30),
        make.away(since=2, seconds=30),
        make.away(since=32, seconds=30, reason=refused),
        make.step(1, "run", args="pytest"),
        make.away(since=3600, over=True),
        make.away(since=3600, over=True),
    )
    assert told == [
        None,
        "20:00:00 totals#1: provider: waiting 2 s for http://far.test/v1: HTTP 503; "
        "next try in 30 s",
        None,
        f"20:00:00 totals#1: provider: waiting 32 s for http://far.test/v1: {refused}; "
        "next try in 30 s",
        "20:00:00 totals#1: step 1, run: pytest",
        "20:00:00 totals#1: provider: http://far.test/v1 answers, after 60 min",
        None,
    ]


def test_an_outage_that_goes_on_is_told_again_after_ten_minutes() -> None:
    transcript = Transcript([make.task()], [make.attempt()])
    told = [
        transcript.line(make.entry(id, make.away(since=60 * id), at=make.after(minutes=id)))
        for id in range(1, 25)
    ]
    assert [id for id, line in enumerate(told, start=1) if line] == [1, 11, 21]


def test_a_refusal_has_no_line_since_the_run_ends_with_it() -> None:
    assert lines(make.away(next_try=None)) == [None]


def test_what_became_of_an_intervention_names_it() -> None:
    told = lines(make.intervention(), make.delivery(), make.outcome())
    assert told[1:] == [
        "20:00:00 totals#1: delivered: nudge delivered",
        "20:00:00 totals#1: outcome: nudge: recovered: it moves",
    ]


def test_an_attempt_that_a_person_paused_is_paused() -> None:
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    assert lines(make.intervention(Action.PAUSE), make.delivery(), parked)[-1] == (
        "20:00:00 totals#1: paused (coder with m)"
    )


def test_the_model_in_force_is_named() -> None:
    assert lines(Change(model="big"), make.transition())[-1] == (
        "20:00:00 totals#1: working (coder with big)"
    )


@pytest.mark.parametrize(
    "record",
    [
        make.alert(state=AlertState.PENDING),
        make.alert(state=AlertState.RESOLVED, resolution=Resolution.ENDED),
        make.escalation(state=EscalationState.ANSWERED),
        make.escalation(state=EscalationState.CLOSED),
        make.delivery(77, DeliveryState.DELIVERED),
        make.plan(),
    ],
)
def test_nothing_is_said_of_what_nobody_waits_for(record: Record) -> None:
    assert lines(record) == [None]


def test_the_time_is_that_of_the_zone() -> None:
    assert lines(DONE, hours=2) == ["22:00:00 totals: completed (2 of 2 checks pass)"]


def test_long_reservations_are_cut() -> None:
    assert len(with_reservations(("x" * 500,))) < 220
