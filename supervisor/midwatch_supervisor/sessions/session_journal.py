"""Where sessions are recorded: what is known of them, and new attempts."""

import asyncio
import os
import socket
from dataclasses import dataclass
from pathlib import Path

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
)
from midwatch_monitor.records.work import EMBEDDED
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.traces.session_reader import Heading
from midwatch_supervisor.present.lookup import task_state
from midwatch_supervisor.sessions.session_name import SessionName
from midwatch_tools.embedding import begin_attempt_at, title_of
from midwatch_tools.journal_location import main_worktree


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the journal knows about a session."""

    steps: int
    newest: AttemptState | None
    """Its newest attempt."""
    damage: frozenset[str]
    """Damaged lines of its file, in words."""


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
                if task.name.partition("/")[2] == name.sub_agent:
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
        self, name: SessionName, heading: Heading, *, run: Run | None, acts: tuple[Action, ...]
    ) -> tuple[Run, Recorder]:
        """Begin a new attempt for a session, in its parent's run if it has one."""
        root = Path(heading.folder) if heading.folder else None
        settings, at = self.settings, self.clock()
        if run is None:
            run = await self.journal.add_run(
                source=name.source,
                settings=settings.for_run(),
                at=at,
                supervised_by=SupervisedBy.MONITOR,
            )
        task = await self.journal.add_task(
            run=run.id,
            name=name.task,
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
        )
        begun = Change(reflect=False, lifecycle=Lifecycle.WORKING, acts=acts)
        await recorder.record(working_transition(), begun)
        return run, recorder
