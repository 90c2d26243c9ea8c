"""`midwatch replay` of traces that were made to stop it: one clear sentence, and it goes on."""

import json
import resource
from collections.abc import Iterable
from pathlib import Path

import pytest

from midwatch_monitor.traces.json_stream import MAX_LINE
from midwatch_stage.command import process, refused_now
from midwatch_supervisor.cli import main

Capture = pytest.CaptureFixture[str]
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
