"""Midwatch's own trace format: line by line as it is read, and as it is written."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from math import inf, nan
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.errors import TraceError
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import (
    Activity,
    Alert,
    Budget,
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Event,
    Lifecycle,
    Meter,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.traces import Damage, native, open_trace
from midwatch_monitor.traces.native import LineReader, write_event
from midwatch_tests.factories import message

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ON_A = (Edit(path="a.py"),)
ECHOED = (Edit(path="a.py", digest=digest("1\n")),)
"""What `echo 1 > a.py` does."""


def parse(*lines: Mapping[str, object]) -> Event | str:
    """The last of some lines as the reader of their trace takes it."""
    reader = LineReader()
    return [reader.read(line) for line in lines][-1]


def tool_step(**line: object) -> Step:
    """One tool line as a step."""
    step = parse({"step": 1, "kind": "tool", **line})
    assert isinstance(step, Step)
    return step


def test_a_tool_line_becomes_a_step() -> None:
    line = {
        "step": 1,
        "kind": "tool",
        "tool": "edit_file",
        "args": {"path": "a.py", "b": [1]},
        "path": "a.py",
        "edit": True,
        "content_digest": "d",
        "ok": True,
        "exit_code": 0,
        "output": "done",
        "text": "I edit.",
        "at": "2026-11-21T12:00:00Z",
        "tokens": 812,
        "cost_usd": 0.004,
        "request": 4,
        "call": "c1",
    }
    assert parse(line) == Step(
        number=1,
        kind=StepKind.TOOL,
        at=NOON,
        request=4,
        tool="edit_file",
        args='{"b": [1], "path": "a.py"}',
        path="a.py",
        edits=(Edit(path="a.py", digest="d"),),
        ok=True,
        exit_code=0,
        output="done",
        text="I edit.",
        tokens=812,
        cost_usd=0.004,
        call="c1",
    )


def test_a_checkpoint_line_carries_its_checkpoint() -> None:
    line = {
        "step": 3,
        "kind": "checkpoint",
        "progress_percent": 40,
        "confidence": 70,
        "decision": "pivot",
        "blockers": ["b"],
        "files_done": ["a.py"],
        "notes": "n",
        "estimated_steps_left": 2,
    }
    assert parse({"kind": "state", "plan_step": 2}, line) == Step(
        number=3,
        kind=StepKind.CHECKPOINT,
        checkpoint=Checkpoint(
            progress_percent=40,
            confidence=70,
            decision=CheckpointDecision.PIVOT,
            blockers=("b",),
            files_done=("a.py",),
            notes="n",
            estimated_steps_left=2,
            plan_step=2,
        ),
    )


def test_a_state_line_names_only_what_changed() -> None:
    line = {
        "kind": "state",
        "at": "2026-11-21T13:00:00+01:00",
        "reflect": True,
        "lifecycle": "input-required",
        "activity": "command",
        "budget": {"requests": [12, 60], "tokens": [5, None]},
    }
    assert parse(line) == Change(
        at=NOON,
        reflect=True,
        lifecycle=Lifecycle.INPUT_REQUIRED,
        activity=Activity.COMMAND,
        budget=Budget(requests=Meter(used=12, limit=60), tokens=Meter(used=5)),
    )


def test_a_line_may_list_every_observed_edit() -> None:
    edits = [
        {"path": "a.py", "digest": "1", "before": "0"},
        {"path": "b", "writer": "person", "deleted": True},
    ]
    assert tool_step(ok=False, edits=edits).edits == (
        Edit(path="a.py", digest="1", before="0"),
        Edit(path="b", writer=Writer.PERSON, deleted=True),
    )


ECHO = "echo 1 > a.py"
SHELL = {"tool": "bash", "args": ECHO}
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"
VIEW = {"tool": "str_replace_editor", "args": {"command": "view", "path": "a.py"}}
EDIT = {"tool": "edit", "args": {"path": "a.py"}}
DIGEST = (Edit(path="a.py", digest="d"),)


@pytest.mark.parametrize(
    ("line", "edits"),
    [
        # What a shell writes is inferred.
        (SHELL, ECHOED),
        ({"tool": "", "args": ECHO}, ECHOED),
        ({"tool": "terminal", "args": {"cmd": ECHO}}, ECHOED),
        ({"tool": "execute_bash", "args": '{"command": "echo 1 > a.py"}'}, ECHOED),
        # Nothing is inferred from what is no command.
        ({"tool": "search", "args": "1 > a.py"}, ()),
        ({"tool": "search", "args": {"command": ECHO}}, ()),
        ({"tool": "", "args": '{"path": "echo 1 > a.py"}'}, ()),
        ({"tool": "", "args": '{"path": "echo 1 > a.py'}, ()),
        ({"tool": "bash", "args": [ECHO]}, ()),
        ({"tool": "bash", "args": {"command": 1}}, ()),
        # A command that failed may have written if it ran.
        ({**SHELL, "ok": False, "exit_code": 1}, ECHOED),
        ({**SHELL, "ok": False}, ()),
        ({**SHELL, "exit_code": 126}, ()),
        ({**SHELL, "exit_code": 127}, ()),
        # A tool that edits is known by its name.
        ({**VIEW, "args": {"command": "str_replace", "path": "a.py", "old_str": "a"}}, ON_A),
        ({"tool": "edit_file", "args": '{"path": "a.py", "old": "a"}'}, ON_A),
        ({"tool": "apply_patch", "args": {"patch": PATCH}}, ON_A),
        ({"tool": "apply_patch", "args": PATCH}, ON_A),
        # An edit is of the file that the line or its arguments name.
        ({"tool": "change", "edit": True, "args": {"target_file": "a.py"}}, ON_A),
        ({"tool": "change", "edit": True, "path": "a.py"}, ON_A),
        ({"tool": "edit", "path": "a.py"}, ON_A),
        # The digest of a content says that there is one.
        ({"tool": "put", "path": "a.py", "content_digest": "d"}, DIGEST),
        ({**EDIT, "content_digest": "d"}, DIGEST),
        (
            {"tool": "write_file", "args": {"path": "a.py", "content": "x"}},
            (Edit(path="a.py", digest=digest("x")),),
        ),
        # What only looks or was refused edits nothing.
        ({**VIEW, "path": "a.py"}, ()),
        ({"tool": "read_file", "args": {}, "path": "a.py", "content_digest": "d"}, ()),
        ({"tool": "edit", "args": "12:14\nx\nend_of_edit"}, ()),
        ({**EDIT, "edit": False}, ()),
        ({**EDIT, "edits": []}, ()),
        ({**EDIT, "kind": "message"}, ()),
        ({**EDIT, "ok": False}, ()),
        ({**EDIT, "exit_code": 2}, ()),
        ({**EDIT, "output": "String to replace not found"}, ()),
        ({"tool": "change", "path": "a.py", "edit": True, "output": "No replacement was made"}, ()),
    ],
)
def test_the_edits_of_a_line_that_does_not_list_them(
    line: Mapping[str, object], edits: tuple[Edit, ...]
) -> None:
    assert tool_step(**{"output": "done", **line}).edits == edits


def test_arguments_nested_without_end_are_told() -> None:
    args: list[object] = []
    for _ in range(100_000):
        args = [args]
    assert parse({"step": 1, "kind": "tool", "args": args}) == "nested too deeply"


@pytest.mark.parametrize("at", ["2026-11-21T12:00:00", "2026-11-21T12:00:00Z"])
def test_a_time_without_a_zone_is_taken_as_utc(at: str) -> None:
    assert parse({"kind": "state", "at": at}) == Change(at=NOON)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"step": 1}, "kind: Field required"),
        ({"kind": "tool"}, "step: Field required"),
        ({"step": 0, "kind": "tool"}, "step: Input should be greater than or equal to 1"),
        (
            {"step": 1, "kind": "checkpoint", "progress_percent": 101, "confidence": 1},
            "progress_percent: Input should be less than or equal to 100",
        ),
        ({"step": 1, "kind": "x"}, "kind: Input should be 'tool', 'message' or 'checkpoint'"),
    ],
)
def test_a_line_that_says_too_little_or_too_much_is_damage(
    line: dict[str, object], problem: str
) -> None:
    assert parse(line) == problem


def test_damage_is_told_with_its_line_and_skipped(tmp_path: Path) -> None:
    path, said = tmp_path / "run.jsonl", b'{"step": %d, "kind": "message"}\n'
    damaged = b'\n[]\n{"step": 2, "kind"\n\xff\xfe\n' + b"[" * 200_000 + b"\n"
    path.write_bytes(said % 1 + damaged + said % 3)
    first, *told, last = open_trace(path)
    assert (first, last) == (message(1, ""), message(3, ""))
    assert told[0] == Damage(line=3, problem="not a JSON object")
    assert [each.line for each in told if isinstance(each, Damage)] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('\n\n{"kind":"state"}\n', True),
        ('\ufeff{"step":1,"kind":"tool"}', True),
        ('{"type":"user"}\n', False),
        ('{"kind":"MessageEvent"}\n', False),
        ('{"kind":["tool"]}\n', False),
        ("hello\n", False),
        ("", False),
    ],
)
def test_a_trace_is_known_by_its_first_line(tmp_path: Path, text: str, known: bool) -> None:
    path = tmp_path / "some.file"
    path.write_text(text, encoding="utf-8")
    assert native.recognise(path) is known


def test_a_file_in_another_format_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(TraceError, match=r"notes\.txt: not in the midwatch trace format"):
        open_trace(tmp_path / "notes.txt", "midwatch")


def test_a_missing_file_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        open_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match="no trace format is called 'papyrus'"):
        open_trace(tmp_path / "none.jsonl", "papyrus")


@pytest.mark.parametrize(
    "args", ['{"b":2,"a": [1, "é"]}', ' {"a": [1, "\\u00e9"], "b": 2}\n', {"b": 2, "a": [1, "é"]}]
)
def test_arguments_as_the_text_of_an_object_are_equal_to_that_object(args: object) -> None:
    assert tool_step(tool="goto", args=args).args == '{"a": [1, "é"], "b": 2}'


@pytest.mark.parametrize("args", ["{ ls; }", '{"a": 1', "[1,2]", " ls  -l ", '"a"'])
def test_other_texts_stay_as_they_are(args: str) -> None:
    assert tool_step(tool="bash", args=args).args == args


def test_states_may_have_underscores() -> None:
    line = {"kind": "state", "activity": "rate_limited", "lifecycle": "input_required"}
    assert parse(line) == Change(activity=Activity.RATE_LIMITED, lifecycle=Lifecycle.INPUT_REQUIRED)


def test_running_what_a_call_wrote_edits_what_that_writes() -> None:
    args = {"path": "fix.py", "content": "open('a.py', 'w').write('1')"}
    wrote = {"step": 1, "kind": "tool", "tool": "write_file", "args": args}
    run = parse(wrote, {"step": 2, "kind": "tool", "tool": "bash", "args": "python fix.py"})
    assert isinstance(run, Step)
    assert [edit.path for edit in run.edits] == ["a.py"]


@pytest.mark.parametrize("key", ["speaker", "sender", "name"])
@pytest.mark.parametrize(
    ("text", "told"), [("Begin.", "[Lead] Begin."), ("Lead: Begin.", "Lead: Begin.")]
)
def test_a_turn_begins_with_who_says_it(key: str, text: str, told: str) -> None:
    said = parse({"step": 1, "kind": "message", key: "Lead", "text": text})
    assert said == message(1, told)


# -- what is written is read back as it was ----------------------------------------------------

ACT = Step(number=1, kind=StepKind.TOOL, tool="run_command")
ODD = (
    *("", " ", "a", "ü", "😀", "\0", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\ufeff", "\udc80"),
    *('"', "\\", "\\u2028", "\x1b[31m", "null", "{}", "[1", "x" * 5000),
)


def read_back(event: Event) -> Event | str:
    """The event, written and read."""
    return LineReader().read(json.loads(write_event(event).encode()))


def text(random: Random) -> str:
    return "".join(random.choices(ODD, k=random.randrange(4)))


def moment(random: Random) -> datetime:
    zone = timezone(timedelta(minutes=random.randrange(-720, 720)))
    noon = datetime(2026, 11, 21, 12, tzinfo=zone)
    return random.choice([noon, noon + timedelta(microseconds=random.randrange(10**12))])


def value(random: Random, kind: Any) -> Any:
    """Any value of a field, by its type; numbers are those that every field may have."""
    if get_origin(kind) is tuple:
        return tuple(value(random, get_args(kind)[0]) for _ in range(random.randrange(3)))
    if get_origin(kind) is UnionType:
        return random.choice([None, *(value(random, each) for each in get_args(kind)[:-1])])
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{each.name: value(random, hints[each.name]) for each in fields(kind)})
    if issubclass(kind, StrEnum):
        return random.choice(list(kind))
    plain: dict[Any, Callable[[], Any]] = {
        str: lambda: text(random),
        bool: lambda: random.random() < 0.5,
        int: lambda: random.randrange(1, 100),
        float: lambda: random.choice([0.25, 7.0, 1e-9]),
        datetime: lambda: moment(random),
    }
    return plain[kind]()


def step(random: Random, number: int) -> Step:
    made: Step = value(random, Step)
    args = random.choice([made.args, '{"command": "echo > a.py"}', '{"b":1}'])
    reports = made.kind is StepKind.CHECKPOINT
    report = value(random, Checkpoint) if reports else None
    return replace(made, number=number, args=args, checkpoint=report)


def change(random: Random) -> Change:
    made: Change = value(random, Change)
    return replace(made, outage=None, acts=None)  # no rule looks at them, so no trace has them


def events(seed: int, count: int) -> list[Event]:
    random = Random(seed)
    return [
        change(random) if random.random() < 0.2 else step(random, number)
        for number in range(1, count + 1)
    ]


def alerts_by_event(told: Iterable[Event | object]) -> list[tuple[Alert, ...]]:
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
        assert read_back(event) == event


@pytest.mark.parametrize("seed", range(5))
def test_a_written_run_is_read_as_it_was_and_judged_the_same(tmp_path: Path, seed: int) -> None:
    told = events(seed, 100)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(write_event(event) + "\n" for event in told), encoding="utf-8")
    assert list(open_trace(path)) == told
    assert alerts_by_event(open_trace(path)) == alerts_by_event(told)
    assert any(alerts_by_event(told))


def test_every_event_is_one_line_whoever_cuts_the_lines() -> None:
    assert [len(write_event(event).splitlines()) for event in events(7, 100)] == [1] * 100


def test_what_has_its_default_is_left_out_but_the_edits_of_a_tool_step() -> None:
    assert write_event(ACT) == '{"step":1,"kind":"tool","tool":"run_command","edits":[]}'
    assert write_event(Step(number=2, kind=StepKind.MESSAGE)) == '{"step":2,"kind":"message"}'
    assert write_event(Change()) == '{"kind":"state"}'


def test_what_is_zero_or_false_is_said_where_that_is_not_the_default() -> None:
    change = Change(reflect=False, reflect_every=0, revision=0, plan_step_files=())
    assert json.loads(write_event(change)) == {
        "kind": "state",
        "reflect": False,
        "reflect_every": 0,
        "revision": 0,
        "plan_step_files": [],
    }
    assert '"exit_code":0' in write_event(replace(ACT, exit_code=0))


def test_a_command_without_edits_infers_none_when_it_is_read_back() -> None:
    quiet = replace(ACT, args='{"command": "echo 1 > a.py"}')
    assert read_back(quiet) == quiet


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
        ('{"a": NaN}', '{"a": NaN}'),
    ],
)
def test_arguments_are_an_object_where_they_stay_the_same_as_one(args: str, said: object) -> None:
    act = replace(ACT, args=args)
    assert json.loads(write_event(act))["args"] == said
    assert read_back(act) == act


def test_a_budget_says_used_and_limit_of_what_it_has_and_no_number_that_is_none() -> None:
    budget = Budget(requests=Meter(used=12.0, limit=60.0), minutes=Meter(used=0.5))
    line = write_event(Change(budget=budget))
    assert line == '{"kind":"state","budget":{"requests":[12,60],"minutes":[0.5,null]}}'
    for none in (nan, inf, -inf):
        meters = Budget(minutes=Meter(used=1, limit=none), tokens=Meter(used=none, limit=9))
        told = json.loads(write_event(Change(budget=meters)), parse_constant=pytest.fail)
        assert told["budget"] == {"minutes": [1, None], "tokens": [0, 9]}
