"""`midwatch export`: what was live is replayed from its trace with the same alerts."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.run import AgentRunResult

from midwatch_monitor.config.settings import MonitorSettings, ReflectSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    Attempt,
    AttemptTransition,
    Change,
    Ending,
    Entry,
    Event,
    Intervention,
    Lifecycle,
    Record,
    Step,
    StepKind,
)
from midwatch_monitor.replay.replay import AlertLine, replay
from midwatch_monitor.traces import open_trace
from midwatch_stage.command import midwatch, new_attempt, new_task, printed, refused

Capture = pytest.CaptureFixture[str]
Log = pytest.LogCaptureFixture
Claim = Callable[..., Awaitable[Recorder]]
Fired = tuple[str, str, str, int]
Perform = Callable[..., Coroutine[Any, Any, AgentRunResult[str]]]

SETTINGS = Settings.model_validate(
    {
        "monitor": MonitorSettings(poll_seconds=0.01),
        "rules": {
            "repeated_edits": {"notice_after": 3, "workers": {"coder": {"warn_after": 4}}},
            "low_confidence": {"hold": 2},
            "missed_checkpoint": {"cooldown": "2s"},
        },
    }
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, journal_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))


async def told(journal: Journal, attempt: int) -> list[Event]:
    """What the rules were told of an attempt."""
    entries = await journal.entries(attempt=attempt)
    return [entry.record for entry in entries if isinstance(entry.record, Step | Change)]


async def fired(journal: Journal, attempt: int) -> list[Fired]:
    """The alerts as they fired or rose live."""
    entries = await journal.entries(attempt=attempt)
    alerts = [entry.record for entry in entries if isinstance(entry.record, Alert)]
    return [(a.key.rule, a.key.subject, a.severity, a.step) for a in alerts if a.firing]


def replayed(trace: Path, settings: Settings = SETTINGS, worker: str = "coder") -> list[Fired]:
    lines = replay(trace, settings, worker=worker)
    alerts = [line for line in lines if isinstance(line, AlertLine)]
    return [(line.rule, line.subject, line.severity, line.step) for line in alerts]


async def prove_the_round_trip(journal: Journal, rules: set[str]) -> None:
    """The only attempt, exported and replayed, is what it was; these rules at least fired."""
    assert await midwatch("export", "1", "--output", "run.jsonl") == 0
    live = await fired(journal, 1)
    assert {rule for rule, *_ in live} >= rules
    assert replayed(Path("run.jsonl")) == live
    assert list(open_trace(Path("run.jsonl"))) == await told(journal, 1)


def act(output: str = "ü\u2028\0") -> Step:
    return Step(number=0, kind=StepKind.TOOL, tool="t", output=output)


def names(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def mine(file: str) -> Path:
    """A file that is there already."""
    path = Path(file)
    path.write_text("mine")
    return path


def reflecting(progress: int, confidence: int, decision: str = "continue") -> list[Any]:
    said = {"progress_percent": progress, "confidence": confidence, "decision": decision}
    return [("reflect", said)]


def putting(*texts: str) -> list[Any]:
    return [("put", {"path": "a.py", "text": text}) for text in texts]


def running(command: str) -> list[Any]:
    return [("run_command", {"command": command})]


async def test_a_run_that_circles_gives_the_same_alerts(journal: Journal, perform: Perform) -> None:
    turns: list[Any] = [
        reflecting(40, 80),
        *(putting(f"{n}") for n in range(3)),
        running("b.py broken"),
    ]
    turns += [reflecting(40, 50), *(putting(f"{n}") for n in range(3)), reflecting(40, 20)]
    turns += [reflecting(41, 20, "pivot"), reflecting(41, 25), putting("7", "8")]
    turns += [reflecting(42, 10, "escalate"), *[running("b.py x")] * 3]
    await perform(*turns, settings=SETTINGS)
    await prove_the_round_trip(
        journal,
        {
            "declining_confidence",
            "explicit_escalation",
            "low_confidence",
            "repeated_edits",
            "stalled_progress",
        },
    )


async def test_a_silent_run_that_is_parked_gives_the_same_alerts(
    journal: Journal,
    perform: Perform,
    write: Callable[[Record], Awaitable[int]],
    until: Callable[[Record], Awaitable[Entry]],
) -> None:
    async def call_for_a_pause() -> str:
        pause = Intervention(action=Action.PAUSE, by=Actor.OPERATOR, message="Wait.")
        return str(await write(pause))

    turns: list[Any] = [
        *[running("c.py x")] * 4,
        [("call_for_a_pause", {})],
        *[running("c.py x")] * 12,
    ]
    work = asyncio.create_task(perform(*turns, settings=SETTINGS, tools=(call_for_a_pause,)))
    await until(AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason="Wait."))
    await write(Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Go on."))
    await work
    await prove_the_round_trip(journal, {"missed_checkpoint"})


async def test_a_run_that_went_on_after_a_crash_gives_the_same_alerts(
    journal: Journal, perform: Perform
) -> None:
    def crash() -> str:
        raise ConnectionError("gone")

    before = [reflecting(5, 80), *(putting(f"{n}") for n in range(3)), reflecting(5, 80)]
    with pytest.raises(ConnectionError):
        await perform(*before, [("crash", {})], settings=SETTINGS, tools=(crash,))
    after = [*(putting(f"{n}") for n in range(3, 5)), reflecting(5, 80)]
    await perform(*before, "What now?", *after, settings=SETTINGS)
    await prove_the_round_trip(journal, {"repeated_edits", "stalled_progress"})


async def test_the_end_of_an_attempt_is_a_line_without_a_number(
    journal: Journal, claim: Claim, capsys: Capture
) -> None:
    await (await claim()).end(AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE))
    assert await midwatch("export", "1") == 0
    assert json.loads(capsys.readouterr().out) == {
        "kind": "state",
        "at": "2026-11-21T20:00:00Z",
        "lifecycle": "completed",
    }


async def test_the_interval_that_a_trace_names_wins_over_the_configured_one(
    journal: Journal, claim: Claim
) -> None:
    recorder = await claim()
    await recorder.record(working_transition(), Change(reflect=True, reflect_every=1), *[act()] * 6)
    live = await fired(journal, 1)
    assert "missed_checkpoint" in {rule for rule, *_ in live}
    await midwatch("export", "1", "--output", "run.jsonl")
    assert replayed(Path("run.jsonl"), Settings(reflect=ReflectSettings(remind_every=0))) == live


async def test_a_trace_goes_to_stdout_as_utf_8_line_by_line(
    journal: Journal, claim: Claim, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    await (await claim()).record(working_transition(), Change(reflect=True), act())
    assert await midwatch("export", "fix") == 0
    out, err = capsysbinary.readouterr()
    assert (out.count(b"\n"), err) == (2, b"")
    state, step = (json.loads(line) for line in out.decode().splitlines())
    assert (state["kind"], state["reflect"]) == ("state", True)
    assert (step["step"], step["edits"], step["output"]) == (1, [], "ü\u2028\0")


@pytest.mark.parametrize("words", [["--output", "-"], ["--output=-"]])
async def test_a_dash_stands_for_stdout(
    claim: Claim, capsysbinary: pytest.CaptureFixture[bytes], words: Sequence[str]
) -> None:
    await (await claim()).record(act())
    assert await midwatch("export", "1") == 0
    plain = capsysbinary.readouterr()
    assert await midwatch("export", "1", *words) == 0
    assert capsysbinary.readouterr() == plain
    assert "-" not in names()


async def test_a_long_attempt_is_written_whole(
    journal: Journal, claim: Claim, capsys: Capture
) -> None:
    await (await claim()).record(*[act()] * 450)
    assert await midwatch("export", "fix#1", "--output", "run.jsonl") == 0
    assert capsys.readouterr() == ("wrote run.jsonl: 450 steps\n", "")
    assert list(open_trace(Path("run.jsonl"))) == await told(journal, 1)


@pytest.mark.parametrize(("id", "number"), [("fix", 2), ("f", 2), ("fix#1", 1), ("1", 1), ("2", 2)])
async def test_an_attempt_is_named_as_elsewhere_and_a_task_means_its_latest(
    journal: Journal, attempt: Attempt, at: datetime, capsys: Capture, id: str, number: int
) -> None:
    await again(journal, attempt, at)
    assert await midwatch("export", id, "--output", "a.jsonl", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "type": "export",
        "file": "a.jsonl",
        "attempt": number,
        "steps": 0,
    }


async def again(journal: Journal, attempt: Attempt, at: datetime) -> Attempt:
    return await new_attempt(journal, await journal.task(attempt.task), 2)


async def test_every_attempt_of_a_run_has_a_file_of_its_own(
    journal: Journal, attempt: Attempt, at: datetime, claim: Claim, capsys: Capture
) -> None:
    await (await claim()).record(act())
    second = await again(journal, attempt, at)
    await (await claim(of=second)).record(act(), act())
    assert await printed(capsys, "export", "--all", "traces") == (
        "wrote traces/fix-1.jsonl: 1 step\nwrote traces/fix-2.jsonl: 2 steps\n"
    )
    assert names("traces") == ["fix-1.jsonl", "fix-2.jsonl"]


async def test_the_task_of_an_own_agent_may_have_any_name(
    journal: Journal, attempt: Attempt, at: datetime
) -> None:
    await new_attempt(journal, await new_task(journal, "../a b"))
    assert await midwatch("export", "--all", "traces") == 0
    assert names("traces") == [".._a_b-1.jsonl"]


async def test_nothing_is_overwritten_unless_forced(
    journal: Journal, attempt: Attempt, at: datetime, capsys: Capture
) -> None:
    await again(journal, attempt, at)
    there, before = mine("fix-2.jsonl"), names()
    for argv in (["1", "--output", "fix-2.jsonl"], ["--all", "."]):
        assert await midwatch("export", *argv) == 2
        assert capsys.readouterr() == ("", "fix-2.jsonl exists already; --force overwrites it\n")
    assert (names(), there.stat().st_size) == (before, 4)
    assert await midwatch("export", "1", "--output", "fix-2.jsonl", "--force") == 0
    assert there.stat().st_size == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "name either an ATTEMPT"),
        (["1", "--all", "x"], "name either an ATTEMPT"),
        (["--all", "x", "--output", "y"], "name either an ATTEMPT"),
        (["none"], "there is no task or attempt `none`; the tasks are: fix\n"),
        (["1", "--run", "7"], "there is no run 7"),
        (["1", "--output", "file/below"], "file/below cannot be written: Not a directory\n"),
        (
            ["1", "--output", "no/such/x"],
            "no/such/x cannot be written: the folder no/such does not exist\n",
        ),
        (["--all", "no/such"], "no/such cannot be created: the folder no does not exist\n"),
        (["1", "--output", ".", "--force"], ". is not a file\n"),
        (["1", "--output", "--json"], 'Invalid value "--json" for --output. Must be a file'),
        (["1", "--output"], 'Command "export" parameter --output requires an argument'),
        (["--all", "file"], "file cannot be created: File exists\n"),
    ],
)
async def test_what_cannot_be_done_is_said_and_exits_with_2(
    attempt: Attempt, capsys: Capture, argv: Sequence[str], said: str
) -> None:
    mine("file")
    assert await midwatch("export", *argv) == 2
    out, err = capsys.readouterr()
    assert (out, err[: len(said)]) == ("", said)
    assert "no" not in names()


async def test_a_task_that_has_not_begun_has_nothing_to_export(
    journal: Journal, at: datetime, capsys: Capture
) -> None:
    assert await refused(capsys, "export", "--all", "x") == "nothing has run yet\n"
    await new_task(journal)
    assert await refused(capsys, "export", "fix") == "fix has no attempt yet\n"


async def test_an_export_names_a_row_that_cannot_be_read_and_writes_the_rest(
    journal: Journal, journal_file: Path, claim: Claim, capsys: Capture, caplog: Log
) -> None:
    await (await claim()).record(*[act()] * 300)
    with sqlite3.connect(journal_file) as raw:
        raw.execute("update entry set body = '{}' where id = (select max(id) from entry)")
    raw.close()
    assert await midwatch("export", "1", "--output", "run.jsonl") == 0
    assert "broken 'step'" in caplog.text
    assert capsys.readouterr().out == "wrote run.jsonl: 299 steps\n"
