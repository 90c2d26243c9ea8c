"""Watches sessions of this machine, found by their files and reported by hooks."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from midwatch_agents.hooks.adapters import HookEvent
from midwatch_agents.hooks.events import read_event
from midwatch_agents.hooks.inbox import put_in_inbox, socket_path, state_folder, take_inbox
from midwatch_monitor.command_hint import command, naming_journal
from midwatch_monitor.errors import JournalError, StaleIncarnationError, UsageError
from midwatch_monitor.traces import FORMATS, claude_code, recognise
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.json_stream import object_of
from midwatch_monitor.traces.session_reader import (
    Heading,
    SessionFiles,
    SessionReader,
    find_sessions,
    find_written,
    parent_of,
)
from midwatch_supervisor.sessions.session import GONE, ForeignSession, Reply
from midwatch_supervisor.sessions.session_journal import SessionJournal, SessionName, callers

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
"""Seconds between two looks at known files."""
_NAMES = ("**/*.jsonl", "**/session-*.json")
"""Names of session files in a folder that was named."""
_FIND_EVERY = 4
"""Number of looks between two searches for new files."""
_INBOX_REST = timedelta(minutes=1)
"""How long the inbox is left alone if it holds events for another watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSources:
    agents: Sequence[SessionFiles] = ()
    """All recently written sessions of these programs."""
    paths: Sequence[Path] = ()
    """Session files, and folders with recently written ones."""
    since: datetime
    """The beginning of "recently"."""


class IgnoredHook(StrEnum):
    """Why a hook event had no effect."""

    SAYS_NOTHING = "says nothing"
    NOT_WATCHED = "not watched"
    """It is for another watch."""


