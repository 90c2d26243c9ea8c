"""One session of an agent that somebody else started, as it is watched."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from midwatch_agents.hooks.adapter import HookEvent, HookKind
from midwatch_agents.hooks.events import answer, as_lines, can_stop, passes_guidance
from midwatch_monitor.budget import spend
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    Alert,
    AttemptTransition,
    Budget,
    Change,
    Ending,
    Event,
    Fault,
    Lifecycle,
    Record,
    Run,
    Step,
    Task,
    TaskTransition,
)
from midwatch_monitor.traces.foreign import Item, Node
from midwatch_monitor.traces.json_stream import Damage
from midwatch_monitor.traces.session_reader import SessionReader
from midwatch_monitor.traces.tail import Tail
from midwatch_supervisor.run.attempt_end import Ended, ordered
from midwatch_supervisor.sessions.session_journal import HOOKED, SessionJournal, SessionName
from midwatch_tools.data_blocks import code
from midwatch_tools.embedding import ONLY_WATCHED
from midwatch_tools.inbox import Inbox, Numbered, expired, may_be_late, stamp, too_late
from midwatch_tools.instructions import spoken

log = logging.getLogger(__name__)

_AT_ONCE = 200
"""Events that are committed together where many are taken in."""
_MOST_STOPS = 3
"""How often a session is told to stop: one agent asked 223 times in 30 s when it was refused."""
_OBEYED = timedelta(seconds=10)
"""How long one that was told to stop must be silent to count as stopped."""
_LEFT = timedelta(hours=1)
"""How long a session that waits for its person is taken to go on."""
_GONE = timedelta(days=1)
"""How long one that is at work is: its process may have been killed, and nobody says so."""
_MAX_FAULTS = 20
"""Damaged lines of one session that are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a hook is answered, and what stands in the journal once the agent has it."""

    text: str = ""
    records: tuple[Record, ...] = ()
    ended: Ended | None = None


_NOTHING = Reply()


class ForeignSession:
    """A session, read from its file or told by its hooks, and recorded as an attempt.

    The file is the better source: it has what hooks do not tell. What hooks tell of calls is taken
    only where there is no file.
    """

    def __init__(
        self,
        name: SessionName,
        *,
        tail: Tail | None,
        reader: SessionReader,
        journal: SessionJournal,
        parent: "ForeignSession | None" = None,
    ) -> None:
        self.name = name
        self.reader = reader
        self.heard_at = journal.clock()
        """When something new was last read or told."""
        self._tail = tail
        self._journal = journal
        self._parent = parent
        self._lock = asyncio.Lock()
        self._run: Run | None = None
        self._recorder: Recorder | None = None
        self._inbox: Inbox | None = None
        self._code = code()
        self._acts = ONLY_WATCHED
        self._read_steps = 0
        """Steps that were read so far, also those that were known before."""
        self._known_steps: int | None = None
        """Those that the journal has; `None` before it was asked."""
        self._waits = False
        """Whether it waits for its person."""
        self._budget = Budget()
        self._requests = 0
        self._faults = 0
        self._stop: Ended | None = None
        """What it was told to end with, until it does."""
        self._stops = 0

    # -- what it does --------------------------------------------------------------------------

    async def read(self) -> bool:
        """Take in what is new in its file; whether there was anything. Raises OSError for a file
        that may not be read, and JournalError.
        """
        async with self._lock:
            return await self._read()

    async def _read(self) -> bool:
        read = False
        while self._tail is not None and (items := await asyncio.to_thread(self._tail.read)):
            read = True
            await self._take(items)
        return read

    async def tell(self, lines: Iterable[Node]) -> None:
        """Take in what its program tells of itself, in order. Raises JournalError."""
        async with self._lock:
            await self._take([Item(number=0, node=line) for line in lines])

    async def _take(self, items: Sequence[Item | Damage]) -> None:
        events, faults = list[Event](), list[Record]()
        for item in items:
            if isinstance(item, Item):
                events += self.reader.take(item.node)
            elif self._faults < _MAX_FAULTS:
                self._faults += 1
                error = f"line {item.line}: {item.problem}"
                faults.append(Fault(part="session file", error=error))
        await self._store(events, faults)

    async def _store(self, events: Sequence[Event], faults: Sequence[Record] = ()) -> None:
        if self._known_steps is None:
            await self._recall()
        fresh = [each for each in events if self._is_new(each)]
        if any(isinstance(each, Step) for each in fresh):
            await self._begin()
        if self._recorder is None or not (fresh or faults):
            return
        self.heard_at = self._journal.clock()
        for at in range(0, len(fresh), _AT_ONCE):
            part = fresh[at : at + _AT_ONCE]
            await self._recorder.record(*part, *self._spent(part))
        await self._recorder.record(*faults)
        if self._stop is not None and self._waits:
            await self._end(self._stop)

    def _is_new(self, event: Event) -> bool:
        if isinstance(event, Step):
            self._read_steps += 1
            return self._read_steps > (self._known_steps or 0)
        if event.lifecycle is None:
            return True
        changed = self._waits is not (event.lifecycle is Lifecycle.INPUT_REQUIRED)
        self._waits ^= changed
        return changed and self._read_steps >= (self._known_steps or 0)

    def _spent(self, events: Sequence[Event]) -> tuple[Change, ...]:
        """What some steps took: tokens and dollars as the file says them."""
        steps = [each for each in events if isinstance(each, Step)]
        if not steps:
            return ()
        requests = {each.request for each in steps if each.request > self._requests}
        self._requests = max(self._requests, *requests, 0)
        tokens = sum(each.tokens for each in steps)
        cost = sum(each.cost_usd for each in steps)
        self._budget = spend(self._budget, requests=len(requests), tokens=tokens, cost_usd=cost)
        return (Change(budget=self._budget),)

    def follow(self, tail: Tail, reader: SessionReader) -> None:
        """Read its file from here on, which was not there when its hooks spoke first."""
        if not self._read_steps:
            self._tail, self.reader = tail, reader
        elif type(reader) is type(self.reader):  # which knows the calls that hooks told it of
            self._tail = tail

    # -- its attempt ---------------------------------------------------------------------------

    async def _recall(self) -> None:
        """Go on where the journal left it."""
        found = await self._journal.recorded(self.name)
        self._known_steps = found.steps
        if self._tail is None:  # hooks tell what is new; a file tells all of it once more
            self._read_steps = found.steps
        state = found.last
        if state is None or state.over:
            return
        self._recorder = await self._journal.claim(state)
        self._run = await self._journal.journal.run((await self._task()).run)
        self._waits, self._budget = state.idle, state.budget
        self._acts = state.acts or ONLY_WATCHED
        self._open_inbox(self._recorder)

    async def _task(self) -> Task:
        assert self._recorder is not None
        return await self._journal.journal.task(self._recorder.attempt.task)

    async def run(self) -> Run:
        """The run that it is recorded in, begun if it is not."""
        await self._begin()
        assert self._run is not None
        return self._run

    async def _begin(self) -> None:
        if self._recorder is not None:
            return
        run = None if self._parent is None else await self._parent.run()
        self._run, self._recorder = await self._journal.begin(
            self.name, self.reader.heading, run=run, acts=self._acts
        )
        self._open_inbox(self._recorder)

    def _open_inbox(self, recorder: Recorder) -> None:
        poll = self._journal.settings.monitor.poll_seconds
        self._inbox = Inbox(
            self._journal.journal, self._journal.bus, recorder.attempt.id, poll_seconds=poll
        )

    async def _end(self, ended: Ended) -> None:
        if self._recorder is not None:
            reason, ending = ended.reason, ended.ending
            state = AttemptTransition(lifecycle=ended.lifecycle, reason=reason, ending=ending)
            await self._recorder.end(
                state, TaskTransition(lifecycle=ended.lifecycle, reason=reason)
            )
        self._recorder = self._inbox = self._stop = None
        self._budget, self._stops = Budget(), 0
        self._known_steps = self._read_steps

    async def settle(self, now: datetime) -> None:
        """Do what only time shows: say whom nobody reaches, and end what nobody goes on with."""
        async with self._lock:
            if self._recorder is None:
                return
            await self._recorder.record(*await self._called())
            ended, after = self._silent_end()
            if now - self.heard_at >= after:
                await self._end(ended)

    def _silent_end(self) -> tuple[Ended, timedelta]:
        """How it ends if nothing is heard of it any more, and after how long."""
        if self._stop is not None:
            return self._stop, _OBEYED
        if self._waits:
            return Ended(ending=Ending.DONE, reason="nobody went on with it for an hour"), _LEFT
        return Ended(ending=Ending.ERROR, reason="nothing was heard of it for a day"), _GONE

    async def _called(self) -> list[Record]:
        """The stamps of questions to a person: nothing waits for the answer here."""
        assert self._inbox is not None
        assert self._recorder is not None
        asked = [id for id, each in await self._inbox.due() if each.action is Action.ASK_OPERATOR]
        return [stamp(id, self._recorder.last_step) for id in asked]

    # -- its hooks -----------------------------------------------------------------------------

    async def hear(self, event: HookEvent) -> Reply:
        """Take in what a hook tells; what it is to be answered. Raises JournalError."""
        async with self._lock:
            if not await self._read() and self._tail is None:
                items = [Item(number=0, node=line) for line in as_lines(event)]
                await self._take(items)
            await self._note(event)
            return await self._reply(event)

    async def _note(self, event: HookEvent) -> None:
        """What only a hook tells, or tells sooner."""
        self.heard_at = self._journal.clock()
        if self._acts is not HOOKED:
            self._acts = HOOKED
            if self._recorder is not None:
                await self._recorder.record(Change(acts=HOOKED))
        if event.kind is HookKind.SESSION_END:
            await self._end(self._stop or Ended(ending=Ending.DONE, reason="the session ended"))
        elif event.kind is HookKind.TURN_END:
            await self._store([Change(lifecycle=Lifecycle.INPUT_REQUIRED)])
        elif event.kind is HookKind.PROMPT:
            if self._stop is not None:
                await self._end(self._stop)
            await self._store([Change(lifecycle=Lifecycle.WORKING)])

    async def _reply(self, event: HookEvent) -> Reply:
        if self._recorder is None or self._inbox is None or event.sub_agent:
            return _NOTHING
        step = self._recorder.last_step
        if self._stop is not None:
            return self._stopped_again(event, self._stop)
        due = await self._inbox.due()
        ended = ordered(due, step, divisible=False)
        if ended is not None and can_stop(event):
            text = answer(event, guidance="", stop=ended.reason)
            return Reply(text=text, records=ended.stamps, ended=ended)
        said = [each for each in await self._timely(due) if each[1].action.spoken]
        if not said or not passes_guidance(event):
            return _NOTHING
        words = "\n\n".join(spoken(self._code, id, each, plans=False) for id, each in said)
        return Reply(
            text=answer(event, guidance=words, stop=""),
            records=tuple(stamp(id, step) for id, _ in said),
        )

    def _stopped_again(self, event: HookEvent, ended: Ended) -> Reply:
        """Once more to a session that goes on, but not without end."""
        if self._stops >= _MOST_STOPS or not can_stop(event):
            return _NOTHING
        return Reply(text=answer(event, guidance="", stop=ended.reason), ended=ended)

    async def _timely(self, due: Sequence[Numbered]) -> list[Numbered]:
        """What is due, without guidance about what was over before it could be said."""
        assert self._recorder is not None
        if not any(may_be_late(each) for _, each in due):
            return list(due)
        told = self._journal.journal.all_entries(attempt=self._recorder.attempt.id, kinds=(Alert,))
        alerts = [entry async for entry in told]
        late = {id for id, each in due if too_late(id, each, alerts)}
        step = self._recorder.last_step
        await self._recorder.record(*(expired(id, step) for id in sorted(late)))
        return [each for each in due if each[0] not in late]

    async def told(self, reply: Reply) -> None:
        """The agent has an answer: store that what was said has arrived."""
        async with self._lock:
            if self._recorder is not None and reply.records:
                await self._recorder.record(*reply.records)
            if reply.ended is not None:
                self._stop, self._stops = reply.ended, self._stops + 1

    def close(self) -> None:
        """Let go of its file. What the journal has of it stays open for who comes next."""
        if self._tail is not None:
            self._tail.close()
