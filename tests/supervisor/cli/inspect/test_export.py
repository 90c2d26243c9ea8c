"""`midwatch export`: what was live is replayed from its trace with the same alerts."""

import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.run import AgentRunResult

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import ReflectSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.replay.replay import AlertLine, replay
from midwatch_monitor.traces import open_trace
from midwatch_tests import factories as make
from midwatch_tests.command import ask, midwatch, new_attempt, new_task, printed, refused
from midwatch_tests.reading import records_of

Capture = pytest.CaptureFixture[str]
Claim = Callable[..., Awaitable[Recorder]]
Fired = tuple[str, str, str, str, int]
Perform = Callable[..., Coroutine[Any, Any, AgentRunResult[str]]]

SETTINGS = Settings.model_validate(
    {
        "monitor": {"poll_seconds": 0.01},
        "rules": {
            "repeated_edits": {"notice_after": 3, "workers": {"coder": {"warn_after": 4}}},
            "low_confidence": {"hold": 2},
            "missed_checkpoint": {"cooldown": "2s"},
        },
    }
)
UNMOVED = {"rules": {"silence": {"cooldown": 2, "unmoved": "100m"}}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, journal_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))


async def events_for_rules(journal: Journal) -> list[r.Event]:
    """What the rules were told of the first attempt."""
    records = await records_of(journal, object, 1)
    return [each for each in records if isinstance(each, r.Step | r.Change)]


async def live_alerts(journal: Journal, **traces: int) -> list[Fired]:
    """The alerts as they fired or rose live, by the name of the trace."""
    return [
        (name, a.key.rule, a.key.subject, a.severity.value, a.step)
        for name, attempt in traces.items()
        for a in await records_of(journal, r.Alert, attempt)
        if a.firing
    ]


def replayed_alerts(settings: Settings = SETTINGS) -> list[Fired]:
    """The same of the trace that was exported."""
    lines = replay(Path("run.jsonl"), settings, worker="coder")
    return [
        ("run", a.rule, a.subject, a.severity.value, a.step)
        for a in lines
        if isinstance(a, AlertLine)
    ]


async def replayed_by_command(capsys: Capture, *argv: str) -> list[Fired]:
    """The same of what `midwatch replay --json` prints, in order."""
    alerts = [line for line in await ask(capsys, "replay", *argv) if line["type"] == "alert"]
    keys = ("rule", "subject", "severity", "step")
    return sorted((Path(a["trace"]).stem, *(a[key] for key in keys)) for a in alerts)


async def prove_the_round_trip(journal: Journal, rules: set[str]) -> None:
    """The only attempt, exported and replayed, is what it was; these rules at least fired."""
    assert await midwatch("export", "1", "--output", "run.jsonl") == 0
    live = await live_alerts(journal, run=1)
    assert {rule for _, rule, *_ in live} >= rules
    assert replayed_alerts() == live
    assert list(open_trace(Path("run.jsonl"))) == await events_for_rules(journal)


def act(output: str = "ü\u2028\0") -> r.Step:
    return r.Step(number=0, kind=r.StepKind.TOOL, tool="t", output=output)


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
    turns = [reflecting(40, 80), *(putting(f"{n}") for n in range(3)), running("b.py broken")]
    turns += [reflecting(40, 50), *(putting(f"{n}") for n in range(3)), reflecting(40, 20)]
    turns += [reflecting(41, 20, "pivot"), reflecting(41, 25), putting("7", "8")]
    turns += [reflecting(42, 10, "escalate"), *[running("b.py x")] * 3]
    await perform(*turns, settings=SETTINGS)
    rules = {"declining_confidence", "explicit_escalation", "low_confidence"}
    await prove_the_round_trip(journal, rules | {"repeated_edits", "stalled_progress"})


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


async def test_the_interval_that_a_trace_names_wins_over_the_configured_one(
    journal: Journal, claim: Claim
) -> None:
    changes = working_transition(), r.Change(reflect=True, reflect_every=1)
    await (await claim()).record(*changes, *[act()] * 6)
    live = await live_alerts(journal, run=1)
    assert "missed_checkpoint" in {rule for _, rule, *_ in live}
    await midwatch("export", "1", "--output", "run.jsonl")
    assert replayed_alerts(Settings(reflect=ReflectSettings(remind_every=0))) == live