class SessionWatch:
    """Follows sessions until canceled."""

    def __init__(
        self,
        journal: SessionJournal,
        wanted: SessionSources,
        *,
        environ: Mapping[str, str],
        home: Path,
    ) -> None:
        self._journal = journal
        self._wanted = wanted
        self._lately = max(journal.clock() - wanted.since, GONE)
        self._environ = environ
        self._home = home
        self._by_path: dict[Path, ForeignSession] = {}
        self._by_name: dict[SessionName, ForeignSession] = {}
        self._passed_over: set[Path] = set()
        """Files that cannot be followed; each is logged once."""
        self._unknown = set[Path]()
        """Named files without a session that can be followed; each is logged once."""
        self._failing = False
        self._folder = state_folder(environ, home)
        """The folder of the hooks' inbox and socket."""
        self._emptying = asyncio.Lock()
        self._inbox_from = wanted.since
        """When to look into the inbox again."""

    @property
    def journal_name(self) -> str:
        """The name of the journal where the sessions are recorded."""
        return self._journal.journal.name

    @property
    def sessions(self) -> tuple[ForeignSession, ...]:
        """The followed sessions."""
        return tuple(self._by_name.values())

    async def run(self) -> None:
        """Look for news until canceled."""
        looks = 0
        while True:
            try:
                await self.look(find=looks % _FIND_EVERY == 0)
                self._failing = False
            except (JournalError, OSError) as error:  # the next look tries again
                level = logging.DEBUG if self._failing else logging.WARNING
                log.log(level, "cannot watch sessions at present: %s", error)
                self._failing = True
            looks += 1
            await asyncio.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Close all files."""
        for each in self.sessions:
            each.close()

    async def look(self, *, find: bool = True) -> bool:
        """Take in what is new; return whether there was anything.

        With `find`, new sessions are searched for, what hooks left is taken in, and abandoned
        sessions are ended. Raises JournalError, and OSError if the inbox cannot be read.
        """
        if find and (self._wanted.agents or self._wanted.paths):
            await self.empty_inbox()
            _invite_hooks(socket_path(self._folder))
        if find:
            for path in await asyncio.to_thread(self._find_files):
                if path not in self._passed_over:
                    self._follow_file(path)
        news = False
        for each in self.sessions:
            with self._letting_go(each):
                news |= await each.read()
                if find and await each.settle(self._journal.clock()):
                    self._stop_following(each)
        return news

    @contextmanager
    def _letting_go(self, session: ForeignSession) -> Generator[None]:
        """Stop following a session if it fails. JournalError is passed on."""
        try:
            yield
        except JournalError:
            self._stop_following(session)  # what was taken in, and not stored, is read again
            raise
        except (OSError, StaleIncarnationError) as error:
            log.warning("no longer following %s: %s", session.name.task, error)
            self._passed_over |= self._stop_following(session)

    def _stop_following(self, session: ForeignSession) -> set[Path]:
        """Stop following a session; return its files."""
        session.close()
        gone = {path for path, each in self._by_path.items() if each is session}
        self._by_path = {k: each for k, each in self._by_path.items() if each is not session}
        self._by_name = {k: each for k, each in self._by_name.items() if each is not session}
        return gone

    # -- files -----------------------------------------------------------------------------

    def _find_files(self) -> list[Path]:
        """Return the recently written session files, parents before their sub-agents."""
        since = max(self._wanted.since, self._journal.clock() - self._lately)
        found = list[Path]()
        for kept in self._wanted.agents:
            found += find_sessions(kept, self._environ, self._home, since=since)
        for path in self._wanted.paths:
            found += find_written(path, _NAMES, since=since) if path.is_dir() else [path]
        return sorted({each.resolve() for each in found}, key=lambda p: (len(p.parts), p))

    def _follow_file(self, path: Path) -> ForeignSession | None:
        """Return the session of a file and follow it; `None` if its format is unknown."""
        if path in self._by_path:
            return self._by_path[path]
        try:
            agent = recognise(path)
            format = None if agent is None else FORMATS[agent]
            if agent is None or format is None or format.session is None:
                self._say_unknown(path, agent)
                return None  # it may still be empty
            reader, tail = format.session(path), format.tail(path)
            heading = _read_heading(format.session(path), format.head(path))
        except OSError as error:
            log.warning("%s cannot be followed: %s", path, error.strerror or error)
            self._passed_over.add(path)
            return None
        parent_file = parent_of(path)
        parent = None if parent_file is None else self._follow_file(parent_file)
        if parent is None:
            name = SessionName(agent=agent, id=heading.id or path.stem, folder=heading.folder)
        else:
            name = replace(parent.name, sub_agent=path.stem)
        session = self._by_name.get(name)
        if session in self._by_path.values():  # this is a copy of its file
            name, session = replace(name, id=path.stem), None
        if session is not None:  # its hooks reported before there was a file
            session.follow(tail, reader)
        else:
            session = ForeignSession(
                name,
                tail=tail,
                reader=reader,
                journal=self._journal,
                parent=parent,
                named=self._is_named(path),
            )
        self._by_path[path] = self._by_name[name] = session
        return session

    def _is_named(self, path: Path) -> bool:
        return path in {each.resolve() for each in self._wanted.paths}

    def _say_unknown(self, path: Path, format: str | None) -> None:
        """Log once why a named file is not followed."""
        if path in self._unknown or not self._is_named(path):
            return
        self._unknown.add(path)
        if format is None:
            log.warning("%s holds no session of a known program, or none yet", path)
        else:
            log.warning("%s cannot be followed: `midwatch replay` reads files of %s", path, format)

    # -- hooks -----------------------------------------------------------------------------

    async def hear(
        self, line: bytes, *, late: bool = False
    ) -> tuple[ForeignSession, Reply] | IgnoredHook:
        """Take in a hook event, a `late` one from the inbox; return the answer.

        Raises JournalError.
        """
        sent = object_of(line)
        event = None if isinstance(sent, str) else read_event(sent["agent"].text, sent["event"])
        if event is None:
            if not isinstance(sent, str) and sent["damaged"]:
                log.warning("a step is missing: a hook sent %d bytes, not read", sent["size"].count)
            return IgnoredHook.SAYS_NOTHING
        if not self._is_watched(event):
            return IgnoredHook.NOT_WATCHED
        session, reply = self._session_of(event), Reply()
        with self._letting_go(session):
            reply = await session.hear(event, late=late)
        # A stop of a session holds for its sub-agents.
        sub_agent = None if reply.text else self._sub_agent_of(session, event)
        if sub_agent is not None:
            session = sub_agent
            with self._letting_go(session):
                reply = await session.hear(event, late=late)
        return session, reply

    async def empty_inbox(self) -> None:
        """Take in what hooks left because nobody answered; what is for another watch stays.

        Raises JournalError, and OSError if the inbox cannot be read.
        """
        async with self._emptying:
            if self._journal.clock() < self._inbox_from:
                return
            lines = take_inbox(self._folder)
            unheard = IgnoredHook.NOT_WATCHED
            kept = [line for line in lines if await self.hear(line, late=True) is unheard]
            for line in kept:
                put_in_inbox(self._folder, line + b"\n")
            if kept:
                self._inbox_from = self._journal.clock() + _INBOX_REST

    def _is_watched(self, event: HookEvent) -> bool:
        if any(each.agent == event.agent for each in self._wanted.agents):
            return True
        at = _transcript_of(event)
        paths = [each.resolve() for each in self._wanted.paths]
        return at is not None and any(at.is_relative_to(each) for each in paths)

    def _session_of(self, event: HookEvent) -> ForeignSession:
        name = SessionName(agent=event.agent, id=event.session, folder=event.folder)
        at = _transcript_of(event)
        found = None if at is None else self._follow_file(at)
        found = found or self._by_name.get(name)
        if found is None:
            reader = claude_code.ClaudeCodeSession()
            found = ForeignSession(name, tail=None, reader=reader, journal=self._journal)
            self._by_name[name] = found
        return found

    def _sub_agent_of(self, session: ForeignSession, event: HookEvent) -> ForeignSession | None:
        """Return the sub-agent that the event is about, if its file is followed."""
        name = replace(session.name, sub_agent=f"agent-{event.sub_agent}")
        return self._by_name.get(name)


def _invite_hooks(at: Path | None) -> None:
    """Let hooks that found the listener at this socket late ask it again."""
    if at is not None:
        with suppress(FileNotFoundError):
            os.utime(at)


def _transcript_of(event: HookEvent) -> Path | None:
    # Unlike `Path.is_file`, it accepts any text.
    is_file = os.path.isfile(event.transcript)  # noqa: PTH113
    return Path(event.transcript).resolve() if is_file else None


def _read_heading(session: SessionReader, head: Iterable[JsonNode]) -> Heading:
    """Return what the first lines of a session say about it."""
    for line in head:
        for _ in session.take(line):
            pass
        if session.heading.id and session.heading.folder:
            break
    return session.heading


_LONGEST = 9 * 1024 * 1024
"""Bytes of one line; a hook sends less."""
_PATIENCE = 2.0
"""Seconds for a hook to send its event, and to confirm its answer."""


@asynccontextmanager
async def listen_for_hooks(at: Path, watch: SessionWatch) -> AsyncGenerator[None]:
    """Answer hooks until the end of the block, in a private folder.

    Raises UsageError if another process already listens there, and OSError if that is impossible.
    """
    await _take_place(at)
    under_way = set[asyncio.Task[None]]()

    def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_answer_hook(reader, writer, watch))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    server = await asyncio.start_unix_server(attend, at, limit=_LONGEST)
    try:
        await asyncio.to_thread(at.chmod, 0o600)
        yield
    finally:
        server.close()
        await asyncio.gather(*under_way)
        await asyncio.to_thread(at.unlink, missing_ok=True)


async def _take_place(at: Path) -> None:
    """Remove the socket of a process that is gone. Raises UsageError if one listens there."""
    try:
        reader, writer = await asyncio.open_unix_connection(at)
    except OSError:
        await asyncio.to_thread(at.unlink, missing_ok=True)
        return
    journal = ""
    with suppress(OSError, TimeoutError, ValueError):
        writer.write_eof()
        async with asyncio.timeout(_PATIENCE):
            journal = (await reader.read()).decode()
    writer.close()
    with naming_journal(journal):
        raise UsageError(
            "another `midwatch attach` already watches the sessions of this user; "
            f"`{command('watch')}` shows what it sees"
        )


async def _answer_hook(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watch: SessionWatch
) -> None:
    """Answer one hook; messages count as delivered once the hook confirms its answer."""
    try:
        async with asyncio.timeout(_PATIENCE):
            line = await reader.readline()
        if not line:  # another `attach` checks whether this one is there
            writer.write(watch.journal_name.encode())
            return
        await watch.empty_inbox()  # it came earlier
        heard = await watch.hear(line)
        if not isinstance(heard, IgnoredHook):
            heard[0].note_callers(callers(writer.get_extra_info("socket")))
        text = "" if isinstance(heard, IgnoredHook) else heard[1].text
        kept = {"keep": True} if heard is IgnoredHook.NOT_WATCHED else {}
        writer.write(json.dumps({"print": text, **kept}).encode() + b"\n")
        await writer.drain()
        if isinstance(heard, IgnoredHook) or not text:
            return
        session, reply = heard
        async with asyncio.timeout(_PATIENCE):
            has_it = await reader.readline()
        if has_it:
            await session.note_delivery(reply)
    except (OSError, TimeoutError, ValueError, JournalError, StaleIncarnationError) as error:
        log.warning("a hook was not answered: %s", error)
    finally:
        writer.close()
