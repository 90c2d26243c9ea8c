"""`midwatch export`: what time and other attempts showed live is shown by the traces too."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Activity,
    Alert,
    Attempt,
    AttemptTransition,
    Change,
    Edit,
    Ending,
    Lifecycle,
    Plan,
    PlanStep,
    Step,
    StepKind,
)
from midwatch_stage.command import midwatch, new_attempt, new_task

Capture = pytest.CaptureFixture[str]
Claim = Callable[..., Awaitable[Recorder]]
Fired = tuple[str, str, str, str, int]

DONE = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)
STUCK = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(  # pyright: ignore[reportUnusedFunction]
    tmp_path: Path, journal_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))


@pytest.fixture
def claim(journal: Journal, bus: LocalBus) -> Claim:  # its clock goes, unlike the other's
    async def take(attempt: Attempt, settings: Settings, clock: "Clock") -> Recorder:
        return await Recorder.claim(
            journal=journal, bus=bus, attempt=attempt, settings=settings, holder="t", clock=clock
        )

    return take


def act(number: int, path: str = "") -> Step:
    edits = (Edit(path=path, digest=f"{number}"),) if path else ()
    return Step(number=0, kind=StepKind.TOOL, tool="t", args=f"{number}", edits=edits)


async def fired(journal: Journal, **traces: int) -> list[Fired]:
    """The alerts as they fired or rose live, by the name of the trace."""
    entries = [
        (name, entry.record)
        for name, attempt in traces.items()
        for entry in await journal.entries(attempt=attempt, kinds=[Alert])
    ]
    return sorted(
        (name, a.key.rule, a.key.subject, a.severity.value, a.step)
        for name, a in entries
        if isinstance(a, Alert) and a.firing
    )


def told(out: str) -> list[Fired]:
    """The same of what `midwatch replay --json` prints."""
    alerts = [line for line in map(json.loads, out.splitlines()) if line["type"] == "alert"]
    keys = ("rule", "subject", "severity", "step")
    return sorted((Path(a["trace"]).stem, *(a[key] for key in keys)) for a in alerts)


class Clock:
    """Minutes after a beginning."""

    def __init__(self, begin: datetime) -> None:
        self.begin, self.minutes = begin, 0.0

    def __call__(self) -> datetime:
        return self.begin + timedelta(minutes=self.minutes)


def watch(journal: Journal, bus: LocalBus, settings: Settings, clock: Clock) -> Monitor:
    return Monitor(journal=journal, bus=bus, settings=settings, run=1, clock=clock)


def configured() -> str:
    """A configuration file with the same thresholds."""
    path = Path("own.yaml")
    path.write_text("rules: {silence: {cooldown: 2, unmoved: 100m}}")
    return str(path)


async def test_what_only_time_shows_is_shown_by_the_trace_too(
    journal: Journal, bus: LocalBus, attempt: Attempt, claim: Claim, at: datetime, capsys: Capture,
) -> None:  # fmt: skip
    settings = Settings.model_validate({"rules": {"silence": {"cooldown": 2, "unmoved": "100m"}}})
    clock = Clock(at)
    recorder = await claim(attempt, settings, clock)
    monitor = watch(journal, bus, settings, clock)
    happens: dict[int, Step | Change] = {
        0: Change(lifecycle=Lifecycle.WORKING, activity=Activity.MODEL),
        **{minute: act(minute) for minute in (5, 17, 29, 30, 31, 45, 60)},
        61: Change(lifecycle=Lifecycle.INPUT_REQUIRED, activity=Activity.WAITING),
        200: Change(lifecycle=Lifecycle.WORKING, activity=Activity.COMMAND),
        **{minute: act(minute) for minute in (229, 258, 287, 316)},
    }
    for minute in range(400):
        clock.minutes = minute
        if minute in happens:
            await recorder.record(happens[minute])
        await monitor.look()
    await recorder.end(STUCK)
    await monitor.look()
    live = await fired(journal, run=1)
    assert sorted((step, subject) for *_, subject, _, step in live) == [
        (1, ""),
        (5, ""),
        (10, "no movement"),
        (11, ""),
    ]
    assert await midwatch("export", "1", "--output", "run.jsonl") == 0
    capsys.readouterr()
    assert await midwatch("replay", "run.jsonl", "--config", configured(), "--json") == 0
    assert told(capsys.readouterr().out) == live


EDITS: list[tuple[int, Step | Plan]] = [
    *((1, act(1, "a")), (2, act(1, "b")), (2, act(2, "a")), (1, act(2, "c"))),
    (1, Plan(steps=(PlanStep(title="mend", files=("b",)),))),
    (2, Plan(steps=(PlanStep(title="mend", files=("d", "c")),))),
    (2, Plan(steps=(PlanStep(title="mend", files=("d",)),))),
    (1, act(3, "b")),
]
"""Who does, or means to do, what, minute by minute."""


async def test_attempts_that_were_in_conflict_are_so_when_replayed_together(
    journal: Journal, bus: LocalBus, attempt: Attempt, claim: Claim, at: datetime, capsys: Capture
) -> None:
    clock = Clock(at)
    monitor = watch(journal, bus, Settings(), clock)
    recorders: dict[int, Recorder] = {}
    for number in (1, 2):
        task = await new_task(journal, f"t{number}", run=1, spec='{"workspace": "/project"}')
        recorders[number] = await claim(await new_attempt(journal, task), Settings(), clock)
    for minute, (number, what) in enumerate(EDITS):
        clock.minutes = minute
        await recorders[number].record(what)
        await monitor.look()
    for recorder in recorders.values():
        clock.minutes += 1
        await recorder.end(DONE)
        await monitor.look()
    live = await fired(journal, **{"t1-1": 2, "t2-1": 3})
    assert live == [
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
    capsys.readouterr()
    assert await midwatch("replay", "traces", "--together", "--json") == 0
    assert told(capsys.readouterr().out) == live
