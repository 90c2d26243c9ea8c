"""Attempts of agents that Midwatch did not start."""

import asyncio
import os
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path

from pydantic_ai.messages import TextContent, UserContent

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock, Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Change,
    Lifecycle,
    Plan,
    PlanStep,
    Run,
    SupervisedBy,
    Task,
)
from midwatch_monitor.records.work import EMBEDDED
from midwatch_tools.journal_location import main_worktree
from midwatch_tools.observation import cut_line
from midwatch_tools.tools.facts import Facts

ONLY_WATCHED = (Action.OBSERVE, Action.ASK_OPERATOR)
"""Actions possible for an agent that receives no messages."""
_SPOKEN_TO = (*ONLY_WATCHED, Action.NUDGE, Action.REPLAN, Action.PAUSE, Action.RESUME)
"""Actions possible for an agent in somebody else's program: it can get messages but not a restart.
"""
_MAX_TITLE = 120
"""Longest title, in characters: it is in every answer of the tools that show the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A running attempt of an agent that Midwatch did not start."""

    where: str
    """The journal's path or URL."""
    run: Run
    task: Task
    recorder: Recorder
    facts: Facts
    parent: "Embedded | None" = None
    """The attempt whose tool runs this agent."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Numbers for the names of sub-agents."""

    @staticmethod
    def around(where: str) -> "Embedded | None":
        """Return the attempt that the current code runs in, if that journal records it."""
        found = _CURRENT.get()
        return found if found is not None and found.where == where else None


_CURRENT: ContextVar[Embedded | None] = ContextVar("midwatch_embedded", default=None)


@contextmanager
def parent_of_run(embedded: Embedded) -> Generator[None]:
    """Make agents that run in this block sub-agents of that attempt."""
    token = _CURRENT.set(embedded)
    try:
        yield
    finally:
        _CURRENT.reset(token)


async def begin_attempt(
    journal: Journal,
    *,
    where: str,
    parent: Embedded | None,
    name: str,
    title: str,
    root: Path | None,
    settings: Settings,
    bus: Bus,
    clock: Clock,
    reflects: bool,
    supervised: bool,
) -> Embedded:
    """Begin an attempt in state `working`. Raises JournalError.

    It has its own run, watched by a monitor unless it is `supervised` in this process; a sub-agent
    gets a task in its parent's run.

    Args:
        journal: The journal at `where`.
        where: The journal's path or URL.
        parent: The attempt whose tool runs the agent.
        name: The agent's name.
        title: What its run is about.
        root: The folder it works on.
        settings: The settings in force.
        bus: Where hints are published.
        clock: The clock shared by all users of the journal.
        reflects: Whether the agent is offered `reflect`.
        supervised: Whether alerts are answered in this process.
    """
    project = str(await asyncio.to_thread(main_worktree, root or Path.cwd()))
    if parent is None:
        supervised_by = SupervisedBy.PROCESS if supervised else SupervisedBy.MONITOR
        run = await journal.add_run(
            source="embedded", settings=settings.for_run(), at=clock(), supervised_by=supervised_by
        )
        called = name
    else:
        run, called = parent.run, f"{parent.task.name}/{next(parent.numbers)}-{name}"
    task = await journal.add_task(
        run=run.id, name=called, title=title, spec=EMBEDDED, project=project, at=clock()
    )
    recorder = await begin_attempt_at(
        journal, task, name=name, root=root, settings=settings, bus=bus, clock=clock, at=clock()
    )
    circumstances = Change(
        reflect=reflects,
        reflect_every=settings.reflect.remind_every if reflects else 0,
        plan_step=1,
        plan_steps=1,
        revision=0,
        lifecycle=Lifecycle.WORKING,
        acts=_SPOKEN_TO if reflects else ONLY_WATCHED,
    )
    await recorder.record(working_transition(), Plan(steps=(PlanStep(title=title),)), circumstances)
    return Embedded(
        where=where,
        run=run,
        task=task,
        recorder=recorder,
        facts=Facts(journal=journal, task=task, attempt=recorder.attempt),
        parent=parent,
    )


async def begin_attempt_at(
    journal: Journal,
    task: Task,
    *,
    name: str,
    root: Path | None,
    settings: Settings,
    bus: Bus,
    clock: Clock,
    at: datetime,
) -> Recorder:
    """Begin the first attempt at a task, by the worker of that name. Raises JournalError."""
    node = socket.gethostname()
    attempt = await journal.add_attempt(
        task=task.id,
        number=1,
        worker=name,
        model="",
        node=node,
        workspace=str(root or ""),
        at=at,
    )
    return await Recorder.claim(
        journal=journal,
        bus=bus,
        attempt=attempt,
        settings=settings,
        holder=f"{node}:{os.getpid()}",
        clock=clock,
    )


def title_of(prompt: str | Sequence[UserContent] | None) -> str:
    """Return what a run is about: the first line of text in its prompt."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    lines = (line.strip() for part in parts for line in _text(part).splitlines())
    return cut_line(next(filter(None, lines), ""), _MAX_TITLE)


def _text(part: UserContent) -> str:
    return part if isinstance(part, str) else part.content if isinstance(part, TextContent) else ""