@pytest.mark.parametrize("words", [[], ["--output", "-"], ["--output=-"]])
async def test_a_trace_goes_to_stdout_as_utf_8_line_by_line(
    claim: Claim, capsysbinary: pytest.CaptureFixture[bytes], words: Sequence[str]
) -> None:
    recorder = await claim()
    await recorder.record(working_transition(), r.Change(reflect=True), act())
    await recorder.end(make.ended())
    assert await midwatch("export", "fix", *words) == 0
    out, err = capsysbinary.readouterr()
    assert (out.count(b"\n"), err, "-" in names()) == (3, b"", False)
    state, step, end = (json.loads(line) for line in out.decode().splitlines())
    assert (state["kind"], state["reflect"]) == ("state", True)
    assert (step["step"], step["edits"], step["output"]) == (1, [], "ü\u2028\0")
    assert end == {"kind": "state", "at": "2026-11-21T20:00:00Z", "lifecycle": "completed"}


async def test_a_long_attempt_is_written_whole_but_for_a_row_that_cannot_be_read(
    journal: Journal,
    journal_file: Path,
    claim: Claim,
    capsys: Capture,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await (await claim()).record(*[act()] * 300)
    export = ("export", "fix#1", "--output", "run.jsonl")
    assert await printed(capsys, *export) == "wrote run.jsonl: 300 steps\n"
    assert list(open_trace(Path("run.jsonl"))) == await events_for_rules(journal)
    with sqlite3.connect(journal_file) as raw:
        raw.execute("update entry set body = '{}' where id = (select max(id) from entry)")
    raw.close()
    assert await printed(capsys, *export, "--force") == "wrote run.jsonl: 299 steps\n"
    assert "broken 'step'" in caplog.text


@pytest.fixture
async def second(journal: Journal, attempt: r.Attempt) -> r.Attempt:
    """The second attempt at the task."""
    return await new_attempt(journal, await journal.task(attempt.task), 2)


@pytest.mark.parametrize(("id", "number"), [("fix", 2), ("fix#1", 1), ("1", 1)])
async def test_an_attempt_is_named_as_elsewhere_and_a_task_means_its_latest(
    second: r.Attempt, capsys: Capture, id: str, number: int
) -> None:
    (said,) = await ask(capsys, "export", id, "--output", "a.jsonl")
    assert said == {"type": "export", "file": "a.jsonl", "attempt": number, "steps": 0}


async def test_every_attempt_of_a_run_has_a_file_of_its_own_whatever_an_agent_calls_its_task(
    journal: Journal, second: r.Attempt, claim: Claim, capsys: Capture
) -> None:
    await (await claim()).record(act())
    await (await claim(of=second)).record(act(), act())
    await new_attempt(journal, await new_task(journal, "../a b", run=1))
    assert (await printed(capsys, "export", "--all", "traces")).splitlines() == [
        "wrote traces/fix-1.jsonl: 1 step",
        "wrote traces/fix-2.jsonl: 2 steps",
        "wrote traces/.._a_b-1.jsonl: 0 steps",
    ]
    assert names("traces") == [".._a_b-1.jsonl", "fix-1.jsonl", "fix-2.jsonl"]


async def test_nothing_is_overwritten_unless_forced(second: r.Attempt, capsys: Capture) -> None:
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
    attempt: r.Attempt, capsys: Capture, argv: Sequence[str], said: str
) -> None:
    mine("file")
    assert await midwatch("export", *argv) == 2
    out, err = capsys.readouterr()
    assert (out, err[: len(said)]) == ("", said)
    assert "no" not in names()


async def test_a_task_that_has_not_begun_has_nothing_to_export(
    journal: Journal, capsys: Capture
) -> None:
    assert await refused(capsys, "export", "--all", "x") == "nothing has run yet\n"
    await new_task(journal)
    assert await refused(capsys, "export", "fix") == "fix has no attempt yet\n"


