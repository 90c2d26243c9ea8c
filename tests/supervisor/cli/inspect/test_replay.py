"""`midwatch replay`: the original's numbers at their boundaries, and traces made to stop it."""

import json
import resource
from collections.abc import Iterable
from pathlib import Path

import pytest

from midwatch_monitor.traces.json_stream import MAX_LINE
from midwatch_stage.command import objects, printed_now, process, refused_now
from midwatch_supervisor.cli import main

SEED = str(Path(__file__).parents[4] / "configs" / "seed.yaml")
Capture = pytest.CaptureFixture[str]
Line = dict[str, object]


def report(progress: int, confidence: int = 80, **more: object) -> Line:
    return {"kind": "checkpoint", "progress_percent": progress, "confidence": confidence, **more}


def edit(content: int, path: str = "a.py") -> Line:
    return {
        "kind": "tool",
        "tool": "edit_file",
        "args": {"path": path, "content": content},
        "path": path,
        "edit": True,
        "ok": True,
        "content_digest": f"d{content}",
    }


def write(file: Path, lines: list[Line]) -> Path:
    numbered = [{"step": at, **line} for at, line in enumerate(lines, 1)]
    file.write_text("".join(json.dumps(line) + "\n" for line in numbered))
    return file


def alerts(out: str) -> list[tuple[object, object, object]]:
    found = [json.loads(line) for line in out.splitlines()]
    return [(a["step"], a["rule"], a["severity"]) for a in found if a["type"] == "alert"]


LOW = "low_confidence"
DECLINE = "declining_confidence"
STALL = "stalled_progress"


@pytest.mark.parametrize(
    ("lines", "fired"),
    [
        ([report(10, 30)], []),
        ([report(10, 29)], [(1, LOW, "warning")]),
        ([report(10, 80), report(20, 70), report(30, 61)], []),
        ([report(10, 80), report(20, 70), report(30, 60)], [(3, DECLINE, "warning")]),
        ([report(10, 80), report(20, 50), report(30, 60)], []),
        ([report(10, blockers=["a", "b"])], []),
        ([report(10, blockers=["a", "b", "c"])], [(1, "multiple_blockers", "warning")]),
        ([report(10, decision="escalate")], [(1, "explicit_escalation", "critical")]),
        ([report(60), report(60)], []),
        ([report(60), report(60), report(60)], [(3, STALL, "critical")]),
        ([report(0), report(0), report(0)], [(3, STALL, "critical")]),
        ([report(60), report(60), report(61)], []),
        ([report(100), report(100), report(100)], []),
        ([report(60), report(60, decision="pivot"), report(60)], []),
        (
            [report(60), report(60, decision="pivot"), report(60), report(60), report(60)],
            [(5, STALL, "critical")],
        ),
        ([edit(n) for n in range(4)], []),
        ([edit(n) for n in range(5)], [(5, "repeated_edits", "critical")]),
        ([edit(n % 2) for n in range(4)], []),
        ([edit(n, f"{n}.py") for n in range(5)], []),
        ([report(10 * n, files_done=["a.py"] * n) for n in range(1, 9)], []),
        ([{"kind": "message", "text": "thinking"}] * 30, []),
    ],
)
def test_the_originals_numbers_hold_at_their_boundaries(
    tmp_path: Path, capsys: Capture, lines: list[Line], fired: list[tuple[object, ...]]
) -> None:
    trace = write(tmp_path / "a.jsonl", lines)
    assert main(["replay", str(trace), "--config", SEED, "--json"]) == 0
    assert alerts(capsys.readouterr().out) == fired


def test_the_lines_are_those_of_the_contract(tmp_path: Path, capsys: Capture) -> None:
    trace = str(write(tmp_path / "a.jsonl", [report(10, 50), report(20, 29)]))
    main(["replay", trace, "--config", SEED, "--json"])
    alert, whole = objects(capsys)
    assert alert.pop("summary")
    assert alert == {
        "type": "alert",
        "trace": trace,
        "step": 2,
        "rule": LOW,
        "subject": "",
        "severity": "warning",
        "value": 29,
        "evidence": [2],
    }
    assert whole == {
        "type": "trace",
        "trace": trace,
        "steps": 2,
        "alerts": 1,
        "first_alarm_step": 2,
    }


