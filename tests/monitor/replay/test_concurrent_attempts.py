"""Recorded attempts of one project, replayed as they went side by side."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Severity
from midwatch_monitor.replay.replay import (
    MAX_TRACES,
    AlertLine,
    DamageLine,
    ReplayLine,
    TraceLine,
    replay,
    replay_together,
)

Line = Mapping[str, object]
CONFLICT = "workspace_conflict"


def edit(step: int, minute: int | None, path: str = "a.py") -> dict[str, object]:
    at = None if minute is None else f"2026-01-01T00:{minute:02}:00Z"
    call = {"tool": "edit_file", "args": f"{step}", "path": path, "edit": True}
    return {"step": step, "kind": "tool", "at": at, **call}


def write(file: Path, *lines: Line) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def together(*paths: Path, **conflict: object) -> list[ReplayLine]:
    settings = Settings.model_validate({"rules": {CONFLICT: conflict}})
    return list(replay_together(paths, settings))


def conflicts(lines: list[ReplayLine]) -> list[tuple[str, int, str]]:
    alerts = [line for line in lines if isinstance(line, AlertLine) and line.rule == CONFLICT]
    return [(Path(line.trace).stem, line.step, line.subject) for line in alerts]


def sums(lines: list[ReplayLine]) -> list[tuple[str, int, int]]:
    wholes = [line for line in lines if isinstance(line, TraceLine)]
    return [(Path(line.trace).stem, line.steps, line.alerts) for line in wholes]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two attempts at the same time that change `a.py` both, and others each."""
    write(tmp_path / "one.jsonl", edit(1, 0, "x.py"), edit(2, 1), edit(3, 9, "x.py"))
    write(tmp_path / "two.jsonl", edit(1, 2, "y.py"), edit(2, 3), edit(3, 4))
    return tmp_path


def test_both_are_told_of_the_file_that_both_change_at_the_step_that_they_are_at(
    pair: Path,
) -> None:
    lines = together(pair)
    assert lines[0] == AlertLine(
        trace=str(pair / "one.jsonl"),
        step=2,
        rule=CONFLICT,
        subject="a.py",
        severity=Severity.WARNING,
        value=1,
        summary="trace two, still in progress, also changed a.py",
        evidence=(2,),
    )
    assert conflicts(lines) == [("one", 2, "a.py"), ("two", 2, "a.py")]
    assert sums(lines) == [("two", 3, 1), ("one", 3, 1)]


def test_what_a_trace_means_to_change_is_told_before_it_does(tmp_path: Path) -> None:
    plan = {"kind": "state", "at": "2026-01-01T00:02:00Z", "plan_step_files": ["a.py"]}
    write(tmp_path / "one.jsonl", edit(1, 0), edit(2, 9, "x.py"))
    write(tmp_path / "two.jsonl", edit(1, 1, "y.py"), plan, edit(2, 3, "y.py"))
    alerts = [each for each in together(tmp_path) if isinstance(each, AlertLine)]
    assert [(Path(each.trace).stem, each.severity, each.summary) for each in alerts] == [
        ("one", Severity.NOTICE, "trace two, still in progress, also plans to change a.py"),
        (
            "two",
            Severity.NOTICE,
            "trace one, still in progress, changed a.py, which this attempt plans to change",
        ),
    ]


def test_one_by_one_nobody_is_in_conflict(pair: Path) -> None:
    assert conflicts([line for path in pair.iterdir() for line in replay(path, Settings())]) == []


def test_who_begins_after_the_others_end_is_in_no_conflict(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", edit(1, 0), edit(2, 1))
    write(tmp_path / "two.jsonl", edit(1, 2), edit(2, 3))
    assert conflicts(together(tmp_path)) == []


def test_traces_without_times_may_have_gone_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", edit(1, None), edit(2, None, "b.py"))
    write(tmp_path / "two.jsonl", edit(1, None))
    lines = together(tmp_path)
    assert conflicts(lines) == [("one", 2, "a.py"), ("two", 1, "a.py")]
    assert sums(lines) == [("one", 2, 1), ("two", 1, 1)]


def test_a_line_without_a_time_keeps_its_place(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", edit(1, 5, "x.py"), edit(2, None), edit(3, 9, "x.py"))
    write(tmp_path / "two.jsonl", edit(1, 4), edit(2, 6, "y.py"))
    assert conflicts(together(tmp_path)) == [("one", 2, "a.py"), ("two", 1, "a.py")]


def test_who_is_left_alone_with_a_file_may_come_into_conflict_again(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", edit(1, 0), edit(2, 9, "x.py"), edit(3, 12, "x.py"))
    write(tmp_path / "two.jsonl", edit(1, 1), edit(2, 3))
    write(tmp_path / "three.jsonl", edit(1, 10))
    assert conflicts(together(tmp_path, cooldown=0)) == [
        ("one", 1, "a.py"),
        ("two", 1, "a.py"),
        ("one", 2, "a.py"),
        ("three", 1, "a.py"),
    ]


@pytest.mark.parametrize(
    ("hold", "steps"),
    [
        (0, [("one", 1), ("two", 1)]),
        (2, [("two", 3), ("one", 3)]),
        ("5m", [("two", 3), ("one", 2)]),
    ],
)
def test_a_conflict_that_must_hold_fires_later(
    tmp_path: Path, hold: object, steps: list[tuple[str, int]]
) -> None:
    write(tmp_path / "one.jsonl", edit(1, 0), edit(2, 4, "x.py"), edit(3, 9, "x.py"))
    write(tmp_path / "two.jsonl", *(edit(number, 1 + 2 * (number - 1)) for number in range(1, 6)))
    found = [(name, step) for name, step, _ in conflicts(together(tmp_path, hold=hold))]
    assert found == steps


def test_a_conflict_that_is_over_before_it_held_never_fires(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", edit(1, 0), edit(2, 9, "x.py"), edit(3, 10, "x.py"))
    write(tmp_path / "two.jsonl", edit(1, 1))
    assert conflicts(together(tmp_path, hold=1)) == []


def test_a_rule_that_is_off_says_nothing(pair: Path) -> None:
    assert conflicts(together(pair, enabled=False)) == []


def test_each_trace_is_judged_by_all_other_rules_too(pair: Path) -> None:
    lines = list(replay_together([pair], Settings.model_validate({"rules": {"repeated_edits": {
        "notice_after": 2}}})))  # fmt: skip
    rules = {line.rule for line in lines if isinstance(line, AlertLine)}
    assert rules == {CONFLICT, "repeated_edits"}


def test_damage_is_told_where_it_stands(pair: Path) -> None:
    with (pair / "two.jsonl").open("a") as file:
        file.write("{torn\n")
    (damage,) = [line for line in together(pair) if isinstance(line, DamageLine)]
    assert (Path(damage.trace).stem, damage.line) == ("two", 4)


def test_a_named_file_in_no_known_format_is_refused(pair: Path) -> None:
    (pair / "notes.txt").write_text("no trace")
    with pytest.raises(TraceError):
        together(pair / "one.jsonl", pair / "notes.txt")


def test_more_traces_than_may_be_open_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", edit(1, 0))
    with pytest.raises(TraceError, match="too many traces at once: 501, at most 500"):
        together(*[path] * (MAX_TRACES + 1))
