"""Traces of every size and in every state of repair."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Step
from midwatch_monitor.traces import Damage, find_traces, open_trace, recognise
from midwatch_monitor.traces.foreign import MAX_OPEN, CallNumbers, JsonNode, within
from midwatch_monitor.traces.json_stream import MAX_LINE
from midwatch_tests.factories import step

MIB = 1024 * 1024

SWE = {"action": "ls", "observation": "a.py", "response": "", "state": "{}", "thought": "look"}

CLAUDE = {"type": "assistant", "message": {"content": "hello"}}

MINI = {"role": "assistant", "content": "```bash\nls\n```"}

SERVER = {"id": 1, "source": "agent", "action": "message", "args": {"content": "x"}}


def document(array: str, entries: object) -> str:
    return json.dumps({array: entries} if array else entries)


def count_steps(path: Path) -> tuple[int, list[Damage]]:
    """The number of steps, and the damage."""
    steps, damage = 0, list[Damage]()
    for event in open_trace(path):
        if isinstance(event, Damage):
            damage.append(event)
        else:
            steps += isinstance(event, Step)
    return steps, damage


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (document("trajectory", [SWE]), "swe-agent"),
        (document("messages", [MINI]), "mini-swe-agent"),
        (document("", [SERVER]), "openhands"),
        (json.dumps(SERVER), "openhands"),
        ('{"kind":"MessageEvent","source":"agent"}', "openhands"),
        (json.dumps(CLAUDE), "claude-code"),
        ('{"type":"summary"}\n\n' + json.dumps(CLAUDE), "claude-code"),
        ('{"kind":"message","step":1}', "midwatch"),
    ],
)
@pytest.mark.parametrize("name", ["run.json", "run.jsonl", "run.traj.json", "run"])
def test_a_format_is_known_by_its_content(
    tmp_path: Path, text: str, format: str, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert recognise(path) == format
    assert count_steps(path)[0] <= 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \r\n\t\n",
        b"\x00\x01\xff" * 100,
        b"\xef\xbb\xbf",
        b"plain text",
        b"{",
        b"[]",
        b"{}",
        b"[1, 2]",
        b'{"messages": []}',
        b'{"trajectory": 1, "x": {"trajectory": [{"action": ""}]}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'"' + b"x" * (2 * MIB),
        b'{"kind": "Event", "apiVersion": "v1", "source": {}}',
    ],
)
def test_a_file_that_is_no_trace_is_told_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="not in a known trace format"):
        open_trace(path)


@pytest.mark.parametrize(
    ("array", "entry"), [("trajectory", SWE), ("messages", MINI), ("", SERVER)]
)
@pytest.mark.parametrize("tail", [", {", "", "]} trailing", ', {"x": NaN}]}', ', "\udcff"'])
def test_a_document_that_breaks_off_gives_what_came_before(
    tmp_path: Path, array: str, entry: object, tail: str
) -> None:
    text = document(array, [entry, entry]).removesuffix("}")
    path = tmp_path / "run.json"
    path.write_bytes((text[: text.rindex("]")] + tail).encode(errors="surrogateescape"))
    steps, damage = count_steps(path)
    assert steps >= 1
    assert [each.line for each in damage] == [3]
    assert damage[0].problem.startswith("the document breaks off after item 2: ")


def test_a_line_that_is_too_long_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    line, long = json.dumps(CLAUDE), "x" * (MAX_LINE + 1)
    path.write_text(f"{line}\n{long}\n{line}\n{long * 2}")
    steps, damage = count_steps(path)
    assert (steps, [each.line for each in damage]) == (2, [2, 4])


def test_closing_the_events_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.traj"
    path.write_text(document("trajectory", [SWE] * 10_000))
    events = open_trace(path)
    assert isinstance(next(events), Step)
    events.close()  # a file left open would be a warning, and so an error
    assert list(events) == []


def test_a_folder_gives_the_traces_below_it_and_passes_over_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.traj.json").write_text(document("messages", [MINI]))
    (tmp_path / "b.json").write_text(document("trajectory", [SWE]))
    (tmp_path / "c.jsonl").write_text(json.dumps(CLAUDE))
    (tmp_path / "c.txt").write_text(json.dumps(CLAUDE))
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d.traj").mkdir()
    found = [path.relative_to(tmp_path).as_posix() for path in find_traces(tmp_path)]
    assert found == ["a/run.traj.json", "b.json", "c.jsonl"]
    assert list(find_traces(tmp_path, "swe-agent")) == [tmp_path / "b.json"]


def swe_agent(entries: int, filling: str) -> Iterator[str]:
    entry = json.dumps({**SWE, "observation": filling})
    yield '{"trajectory": ['
    yield from (f"{entry}," for _ in range(entries - 1))
    yield f"{entry}]}}"


def claude_code(entries: int, filling: str) -> Iterator[str]:
    message = {"content": filling}
    yield from (json.dumps({**CLAUDE, "message": message}) + "\n" for _ in range(entries))


@pytest.mark.parametrize("write", [swe_agent, claude_code])
def test_the_memory_of_a_long_trace_is_that_of_a_short_one(
    tmp_path: Path, write: Callable[[int, str], Iterator[str]]
) -> None:
    path = tmp_path / "long"
    with path.open("w") as file:
        file.writelines(write(300, "x" * 100_000))
    assert path.stat().st_size > 28 * MIB
    tracemalloc.start()
    steps, damage = count_steps(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (steps, damage) == (300, [])
    assert peak < 8 * MIB


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "whole"),
    [(3, 3), (-1, -1), (2.0, 2), ("12", 12), ("-1", -1)]
    + [(value, None) for value in (True, 2.5, "x", "", "1" * 30, None, "٣", float("inf"))],
)
def test_a_whole_number_is_read_from_text_too(value: object, whole: int | None) -> None:
    assert JsonNode(value).whole == whole


@pytest.mark.parametrize(
    ("value", "amount"),
    [(0.5, 0.5), (3, 3.0), (-1, 0.0), (True, 0.0), ("3", 0.0), (float("nan"), 0.0), (1e300, 0.0)],
)
def test_an_amount_is_never_below_zero(value: object, amount: float) -> None:
    assert JsonNode(value).amount == amount


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21T12:00:00", NOON),
        ("2026-11-21T13:00:00+01:00", NOON.astimezone(timezone(timedelta(hours=1)))),
        (NOON.timestamp(), NOON),
        ("noon", None),
        (None, None),
        (0, None),
        (1e17, None),
    ],
)
def test_a_time_is_aware_or_none(value: object, time: datetime | None) -> None:
    assert JsonNode(value).time == time


def test_equal_values_have_equal_texts_and_null_members_are_left_out() -> None:
    assert JsonNode({"b": "é", "a": [1]}).canonical == '{"a":[1],"b":"é"}'
    assert JsonNode({"a": 1, "b": 2, "c": None}).without({"b"}) == JsonNode({"a": 1})


@pytest.mark.parametrize(
    ("path", "root", "cwd", "place"),
    [
        ("/repo/src/a.py", "/repo", "", "src/a.py"),
        ("/repo/src/../a.py", "/repo/", "", "a.py"),
        ("a.py", "/repo", "/repo/src", "src/a.py"),
        ("a.py", "/repo", "", "a.py"),
        ("a.py", "", "", "a.py"),
        ("/tmp/a.py", "/repo", "/repo", "/tmp/a.py"),
        ("/repository/a.py", "/repo", "", "/repository/a.py"),
        ("/a.py", "/", "", "a.py"),
        ("C:\\repo\\a.py", "C:\\repo", "", "a.py"),
        ("", "/repo", "/repo", ""),
    ],
)
def test_a_path_is_relative_to_the_root_it_lies_below(
    path: str, root: str, cwd: str, place: str
) -> None:
    assert within(path, root, cwd) == place


def test_the_oldest_call_gives_up_when_too_many_wait() -> None:
    calls = CallNumbers()
    for number in range(MAX_OPEN):
        assert list(calls.open(f"c{number}", step(0, f"c{number}"))) == []
    assert list(calls.open("last", step(0, "last"))) == [step(1, "c0")]
    assert calls.close("c0") is None
    assert calls.close("last") == step(0, "last")
