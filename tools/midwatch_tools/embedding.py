"""An attempt for an agent that Midwatch did not start: how it is begun and how it is called."""

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from pydantic_ai.messages import TextContent, UserContent

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock, Recorder, working
from midwatch_monitor.records import Change, Keeper, Lifecycle, Plan, PlanStep
from midwatch_tools.journal_location import main_worktree
from midwatch_tools.observation import cut_line
from midwatch_tools.tools.facts import Facts

_MAX_TITLE = 120
"""Characters; the title stands in each answer of the tools that show the plan."""


async def begin_attempt(
    journal: Journal,
    *,
    name: str,
    title: str,
    root: Path | None,
    settings: Settings,
    bus: Bus,
    clock: Clock,
) -> tuple[Recorder, Facts]:
    """A new attempt at work, in a run of its own that monitors look after. Raises JournalError.

    `name` is that of the agent, `title` what its run is about, `clock` that of all who share the
    journal.
    """
    at, node = clock(), socket.gethostname()
    project = str(await asyncio.to_thread(main_worktree, root or Path.cwd()))
    run = await journal.add_run(
        source="embedded", settings=settings.model_dump_json(), at=at, keeper=Keeper.MONITOR
    )
    task = await journal.add_task(
        run=run.id, name=name, title=title, spec="{}", project=project, at=at
    )
    attempt = await journal.add_attempt(
        task=task.id,
        number=1,
        worker=name,
        model="",
        node=node,
        workspace=str(root or ""),
        at=at,
    )
    recorder = await Recorder.claim(
        journal=journal,
        bus=bus,
        attempt=attempt,
        settings=settings,
        holder=f"{node}:{os.getpid()}",
        clock=clock,
    )
    circumstances = Change(
        reflect=True,
        reflect_every=settings.reflect.remind_every,
        plan_step=1,
        plan_steps=1,
        revision=0,
        lifecycle=Lifecycle.WORKING,
    )
    await recorder.record(working(), Plan(steps=(PlanStep(title=title),)), circumstances)
    return recorder, Facts(journal=journal, task=task, attempt=attempt)


def title_of(prompt: str | Sequence[UserContent] | None) -> str:
    """What a run is about: the first line of the text in its prompt, pictures left out."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    lines = (line.strip() for part in parts for line in _text(part).splitlines())
    return cut_line(next(filter(None, lines), ""), _MAX_TITLE)


def _text(part: UserContent) -> str:
    return part if isinstance(part, str) else part.content if isinstance(part, TextContent) else ""
