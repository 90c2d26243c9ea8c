"""An attempt for an agent that Midwatch did not start: how it is begun and how it is called."""

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai.messages import TextContent, UserContent

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock, Recorder, working
from midwatch_monitor.records import Attempt, Change, Keeper, Lifecycle, Plan, PlanStep, Task
from midwatch_tools.journal_location import main_worktree
from midwatch_tools.observation import cut_line
from midwatch_tools.tools.facts import Facts

_MAX_TITLE = 120
"""Characters; the title stands in each answer of the tools that show the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """Whose attempt it is, and what it is watched by."""

    name: str
    """Of the agent."""
    title: str
    """What the run is about."""
    root: Path | None
    settings: Settings
    bus: Bus
    clock: Clock
    """That of all who share the journal."""


async def begun(journal: Journal, about: Embedding) -> tuple[Recorder, Facts]:
    """A new attempt at work, in a run of its own that monitors look after. Raises JournalError."""
    task, attempt = await _stored(journal, about)
    recorder = await Recorder.claim(
        journal=journal,
        bus=about.bus,
        attempt=attempt,
        settings=about.settings,
        holder=f"{attempt.node}:{os.getpid()}",
        clock=about.clock,
    )
    plan = Plan(steps=(PlanStep(title=about.title),))
    await recorder.record(working(), plan, _circumstances(about.settings, plan))
    return recorder, Facts(journal=journal, task=task, attempt=attempt)


async def _stored(journal: Journal, about: Embedding) -> tuple[Task, Attempt]:
    at = about.clock()
    run = await journal.add_run(
        source="embedded",
        settings=about.settings.model_dump_json(),
        at=at,
        keeper=Keeper.MONITOR,
    )
    project = str(await asyncio.to_thread(main_worktree, about.root or Path.cwd()))
    task = await journal.add_task(
        run=run.id, name=about.name, title=about.title, spec="{}", project=project, at=at
    )
    attempt = await journal.add_attempt(
        task=task.id,
        number=1,
        worker=about.name,
        model="",
        node=socket.gethostname(),
        workspace=str(about.root or ""),
        at=at,
    )
    return task, attempt


def _circumstances(settings: Settings, plan: Plan) -> Change:
    return Change(
        reflect=True,
        reflect_every=settings.reflect.remind_every,
        plan_step=1,
        plan_steps=len(plan.steps),
        revision=0,
        lifecycle=Lifecycle.WORKING,
    )


def title_of(prompt: str | Sequence[UserContent] | None) -> str:
    """What a run is about: the first line of the text in its prompt, pictures left out."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    lines = (line.strip() for part in parts for line in _text(part).splitlines())
    return cut_line(next(filter(None, lines), ""), _MAX_TITLE)


def _text(part: UserContent) -> str:
    return part if isinstance(part, str) else part.content if isinstance(part, TextContent) else ""
