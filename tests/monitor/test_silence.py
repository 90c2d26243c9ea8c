"""What the absence of signs of life means, as alerts over time."""

from datetime import UTC, datetime, timedelta

from midwatch_monitor.alerts import Moment
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Resolution,
)
from midwatch_monitor.rules.detector import UNMOVED
from midwatch_monitor.silence import SILENT, SilenceAlerts
from midwatch_stage.factories import alert, step

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


class Watch:
    """A vigil over steps at some minutes, with the alerts that it told."""

    def __init__(self, **silence: object) -> None:
        settings = {"command": "30m", "unmoved": 0, "cooldown": 0, **silence}
        self.vigil = SilenceAlerts(Rules.model_validate({"silence": settings}))
        self.alerts: dict[AlertKey, Alert] = {}
        self.step = 0

    def hear(self, minutes: float) -> None:
        self.step += 1
        self.vigil.observe(step(self.step, at=at(minutes)), UNMOVED)

    def look(self, minutes: float) -> list[tuple[AlertState, Resolution | None]]:
        changed = self.vigil.look(Moment(step=self.step, at=at(minutes)), self.alerts)
        self.alerts.update({alert.key: alert for alert in changed})
        return [(alert.state, alert.resolution) for alert in changed]


FIRES = (AlertState.FIRING, None)


def test_it_is_due_when_the_limit_is_reached_and_not_before() -> None:
    watch = Watch()
    assert not watch.vigil.due(at(10**6))
    watch.hear(0)
    assert [watch.vigil.due(at(each)) for each in (29, 30)] == [False, True]


def test_silence_says_since_when_and_at_which_step() -> None:
    watch = Watch()
    watch.hear(0)
    watch.look(30)
    assert watch.alerts[SILENT] == alert(
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
        [(AlertState.PENDING, None)],
        [],
        [FIRES],
    ]


def test_a_cooldown_keeps_it_quiet() -> None:
    watch = Watch(cooldown="1h")
    watch.hear(0)
    watch.look(30)
    watch.hear(31)
    watch.look(32)
    assert [watch.look(each) for each in (70, 91, 92)] == [[], [], [FIRES]]


def test_a_vigil_that_is_off_sees_nothing() -> None:
    watch = Watch(enabled=False)
    watch.hear(0)
    assert (watch.vigil.due(at(10**6)), watch.look(10**6)) == (False, [])
