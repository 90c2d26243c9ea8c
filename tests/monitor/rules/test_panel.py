"""A detector is fed what it hears, and all while it is awake; the rest would change nothing."""

import random
from collections.abc import Iterator, Sequence

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.records import (
    AlertKey,
    Budget,
    Change,
    Checkpoint,
    Course,
    Edit,
    Event,
    Finding,
    Meter,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules import DETECTORS
from midwatch_monitor.rules.act import Act, Facet, Normaliser
from midwatch_monitor.rules.detector import NO_ECHO, Answer, Movements, Repeats, Seen
from midwatch_monitor.rules.panel import Panel, Windows

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
                decision=draw.choice(tuple(Course)),
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


class Standing:
    """What stands by the answers so far: of each subject its severity and its value."""

    def __init__(self) -> None:
        self.now: dict[AlertKey, tuple[Severity, float]] = {}

    def take(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, Finding):
                self.now[answer.key] = (answer.severity, answer.value)
            else:
                self.now.pop(answer.key, None)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rule", DETECTORS)
def test_what_a_detector_is_not_fed_would_change_nothing(rule: str, seed: int) -> None:
    fed_all, fed_some = (DETECTORS[rule](Rules()) for _ in range(2))
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
    panel, alone = Panel(rules), [make(rules) for make in DETECTORS.values()]
    of_panel, of_all = Standing(), Standing()
    for event, told, facets, restart in seen(3):
        for each in alone:
            if restart and each.windowed:
                each.restart()
        if restart:
            panel.restart()
        of_panel.take(panel.ask(panel.asked(facets), event, told))
        for each in alone:
            of_all.take(each.observe(event, told))
        assert of_panel.now == of_all.now
    assert (bool(of_all.now), panel.broken) == (True, ())


def test_most_events_concern_few_detectors() -> None:
    hears = [make(Rules()).hears for make in DETECTORS.values()]
    fed = [sum(bool(each & facets) for each in hears) for _, _, facets, _ in seen(4)]
    assert sum(fed) < len(fed) * len(hears) / 2
