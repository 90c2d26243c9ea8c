"""What only time shows: nothing is heard, or nothing moves."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.config.rules import Silence
from midwatch_monitor.records import (
    Activity,
    Change,
    Event,
    Finding,
    Lifecycle,
    Movement,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.detector import UNMOVED as NOTHING
from midwatch_monitor.rules.detector import Moved, RuleAnswer
from midwatch_monitor.silence import SILENT, UNMOVED, SilenceDetector

START = datetime(2026, 1, 1, tzinfo=UTC)
MOVED = Moved(frozenset({Movement.NEW_CONTENT}))
SETTINGS = Silence.model_validate(
    {"model": "10m", "command": "30m", "rate_limited": "1h", "idle": "5m", "unmoved": "2h"}
)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def step(minutes: float | None = 0, kind: StepKind = StepKind.TOOL) -> Step:
    return Step(number=4, kind=kind, tool="t", at=None if minutes is None else at(minutes))


def fed(*events: Event, moved: Moved = NOTHING, settings: Silence = SETTINGS) -> SilenceDetector:
    detector = SilenceDetector(settings)
    for event in events:
        detector.observe(event, moved)
    return detector


def standing(answers: Sequence[RuleAnswer]) -> list[str]:
    """The subjects that are found, of `""` for silence and `no movement`."""
    return [each.key.subject for each in answers if isinstance(each, Finding)]


@pytest.mark.parametrize(
    ("activity", "minutes"),
    [
        (Activity.MODEL, 10),
        (Activity.COMMAND, 30),
        (Activity.RATE_LIMITED, 60),
        (Activity.IDLE, 5),
        (None, 30),
    ],
)
def test_how_long_is_silent_depends_on_what_goes_on(
    activity: Activity | None, minutes: float
) -> None:
    detector = fed(step(), Change(at=at(0), activity=activity))
    assert detector.due == at(minutes)
    assert standing(detector.look(at(minutes - 0.1))) == []
    assert standing(detector.look(at(minutes))) == [SILENT.subject]


def test_silence_is_told_with_its_length_and_what_was_going_on() -> None:
    silent, _ = fed(step(), Change(at=at(0), activity=Activity.MODEL)).look(at(12))
    assert silent == Finding(
        key=SILENT,
        severity=Severity.WARNING,
        value=720,
        summary="nothing heard for 12 min; waiting for the model",
        evidence=(4,),
    )


def test_every_event_with_a_time_is_a_sign_of_life() -> None:
    assert fed(step(), step(20), Change(at=at(25))).due == at(55)


def test_what_tells_of_no_time_is_not_judged() -> None:
    detector = fed(step(None), Change())
    assert (detector.due, standing(detector.look(at(10**6)))) == (None, [])


@pytest.mark.parametrize(
    "event",
    [
        Change(at=at(0), lifecycle=Lifecycle.INPUT_REQUIRED),
        Change(at=at(0), activity=Activity.WAITING),
        step(0, StepKind.MESSAGE),
    ],
)
def test_who_waits_for_a_person_is_never_silent(event: Event) -> None:
    detector = fed(step(), event)
    assert (detector.due, standing(detector.look(at(10**6)))) == (None, [])


@pytest.mark.parametrize(
    "event",
    [Change(at=at(90), lifecycle=Lifecycle.WORKING), Change(at=at(90), activity=Activity.COMMAND)],
)
def test_who_is_back_at_work_begins_anew(event: Change) -> None:
    detector = fed(step(), Change(at=at(0), lifecycle=Lifecycle.INPUT_REQUIRED), event)
    assert detector.due == at(120)


def test_a_source_that_tells_what_goes_on_may_say_something_and_work() -> None:
    working = Change(at=at(0), activity=Activity.MODEL)
    assert fed(working, step(1, StepKind.MESSAGE)).due == at(11)


def test_who_is_heard_but_never_moves_is_noticed() -> None:
    detector = fed(*(step(minutes) for minutes in range(0, 121, 10)))
    assert standing(detector.look(at(119))) == []
    assert detector.look(at(120))[1] == Finding(
        key=UNMOVED,
        severity=Severity.NOTICE,
        value=7200,
        summary="nothing moved for 120 min although it is working",
        evidence=(4,),
    )


def test_a_movement_begins_the_time_anew() -> None:
    detector = fed(*(step(minutes) for minutes in range(0, 121, 10)), moved=MOVED)
    assert standing(detector.look(at(121))) == []


def test_a_limit_of_zero_never_fires() -> None:
    off = Silence.model_validate({"command": 0, "unmoved": 0})
    detector = fed(step(), settings=off)
    assert (detector.due, standing(detector.look(at(10**6)))) == (None, [])


def test_an_outage_counts_from_its_first_wait() -> None:
    waits = [Change(at=at(minutes), activity=Activity.RATE_LIMITED) for minutes in (0, 20, 40)]
    assert standing(fed(*waits).look(at(59.9))) == []
    assert standing(fed(*waits).look(at(60))) == [""]
    again = Change(at=at(50), activity=Activity.MODEL)
    assert standing(fed(*waits, again).look(at(59.9))) == []
