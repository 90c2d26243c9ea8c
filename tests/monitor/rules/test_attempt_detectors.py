"""A detector is fed what it hears, and all while it is awake; the rest would change nothing."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from pydantic import ValidationError

from midwatch_monitor.config.rules import RepeatedCall, Rules
from midwatch_monitor.judge import AttemptDetectors, Judge, Windows
from midwatch_monitor.records import (
    AlertKey,
    Budget,
    Change,
    CheckpointDecision,
    Event,
    Finding,
    Meter,
    Severity,
    Step,
)
from midwatch_monitor.rules import DETECTORS
from midwatch_monitor.rules.act import Act, Facet, Normaliser
from midwatch_monitor.rules.detector import NO_ECHO, Movements, Repeats, RuleAnswer, Seen
from midwatch_monitor.rules.overrides import rule_settings
from midwatch_tests.factories import change, editing, message, reflecting, step

COMMANDS = ("pytest", "python a.py", "ls", "grep x a.py", "git checkout a.py", "sleep 1")
OUTPUTS = ("", "ok", "2 failed", "ValueError: a", "sh: javac: command not found")


def random_step(number: int, draw: random.Random) -> Step:
    """A step of any kind; few words, so that much of it repeats."""
    text = draw.choice(("", "", "All tests pass."))
    kind = draw.randrange(8)
    if kind == 0:
        return message(number, text)
    if kind == 1:
        said = {"decision": draw.choice(tuple(CheckpointDecision)), "notes": text}
        return reflecting(number, draw.randrange(100), draw.randrange(100), **said)
    if kind in (2, 3):
        edits = editing(draw.randrange(3), draw.choice("ab"))
        return replace(edits, number=number)
    code, args, output = draw.choice((0, 0, 1, None)), draw.choice(COMMANDS), draw.choice(OUTPUTS)
    return step(number, args=args, output=output, exit_code=code, ok=None, text=text)


def random_events(draw: random.Random, count: int = 400) -> Iterator[Event]:
    yield change(reflect=True, plan_step=1, plan_steps=5)
    for number in range(1, count + 1):
        yield random_step(number, draw)
        if draw.random() < 0.05:
            used = Meter(used=draw.randrange(100), limit=100)
            yield change(plan_step=draw.randrange(1, 6), budget=Budget(requests=used))


def seen_events(seed: int) -> Iterator[tuple[Event, Seen, int, bool]]:
    """Events with what all are told of them, their facets, and whether the windows restart."""
    normaliser, movements, repeats, windows = Normaliser(), Movements(), Repeats(), Windows()
    number = 0
    for event in random_events(random.Random(seed)):
        if isinstance(event, Change):
            act = Act(number, work=False, facets=Facet.CHANGE)
            told = Seen(act, movements.plan(event), NO_ECHO, repeats.place, repeats.changes)
        else:
            number, act = event.number, normaliser.act(event)
            moved = movements.observe(act)
            echo = repeats.observe(act) if act.work else NO_ECHO
            told = Seen(act, moved, echo, repeats.place, repeats.changes)
        facets = act.facets | (Facet.REPEAT if told.echo.distance else 0)
        facets |= Facet.MOVED if told.moved.kinds else 0
        back = any(touch.back for touch in told.moved.touches)
        facets |= Facet.RETURN if back or act.reverted else 0
        yield event, told, facets, windows.restart(event)


class StandingAnswers:
    """What stands by the answers so far: of each subject its severity and its value."""

    def __init__(self) -> None:
        self.now: dict[AlertKey, tuple[Severity, float]] = {}

    def take(self, answers: Sequence[RuleAnswer]) -> None:
        for answer in answers:
            if isinstance(answer, Finding):
                self.now[answer.key] = (answer.severity, answer.value)
            else:
                self.now.pop(answer.key, None)


def test_detectors_that_are_fed_what_they_hear_say_what_those_say_that_are_fed_all() -> None:
    settings = rule_settings(Rules())
    for seed in (1, 2, 3):
        alone = [make(settings[name]) for name, make in DETECTORS.items()]
        panel, of_panel, of_all = AttemptDetectors(Rules()), StandingAnswers(), StandingAnswers()
        for event, told, facets, restart in seen_events(seed):
            if restart:
                panel.restart()
                for each in alone:
                    if each.windowed:
                        each.restart()
            of_panel.take(panel.ask(panel.detectors_for(facets), event, told))
            for each in alone:
                of_all.take(each.observe(event, told))
            assert of_panel.now == of_all.now
        assert (bool(of_all.now), panel.broken) == (True, ())


def repeated_call(**tools: dict[str, object]) -> RepeatedCall:
    return RepeatedCall.model_validate(
        {"notice_after": 3, "warn_after": 4, "critical_after": 0, "tools": tools}
    )


@pytest.mark.parametrize("override", [{"blow": 10}, {"warn_after": -1}])
def test_a_wrong_override_is_refused(override: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Judge(Rules(repeated_call=repeated_call(wait_less=override)))


@pytest.mark.parametrize(
    ("tool", "severities"),
    [
        ("ls", [Severity.NOTICE, Severity.WARNING]),
        ("pay", [Severity.WARNING]),  # sooner than any other tool
        ("build", [Severity.CRITICAL]),  # later
        ("poll", []),
    ],
)
def test_a_judge_keeps_to_the_thresholds_of_the_tool(tool: str, severities: list[Severity]) -> None:
    off = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = repeated_call(
        pay={"notice_after": 0, "warn_after": 2},
        build={"notice_after": 0, "warn_after": 0, "critical_after": 5},
        poll={"enabled": False},
    )
    judge = Judge(Rules.model_validate({**off, "repeated_call": own}))
    said = [judge.observe(step(number, tool, output="o")).alerts for number in range(1, 6)]
    assert [alert.severity for alerts in said for alert in alerts] == severities
