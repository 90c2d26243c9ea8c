"""The rules over recorded runs, one by one and as they went side by side, as lines."""

import json
from collections.abc import Iterator, Mapping
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
from midwatch_tests.sessions import Line, codex_item, codex_line, write

SETTINGS = Settings.model_validate(
    {
        "rules": {
            "repeated_edits": {"notice_after": 2, "warn_after": 3},
            "low_confidence": {"cooldown": 0},
            "agreement": False,
        }
    }
)


def edit(step: int) -> dict[str, object]:
    call = {"args": {"path": "a.py", "line": step}, "path": "a.py", "edit": True, "ok": True}
    return {"step": step, "kind": "tool", "tool": "edit_file", **call}


def report(step: int, confidence: int) -> dict[str, object]:
    return {
        "step": step,
        "kind": "checkpoint",
        "progress_percent": 10 * step,
        "confidence": confidence,
    }


def trace(path: Path, *lines: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_an_alert_has_a_line_when_it_fires_and_another_when_it_rises(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", *(edit(number) for number in range(1, 6)))
    first, second, end = replay(path, SETTINGS)
    assert first == AlertLine(
        trace=str(path),
        step=2,
        rule="repeated_edits",
        subject="a.py",
        severity=Severity.NOTICE,
        value=2,
        summary="a.py keeps changing: 2 edits counted, no check in between",
        evidence=(1, 2),
    )
    assert isinstance(second, AlertLine)
    assert (second.step, second.severity) == (3, Severity.WARNING)
    assert end == TraceLine(trace=str(path), steps=5, alerts=1, first_alarm_step=3)


def test_a_notice_is_no_alarm_and_a_line_without_a_number_no_step(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", {"kind": "state", "reflect": True}, edit(7), edit(8))
    _, end = replay(path, SETTINGS)
    assert end == TraceLine(trace=str(path), steps=2, alerts=1, first_alarm_step=None)


def test_an_alert_that_is_resolved_has_no_line_and_may_fire_again(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", report(1, 10), report(2, 90), report(3, 10))
    *lines, end = replay(path, SETTINGS)
    assert [line.step for line in lines if isinstance(line, AlertLine)] == [1, 3]
    assert end == TraceLine(trace=str(path), steps=3, alerts=2, first_alarm_step=1)


def test_the_interval_of_the_configuration_is_in_force(tmp_path: Path) -> None:
    settings = Settings.model_validate({"reflect": {"remind_every": 1}})
    offered = {"kind": "state", "reflect": True}
    steps = [{**edit(number), "request": number} for number in (1, 2, 3)]
    path = trace(tmp_path / "a.jsonl", offered, *steps)
    first, _ = replay(path, settings)
    assert isinstance(first, AlertLine)
    assert (first.rule, first.step) == ("missed_checkpoint", 3)


def act(step: int, minutes: int) -> dict[str, object]:
    return {"step": step, "kind": "tool", "tool": "t", "args": f"{step}", "at": time_at(minutes)}


def time_at(minutes: int) -> str:
    return f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:00Z"


def silences(path: Path, **silence: object) -> list[tuple[str, int, float]]:
    """What the rule says, by the step after which nothing was heard and for how many seconds."""
    rules = {"silence": {"unmoved": 0, "cooldown": 0, **silence}, "agreement": False}
    lines = replay(path, Settings.model_validate({"rules": rules}))
    alerts = [line for line in lines if isinstance(line, AlertLine) and line.rule == "silence"]
    return [(line.subject, line.step, line.value) for line in alerts]


def test_silence_fires_after_the_last_step_before_it_and_again_after_each(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", act(1, 0), act(2, 29), act(3, 60), act(4, 95), act(5, 96))
    assert silences(path) == [("", 2, 1860), ("", 3, 2100)]


def test_an_end_lets_no_hold_of_another_rule_run_out(tmp_path: Path) -> None:
    settings = Settings.model_validate({"rules": {"low_confidence": {"hold": "5m"}}})
    end = {"kind": "state", "lifecycle": "failed", "at": time_at(20)}
    path = trace(tmp_path / "a.jsonl", {**report(1, 10), "at": time_at(0)}, end)
    assert not any(isinstance(line, AlertLine) for line in replay(path, settings))


def test_without_times_no_time_passes(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", *({**act(number, 0), "at": None} for number in range(1, 9)))
    assert silences(path, command="1ms", unmoved="1ms") == []


def test_a_command_of_codex_counts_as_a_check_between_edits(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", _codex_edits_and_tests())
    assert list(replay(path, SETTINGS)) == [
        TraceLine(trace=str(path), steps=12, alerts=0, first_alarm_step=None)
    ]


def test_a_failure_that_shows_nothing_new_is_counted_once(tmp_path: Path) -> None:
    failed = {"kind": "tool", "tool": "bash", "exit_code": 1, "ok": False}
    steps = (
        {"step": number, "args": f"run {name}", "output": f"Error: {why}", **failed}
        for number, (name, why) in enumerate(zip("abcdef", ["boom", "no"] * 3, strict=True), 1)
    )
    path = trace(tmp_path / "a.jsonl", *steps)
    found = [line.summary for line in replay(path, SETTINGS) if isinstance(line, AlertLine)]
    assert "the last 6 steps achieved little: 4 showed nothing new, 2 more failed" in found


def _codex_edits_and_tests() -> Iterator[Line]:
    yield codex_line("session_meta", id="s1", cwd="/repo")
    for number in range(6):
        for line in (f"sed -i 's/{number}/{number + 1}/' calc.py", "python3 -m unittest"):
            output = f"Ran {number} tests in 0.001s\n\nOK" if "unittest" in line else ""
            yield codex_item(
                "CommandExecution",
                id=f"{number} {line}",
                command=["bash", "-lc", line],
                exit_code=0,
                aggregated_output=output,
            )


CONFLICT = "workspace_conflict"


def edit_at(step: int, minute: int | None, path: str = "a.py") -> dict[str, object]:
    moment = None if minute is None else time_at(minute)
    return {**edit(step), "args": f"{step}", "path": path, "at": moment}


def replay_all(*paths: Path, **conflict: object) -> list[ReplayLine]:
    settings = Settings.model_validate({"rules": {CONFLICT: conflict}})
    return list(replay_together(paths, settings))


def conflicts(lines: list[ReplayLine]) -> list[tuple[str, int, str]]:
    alerts = [line for line in lines if isinstance(line, AlertLine) and line.rule == CONFLICT]
    return [(Path(line.trace).stem, line.step, line.subject) for line in alerts]


def trace_totals(lines: list[ReplayLine]) -> list[tuple[str, int, int]]:
    wholes = [line for line in lines if isinstance(line, TraceLine)]
    return [(Path(line.trace).stem, line.steps, line.alerts) for line in wholes]


@pytest.fixture
def two_traces(tmp_path: Path) -> Path:
    """Two attempts at the same time that change `a.py` both, and others each."""
    trace(tmp_path / "one.jsonl", edit_at(1, 0, "x.py"), edit_at(2, 1), edit_at(3, 9, "x.py"))
    trace(tmp_path / "two.jsonl", edit_at(1, 2, "y.py"), edit_at(2, 3), edit_at(3, 4))
    return tmp_path


def test_both_are_told_of_the_file_that_both_change_at_the_step_that_they_are_at(
    two_traces: Path,
) -> None:
    lines = replay_all(two_traces)
    assert lines[0] == AlertLine(
        trace=str(two_traces / "one.jsonl"),
        step=2,
        rule=CONFLICT,
        subject="a.py",
        severity=Severity.WARNING,
        value=1,
        summary="trace two, still in progress, also changed a.py",
        evidence=(2,),
    )
    assert conflicts(lines) == [("one", 2, "a.py"), ("two", 2, "a.py")]
    assert trace_totals(lines) == [("two", 3, 1), ("one", 3, 1)]


def test_what_a_trace_means_to_change_is_told_before_it_does(tmp_path: Path) -> None:
    plan = {"kind": "state", "at": "2026-01-01T00:02:00Z", "plan_step_files": ["a.py"]}
    trace(tmp_path / "one.jsonl", edit_at(1, 0), edit_at(2, 9, "x.py"))
    trace(tmp_path / "two.jsonl", edit_at(1, 1, "y.py"), plan, edit_at(2, 3, "y.py"))
    alerts = [each for each in replay_all(tmp_path) if isinstance(each, AlertLine)]
    assert [(Path(each.trace).stem, each.severity, each.summary) for each in alerts] == [
        ("one", Severity.NOTICE, "trace two, still in progress, also plans to change a.py"),
        (
            "two",
            Severity.NOTICE,
            "trace one, still in progress, changed a.py, which this attempt plans to change",
        ),
    ]


def test_who_begins_after_the_others_end_is_in_no_conflict(tmp_path: Path) -> None:
    trace(tmp_path / "one.jsonl", edit_at(1, 0), edit_at(2, 1))
    trace(tmp_path / "two.jsonl", edit_at(1, 2), edit_at(2, 3))
    assert conflicts(replay_all(tmp_path)) == []


def test_traces_without_times_may_have_gone_side_by_side(tmp_path: Path) -> None:
    trace(tmp_path / "one.jsonl", edit_at(1, None), edit_at(2, None, "b.py"))
    trace(tmp_path / "two.jsonl", edit_at(1, None))
    lines = replay_all(tmp_path)
    assert conflicts(lines) == [("one", 2, "a.py"), ("two", 1, "a.py")]
    assert trace_totals(lines) == [("one", 2, 1), ("two", 1, 1)]


def test_a_line_without_a_time_keeps_its_place(tmp_path: Path) -> None:
    trace(tmp_path / "one.jsonl", edit_at(1, 5, "x.py"), edit_at(2, None), edit_at(3, 9, "x.py"))
    trace(tmp_path / "two.jsonl", edit_at(1, 4), edit_at(2, 6, "y.py"))
    assert conflicts(replay_all(tmp_path)) == [("one", 2, "a.py"), ("two", 1, "a.py")]


def test_who_is_left_alone_with_a_file_may_come_into_conflict_again(tmp_path: Path) -> None:
    trace(tmp_path / "one.jsonl", edit_at(1, 0), edit_at(2, 9, "x.py"), edit_at(3, 12, "x.py"))
    trace(tmp_path / "two.jsonl", edit_at(1, 1), edit_at(2, 3))
    trace(tmp_path / "three.jsonl", edit_at(1, 10))
    assert conflicts(replay_all(tmp_path, cooldown=0)) == [
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
    trace(tmp_path / "one.jsonl", edit_at(1, 0), edit_at(2, 4, "x.py"), edit_at(3, 9, "x.py"))
    trace(
        tmp_path / "two.jsonl", *(edit_at(number, 1 + 2 * (number - 1)) for number in range(1, 6))
    )
    found = [(name, step) for name, step, _ in conflicts(replay_all(tmp_path, hold=hold))]
    assert found == steps


def test_each_trace_is_judged_by_all_other_rules_too(two_traces: Path) -> None:
    rules = {"repeated_edits": {"notice_after": 2}, CONFLICT: {"enabled": False}}
    lines = replay_together([two_traces], Settings.model_validate({"rules": rules}))
    assert {line.rule for line in lines if isinstance(line, AlertLine)} == {"repeated_edits"}


def test_damage_is_told_where_it_stands(two_traces: Path) -> None:
    with (two_traces / "two.jsonl").open("a") as file:
        file.write("{torn\n")
    (damage,) = [line for line in replay_all(two_traces) if isinstance(line, DamageLine)]
    assert (Path(damage.trace).stem, damage.line) == ("two", 4)


def test_a_named_file_in_no_known_format_is_refused(two_traces: Path) -> None:
    (two_traces / "notes.txt").write_text("no trace")
    with pytest.raises(TraceError):
        replay_all(two_traces / "one.jsonl", two_traces / "notes.txt")


def test_more_traces_than_may_be_open_are_refused(tmp_path: Path) -> None:
    path = trace(tmp_path / "one.jsonl", edit_at(1, 0))
    with pytest.raises(TraceError, match="too many traces at once: 501, at most 500"):
        replay_all(*[path] * (MAX_TRACES + 1))
