"""`midwatch replay` of several sessions: a table for people, the worst session first."""

import json
import shlex
from pathlib import Path

import pytest

from midwatch_stage.command import objects, printed_now
from midwatch_supervisor.cli import main

SEED = str(Path(__file__).parents[4] / "configs" / "seed.yaml")
CALM: tuple[int, ...] = (80, 80)
LOW = (80, 20)
"""Low confidence at step 2, a warning."""
Capture = pytest.CaptureFixture[str]
Line = dict[str, object]


def session(file: Path, confidence: tuple[int, ...] = CALM, **last: object) -> Path:
    """A session of Midwatch that reports so confident; `last` stands in its last report."""
    reports: list[Line] = [
        {"kind": "checkpoint", "step": at, "progress_percent": 10 * at, "confidence": each}
        for at, each in enumerate(confidence, 1)
    ]
    reports[-1].update(last)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in reports))
    return file


def claude_session(file: Path, calls: int) -> Path:
    """A session of Claude Code that gives the same command again and again."""
    lines: list[Line] = []
    for at in range(calls):
        call: Line = {"type": "tool_use", "id": f"c{at}", "name": "Bash", "input": {"command": "x"}}
        result: Line = {"type": "tool_result", "tool_use_id": f"c{at}", "content": "y"}
        lines.append({"type": "assistant", "message": {"id": f"m{at}", "content": [call]}})
        lines.append({"type": "user", "message": {"content": [result]}})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def conversation(folder: Path, calls: int) -> Path:
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
    return folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def replayed(capsys: Capture, *argv: str) -> list[str]:
    assert main(["replay", *argv, "--config", SEED]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_worst_comes_first_and_calm_sessions_are_counted(capsys: Capture) -> None:
    for name in ("a", "b"):
        session(Path(f"runs/{name}.jsonl"))
    session(Path("runs/low.jsonl"), LOW)
    session(Path("runs/stuck.jsonl"), LOW, decision="escalate", notes="no way on")
    Path("runs/notes.md").write_text("no trace")
    lines = replayed(capsys, "runs")
    assert lines[0].split()[:4] == ["session", "steps", "alarms", "first"]
    assert lines[1].split()[:5] == ["stuck", "2", "2", "2", "explicit_escalation:"]
    assert lines[2] == "  runs/stuck.jsonl:2"
    assert lines[3].split()[:5] == ["low", "2", "1", "2", "low_confidence:"]
    assert lines[4] == "  runs/low.jsonl:2"
    assert lines[5] == "2 more sessions without an alarm"
    assert lines[-2] == "4 sessions, 8 steps, 2 with alarms (1 critical), 1 other file skipped"
    assert lines[-1] == "All alerts of one session: midwatch replay FILE"


def test_of_calm_sessions_there_is_one_line(capsys: Capture) -> None:
    session(Path("runs/a.jsonl"))
    assert replayed(capsys, "runs") == ["1 session, 2 steps, none with an alarm"]
    Path("none").mkdir()
    assert replayed(capsys, "none") == ["0 sessions, 0 steps, none with an alarm"]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_rows_fit_the_terminal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    session(Path("runs/django__a-long-name-that-nobody-would-read-13344.jsonl"), LOW)
    row = replayed(capsys, "runs")[1]
    assert len(row) <= columns
    assert row.startswith("django")
    assert "13344  " in row
    assert "…" in row


def test_a_wide_terminal_has_one_line_for_each_session(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    session(Path("runs/low.jsonl"), LOW)
    session(Path("runs/other.jsonl"), LOW)
    lines = replayed(capsys, "runs")
    assert [line.split()[-1] for line in lines[:3]] == [
        "where",
        "runs/low.jsonl:2",
        "runs/other.jsonl:2",
    ]
    assert lines[3:5] == ["", "2 sessions, 4 steps, 2 with alarms"]


@pytest.mark.parametrize("name", ["-home-me-shop/a b.jsonl", "it's.jsonl", "a:3.jsonl"])
def test_where_it_was_can_be_replayed_next(capsys: Capture, name: str) -> None:
    session(Path(name), LOW)
    (where,) = shlex.split(replayed(capsys, ".")[2])
    details = replayed(capsys, where)
    assert len(details) == 2
    assert f"{Path(name)}: step 2: warning low_confidence: " in details[0]
    assert replayed(capsys, where.rpartition(":")[0]) == details


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


def test_a_file_whose_name_ends_like_a_step_is_itself(capsys: Capture) -> None:
    session(Path("a.jsonl"))
    session(Path("a.jsonl:2"), LOW)
    assert len(replayed(capsys, "a.jsonl:2")) == 2


def test_sessions_of_one_name_are_told_apart_by_their_folders(capsys: Capture) -> None:
    for project in ("shop", "bank"):
        session(Path(f"runs/{project}/main.jsonl"), LOW)
    names = [line.split()[0] for line in replayed(capsys, "runs")[1:5:2]]
    assert names == ["bank/main", "shop/main"]


def test_several_named_files_are_a_table_too(capsys: Capture) -> None:
    named = [str(session(Path(name), LOW)) for name in ("a.jsonl", "b.jsonl")]
    assert replayed(capsys, *named)[-2] == "2 sessions, 4 steps, 2 with alarms"
    assert replayed(capsys, *named, "--together")[-2] == "2 sessions, 4 steps, 2 with alarms"


def test_an_alarm_that_rises_is_one_and_one_that_comes_again_is_two(capsys: Capture) -> None:
    claude_session(Path("projects/-home-me-shop/0b1c2d3e-4f5a-6b7c-8d9e.jsonl"), 12)
    row = printed_now(capsys, "replay", "projects").splitlines()[1].split()
    main(["replay", "projects", "--json"])
    found = objects(capsys)
    alarms = [each for each in found[:-1] if each["severity"] != "notice"]
    assert len(alarms) > len({each["rule"] for each in alarms})
    assert row[1:3] == ["12", str(len({each["rule"] for each in alarms}))]
    session(Path("again.jsonl"), (20, 35, 35, 35, 29))
    session(Path("calm.jsonl"))
    assert replayed(capsys, "again.jsonl", "calm.jsonl")[1].split()[1:4] == ["5", "2", "1"]


def test_damage_goes_to_stderr_beside_the_table(capsys: Capture) -> None:
    with session(Path("runs/a.jsonl")).open("a") as file:
        file.write("{torn\n")
    assert main(["replay", "runs", "--config", SEED]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.startswith("runs/a.jsonl:3: skipped: ")
