"""One run under the eye of every rule at once."""

from collections.abc import Iterator

from midwatch_monitor.config.rules import Cycle, LowConfidence, RepeatedCall, Rules
from midwatch_monitor.config.section import Length
from midwatch_monitor.records import Checkpoint, Event, Severity, Step, StepKind
from midwatch_monitor.replay.tune.run import MeasuredRun, first_alarms, measure
from midwatch_monitor.replay.tune.threshold import with_levels
from midwatch_monitor.rules import rule_settings

KEPT = ("repeated_call", "low_confidence")
OFF = Rules().model_copy(
    update={
        name: settings.model_copy(update={"enabled": name in KEPT})
        for name, settings in rule_settings(Rules()).items()
    }
)
"""Only the two rules that these runs are made for."""


def calls(count: int, *, start: int = 1) -> Iterator[Step]:
    """The same call with the same result, again and again."""
    for number in range(start, start + count):
        yield Step(
            number=number, kind=StepKind.TOOL, tool="look", args="a.py", ok=True, output="same"
        )


def report(number: int, confidence: int) -> Step:
    checkpoint = Checkpoint(progress_percent=10 * number, confidence=confidence)
    return Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=checkpoint)


def measured(*events: Event, rules: Rules = OFF) -> MeasuredRun:
    return measure(events, rules, remind_every=3)


def test_the_highest_level_so_far_is_kept_by_step() -> None:
    found = measured(*calls(3), report(4, 80), report(5, 20), report(6, 90), report(7, 10))
    assert found.steps == 7
    assert found.rises["repeated_call"][-2:] == ((2, 2), (3, 3))
    assert found.rises["low_confidence"] == ((4, -81), (5, -21), (7, -11))


def test_the_alarm_of_the_rules_as_configured_is_kept_with_it() -> None:
    assert measured(*calls(3)).present is None
    assert measured(*calls(5)).present == 4
    assert measured(report(1, 29)).present == 1


def test_hold_counts_for_alarms_and_not_for_levels() -> None:
    slow = RepeatedCall(notice_after=0, warn_after=4, hold=Length(steps=2))
    held = OFF.model_copy(update={"repeated_call": slow})
    found = measured(*calls(6), rules=held)
    assert found.present == 6
    assert (4, 4) in found.rises["repeated_call"]


def test_notices_that_agree_are_an_alarm_of_their_own() -> None:
    quiet = OFF.model_copy(
        update={
            "repeated_call": RepeatedCall(notice_after=2, warn_after=0, critical_after=0),
            "low_confidence": LowConfidence(severity=Severity.NOTICE),
        }
    )
    assert measured(*calls(2), report(3, 20), rules=quiet).agreed == 3
    alone = quiet.model_copy(update={"agreement": False})
    assert measured(*calls(2), report(3, 20), rules=alone).agreed is None


def test_each_level_gives_the_alarm_that_a_replay_gives() -> None:
    events = list(calls(8))
    rises = measured(*events).rises["repeated_call"]
    rules = [with_levels(OFF, {"repeated_call": level}) for _, level in rises]
    found = first_alarms(events, rules, remind_every=3)
    assert found == tuple(step for step, _ in rises)


def test_a_run_that_says_nothing_leaves_no_stairs() -> None:
    cycle = OFF.model_copy(update={"cycle": Cycle()})
    assert measured(report(1, 100), rules=cycle) == MeasuredRun(
        steps=1, rises={}, agreed=None, present=None
    )


def test_first_alarms_stop_reading_once_all_are_known() -> None:
    def endless() -> Iterator[Step]:
        yield from calls(4)
        raise AssertionError("read on")

    assert first_alarms(endless(), [OFF, OFF], remind_every=3) == (4, 4)
