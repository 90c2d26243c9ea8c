"""What only time shows: nothing is heard, or nothing moves; and the alerts about it over time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.alerts import Moment
from midwatch_monitor.config.rules import Rules, Silence
from midwatch_monitor.rules.detector import UNMOVED as NOTHING
from midwatch_monitor.rules.detector import RuleAnswer
from midwatch_monitor.silence import SILENT, UNMOVED, SilenceAlerts, SilenceDetector
from midwatch_tests import factories

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Silence.model_validate(
    {"model": "10m", "command": "30m", "rate_limited": "1h", "idle": "5m", "unmoved": "2h"}
)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def step(minutes: float | None = 0, kind: r.StepKind = r.StepKind.TOOL) -> r.Step:
    return r.Step(number=4, kind=kind, tool="t", at=None if minutes is None else at(minutes))


def feed_detector(*events: r.Event, settings: Silence = SETTINGS) -> SilenceDetector:
    detector = SilenceDetector(settings)
    for event in events:
        detector.observe(event, NOTHING)
    return detector


def found_subjects(answers: Sequence[RuleAnswer]) -> list[str]:
    """The subjects that are found, of `""` for silence and `no movement`."""
    return [each.key.subject for each in answers if isinstance(each, r.Finding)]


def test_silence_is_told_with_its_length_and_what_was_going_on() -> None:
    silent, _ = feed_detector(step(), r.Change(at=at(0), activity=r.Activity.MODEL)).look(at(12))
    assert silent == r.Finding(
        key=SILENT,
        severity=r.Severity.WARNING,
        value=720,
        summary="nothing heard for 12 min; waiting for the model",
        evidence=(4,),
    )


WORKING = r.Change(at=at(0), activity=r.Activity.MODEL)
OFF = Silence.model_validate({"command": 0, "unmoved": 0})


@pytest.mark.parametrize(
    ("detector", "due"),
    [
        (feed_detector(step(), step(20), r.Change(at=at(25))), at(55)),
        (feed_detector(WORKING, step(1, r.StepKind.MESSAGE)), at(11)),
        (feed_detector(step(None), r.Change()), None),
        (feed_detector(step(), r.Change(at=at(0), activity=r.Activity.WAITING)), None),
        (feed_detector(step(), settings=OFF), None),
    ],
    ids=[
        *("every event with a time is a sign of life", "a source may say something and work"),
        *("what tells of no time", "who waits for a person", "a limit of zero"),
    ],
)
def test_silence_is_due_after_the_last_sign_of_life(
    detector: SilenceDetector, due: datetime | None
) -> None:
    assert detector.due == due
    assert due is not None or found_subjects(detector.look(at(10**6))) == []


def test_who_is_heard_but_never_moves_is_noticed() -> None:
    detector = feed_detector(*(step(minutes) for minutes in range(0, 121, 10)))
    assert found_subjects(detector.look(at(119))) == []
    assert detector.look(at(120))[1] == r.Finding(
        key=UNMOVED,
        severity=r.Severity.NOTICE,
        value=7200,
        summary="nothing moved for 120 min although it is working",
        evidence=(4,),
    )


def test_an_outage_counts_from_its_first_wait() -> None:
    waits = [r.Change(at=at(minutes), activity=r.Activity.RATE_LIMITED) for minutes in (0, 20, 40)]
    assert found_subjects(feed_detector(*waits).look(at(59.9))) == []
    assert found_subjects(feed_detector(*waits).look(at(60))) == [""]
    again = r.Change(at=at(50), activity=r.Activity.MODEL)
    assert found_subjects(feed_detector(*waits, again).look(at(59.9))) == []


class Watch:
    """A vigil over steps at some minutes, with the alerts that it told."""

    def __init__(self, **silence: object) -> None:
        settings = {"command": "30m", "unmoved": 0, "cooldown": 0, **silence}
        self.vigil = SilenceAlerts(Rules.model_validate({"silence": settings}))
        self.alerts: dict[r.AlertKey, r.Alert] = {}
        self.step = 0

    def hear(self, minutes: float) -> None:
        self.step += 1
        self.vigil.observe(factories.step(self.step, at=at(minutes)), NOTHING)

    def look(self, minutes: float) -> list[tuple[r.AlertState, r.Resolution | None]]:
        changed = self.vigil.look(Moment(step=self.step, at=at(minutes)), self.alerts)
        self.alerts.update({alert.key: alert for alert in changed})
        return [(alert.state, alert.resolution) for alert in changed]


FIRES = (r.AlertState.FIRING, None)


def test_silence_fires_when_the_limit_is_reached_and_says_since_when_and_at_which_step() -> None:
    watch = Watch()
    assert not watch.vigil.due(at(10**6))
    watch.hear(0)
    assert [watch.vigil.due(at(each)) for each in (29, 30)] == [False, True]
    watch.look(30)
    assert watch.alerts[SILENT] == factories.alert(
        SILENT.rule,
        value=1800,
        summary="nothing heard for 30 min; nothing is known to be running",
        evidence=(1,),
        since_at=at(30),
        at=at(30),
    )


def test_a_hold_keeps_it_pending_from_the_first_look_on() -> None:
    watch = Watch(hold="5m")
    watch.hear(0)
    assert [watch.look(each) for each in (30, 34, 35)] == [
        [(r.AlertState.PENDING, None)],
        [],
        [FIRES],
    ]


def test_a_vigil_that_is_off_sees_nothing() -> None:
    watch = Watch(enabled=False)
    watch.hear(0)
    assert (watch.vigil.due(at(10**6)), watch.look(10**6)) == (False, [])
