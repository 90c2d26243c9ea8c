"""What identifies a session and its process, what the journal knows of it, and new attempts."""

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath

from midwatch_agents.hooks.client import peer_of
from midwatch_agents.left_processes import process_fields
from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock, Recorder, working_transition
from midwatch_monitor.records import (
    Action,
    Attempt,
    Change,
    Fault,
    Lifecycle,
    Run,
    SupervisedBy,
    Task,
)
from midwatch_monitor.records.work import EMBEDDED, SESSION
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.traces.session_reader import Heading
from midwatch_supervisor.present.lookup import task_state
from midwatch_tools.embedding import begin_attempt_at, title_of
from midwatch_tools.journal_location import main_worktree

_WHOLE = 12
"""Maximum length of a session's id that is shown whole."""
_SHORT = 4
"""Characters from the end of a longer id that are shown; some begin with the time."""
_NO_NAME = re.compile(r"[^\w.-]+")
"""Characters that folder names may contain and task names may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionName:
    """Identifies a session."""

    agent: str
    id: str
    sub_agent: str = ""
    """The name of a sub-agent's own file, for a sub-agent of the session."""
    folder: str = field(default="", compare=False)
    """Its working folder, as shown to people."""

    @property
    def source(self) -> str:
        """The `source` of its run."""
        return f"{SESSION}{self.agent} {self.id}"

    @classmethod
    def of(cls, run: Run) -> "SessionName":
        """Return the session that a run records."""
        return cls(agent=run.agent, id=run.source.removeprefix(f"{SESSION}{run.agent} "))

    @property
    def task(self) -> str:
        """The name of its task."""
        id = self.id if len(self.id) <= _WHOLE else self.id[-_SHORT:]
        name = _NO_NAME.sub("-", f"{PurePath(self.folder).name or self.agent}-{id}")
        return f"{name}/{self.sub_agent}" if self.sub_agent else name


_PARENT, _BEGAN = 1, 19
"""Places of these fields in `/proc/N/stat`, after the program's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine."""

    id: int
    began: str
    """When it began, since ids are used again."""

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        found = process_fields(self.id)
        return not found or found[_BEGAN] != self.began or found[0] == "Z"


def callers(connection: socket.socket) -> tuple[Process, ...]:
    """Return the ancestors of the process at the other end, nearest first; empty if unknown."""
    peer = peer_of(connection)
    return () if peer is None else tuple(_ancestors(peer[0]))


def nearest_of_both(first: tuple[Process, ...], second: tuple[Process, ...]) -> Process | None:
    """Return the nearest caller of two hooks, which is their agent, or `None`.

    A single hook does not show it, since there may be a shell in between.
    """
    return next((each for each in second if each in first), None)


def _ancestors(id: int) -> Iterator[Process]:
    while (found := process_fields(id)) and (id := int(found[_PARENT])) > 1:
        if above := process_fields(id):
            yield Process(id=id, began=above[_BEGAN])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the journal knows about a session."""

    steps: int
    newest: AttemptState | None
    """Its newest attempt."""
    damage: frozenset[str]
    """Damaged lines of its file, in words."""


def _is_for(task: Task, name: SessionName) -> bool:
    """Whether a task of a session's run is for this agent; one that continues has several."""
    return task.name.split("/")[1:2] == [name.sub_agent] * bool(name.sub_agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionJournal:
    """Where sessions are recorded, and the settings by which they are judged."""

    journal: Journal
    settings: Settings
    bus: Bus
    clock: Clock

    async def find_recorded(self, name: SessionName) -> Recorded:
        """Return what the journal knows about a session.

        A session that continues after its end has a run for each time.
        """
        steps, last, damage = 0, None, set[str]()
        for run in await self.journal.runs():
            if run.source != name.source:
                continue
            for task in await self.journal.tasks(run.id):
                if _is_for(task, name):
                    state = await task_state(self.journal, task)
                    steps += sum(each.last_step for each in state.attempts.values())
                    last = state.latest
                    async for entry in self.journal.all_entries(task=task.id, kinds=[Fault]):
                        if isinstance(entry.record, Fault):
                            damage.add(entry.record.error)
        return Recorded(steps=steps, newest=last, damage=frozenset(damage))

    async def claim(self, attempt: Attempt) -> Recorder:
        """Take over an attempt that another process began."""
        return await Recorder.claim(
            journal=self.journal,
            bus=self.bus,
            attempt=attempt,
            settings=self.settings,
            holder=f"{socket.gethostname()}:{os.getpid()}",
            clock=self.clock,
        )

    async def begin(
        self,
        name: SessionName,
        heading: Heading,
        *,
        run: Run | None,
        acts: tuple[Action, ...],
        at: datetime,
    ) -> tuple[Run, Recorder]:
        """Begin a new attempt for a session, in its parent's run if it has one."""
        root = Path(heading.folder) if heading.folder else None
        settings = self.settings
        if run is None:
            run = await self.journal.add_run(
                source=name.source,
                settings=settings.for_run(),
                at=at,
                supervised_by=SupervisedBy.MONITOR,
            )
        times = sum(_is_for(each, name) for each in await self.journal.tasks(run.id))
        task = await self.journal.add_task(
            run=run.id,
            name=f"{name.task}/{times + 1}" if times else name.task,
            title=title_of(heading.prompt) or name.task,
            spec=EMBEDDED,
            project=str(await asyncio.to_thread(main_worktree, root)) if root else "",
            at=at,
        )
        recorder = await begin_attempt_at(
            self.journal,
            task,
            name=name.agent,
            root=root,
            settings=settings,
            bus=self.bus,
            clock=self.clock,
            at=at,
        )
        begun = Change(reflect=False, lifecycle=Lifecycle.WORKING, acts=acts)
        await recorder.record(working_transition(), begun, at=at)
        return run, recorder
