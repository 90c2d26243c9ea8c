"""What is written as a trace is read back as it was."""

import json
from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Activity,
    Alert,
    Budget,
    Change,
    Checkpoint,
    Course,
    Edit,
    Event,
    Lifecycle,
    Meter,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.traces import open_trace
from midwatch_monitor.traces.native import Reader, written

ACT = Step(number=1, kind=StepKind.TOOL, tool="run_command")
ODD = (
    *("", " ", "a", "ü", "😀", "\0", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\ufeff", "\udc80"),
    *('"', "\\", "\\u2028", "\x1b[31m", "null", "{}", "[1", "x" * 5000),
)


def back(event: Event) -> Event | str:
    """The event, written and read."""
    return Reader().read(json.loads(written(event).encode()))


def text(random: Random) -> str:
    return "".join(random.choices(ODD, k=random.randrange(4)))


def texts(random: Random) -> tuple[str, ...]:
    return tuple(text(random) for _ in range(random.randrange(3)))


def moment(random: Random) -> datetime | None:
    zone = timezone(timedelta(minutes=random.randrange(-720, 720)))
    noon = datetime(2026, 11, 21, 12, tzinfo=zone)
    return random.choice([None, noon, noon + timedelta(microseconds=random.randrange(10**12))])


def meter(random: Random) -> Meter:
    return Meter(used=random.choice([0, 7, 0.25]), limit=random.choice([None, 0, 60, 1.5]))


def edit(random: Random) -> Edit:
    return Edit(
        path=text(random),
        digest=text(random),
        before=text(random),
        writer=random.choice(list(Writer)),
        deleted=random.random() < 0.5,
    )


def checkpoint(random: Random) -> Checkpoint:
    return Checkpoint(
        progress_percent=random.randrange(101),
        confidence=random.randrange(101),
        decision=random.choice(list(Course)),
        blockers=texts(random),
        files_done=texts(random),
        notes=text(random),
        estimated_steps_left=random.choice([None, 0, 9]),
        plan_step=random.randrange(1, 4),
    )


def step(random: Random, number: int) -> Step:
    kind = random.choice(list(StepKind))
    return Step(
        number=number,
        kind=kind,
        at=moment(random),
        request=random.randrange(3),
        tool=random.choice(["", "bash", "put"]),
        args=random.choice([text(random), '{"command": "echo > a.py"}', '{"b":1}']),
        path=text(random),
        edits=tuple(edit(random) for _ in range(random.randrange(3))),
        ok=random.choice([None, True, False]),
        exit_code=random.choice([None, 0, 1, -9]),
        output=text(random),
        output_digest=text(random),
        text=text(random),
        tokens=random.randrange(3),
        cost_usd=random.choice([0.0, 0.1, 1e-9]),
        call=text(random),
        checkpoint=checkpoint(random) if kind is StepKind.CHECKPOINT else None,
    )


def change(random: Random) -> Change:
    return Change(
        at=moment(random),
        reflect=random.choice([None, True, False]),
        reflect_every=random.choice([None, 0, 3]),
        plan_step=random.choice([None, 1, 2]),
        plan_steps=random.choice([None, 0, 2]),
        revision=random.choice([None, 0, 1]),
        plan_step_requests=random.choice([None, 0, 12]),
        plan_step_files=random.choice([None, texts(random)]),
        model=random.choice([None, text(random)]),
        lifecycle=random.choice([None, *Lifecycle]),
        activity=random.choice([None, *Activity]),
        doing=text(random),
        node=random.choice([None, text(random)]),
        sandbox=random.choice([None, text(random)]),
        budget=random.choice([None, Budget(requests=meter(random), minutes=meter(random))]),
    )


def events(seed: int, count: int) -> list[Event]:
    random = Random(seed)
    return [
        change(random) if random.random() < 0.2 else step(random, number)
        for number in range(1, count + 1)
    ]


def judged(told: Iterable[Event | object]) -> list[tuple[Alert, ...]]:
    judge = Judge(Rules())
    return [judge.observe(event).alerts for event in told if isinstance(event, Step | Change)]


@pytest.mark.parametrize("odd", ODD)
def test_odd_text_survives_wherever_it_stands(odd: str) -> None:
    said = Checkpoint(progress_percent=0, confidence=0, blockers=(odd,), notes=odd)
    for event in (
        replace(ACT, args=odd, path=odd, output=odd, text=odd, edits=(Edit(path=odd),)),
        Step(number=1, kind=StepKind.CHECKPOINT, checkpoint=said),
        Change(doing=odd),
    ):
        assert back(event) == event


@pytest.mark.parametrize("seed", range(5))
def test_a_written_run_is_read_as_it_was_and_judged_the_same(tmp_path: Path, seed: int) -> None:
    told = events(seed, 100)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(written(event) + "\n" for event in told), encoding="utf-8")
    assert list(open_trace(path)) == told
    assert judged(open_trace(path)) == judged(told)
    assert any(judged(told))