def test_text_is_one_line_for_each_alert_and_trace(tmp_path: Path, capsys: Capture) -> None:
    trace = write(tmp_path / "a.jsonl", [report(10, 29, decision="escalate")])
    main(["replay", str(trace), "--config", SEED])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[-1] == f"{trace}: 1 step, 2 alerts, first alarm at step 1"


def test_damage_goes_to_stderr_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    trace = write(tmp_path / "a.jsonl", [report(10)])
    with trace.open("a") as file:
        file.write("{torn\n")
    assert main(["replay", str(trace), "--config", SEED, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["trace"]
    assert err.startswith(f"{trace}:2: skipped: ")


def test_of_much_damage_the_rest_is_counted(tmp_path: Path, capsys: Capture) -> None:
    file = write(tmp_path / "a.jsonl", [report(10), report(20)])
    file.write_text(file.read_text() + "Working…\n" * 27)
    assert main(["replay", str(file), "--config", SEED]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [each.partition(": ")[0] for each in told[:3]] == [f"{file}:{n}" for n in (3, 4, 5)]
    assert told[3:] == [f"{file}: 24 more lines skipped"]


def test_a_folder_is_every_trace_below_it(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "below").mkdir()
    files = [write(tmp_path / name, [report(10)]) for name in ("a.jsonl", "below/b.jsonl")]
    (tmp_path / "notes.md").write_text("no trace")
    assert main(["replay", str(tmp_path), "--config", SEED, "--json"]) == 0
    found = [json.loads(line)["trace"] for line in capsys.readouterr().out.splitlines()]
    assert found == [str(file) for file in files]


@pytest.mark.parametrize("folder", [False, True])
def test_what_cannot_be_read_is_named_and_the_others_are_replayed(
    tmp_path: Path, capsys: Capture, folder: bool
) -> None:
    (tmp_path / "runs").mkdir()
    good = write(tmp_path / "runs" / "a.jsonl", [report(10, 29)])
    bad, gone = tmp_path / "b.txt", tmp_path / "c.jsonl"
    bad.write_text("no trace")
    named = [str(each) for each in (bad, good.parent if folder else good, gone)]
    assert main(["replay", *named, "--config", SEED, "--json"]) == 2
    out, err = capsys.readouterr()
    assert alerts(out) == [(1, LOW, "warning")]
    assert [line.partition(": ")[0] for line in err.splitlines()] == [str(bad), str(gone)]
    assert main(["replay", *named, "--config", SEED]) == 2
    assert "1 session, 1 step, 1 with alarms\n" in capsys.readouterr().out


def test_traces_are_not_replayed_together_where_one_cannot_be_read(
    tmp_path: Path, capsys: Capture
) -> None:
    good = write(tmp_path / "a.jsonl", [report(10, 29)])
    assert main(["replay", str(good), str(tmp_path / "b.jsonl"), "--together"]) == 2
    assert capsys.readouterr().out == ""


def test_a_worker_has_thresholds_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "own.yaml"
    config.write_text("rules: {low_confidence: {workers: {timid: {below: 10}}}}\n")
    trace = str(write(tmp_path / "a.jsonl", [report(10, 20)]))
    for worker, fired in (([], [(1, LOW, "warning")]), (["--worker", "timid"], [])):
        argv = ["replay", trace, *worker, "--config", str(config), "--json"]
        assert main(argv) == 0
        assert alerts(capsys.readouterr().out) == fired


def test_a_worker_without_thresholds_of_its_own_is_refused_with_those_that_have_some(
    tmp_path: Path, capsys: Capture
) -> None:
    config = tmp_path / "own.yaml"
    trace = str(write(tmp_path / "a.jsonl", [report(10)]))
    for rules, there in (
        ("{low_confidence: {workers: {timid: {below: 10}, bold: {}}}}", "some for: bold, timid"),
        ("{}", "none for any"),
    ):
        config.write_text(f"rules: {rules}\n")
        assert main(["replay", trace, "--worker", "nobody", "--config", str(config)]) == 2
        said = "the configuration has no thresholds for a worker 'nobody'; there are"
        assert tuple(capsys.readouterr()) == ("", f"{said} {there}\n")


def test_thresholds_of_a_worker_that_are_wrong_are_a_wrong_configuration(
    tmp_path: Path, capsys: Capture
) -> None:
    config = tmp_path / "own.yaml"
    config.write_text("rules: {low_confidence: {workers: {timid: {blow: 10}}}}\n")
    trace = str(write(tmp_path / "a.jsonl", [report(10, 20)]))
    assert main(["replay", trace, "--worker", "timid", "--config", str(config)]) == 2
    assert capsys.readouterr().out == ""


def test_traces_of_one_project_are_replayed_together(tmp_path: Path, capsys: Capture) -> None:
    for name, minute in (("a", 0), ("b", 1)):
        times = (f"2026-01-01T00:0{minute}:00Z", f"2026-01-01T00:0{minute + 2}:00Z")
        lines = [{**edit(number), "at": at} for number, at in enumerate(times)]
        write(tmp_path / f"{name}.jsonl", lines)
    conflict = (1, "workspace_conflict", "warning")
    for more, fired in (([], []), (["--together"], [conflict, conflict])):
        assert main(["replay", str(tmp_path), *more, "--json"]) == 0
        assert alerts(capsys.readouterr().out) == fired


def test_what_only_time_shows_is_shown_by_the_times_of_a_trace(
    tmp_path: Path, capsys: Capture
) -> None:
    times = ("2026-01-01T00:00:00Z", "2026-01-01T00:31:00Z")
    lines = [{**edit(number), "at": at} for number, at in enumerate(times)]
    trace = str(write(tmp_path / "a.jsonl", lines))
    assert printed_now(capsys, "replay", trace).splitlines()[0] == (
        f"{trace}: step 1: warning silence: nothing heard for 31 min; "
        "nothing is known to be running (steps 1)"
    )


AT = "2026-11-21T20:00:00Z"
BEGUN: dict[str, object] = {"kind": "state", "at": AT, "lifecycle": "working"}
OTHER: dict[str, object] = {"kind": "message", "step": 1, "text": "hello", "at": AT}
MOST_MIB = 240


def tool(step: int, **more: object) -> dict[str, object]:
    return {"step": step, "kind": "tool", "tool": "bash", "args": {"command": "ls"}, **more}


def folder(tmp_path: Path, lines: Iterable[object]) -> Path:
    """The trace, and a good one that comes after it."""
    text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    (tmp_path / "a.jsonl").write_text("\n".join(text))
    (tmp_path / "b.jsonl").write_text(json.dumps(OTHER))
    return tmp_path


def replayed(capsys: Capture, path: Path) -> tuple[list[int], list[str]]:
    """The steps of each trace, and what was said on stderr."""
    assert main(["replay", str(path), "--json"]) == 0
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    steps = [each["steps"] for each in found if each["type"] == "trace"]
    return steps, [line.rpartition("/")[2] for line in said.err.splitlines()]


@pytest.mark.parametrize(
    "at",
    [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "9000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "1969-12-31T23:59:59Z",
    ],
)
def test_a_time_at_the_end_of_the_calendar_is_damage_and_the_others_go_on(
    capsys: Capture, tmp_path: Path, at: str
) -> None:
    lines = [BEGUN, tool(1, at=AT), tool(2, at=at), tool(3, at=AT)]
    steps, said = replayed(capsys, folder(tmp_path, lines))
    assert steps == [2, 1]
    assert said == ["a.jsonl:3: skipped: at: Input should be a time of the years 1970 to 8999"]


@pytest.mark.parametrize("at", ["8999-12-31T23:59:59-14:00", "1970-01-01T00:00:00+14:00"])
def test_any_other_time_is_reckoned_with(capsys: Capture, tmp_path: Path, at: str) -> None:
    steps, said = replayed(capsys, folder(tmp_path, [BEGUN, tool(1, at=at), tool(2, at=at)]))
    assert (steps, said) == ([2, 1], [])


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", 1e300])
def test_a_time_of_a_foreign_run_that_is_none_is_left_out(
    capsys: Capture, tmp_path: Path, at: object
) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    message = {"id": "m", "role": "assistant", "content": [call]}
    line = {"type": "assistant", "timestamp": at, "message": message}
    assert replayed(capsys, folder(tmp_path, [line, line])) == ([1, 1], [])


@pytest.mark.parametrize("depth", [900, 100_000])
def test_nesting_without_an_end_stops_nothing(capsys: Capture, tmp_path: Path, depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    raw = f'{{"step":1,"kind":"tool","tool":"x","args":{nested}}}'
    steps, _ = replayed(capsys, folder(tmp_path, [tool(1), raw, tool(3, args=nested)]))
    assert steps in ([1, 1], [2, 1], [3, 1])


def test_numbers_without_an_end_are_damage(capsys: Capture, tmp_path: Path) -> None:
    huge, endless = "9" * 400, "9" * 5_000
    lines = [
        f'{{"step":1,"kind":"message","text":"","tokens":{huge}}}',
        f'{{"step":2,"kind":"message","text":"","tokens":{endless}}}',
        f'{{"step":3,"kind":"checkpoint","progress_percent":1,"confidence":{huge}}}',
        '{"step":-5,"kind":"message","text":""}',
        '{"kind":"state","budget":{"tokens":[1e308,1e-308],"requests":[Infinity,NaN]}}',
        tool(6),
    ]
    steps, said = replayed(capsys, folder(tmp_path, lines))
    assert steps == [2, 1]
    assert [line.partition(": skipped: ")[0] for line in said] == [
        "a.jsonl:2",
        "a.jsonl:3",
        "a.jsonl:4",
    ]


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["run.jsonl", pytest.param("run.traj", marks=pytest.mark.matrix)])
def test_a_line_or_an_entry_without_an_end_is_not_held_in_memory(tmp_path: Path, name: str) -> None:
    step = json.dumps({"action": "ls", "observation": "", "response": "", "thought": "look"})
    begin, end = f'{{"trajectory": [{step}, {{"action": "', '"}]}'
    if name == "run.jsonl":
        begin, end = json.dumps(OTHER) + '\n{"step": 2, "text": "', f'"}}\n{json.dumps(OTHER)}'
    path = tmp_path / name
    with path.open("w") as file:
        file.write(begin)
        for _ in range(8):
            file.write("x" * MAX_LINE)
        file.write(end)
    done = process("replay", str(path), preexec_fn=_bounded)
    assert (done.returncode, f"longer than {MAX_LINE} bytes" in done.stderr) == (0, True)
    assert "no alarm" in done.stdout


def _bounded() -> None:
    """Let a process have less memory than the trace is long."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MIB * 1024 * 1024, MOST_MIB * 1024 * 1024))


@pytest.mark.parametrize("hold", ["99999999999999999d", "3651d", "9" * 500 + "h"])
def test_a_length_of_more_than_ten_years_is_refused(
    capsys: Capture, tmp_path: Path, hold: str
) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text(f"rules: {{silence: {{command: {hold}, hold: {hold}}}}}")
    assert main(["config", "check", str(file)]) == 2
    assert capsys.readouterr().err.count("write at most ten years (3650d)") == 2


def test_a_timeline_with_a_time_at_the_end_of_the_calendar_is_refused(
    capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "it.yaml"
    end = "9999-12-31T23:59:59Z"
    file.write_text(f'about: x\ntimeline: [{{kind: message, text: "", at: "{end}"}}]')
    assert "a time of the years 1970 to 8999" in refused_now(capsys, "rules", "test", str(file))
