"""All sessions that are watched on this machine: found by their files, and told of by hooks."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from midwatch_agents.hooks.adapter import HookEvent
from midwatch_agents.hooks.claude_code import CLAUDE_CODE
from midwatch_agents.hooks.events import read_event
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.traces import FORMATS, recognise
from midwatch_monitor.traces.json_stream import first_lines, object_of
from midwatch_monitor.traces.session_files import SessionFiles, find_sessions, parent_of
from midwatch_monitor.traces.session_reader import Heading, SessionReader
from midwatch_monitor.traces.tail import Tail
from midwatch_supervisor.sessions.session import ForeignSession, Reply
from midwatch_supervisor.sessions.session_journal import SessionJournal, SessionName

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
"""How often known files are looked at."""
_FIND_EVERY = 4
"""After how many such looks new ones are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSources:
    """Which sessions are watched."""

    agents: Sequence[SessionFiles] = ()
    """All sessions of these programs that were written lately."""
    paths: Sequence[Path] = ()
    """Session files, and folders with such files that were written lately."""
    since: datetime
    """What "lately" begins with."""


class SessionWatch:
    """Follows sessions until it is cancelled."""

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
        self._environ = environ
        self._home = home
        self._by_path: dict[Path, ForeignSession] = {}
        self._by_name: dict[SessionName, ForeignSession] = {}
        self._passed_over: set[Path] = set()
        """Files that cannot be followed; said once."""
        self._failing = False

    @property
    def sessions(self) -> tuple[ForeignSession, ...]:
        """Those that are followed."""
        return tuple(self._by_name.values())

    async def run(self) -> None:
        """Look for what is new, until cancelled."""
        looks = 0
        while True:
            await self._tried(self.look(find=looks % _FIND_EVERY == 0))
            looks += 1
            await asyncio.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Let go of all files."""
        for each in self.sessions:
            each.close()

    async def look(self, *, find: bool = True) -> bool:
        """Take in what is new; whether there was anything. With `find`, new sessions are looked
        for, and those are ended that nobody goes on with.
        """
        if find:
            for path in await asyncio.to_thread(self._found):
                self._follow(path)
        news = False
        for each in self.sessions:
            news |= await self._read(each)
            if find:
                await each.settle(self._journal.clock())
        return news

    async def _read(self, session: ForeignSession) -> bool:
        try:
            return await session.read()
        except OSError as error:
            log.warning("%s is not followed: %s", session.name.task, error)
        except StaleIncarnationError:
            log.warning("%s is followed by another process", session.name.task)
        self._forget(session)
        return False

    async def _tried(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except JournalError as error:  # it is tried again with the next look
            log.log(logging.DEBUG if self._failing else logging.WARNING, "not watching: %s", error)
            self._failing = True
        else:
            self._failing = False

    # -- files -----------------------------------------------------------------------------

    def _found(self) -> list[Path]:
        """Session files that are not followed yet, parents before their sub-agents."""
        wanted, found = self._wanted, list[Path]()
        for kept in wanted.agents:
            found += find_sessions(kept, self._environ, self._home, since=wanted.since)
        for path in wanted.paths:
            found += sorted(_lately(path, wanted.since)) if path.is_dir() else [path]
        known = self._by_path.keys() | self._passed_over
        return sorted((each for each in found if each not in known), key=lambda p: len(p.parts))

    def _follow(self, path: Path) -> ForeignSession | None:
        """The session of a file, followed from now on; `None` if it is none of a known format."""
        if path in self._by_path:
            return self._by_path[path]
        try:
            format = recognise(path)
            reader = None if format is None else FORMATS[format].session
        except OSError as error:
            log.warning("%s is not followed: %s", path, error.strerror or error)
            self._passed_over.add(path)
            return None
        if format is None or reader is None:
            return None  # it may be empty as yet
        parent_file = parent_of(path)
        parent = self._follow(parent_file) if parent_file is not None else None
        if parent is None:
            heading = _heading(path, reader)
            name = SessionName(agent=format, id=heading.id or path.stem, folder=heading.folder)
        else:
            name = replace(parent.name, sub_agent=path.stem)
        session = self._by_name.get(name)
        if session is not None:  # its hooks spoke before there was a file
            session.follow(Tail(path), reader(path))
        else:
            session = ForeignSession(
                name, tail=Tail(path), reader=reader(path), journal=self._journal, parent=parent
            )
        self._by_path[path] = self._by_name[name] = session
        return session

    def _forget(self, session: ForeignSession) -> None:
        session.close()
        self._by_name = {k: each for k, each in self._by_name.items() if each is not session}
        gone = {path for path, each in self._by_path.items() if each is session}
        self._by_path = {k: each for k, each in self._by_path.items() if each is not session}
        self._passed_over |= gone

    # -- hooks -----------------------------------------------------------------------------

    async def hear(self, line: bytes) -> tuple[ForeignSession, Reply] | None:
        """Take in what a hook sent, and what it is to be answered; `None` for what says nothing.

        Raises JournalError.
        """
        sent = object_of(line)
        event = None if isinstance(sent, str) else read_event(sent["agent"].text, sent["event"])
        if event is None:
            return None
        session = self._session_of(event)
        return session, await session.hear(event)

    async def take_in(self, lines: Iterable[bytes]) -> int:
        """Take in what hooks left behind while nobody listened; how many there were."""
        count = 0
        for line in lines:
            await self.hear(line)
            count += 1
        return count

    def _session_of(self, event: HookEvent) -> ForeignSession:
        path = Path(event.transcript) if event.transcript else None
        found = self._follow(path) if path is not None and path.is_file() else None
        name = SessionName(agent=event.agent, id=event.session, folder=event.folder)
        found = found or self._by_name.get(name)
        if found is None:
            reader = FORMATS[CLAUDE_CODE.name].session
            assert reader is not None
            found = ForeignSession(name, tail=None, reader=reader(Path()), journal=self._journal)
            self._by_name[name] = found
        return found


def _lately(folder: Path, since: datetime) -> Iterator[Path]:
    for path in folder.rglob("*.jsonl"):
        if path.stat().st_mtime >= since.timestamp():
            yield path


def _heading(path: Path, reader: Callable[[Path], SessionReader]) -> Heading:
    """What the first lines of a session say of it."""
    session = reader(path)
    for line in first_lines(path):
        for _ in session.take(line):
            pass
        if session.heading.id and session.heading.folder:
            break
    return session.heading