def test_the_runs_that_are_tried_use_every_field_of_a_word() -> None:
    told = events(3, 200)
    steps = [event for event in told if isinstance(event, Step)]
    reports = [step.checkpoint for step in steps if step.checkpoint is not None]
    edits = [edit for step in steps for edit in step.edits]
    changes = [event for event in told if isinstance(event, Change)]
    for words in (steps, reports, edits, changes):
        for field in fields(words[0]):
            assert any(getattr(word, field.name) != field.default for word in words), field.name


def test_every_event_is_one_line_whoever_cuts_the_lines() -> None:
    assert [len(written(event).splitlines()) for event in events(7, 100)] == [1] * 100


def test_what_has_its_default_is_left_out_but_the_edits_of_a_tool_step() -> None:
    assert written(ACT) == '{"step":1,"kind":"tool","tool":"run_command","edits":[]}'
    assert written(Step(number=2, kind=StepKind.MESSAGE)) == '{"step":2,"kind":"message"}'
    assert written(Change()) == '{"kind":"state"}'


def test_what_is_zero_or_false_is_said_where_that_is_not_the_default() -> None:
    change = Change(reflect=False, reflect_every=0, revision=0, plan_step_files=())
    assert json.loads(written(change)) == {
        "kind": "state",
        "reflect": False,
        "reflect_every": 0,
        "revision": 0,
        "plan_step_files": [],
    }
    assert '"exit_code":0' in written(replace(ACT, exit_code=0))


def test_a_command_without_edits_infers_none_when_it_is_read_back() -> None:
    quiet = replace(ACT, args='{"command": "echo 1 > a.py"}')
    assert back(quiet) == quiet


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ('{"a": [1, "ü"], "b": 1.5}', {"a": [1, "ü"], "b": 1.5}),
        ('{"a":1}', '{"a":1}'),
        ('{"a": 1.50}', '{"a": 1.50}'),
        ("ls -l", "ls -l"),
        ('{"a": 1', '{"a": 1'),
        ('{"a":' * 5000, '{"a":' * 5000),
        ("[1]", "[1]"),
    ],
)
def test_arguments_are_an_object_where_they_stay_the_same_as_one(args: str, said: object) -> None:
    act = replace(ACT, args=args)
    assert json.loads(written(act))["args"] == said
    assert back(act) == act


def test_times_are_utc_and_keep_their_microseconds() -> None:
    noon = datetime(2026, 11, 21, 12, 0, 0, 7, tzinfo=timezone(timedelta(hours=1)))
    line = written(Change(at=noon))
    assert line == '{"kind":"state","at":"2026-11-21T11:00:00.000007Z"}'
    assert back(Change(at=noon)) == Change(at=noon.astimezone(UTC))


def test_a_budget_says_used_and_limit_of_what_it_has() -> None:
    budget = Budget(requests=Meter(used=12.0, limit=60.0), minutes=Meter(used=0.5))
    line = written(Change(budget=budget))
    assert line == '{"kind":"state","budget":{"requests":[12,60],"minutes":[0.5,null]}}'


def test_a_report_names_its_plan_step_even_the_first() -> None:
    said = Checkpoint(progress_percent=40, confidence=70)
    report = Step(number=3, kind=StepKind.CHECKPOINT, tool="reflect", checkpoint=said)
    assert written(report) == (
        '{"step":3,"kind":"checkpoint","tool":"reflect",'
        '"progress_percent":40,"confidence":70,"plan_step":1}'
    )
