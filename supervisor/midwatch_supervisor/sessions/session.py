"""Watches and records one session of an agent that somebody else started."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from midwatch_agents.hooks.adapters import HookEvent, HookKind
from midwatch_agents.hooks.events import answer, as_lines, can_stop, passes_guidance
from midwatch_monitor.budget import spend, work_minutes
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.fleet.run_lock import forget_lock, take_lock
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    AttemptTransition,
    Budget,
    Change,
    Delivery,
    Ending,
    Event,
    Fault,
    Lifecycle,
    Run,
    Step,
    TaskTransition,
)
from midwatch_monitor.traces.foreign import JsonNode, TraceItem
from midwatch_monitor.traces.json_stream import Damage
from midwatch_monitor.traces.session_reader import SessionReader, SessionTail
from midwatch_supervisor.present.assignment import is_in_workspace
from midwatch_supervisor.run.attempt_end import Ended, end_asked_for
from midwatch_supervisor.sessions.session_journal import (
    Process,
    SessionJournal,
    SessionName,
    nearest_of_both,
)
from midwatch_tools.data_blocks import code
from midwatch_tools.embedding import ONLY_WATCHED
from midwatch_tools.inbox import Inbox, Numbered, stamp, timely
from midwatch_tools.instructions import intervention_text

HOOKED = (*ONLY_WATCHED, Action.NUDGE, Action.STOP)
"""Actions possible for a session whose hooks ask Midwatch."""
_AT_ONCE = 200
"""Number of events in one commit when many are taken in."""
_AFTER_END = timedelta(seconds=10)
"""How long a session must be silent to have ended, once its process is gone, or once it was told to
stop and waits for its person. Its last lines may come after the sign of its end."""
_REFUSALS = 3
"""Number of requests after which a session that was told to stop does not heed that."""
STILL_RUNNING = "told to stop, still running: end it in its terminal"
_LEFT = timedelta(hours=1)
"""How long a session that waits for its person, or was told to stop, counts as alive."""
GONE = timedelta(days=1)
"""How long a working session counts as alive, as long as its process may be alive."""
_SESSION_ENDED = Ended(ending=Ending.UNCHECKED, reason="the session ended")
_MAX_FAULTS = 20
"""Number of damaged lines of one session that are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to a hook, and what is journaled once the agent has it."""

    text: str = ""
    attempt: int = 0
    stamps: tuple[Delivery, ...] = ()


class ForeignSession:
    """A session, read from its file or reported by its hooks, and recorded as an attempt.

    The file is the better source: it has more than the hooks. Calls reported by hooks are used only
    if there is no file.
    """

    def __init__(
        self,
        name: SessionName,
        *,
        tail: SessionTail | None,
        reader: SessionReader,
        journal: SessionJournal,
        parent: "ForeignSession | None" = None,
        locks: bool = True,
        named: bool = False,
    ) -> None:
        """Do not record it if it is one of Midwatch's own workers, unless it was `named`.

        With `locks`, others can tell whether the session is watched; that keeps a file open.
        """
        self.name = name
        self._reader = reader
        self._tail, self._journal = tail, journal
        self._followed_since = journal.clock()
        self._heard_at = self._written_at()
        """When it last gave a sign of life."""
        self._parent = parent
        self._lock = asyncio.Lock()
        self._run: Run | None = None
        """The last run it was recorded in."""
        self._recorder: Recorder | None = None
        """The recorder of the open attempt, as `_inbox` is its inbox."""
        self._inbox: Inbox | None = None
        self._code = code()
        self._acts = ONLY_WATCHED
        self._read_steps = 0
        """Steps read so far, including known ones."""
        self._known_steps = 0
        """Steps that the journal had when it was read."""
        self._known_damage = frozenset[str]()
        """Damaged lines that the journal had when it was read."""
        self._asked = False
        """Whether the journal was read."""
        self._waits = False
        """Whether it waits for its person, according to the journal."""
        self._budget = Budget()
        self._requests = self._faults = 0
        self._since: datetime | None = None
        """Until when its minutes of work are counted; `None` while it waits."""
        self._told_at: int | None = None
        """The last request before it was told to stop."""
        self._called_by: tuple[Process, ...] = ()
        """The ancestors of its last hook."""
        self._agent: Process | None = None
        """The agent's process, as far as known."""
        self._named = named
        self._locks = locks and parent is None  # whose run it shares
        self._lock_file: int | None = None
        """The lock file of its run, while its attempt is open."""

    # -- reading -------------------------------------------------------------------------------

    async def read(self) -> bool:
        """Take in what is new in its file; return whether there was anything.

        Raises OSError for an unreadable file, JournalError and StaleIncarnationError.
        """
        async with self._lock:
            return await self._read_file()

    async def _read_file(self) -> bool:
        read = False
        while self._tail is not None and (items := await asyncio.to_thread(self._tail.read)):
            read = True
            await self._take_lines(items)
        return read

    async def tell(self, lines: Iterable[JsonNode]) -> None:
        """Take in what its program reports, in order. Raises JournalError."""
        async with self._lock:
            await self._take_lines([TraceItem(number=0, node=line) for line in lines])

    async def _take_lines(self, items: Sequence[TraceItem | Damage]) -> None:
        events, faults = list[Event](), list[Fault]()
        for item in items:
            if isinstance(item, TraceItem):
                events += self._reader.take(item.node)
            elif self._faults < _MAX_FAULTS:
                self._faults += 1
                error = f"line {item.line}: {item.problem}"
                faults.append(Fault(part="session file", error=error))
        await self._store_events(events, faults)

    async def _store_events(self, events: Sequence[Event], damage: Sequence[Fault] = ()) -> None:
        await self._read_journal()
        fresh = [each for each in events if self._is_new(each)]
        faults = [each for each in damage if each.error not in self._known_damage]
        worker = not self._named and is_in_workspace(self._reader.heading.folder)
        if not worker and any(isinstance(each, Step) for each in fresh):
            now = self._journal.clock()
            await self._begin_attempt(min([now, *(each.at for each in fresh if each.at)]))
        if self._recorder is None or not (fresh or faults):
            return
        self.note_sign_of_life(self._written_at())
        for at in range(0, len(fresh), _AT_ONCE):
            part = fresh[at : at + _AT_ONCE]
            # A sub-agent never waits for a person.
            shown = [each for each in part if self._parent is None or isinstance(each, Step)]
            await self._recorder.record(*shown, *self._usage_changes(part))
        await self._recorder.record(*faults)

    def _written_at(self) -> datetime:
        """Return when its file was last written; now, if there is none."""
        now = self._journal.clock()
        if self._tail is None:
            return now
        try:
            return min(now, datetime.fromtimestamp(self._tail.path.stat().st_mtime, UTC))
        except (OSError, ValueError, OverflowError):  # it was just removed, or has no usable time
            return now

    def note_sign_of_life(self, at: datetime) -> None:
        """Note that something was written or reported, by it or by one of its sub-agents."""
        self._heard_at = max(self._heard_at, at)
        if self._parent is not None:
            self._parent.note_sign_of_life(at)

    def _is_new(self, event: Event) -> bool:
        if isinstance(event, Step):
            self._read_steps += 1
            if self._read_steps > self._known_steps:
                return True
            self._requests, self._since = max(self._requests, event.request), event.at
            return False
        if event.lifecycle is None:
            return True
        if self._read_steps < self._known_steps:
            return False
        before, self._waits = self._waits, event.lifecycle is Lifecycle.INPUT_REQUIRED
        return self._waits is not before

    def _usage_changes(self, events: Sequence[Event]) -> tuple[Change, ...]:
        """Return what was used: minutes of work, and tokens and dollars as stated in the file."""
        steps = [each for each in events if isinstance(each, Step)]
        minutes, self._since = work_minutes(events, self._since, self._journal.clock())
        if not (steps or minutes):
            return ()
        requests = {each.request for each in steps if each.request > self._requests}
        self._requests = max(self._requests, *requests, 0)
        tokens = sum(each.tokens for each in steps)
        cost = sum(each.cost_usd for each in steps)
        used = spend(self._budget, requests=len(requests), tokens=tokens, cost_usd=cost)
        self._budget = spend(used, minutes=minutes)
        return (Change(at=events[-1].at, budget=self._budget),)

    def follow(self, tail: SessionTail, reader: SessionReader) -> None:
        """Read its file from now on; it did not exist when its hooks first reported."""
        if self._read_steps == self._known_steps:  # the file repeats all of it
            self._tail, self._reader, self._read_steps = tail, reader, 0
        elif type(reader) is type(self._reader):  # it knows the calls that hooks reported
            self._tail = tail

    def close(self) -> None:
        """Close its file. Its open attempt stays open for the next watcher."""
        if self._tail is not None:
            self._tail.close()
        self._release_lock()

    @property
    def ended(self) -> bool:
        """Whether its last attempt is over."""
        return self._run is not None and self._recorder is None

    @property
    def locked(self) -> bool:
        """Whether it holds the lock of its run."""
        return self._lock_file is not None

    def _release_lock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # -- its attempt ---------------------------------------------------------------------------

    async def _read_journal(self) -> None:
        """Resume from the journal."""
        if self._asked:
            return
        recorded = await self._journal.find_recorded(self.name)
        self._known_steps, state = recorded.steps, recorded.newest
        self._known_damage = recorded.damage
        if self._tail is None:  # hooks report only what is new; a file repeats everything
            self._read_steps = self._known_steps
        if state is not None:
            task = await self._journal.journal.task(state.task)
            self._run = await self._journal.journal.run(task.run)
            if not state.over:
                self._waits, self._budget = state.idle, state.budget
                self._acts = state.acts or ONLY_WATCHED
                await self._open_attempt(self._run, await self._journal.claim(state.attempt))
        self._asked = True

    async def run(self, at: datetime | None = None) -> Run:
        """Return the run of its last attempt, or begin one at that time, by default now."""
        async with self._lock:
            await self._read_journal()
            return self._run or await self._begin_attempt(at or self._journal.clock())

    async def _begin_attempt(self, at: datetime) -> Run:
        if self._recorder is None or self._run is None:
            run = None if self._parent is None else await self._parent.run(at)
            self._since = None
            self._run, recorder = await self._journal.begin(
                self.name, self._reader.heading, run=run, acts=self._acts, at=at
            )
            await self._open_attempt(self._run, recorder)
        return self._run

    async def _open_attempt(self, run: Run, recorder: Recorder) -> None:
        self._recorder = recorder
        self._inbox = Inbox(
            self._journal.journal,
            self._journal.bus,
            recorder.attempt.id,
            poll_seconds=self._journal.settings.monitor.poll_seconds,
        )
        await self._inbox.due()
        if self._locks:
            # The process that followed it so far is still alive, or too many files are open.
            with suppress(UsageError, OSError):
                self._lock_file = await take_lock(self._journal.journal.name, run.id)

    async def _end_attempt(self, ended: Ended, at: datetime) -> None:
        if self._recorder is not None:
            lifecycle, reason = ended.lifecycle, ended.reason
            await self._recorder.end(
                AttemptTransition(lifecycle=lifecycle, reason=reason, ending=ended.ending),
                TaskTransition(lifecycle=lifecycle, reason=reason),
                at=at,
            )
        if self._lock_file is not None and self._run is not None:
            await forget_lock(self._journal.journal, self._run.id)
        self._release_lock()
        self._recorder = self._inbox = self._told_at = None
        self._budget = Budget()
        self._known_steps = self._read_steps

    async def settle(self, now: datetime) -> bool:
        """End the session if it was silent for too long; mark questions to a person as delivered.

        Return whether it is over, and was silent for a day in which it was followed.
        """
        async with self._lock:
            silent = now - self._heard_at
            if self._recorder is None or self._inbox is None:
                return min(silent, now - self._followed_since) > GONE
            step, due = self._recorder.last_step, await self._inbox.due()
            # A session does not wait here for a person's answer.
            asked = [id for id, each in due if each.action is Action.ASK_OPERATOR]
            await self._recorder.record(*(stamp(id, step) for id in asked))
            ended, after = self._silent_end()
            if silent >= after:
                left_at = self._heard_at + after
                await self._end_attempt(ended, now if self._program_gone else min(now, left_at))
            return False

    @property
    def _program_gone(self) -> bool:
        """Whether its program is known to have ended, which is seen within seconds."""
        return self._agent is not None and self._agent.gone

    def _silent_end(self) -> tuple[Ended, timedelta]:
        """Return how it ends if nothing more is heard, and after how long."""
        stop = self._told_to_stop()
        if self._parent is not None and self._waits:
            over = Ended(ending=Ending.UNCHECKED, reason="its turn is over")
            # Its hook may report the end before its last line is written.
            return stop or over, _AFTER_END if self._acts is HOOKED else timedelta()
        if self._parent is not None and self._parent.ended:
            return stop or _SESSION_ENDED, _AFTER_END
        if self._program_gone:
            ending = Ending.UNCHECKED if self._waits else Ending.ERROR
            return stop or Ended(ending=ending, reason="its program has ended"), _AFTER_END
        if stop is not None and (self._waits or self._parent is not None):
            return stop, _AFTER_END  # no hook reports that a stopped sub-agent has ended
        if stop is not None:  # its model may be slow, so this says little
            reason = f"{stop.reason}; nothing was heard from it for an hour"
            return replace(stop, reason=reason), _LEFT
        if self._waits:
            left = "nobody continued it for an hour"
            return Ended(ending=Ending.UNCHECKED, reason=left), _LEFT
        if self._followed_since - self._heard_at >= _LEFT:
            silent = "nothing was heard from it for an hour before it was watched"
            return Ended(ending=Ending.UNCHECKED, reason=silent), _LEFT
        return Ended(ending=Ending.ERROR, reason="nothing was heard from it for a day"), GONE

    # -- its hooks -----------------------------------------------------------------------------

    async def hear(self, event: HookEvent, *, late: bool = False) -> Reply:
        """Take in a hook event, a `late` one from the inbox; return the answer.

        Raises what `read` does.
        """
        async with self._lock:
            if not await self._read_file() and self._tail is None:
                opened = not event.call or self._reader.knows(event.call)
                lines = as_lines(event, opened=opened)
                await self._take_lines([TraceItem(number=0, node=line) for line in lines])
            stop = self._told_to_stop()
            await self._note_hook(event, self._written_at() if late else self._journal.clock())
            if stop is not None and self._recorder is None:  # with this event it has stopped
                return Reply(text=answer(event, guidance="", stop=stop.reason))
            return await self._reply_to_hook(event)

    def note_callers(self, ancestors: tuple[Process, ...]) -> None:
        """Note which processes called a hook of it."""
        self._agent = nearest_of_both(self._called_by, ancestors)
        self._called_by = ancestors
        if self._parent is not None:
            self._parent.note_callers(ancestors)

    async def _note_hook(self, event: HookEvent, at: datetime) -> None:
        """Take in what only a hook reports, or reports earlier."""
        self.note_sign_of_life(at)
        if self._acts is not HOOKED:
            self._acts = HOOKED
            if self._recorder is not None:
                await self._recorder.record(Change(at=at, acts=HOOKED))
        if self._parent is not None:
            self._waits = event.kind is HookKind.SUB_AGENT_END
            return
        if event.sub_agent:
            return
        if event.kind is HookKind.SESSION_END:
            await self._end_attempt(self._told_to_stop() or _SESSION_ENDED, at)
        elif event.kind in {HookKind.TURN_END, HookKind.PROMPT}:
            ends = event.kind is HookKind.TURN_END
            now = Lifecycle.INPUT_REQUIRED if ends else Lifecycle.WORKING
            if (stop := self._told_to_stop()) is not None:
                await self._end_attempt(stop, at)
            await self._store_events([Change(at=at, lifecycle=now)])

    def _told_to_stop(self, *due: Numbered) -> Ended | None:
        """Return the end that it was told to come to, or is told now by what is `due`."""
        if self._recorder is None or self._inbox is None:
            return None
        told = [(each.id, each.intervention) for each in self._inbox.interventions.delivered]
        return end_asked_for([*told, *due], self._recorder.last_step, divisible=False)

    async def _reply_to_hook(self, event: HookEvent) -> Reply:
        if self._recorder is None or self._inbox is None:
            return Reply()
        attempt, step = self._recorder.attempt.id, self._recorder.last_step
        due = await self._inbox.due()
        ended = self._told_to_stop(*due)
        if ended is not None and can_stop(event):
            await self._note_whether_it_goes_on(self._recorder, self._inbox)
            text = answer(event, guidance="", stop=ended.reason)
            return Reply(text=text, attempt=attempt, stamps=ended.stamps)
        elsewhere = event.sub_agent and self._parent is None  # guidance is for one agent
        if ended is not None or elsewhere or not passes_guidance(event):
            return Reply()
        said = [each for each in await timely(self._recorder, due) if each[1].action.spoken]
        words = "\n\n".join(
            intervention_text(self._code, id, each, plans=False) for id, each in said
        )
        text = answer(event, guidance=words, stop="")
        stamps = tuple(stamp(id, step) for id, _ in said)
        return Reply(text=text, attempt=attempt, stamps=stamps)

    async def _note_whether_it_goes_on(self, recorder: Recorder, inbox: Inbox) -> None:
        """Record once that it was told to stop and its model asks for more calls all the same."""
        self._told_at = self._requests if self._told_at is None else self._told_at
        stop = inbox.interventions.stop
        if stop and not stop.ignored_at and self._requests > self._told_at + _REFUSALS:
            again = stamp(stop.id, recorder.last_step)
            await recorder.record(replace(again, comment=STILL_RUNNING))
            await inbox.due()

    async def note_delivery(self, reply: Reply) -> None:
        """Once the agent has its answer, store that the messages in it were delivered.

        Raises JournalError and StaleIncarnationError.
        """
        async with self._lock:
            if self._recorder is None or self._inbox is None:
                return
            if self._recorder.attempt.id != reply.attempt:
                return
            due = {id for id, _ in await self._inbox.due()}
            news = [each for each in reply.stamps if each.intervention in due]
            await self._recorder.record(*news)
            await self._inbox.due()  # now it knows of these deliveries
