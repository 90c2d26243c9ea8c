"""The rules over recorded runs, as lines."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import TraceError
from midwatch_monitor.replay import AlertLine, DamageLine, FaultLine, TraceLine, replay
from midwatch_monitor.words import Severity

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
    return {"step": step, "kind": "tool", "path": "a.py", "edit": True, "ok": True}


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
        summary="a.py changes again and again: 2 edits counted",
        evidence=(1, 2),
    )
    assert isinstance(second, AlertLine)
    assert (second.step, second.severity) == (3, Severity.WARNING)
    assert end == TraceLine(trace=str(path), steps=5, alerts=1, first_alarm_step=3)


def test_a_notice_is_no_alarm(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", edit(1), edit(2))
    assert list(replay(path, SETTINGS))[-1] == TraceLine(
        trace=str(path), steps=2, alerts=1, first_alarm_step=None
    )


def test_an_alert_that_is_resolved_has_no_line_and_may_fire_again(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", report(1, 10), report(2, 90), report(3, 10))
    *lines, end = replay(path, SETTINGS)
    assert [line.step for line in lines if isinstance(line, AlertLine)] == [1, 3]
    assert end == TraceLine(trace=str(path), steps=3, alerts=2, first_alarm_step=1)


def test_the_lines_are_those_of_the_contract(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", report(1, 10))
    first, end = (json.loads(json.dumps(asdict(line))) for line in replay(path, SETTINGS))
    assert first == {
        "type": "alert",
        "trace": str(path),
        "step": 1,
        "rule": "low_confidence",
        "subject": "",
        "severity": "warning",
        "value": 10,
        "summary": "stated confidence is 10 %, below 30 %",
        "evidence": [1],
    }
    assert list(end) == ["type", "trace", "steps", "alerts", "first_alarm_step"]


def test_lines_without_a_number_are_no_steps(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", {"kind": "state", "reflect": True}, edit(7))
    assert list(replay(path, SETTINGS)) == [
        TraceLine(trace=str(path), steps=1, alerts=0, first_alarm_step=None)
    ]


def test_damage_is_told_where_it_stands(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", edit(1), {"step": 2})
    assert next(replay(path, SETTINGS)) == DamageLine(
        trace=str(path), line=2, problem="kind: Field required"
    )


def test_the_interval_of_the_configuration_is_in_force(tmp_path: Path) -> None:
    settings = Settings.model_validate({"reflect": {"remind_every": 1}})
    messages = [{"step": number, "kind": "message"} for number in (1, 2, 3)]
    path = trace(tmp_path / "a.jsonl", {"kind": "state", "reflect": True}, *messages)
    first, _ = replay(path, settings)
    assert isinstance(first, AlertLine)
    assert (first.rule, first.step) == ("missed_checkpoint", 3)


def test_a_folder_is_every_known_trace_below_it(tmp_path: Path) -> None:
    trace(tmp_path / "b.jsonl", edit(1))
    trace(tmp_path / "a.jsonl", edit(1))
    (tmp_path / "notes.jsonl").write_text("hello\n", encoding="utf-8")
    names = [Path(line.trace).name for line in replay(tmp_path, SETTINGS)]
    assert names == ["a.jsonl", "b.jsonl"]


def test_each_trace_is_judged_for_itself(tmp_path: Path) -> None:
    for name in ("a", "b"):
        trace(tmp_path / f"{name}.jsonl", edit(1))
    assert not any(isinstance(line, AlertLine) for line in replay(tmp_path, SETTINGS))


def test_a_named_file_in_no_known_format_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n", encoding="utf-8")
    with pytest.raises(TraceError):
        replay(path, SETTINGS)


def test_no_recorded_trace_breaks_a_rule(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", *(report(n, 50) for n in range(1, 4)), edit(4))
    assert not any(isinstance(line, FaultLine) for line in replay(path, SETTINGS))
