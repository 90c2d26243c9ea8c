"""A detector is fed what it hears, and all while it is awake; the rest would change nothing."""

import random
from collections.abc import Iterator, Sequence

import pytest
from pydantic import ValidationError

from midwatch_monitor.config.rules import LowConfidence, RepeatedCall, Rules
from midwatch_monitor.judge import AttemptDetectors, Judge, Windows
from midwatch_monitor.records import (
    AlertKey,
    Budget,
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Event,
    Finding,
    Meter,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules import DETECTORS, Detector
from midwatch_monitor.rules.act import Act, Facet, Normaliser
from midwatch_monitor.rules.detector import NO_ECHO, Movements, Repeats, RuleAnswer, Seen
from midwatch_monitor.rules.overrides import for_worker, rule_settings

PLAN = Change(reflect=True, plan_step=1, plan_steps=5)

COMMANDS = ("pytest", "python a.py", "ls", "grep x a.py", "git checkout a.py", "sleep 1")

OUTPUTS = ("", "ok", "2 failed", "ValueError: a", "sh: javac: command not found")


def step(number: int, draw: random.Random) -> Step:
    """A step of any kind; few words, so that much of it repeats."""
    text = draw.choice(("", "", "All tests pass."))
    match draw.randrange(8):
        case 0:
            return Step(number=number, kind=StepKind.MESSAGE, text=text)
        case 1:
            checkpoint = Checkpoint(
                progress_percent=draw.randrange(100),
                confidence=draw.randrange(100),
                decision=draw.choice(tuple(CheckpointDecision)),
                notes=text,
            )
            return Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=checkpoint)
        case 2 | 3:
            edit = Edit(path=draw.choice("ab"), digest=draw.choice("123"))
            return Step(number=number, kind=StepKind.TOOL, tool="edit", edits=(edit,), ok=True)
        case _:
            return Step(
                number=number,
                kind=StepKind.TOOL,
                tool="bash",
                args=draw.choice(COMMANDS),
                output=draw.choice(OUTPUTS),
                exit_code=draw.choice((0, 0, 1, None)),
                text=text,
            )


def events(draw: random.Random, count: int = 400) -> Iterator[Event]:
    yield PLAN
    for number in range(1, count + 1):
        yield step(number, draw)
        if draw.random() < 0.05:
            used = Meter(used=draw.randrange(100), limit=100)
            yield Change(plan_step=draw.randrange(1, 6), budget=Budget(requests=used))


def seen(seed: int) -> Iterator[tuple[Event, Seen, int, bool]]:
    """Events with what all are told of them, their facets, and whether the windows restart."""
    normaliser, movements, repeats, windows = Normaliser(), Movements(), Repeats(), Windows()
    number = 0
    for event in events(random.Random(seed)):
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


def detectors() -> list[Detector]:
    settings = rule_settings(Rules())
    return [make(settings[name]) for name, make in DETECTORS.items()]


class Standing:
    """What stands by the answers so far: of each subject its severity and its value."""

    def __init__(self) -> None:
        self.now: dict[AlertKey, tuple[Severity, float]] = {}

    def take(self, answers: Sequence[RuleAnswer]) -> None:
        for answer in answers:
            if isinstance(answer, Finding):
                self.now[answer.key] = (answer.severity, answer.value)
            else:
                self.now.pop(answer.key, None)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rule", DETECTORS)
def test_what_a_detector_is_not_fed_would_change_nothing(rule: str, seed: int) -> None:
    fed_all, fed_some = (DETECTORS[rule](rule_settings(Rules())[rule]) for _ in range(2))
    of_all, of_some = Standing(), Standing()
    for event, told, facets, restart in seen(seed):
        if restart and fed_all.windowed:
            fed_all.restart()
            fed_some.restart()
        of_all.take(fed_all.observe(event, told))
        if fed_some.hears & facets or fed_some.awake:
            of_some.take(fed_some.observe(event, told))
        assert of_some.now == of_all.now


def test_a_panel_gives_the_answers_of_all_its_detectors() -> None:
    rules = Rules()
    panel, alone = AttemptDetectors(rules), detectors()
    of_panel, of_all = Standing(), Standing()
    for event, told, facets, restart in seen(3):
        for each in alone:
            if restart and each.windowed:
                each.restart()
        if restart:
            panel.restart()
        of_panel.take(panel.ask(panel.detectors_for(facets), event, told))
        for each in alone:
            of_all.take(each.observe(event, told))
        assert of_panel.now == of_all.now
    assert (bool(of_all.now), panel.broken) == (True, ())


def test_most_events_concern_few_detectors() -> None:
    hears = [each.hears for each in detectors()]
    fed = [sum(bool(each & facets) for each in hears) for _, _, facets, _ in seen(4)]
    assert sum(fed) < len(fed) * len(hears) / 2


def calls(**tools: dict[str, object]) -> RepeatedCall:
    return RepeatedCall.model_validate(
        {"notice_after": 3, "warn_after": 4, "critical_after": 0, "tools": tools}
    )


def test_the_settings_of_all_rules_stand_under_their_names() -> None:
    settings = rule_settings(Rules())
    assert (settings["cycle"], "agreement" in settings) == (Rules().cycle, False)


def test_a_worker_may_have_thresholds_of_its_own() -> None:
    own = {"below": 10, "hold": "5s"}
    rules = Rules(low_confidence=LowConfidence.model_validate({"workers": {"bold": own}}))
    bold = for_worker(rules, "bold").low_confidence
    assert (bold.below, bold.hold.seconds, bold.severity) == (10, 5, Severity.WARNING)
    assert for_worker(rules, "shy") == rules


@pytest.mark.parametrize("override", [{"blow": 10}, {"warn_after": -1}])
def test_a_wrong_override_is_refused(override: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Judge(Rules(repeated_call=calls(wait_less=override)))


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
    own = calls(
        pay={"notice_after": 0, "warn_after": 2},
        build={"notice_after": 0, "warn_after": 0, "critical_after": 5},
        poll={"enabled": False},
    )
    judge = Judge(Rules.model_validate({**off, "repeated_call": own}))
    alerts = [
        alert.severity
        for number in range(1, 6)
        for alert in judge.observe(
            Step(number=number, kind=StepKind.TOOL, tool=tool, output="o")
        ).alerts
    ]
    assert alerts == severities
