"""The four arms: the same tasks unsupervised, with retries, with a nudge, with the full ladder."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cast import enlist, scenes
from facts import Facts, gather
from pace import PacedJournal
from scene import Scene

from midwatch_monitor.config.rules import Rules, Silence
from midwatch_monitor.config.section import Length
from midwatch_monitor.config.settings import (
    ErrorSettings,
    Mode,
    MonitorSettings,
    PlanSettings,
    PolicySettings,
    ProviderSettings,
    RunSettings,
    Sandbox,
    Settings,
)
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.records import Action, Entry
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct

REQUESTS = 80
"""Model requests that each task may take, over all its attempts."""

SCRIPT = "scripted:cast"
_CONCURRENCY = 3
_ENDLESS = 1000
_BREAK = 0.1
"""Seconds between two looks whether a simulated provider is there again."""
_OUTAGE = Length(seconds=10.0, text="10s")
"""How long a simulated provider may fail: its outages that pass are over sooner, also on a machine
that is five times slower."""


class Arm(StrEnum):
    """What is done about a task that does not go well."""

    NONE = "none"
    """Nothing: one attempt, and nobody watches."""
    RETRIES = "retries"
    """Three attempts, each told how those before it ended; nobody watches."""
    NUDGE = "nudge"
    """Detection, and always the same words to the worker; three attempts."""
    LADDER = "ladder"
    """All of it, as it is set by default; three attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """One part of the benchmark, small enough for one process."""

    arm: Arm
    seed: int
    faults: tuple[str, ...] = ()
    worker: str = SCRIPT
    supervisor: str = "none"

    @property
    def real(self) -> bool:
        """Whether a real model plays the workers."""
        return self.worker != SCRIPT


def settings_for(bill: Bill) -> Settings:
    """The configuration of an arm. Nothing in it waits for the clock where a script plays."""
    errors = ErrorSettings()
    plain = bill.arm is not Arm.LADDER
    watched = bill.arm in (Arm.NUDGE, Arm.LADDER)
    return Settings(
        mode=Mode.ACT if watched else Mode.OFF,
        # What is looked at by itself costs time; within a process everything tells of itself.
        monitor=MonitorSettings(poll_seconds=1, tick_seconds=0.5),
        rules=Rules() if bill.real else Rules(silence=Silence(rate_limited=_OUTAGE)),
        # What a worker must say before it goes on belongs to the whole, not to a nudge.
        plan=PlanSettings(require_check=not plain),
        errors=ErrorSettings(
            require_analysis=not plain,
            backoff_seconds=errors.backoff_seconds if bill.real else 0.01,
            max_backoff_seconds=errors.max_backoff_seconds if bill.real else 0.05,
        ),
        provider=_provider(bill),
        policy=_nudge_only() if bill.arm is Arm.NUDGE else PolicySettings(),
        run=RunSettings(
            concurrency=_CONCURRENCY,
            sandbox=Sandbox.AUTO if bill.real else Sandbox.OFF,
            grace_seconds=2,
        ),
    )


def _provider(bill: Bill) -> ProviderSettings:
    if bill.real:
        return ProviderSettings()
    if bill.arm is Arm.LADDER:
        return ProviderSettings(breaker_seconds=_BREAK)
    # Where nobody is called an outage without end would be sat out for hours.
    return ProviderSettings(breaker_seconds=_BREAK, max_outages=3)


def _nudge_only() -> PolicySettings:
    return PolicySettings(
        ladder=(Action.NUDGE,),
        rules={},
        table=(),
        hand_over_at=1,
        max_interventions=_ENDLESS,
        max_task_interventions=_ENDLESS,
        max_escalations=_ENDLESS,
    )


def task_file(bill: Bill, played: Sequence[Scene], folder: Path) -> TaskFile:
    """The tasks of a part, with their workspaces below `folder`."""
    supervisor = SCRIPT if bill.arm is Arm.NUDGE else bill.supervisor
    return TaskFile.model_validate(
        {
            "models": {"worker": bill.worker, "supervisor": supervisor, "planner": "none"},
            "tasks": [_task(bill, scene, folder) for scene in played],
        }
    )


def _task(bill: Bill, scene: Scene, folder: Path) -> dict[str, object]:
    return {
        "id": scene.key,
        "goal": scene.goal,
        "workspace": str(_workspace(scene, folder / scene.key)),
        "plan": [*scene.plan],
        "acceptance": [*scene.acceptance],
        "budget": {"requests": REQUESTS},
        "max_attempts": 1 if bill.arm is Arm.NONE else 3,
    }


def _workspace(scene: Scene, folder: Path) -> Path:
    for name, text in scene.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if scene.repository:
        who = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@localhost")
        for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "All")):
            subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)
    return folder


async def play(bill: Bill) -> list[Facts]:
    """Play one part to its end, with the real machinery; answers what came of each task."""
    played = scenes(bill.seed, bill.faults)
    if bill.real:
        played = tuple(scene for scene in played if not scene.outages)
    settings = settings_for(bill)
    with tempfile.TemporaryDirectory(prefix="recovery-") as name:
        folder = Path(name)
        wanted = assignments(task_file(bill, played, folder / "projects"), folder)
        async with await PacedJournal.open(folder / "journal.db") as journal:
            enlist(played, journal.answered)
            resources, jobs = await begin_run(
                journal,
                wanted,
                source="recovery",
                settings=settings,
                home=folder / "home",
                learning=RunLearning,
            )
            await conduct(resources, jobs, _ignore)
            watched = settings.mode is Mode.ACT
            return [
                await gather(journal, job.task, scene, watched=watched, scripted=not bill.real)
                for job, scene in zip(jobs, played, strict=True)
            ]


async def _ignore(entries: Sequence[Entry]) -> None:
    return
