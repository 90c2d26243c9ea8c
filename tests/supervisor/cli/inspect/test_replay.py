"""`midwatch replay`: each alert of one trace, a table of several, and traces made to stop it."""

import json
import resource
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from midwatch_monitor.traces.json_stream import MAX_LINE
from midwatch_supervisor.cli import main
from midwatch_tests.command import objects, process, refused_now

SEED = str(Path(__file__).parents[4] / "configs" / "seed.yaml")
AT = "2026-11-21T20:00:00Z"
LOW = "low_confidence"
Capture = pytest.CaptureFixture[str]
Line = dict[str, object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def trace(name: str, lines: Iterable[Line]) -> str:
    """A trace in Midwatch's own format; each line is a step."""
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    numbered = ({"step": at, **line} for at, line in enumerate(lines, 1))
    file.write_text("".join(json.dumps(line) + "\n" for line in numbered))
    return name


def session(name: str, *confidence: int, **last: object) -> str:
    """A session that reports so confident; `last` stands in its last report."""
    reports: list[Line] = [
        {"kind": "checkpoint", "progress_percent": 10 * at, "confidence": each}
        for at, each in enumerate(confidence or (80, 80), 1)
    ]
    reports[-1].update(last)
    return trace(name, reports)


def edits(name: str, *times: str) -> str:
    """A session that edits one file again at each of these times."""
    edit: Line = {"kind": "tool", "tool": "edit", "path": "a.py", "edit": True, "ok": True}
    return trace(name, [{**edit, "content_digest": at, "at": at} for at in times])


def conversation(folder: Path, calls: int) -> None:
    """A conversation of OpenHands with the same failing command, a file for each event."""
    folder.mkdir(parents=True)
    for at in range(calls):
        of = {"tool_call_id": f"c{at}", "tool_name": "terminal"}
        call = {**of, "kind": "ActionEvent", "source": "agent", "action": {"command": "make"}}
        seen = {"content": [{"type": "text", "text": "boom"}], "exit_code": 2}
        result = {**of, "kind": "ObservationEvent", "source": "environment", "observation": seen}
        for number, event in enumerate((call, result), 2 * at):
            text = json.dumps(event, indent=2)
            (folder / f"event-{number:05}-{number:04x}.json").write_text(text)


def replay_lines(capsys: Capture, *argv: str) -> list[str]:
    assert main(["replay", *argv, "--config", SEED]) == 0
    return capsys.readouterr().out.splitlines()


def alerts(capsys: Capture, *argv: str, code: int = 0) -> list[tuple[object, ...]]:
    assert main(["replay", *argv, "--json"]) == code
    found = objects(capsys)
    return [(a["step"], a["rule"], a["severity"]) for a in found if a["type"] == "alert"]


def test_the_lines_are_those_of_the_contract(capsys: Capture) -> None:
    session("a.jsonl", 50, 29)
    main(["replay", "a.jsonl", "--config", SEED, "--json"])
    alert, whole = objects(capsys)
    assert alert.pop("summary")
    assert alert == {
        "type": "alert",
        "trace": "a.jsonl",
        "step": 2,
        "rule": LOW,
        "subject": "",
        "severity": "warning",
        "value": 29,
        "evidence": [2],
    }
    assert whole == {
        "type": "trace",
        "trace": "a.jsonl",
        "steps": 2,
        "alerts": 1,
        "first_alarm_step": 2,
    }


def test_each_rule_of_the_original_has_its_severity_by_the_configuration_of_the_original(
    capsys: Capture,
) -> None:
    report: Line = {"kind": "checkpoint", "progress_percent": 60}
    asks: Line = {"confidence": 29, "decision": "escalate", "blockers": ["a", "b", "c"]}
    reports = [{**report, "confidence": 80}, {**report, "confidence": 50}, {**report, **asks}]
    edit: Line = {"kind": "tool", "tool": "put", "path": "a.py", "edit": True, "ok": True}
    trace("a.jsonl", [*reports, *({**edit, "content_digest": f"{n}"} for n in range(5))])
    assert alerts(capsys, "a.jsonl", "--config", SEED) == [
        (3, "explicit_escalation", "critical"),
        (3, LOW, "warning"),
        (3, "declining_confidence", "warning"),
        (3, "multiple_blockers", "warning"),
        (3, "stalled_progress", "critical"),
        (8, "repeated_edits", "critical"),
    ]


def test_of_much_damage_the_first_lines_are_named_and_the_rest_is_counted(capsys: Capture) -> None:
    with Path(session("runs/a.jsonl")).open("a") as file:
        file.write("Working…\n" * 27)
    for named, more in (("runs/a.jsonl", ["--json"]), ("runs", [])):
        assert main(["replay", named, *more, "--config", SEED]) == 0
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == 1
        *first, rest = err.splitlines()
        assert [each.partition("skipped: ")[0] for each in first] == [
            f"runs/a.jsonl:{n}: " for n in (3, 4, 5)
        ]
        assert rest == "runs/a.jsonl: 24 more lines skipped"


@pytest.mark.parametrize("named", ["runs/a.jsonl", "runs"])
def test_what_cannot_be_read_is_named_and_the_others_are_replayed(
    capsys: Capture, named: str
) -> None:
    session("runs/a.jsonl", 29)
    Path("b.txt").write_text("no trace")
    argv = ["replay", "b.txt", named, "c.jsonl", "--config", SEED]
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert "1 session, 1 step, 1 with alarms\n" in out
    assert [line.partition(": ")[0] for line in err.splitlines()] == ["b.txt", "c.jsonl"]
    assert alerts(capsys, *argv[1:], code=2) == [(1, LOW, "warning")]
    assert main([*argv, "--together"]) == 2
    assert capsys.readouterr().out == ""


def test_a_worker_has_thresholds_of_its_own_or_is_refused_with_those_that_have_some(
    capsys: Capture,
) -> None:
    session("a.jsonl", 20)
    Path("own.yaml").write_text(
        "rules: {low_confidence: {workers: {timid: {below: 10}, bold: {}}}}\n"
    )
    argv = ("a.jsonl", "--config", "own.yaml")
    assert alerts(capsys, *argv) == [(1, LOW, "warning")]
    assert alerts(capsys, *argv, "--worker", "timid") == []
    said = "the configuration has no thresholds for a worker 'nobody'; there are "
    worker = ("--worker", "nobody")
    assert refused_now(capsys, "replay", *argv, *worker) == f"{said}some for: bold, timid\n"
    assert refused_now(capsys, "replay", "a.jsonl", *worker) == f"{said}none for any\n"


def test_traces_of_one_project_are_replayed_together(capsys: Capture) -> None:
    edits("runs/a.jsonl", "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z")
    edits("runs/b.jsonl", "2026-01-01T00:01:00Z", "2026-01-01T00:03:00Z")
    assert alerts(capsys, "runs") == []
    assert alerts(capsys, "runs", "--together") == [(1, "workspace_conflict", "warning")] * 2
    assert main(["replay", "runs", "--together"]) == 0
    assert "2 sessions, 4 steps, 2 with alarms\n" in capsys.readouterr().out


def test_the_worst_comes_first_and_calm_sessions_are_counted(capsys: Capture) -> None:
    for name in ("a", "b"):
        session(f"runs/{name}.jsonl")
    session("runs/low.jsonl", 80, 20)
    session("runs/stuck.jsonl", 80, 20, decision="escalate", notes="no way on")
    Path("runs/notes.md").write_text("no trace")
    lines = replay_lines(capsys, "runs")
    assert lines[0].split()[:4] == ["session", "steps", "alarms", "first"]
    assert lines[1].split()[:5] == ["stuck", "2", "2", "2", "explicit_escalation:"]
    assert lines[2] == "  runs/stuck.jsonl:2"
    assert lines[3].split()[:5] == ["low", "2", "1", "2", "low_confidence:"]
    assert lines[4] == "  runs/low.jsonl:2"
    assert lines[5] == "2 more sessions without an alarm"
    assert lines[-2] == "4 sessions, 8 steps, 2 with alarms (1 critical), 1 other file skipped"
    assert lines[-1] == "All alerts of one session: midwatch replay FILE"


def test_of_calm_sessions_there_is_one_line(capsys: Capture) -> None:
    session("runs/a.jsonl")
    assert replay_lines(capsys, "runs") == ["1 session, 2 steps, none with an alarm"]
    Path("none").mkdir()
    assert replay_lines(capsys, "none") == ["0 sessions, 0 steps, none with an alarm"]


@pytest.mark.parametrize("columns", [60, 120, 200])
def test_rows_fit_the_terminal_which_shows_the_place_beside_them_if_it_is_wide(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    session("runs/django__a-long-name-that-nobody-would-read-of-this-table-13344.jsonl", 80, 20)
    head, row, *_ = replay_lines(capsys, "runs")
    assert len(row) <= columns
    assert row.startswith("django")
    assert "13344  " in row
    assert "…" in row
    assert [head.endswith("  where"), row.endswith("13344.jsonl:2")] == [columns == 200] * 2


@pytest.mark.parametrize("name", ["-home-me-shop/a b.jsonl", "it's.jsonl", "a:3.jsonl"])
def test_where_it_was_can_be_replayed_next(capsys: Capture, name: str) -> None:
    session(name, 80, 20)
    (where,) = shlex.split(replay_lines(capsys, ".")[2])
    details = replay_lines(capsys, where)
    assert len(details) == 2
    assert f"{Path(name)}: step 2: warning low_confidence: " in details[0]
    assert details[1] == f"{Path(name)}: 2 steps, 1 alert, first alarm at step 2"
    assert replay_lines(capsys, where.rpartition(":")[0]) == details


def test_a_file_whose_name_ends_like_a_step_is_itself(capsys: Capture) -> None:
    session("a.jsonl")
    assert len(replay_lines(capsys, session("a.jsonl:2", 80, 20))) == 2


def test_a_conversation_with_a_file_for_each_event_is_one_session(capsys: Capture) -> None:
    conversation(Path("oh/conversations/1a2b/events"), 12)
    conversation(Path("oh/conversations/3c4d/events"), 1)
    Path("oh/conversations/1a2b/base_state.json").write_text("{}")
    assert main(["replay", "oh"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:5] == ["1a2b", "12", "4", "4", "repeated_call:"]
    assert lines[-2] == "2 sessions, 13 steps, 1 with alarms (1 critical), 1 other file skipped"
    where = "oh/conversations/1a2b/events"
    assert lines[2].strip() == f"{where}:5"
    for each in (where, f"{where}:5"):
        assert main(["replay", each]) == 0
        details = capsys.readouterr().out.splitlines()
        assert details[-1] == f"{where}: 12 steps, 4 alerts, first alarm at step 4"


def test_sessions_of_one_name_are_told_apart_by_their_folders(capsys: Capture) -> None:
    for project in ("shop", "bank"):
        session(f"runs/{project}/main.jsonl", 80, 20)
    names = [line.split()[0] for line in replay_lines(capsys, "runs")[1:5:2]]
    assert names == ["bank/main", "shop/main"]


def test_an_alarm_that_rises_is_one_and_one_that_comes_again_is_two(capsys: Capture) -> None:
    look: Line = {"kind": "tool", "tool": "look", "args": "x", "output": "y", "ok": True}
    trace("runs/a.jsonl", [look] * 12)
    alarms = [rule for _, rule, severity in alerts(capsys, "runs") if severity != "notice"]
    assert len(alarms) > len(set(alarms))
    assert main(["replay", "runs"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[1:3] == ["12", str(len(set(alarms)))]
    session("again.jsonl", 20, 35, 35, 35, 29)
    assert replay_lines(capsys, "again.jsonl", session("b.jsonl"))[1].split()[1:4] == [
        "5",
        "2",
        "1",
    ]


BEGUN: Line = {"kind": "state", "at": AT, "lifecycle": "working"}
OTHER: Line = {"kind": "message", "step": 1, "text": "hello", "at": AT}


def tool(step: int, at: str = AT) -> Line:
    return {"step": step, "kind": "tool", "tool": "bash", "args": {"command": "ls"}, "at": at}


def hostile(capsys: Capture, *lines: Line | str) -> tuple[list[int], list[str]]:
    """The steps of a trace and of a good one after it, and what was said on stderr."""
    text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    Path("a.jsonl").write_text("\n".join(text))
    Path("b.jsonl").write_text(json.dumps(OTHER))
    assert main(["replay", ".", "--json"]) == 0
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    return [each["steps"] for each in found if each["type"] == "trace"], said.err.splitlines()


@pytest.mark.parametrize(
    ("at", "known"),
    [
        ("9999-12-31T23:59:59-14:00", False),
        ("9000-01-01T00:00:00Z", False),
        ("8999-12-31T23:59:59-14:00", True),
        ("1970-01-01T00:00:00+14:00", True),
        ("1969-12-31T23:59:59Z", False),
        ("0001-01-01T00:00:00+14:00", False),
    ],
)
def test_a_time_at_the_end_of_the_calendar_is_damage_and_the_others_go_on(
    capsys: Capture, at: str, known: bool
) -> None:
    steps, said = hostile(capsys, BEGUN, tool(1), tool(2, at), tool(3, at if known else AT))
    assert steps == [3 if known else 2, 1]
    damage = "a.jsonl:3: skipped: at: Input should be a time of the years 1970 to 8999"
    assert said == ([] if known else [damage])


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", 1e300])
def test_a_time_of_a_foreign_run_that_is_none_is_left_out(capsys: Capture, at: object) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    message = {"id": "m", "role": "assistant", "content": [call]}
    line = {"type": "assistant", "timestamp": at, "message": message}
    assert hostile(capsys, line, line) == ([1, 1], [])


def test_numbers_without_an_end_are_damage(capsys: Capture) -> None:
    huge, endless = "9" * 400, "9" * 5_000
    steps, said = hostile(
        capsys,
        f'{{"step":1,"kind":"message","text":"","tokens":{huge}}}',
        f'{{"step":2,"kind":"message","text":"","tokens":{endless}}}',
        f'{{"step":3,"kind":"checkpoint","progress_percent":1,"confidence":{huge}}}',
        '{"step":-5,"kind":"message","text":""}',
        '{"kind":"state","budget":{"tokens":[1e308,1e-308],"requests":[Infinity,NaN]}}',
        tool(6),
    )
    assert steps == [2, 1]
    assert [each.partition(": skipped: ")[0] for each in said] == [
        f"a.jsonl:{number}" for number in (2, 3, 4)
    ]


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["run.jsonl", "run.traj"])
def test_a_line_or_an_entry_without_an_end_is_not_held_in_memory(folder: Path, name: str) -> None:
    path = folder / name
    with path.open("w") as file:
        file.writelines(endless(name))
    done = process("replay", str(path), preexec_fn=_limit_memory)
    assert (done.returncode, f"longer than {MAX_LINE} bytes" in done.stderr) == (0, True)
    assert "no alarm" in done.stdout


def endless(name: str) -> Iterator[str]:
    """A trace with a line, or an entry of its document, that is longer than any may be."""
    step = json.dumps({"action": "ls", "observation": "", "response": "", "thought": "look"})
    begin, end = f'{{"trajectory": [{step}, {{"action": "', '"}]}'
    if name == "run.jsonl":
        begin, end = json.dumps(OTHER) + '\n{"step": 2, "text": "', f'"}}\n{json.dumps(OTHER)}'
    yield begin
    yield from ["x" * MAX_LINE] * 8
    yield end


def _limit_memory() -> None:
    """Let a process have less memory than the trace is long."""
    most = 240 * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


@pytest.mark.parametrize("hold", ["99999999999999999d", "3651d", "9" * 500 + "h"])
def test_a_length_of_more_than_ten_years_is_refused(capsys: Capture, hold: str) -> None:
    Path("long.yaml").write_text(f"rules: {{silence: {{command: {hold}, hold: {hold}}}}}")
    said = refused_now(capsys, "config", "check", "long.yaml")
    assert said.count("write at most ten years (3650d)") == 2
