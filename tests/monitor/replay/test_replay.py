"""The rules over recorded runs, as lines."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Severity
from midwatch_monitor.replay.replay import AlertLine, TraceLine, replay
from midwatch_stage.sessions import Line, codex_item, codex_line, write

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


def test_lines_without_a_number_are_no_steps(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", {"kind": "state", "reflect": True}, edit(7))
    assert list(replay(path, SETTINGS)) == [
        TraceLine(trace=str(path), steps=1, alerts=0, first_alarm_step=None)
    ]


def test_the_interval_of_the_configuration_is_in_force(tmp_path: Path) -> None:
    settings = Settings.model_validate({"reflect": {"remind_every": 1}})
    offered = {"kind": "state", "reflect": True}
    steps = [{**edit(number), "request": number} for number in (1, 2, 3)]
    path = trace(tmp_path / "a.jsonl", offered, *steps)
    first, _ = replay(path, settings)
    assert isinstance(first, AlertLine)
    assert (first.rule, first.step) == ("missed_checkpoint", 3)


def act(step: int, minutes: int) -> dict[str, object]:
    return {"step": step, "kind": "tool", "tool": "t", "args": f"{step}", "at": at(minutes)}


def at(minutes: int) -> str:
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


def test_a_cooldown_counts_from_the_step_that_ended_a_silence(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", *(act(number, 31 * number) for number in range(1, 9)))
    assert [step for _, step, _ in silences(path, cooldown=3)] == [1, 5]


def test_what_never_moved_is_said_once_between_the_steps(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", *(act(number, 20 * number) for number in range(1, 9)))
    assert silences(path, unmoved="1h") == [("no movement", 3, 3600)]


def test_an_attempt_that_is_ended_in_silence_was_silent(tmp_path: Path) -> None:
    end = {"kind": "state", "lifecycle": "failed", "at": at(60)}
    path = trace(tmp_path / "a.jsonl", act(1, 0), end)
    assert silences(path) == [("", 1, 3600)]


def test_an_end_lets_no_hold_of_another_rule_run_out(tmp_path: Path) -> None:
    settings = Settings.model_validate({"rules": {"low_confidence": {"hold": "5m"}}})
    end = {"kind": "state", "lifecycle": "failed", "at": at(20)}
    path = trace(tmp_path / "a.jsonl", {**report(1, 10), "at": at(0)}, end)
    assert not any(isinstance(line, AlertLine) for line in replay(path, settings))


def test_the_time_before_an_attempt_goes_on_is_not_judged(tmp_path: Path) -> None:
    again = {"kind": "state", "lifecycle": "working", "at": at(600)}
    path = trace(tmp_path / "a.jsonl", act(1, 0), again, act(2, 629), act(3, 660))
    assert silences(path, unmoved="1h") == [("", 2, 1860), ("no movement", 2, 3600)]


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