class Live:
    """A monitor and its recorders, by a clock that shows the minute that a test says."""

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self.minute = 0
        self._all: dict[str, Any] = {"journal": journal, "bus": LocalBus(), "settings": settings}
        self._all["clock"] = lambda: make.after(minutes=self.minute)
        self.monitor = Monitor(**self._all, run=1)

    async def claim(self, attempt: r.Attempt) -> Recorder:
        return await Recorder.claim(**self._all, attempt=attempt, holder="t")


def edit(number: int, path: str = "") -> r.Step:
    edits = (make.edit(path, f"{number}"),) if path else ()
    return r.Step(number=0, kind=r.StepKind.TOOL, tool="t", args=f"{number}", edits=edits)


async def test_what_only_time_shows_is_shown_by_the_trace_too(
    journal: Journal, attempt: r.Attempt, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "own.yaml").write_text(json.dumps(UNMOVED))
    live = Live(journal, Settings.model_validate(UNMOVED))
    recorder = await live.claim(attempt)
    happens: dict[int, r.Step | r.Change] = {
        0: r.Change(lifecycle=r.Lifecycle.WORKING, activity=r.Activity.MODEL),
        **{minute: edit(minute) for minute in (5, 17, 29, 30, 31, 45, 60)},
        61: r.Change(lifecycle=r.Lifecycle.INPUT_REQUIRED, activity=r.Activity.WAITING),
        200: r.Change(lifecycle=r.Lifecycle.WORKING, activity=r.Activity.COMMAND),
        **{minute: edit(minute) for minute in (229, 258, 287, 316)},
    }
    for minute in range(400):
        live.minute = minute
        if minute in happens:
            await recorder.record(happens[minute])
        await live.monitor.look()
    await recorder.end(make.ended(r.Ending.STUCK))
    await live.monitor.look()
    shown = sorted(await live_alerts(journal, run=1))
    assert sorted((step, subject) for *_, subject, _, step in shown) == [
        (1, ""),
        (5, ""),
        (10, "no movement"),
        (11, ""),
    ]
    assert await midwatch("export", "1", "--output", "run.jsonl") == 0
    assert await replayed_by_command(capsys, "run.jsonl", "--config", "own.yaml") == shown


EDITS: list[tuple[int, r.Step | r.Plan]] = [
    *((1, edit(1, "a")), (2, edit(1, "b")), (2, edit(2, "a")), (1, edit(2, "c"))),
    (1, r.Plan(steps=(r.PlanStep(title="mend", files=("b",)),))),
    (2, r.Plan(steps=(r.PlanStep(title="mend", files=("d", "c")),))),
    (2, r.Plan(steps=(r.PlanStep(title="mend", files=("d",)),))),
    (1, edit(3, "b")),
]
"""Who does, or means to do, what, minute by minute."""


async def test_attempts_that_were_in_conflict_are_so_when_replayed_together(
    journal: Journal, attempt: r.Attempt, capsys: Capture
) -> None:
    live = Live(journal, Settings())
    recorders: dict[int, Recorder] = {}
    for number in (1, 2):
        task = await new_task(journal, f"t{number}", run=1, spec='{"workspace": "/project"}')
        recorders[number] = await live.claim(await new_attempt(journal, task))
    for live.minute, (number, what) in enumerate(EDITS):
        await recorders[number].record(what)
        await live.monitor.look()
    for recorder in recorders.values():
        live.minute += 1
        await recorder.end(make.ended())
        await live.monitor.look()
    shown = sorted(await live_alerts(journal, **{"t1-1": 2, "t2-1": 3}))
    assert shown == [
        ("t1-1", "workspace_conflict", "a", "warning", 1),
        ("t1-1", "workspace_conflict", "b", "notice", 2),
        ("t1-1", "workspace_conflict", "b", "warning", 3),
        ("t1-1", "workspace_conflict", "c", "notice", 2),
        ("t2-1", "workspace_conflict", "a", "warning", 2),
        ("t2-1", "workspace_conflict", "b", "notice", 2),
        ("t2-1", "workspace_conflict", "b", "warning", 2),
        ("t2-1", "workspace_conflict", "c", "notice", 2),
    ]
    await midwatch("export", "--all", "traces")
    assert await replayed_by_command(capsys, "traces", "--together") == shown
