"""Where sessions of other people's agents stand in the journal: each is a run with an attempt."""

import asyncio
import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock, Recorder, working_transition
from midwatch_monitor.records import Action, Attempt, Change, Keeper, Lifecycle, Run
from midwatch_monitor.records.work import SESSION
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.traces.session_reader import Heading
from midwatch_supervisor.present.lookup import task_state
from midwatch_tools.embedding import ONLY_WATCHED, begin_attempt_at, title_of
from midwatch_tools.journal_location import main_worktree

HOOKED = (*ONLY_WATCHED, Action.NUDGE, Action.STOP)
"""What can be done about a session whose hooks ask Midwatch."""
_SHORT = 4
"""Characters at the end of a session's id that tell it from others: some begin with the time."""
_NO_NAME = re.compile(r"[^\w.-]+")
"""What folders may be called, and tasks may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionName:
    """Which session it is."""

    agent: str
    id: str
    sub_agent: str = ""
    """What its own file is called, for a sub-agent of that session."""
    folder: str = field(default="", compare=False)
    """Where it works, for people."""

    @property
    def source(self) -> str:
        """What its run says of where it came from."""
        return f"{SESSION}{self.agent} {self.id}"

    @property
    def task(self) -> str:
        """What its task is called."""
        name = _NO_NAME.sub("-", f"{PurePath(self.folder).name or self.agent}-{self.id[-_SHORT:]}")
        return f"{name}/{self.sub_agent}" if self.sub_agent else name


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionJournal:
    """Where sessions are recorded, and by what settings they are judged."""

    journal: Journal
    settings: Settings
    bus: Bus
    clock: Clock

    async def find_recorded(self, name: SessionName) -> tuple[int, AttemptState | None]:
        """How many steps there are of a session from before, and its newest attempt.

        One that goes on after its end has a run for each time.
        """
        steps, last = 0, None
        for run in await self.journal.runs():
            if run.source != name.source:
                continue
            for task in await self.journal.tasks(run.id):
                if task.name.partition("/")[2] == name.sub_agent:
                    state = await task_state(self.journal, task)
                    steps += sum(each.last_step for each in state.attempts.values())
                    last = state.latest
        return steps, last

    async def claim(self, attempt: Attempt) -> Recorder:
        """Go on with an attempt that another process began."""
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
        """A new attempt for a session, in the run of its parent where it has one."""
        root = Path(heading.folder) if heading.folder else None
        settings, at = self.settings, self.clock()
        if run is None:
            run = await self.journal.add_run(
                source=name.source,
                settings=settings.for_run(),
                at=at,
                keeper=Keeper.MONITOR,
            )
        task = await self.journal.add_task(
            run=run.id,
            name=name.task,
            title=self.journal.masker.text(title_of(heading.prompt)) or name.task,
            spec="{}",
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
