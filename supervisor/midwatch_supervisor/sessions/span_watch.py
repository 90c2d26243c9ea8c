"""Watches all sessions that programs report by OpenTelemetry spans."""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from aiohttp import web

from midwatch_monitor.errors import JournalError, StaleIncarnationError, TraceError
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.genai_spans import SpanSession, conversation, span_kind, spans_in
from midwatch_monitor.traces.session_reader import KEPT
from midwatch_supervisor.sessions.session import ForeignSession
from midwatch_supervisor.sessions.session_journal import SessionJournal, SessionName

log = logging.getLogger(__name__)

_MOST = 1000
"""Number of sessions followed, and of traces whose conversation is known."""
_MOST_LOCKED = 200
"""Number of sessions that hold the lock of their run: a file stays open for each."""
_SETTLE_SECONDS = 2.0
_BODY_SECONDS = 10.0
"""Time for a program to send one request."""
_STRANGE = re.compile(r"[^\w.:@/+=-]+")
_LONGEST = 128
"""Characters of a session's id and of a program's name."""
_HERE = frozenset({"127.0.0.1", "localhost"})
_LATE = timedelta(seconds=30)
_NOTHING = (
    "no span of a model or a tool has arrived yet: does the program run under "
    "`opentelemetry-instrument`, does OTEL_EXPORTER_OTLP_ENDPOINT name this port, and is the "
    "instrumentation of its framework installed with everything that it needs (for LangGraph: the "
    "package langchain)?"
)
_TYPES = {"application/json": True, "application/x-protobuf": False}


class SpanWatch:
    """Follows these sessions until canceled."""

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal
        self._sessions: dict[SessionName, ForeignSession] = {}
        self._conversations: dict[str, str] = {}
        """Conversations by trace: some programs name it only in a few of their spans."""
        self._turn = asyncio.Lock()
        self._left = True
        """Whether an earlier watch may have left sessions that are not taken up yet."""
        self._late_at: datetime | None = journal.clock() + _LATE
        """When to log that nothing came; `None` once it was logged, or something came."""

    def close(self) -> None:
        """Stop following all sessions; the next watch takes up those that are not over."""
        for name in list(self._sessions):
            self._stop_following(name)

    async def run(self) -> None:
        """End abandoned sessions, until canceled."""
        while True:
            if self._late_at is not None and self._journal.clock() >= self._late_at:
                log.warning(_NOTHING)
                self._late_at = None
            await self.settle()
            await asyncio.sleep(_SETTLE_SECONDS)

    async def settle(self) -> None:
        """End abandoned sessions; the first time, take up those that an earlier watch has left."""
        if self._left:
            self._left = not await self._take_up()
        for session in list(self._sessions.values()):
            try:
                await session.settle(self._journal.clock())
            except (JournalError, StaleIncarnationError) as error:
                log.debug("%s is not settled: %s", session.name.task, error)

    async def _take_up(self) -> bool:
        """Follow the sessions whose watch is gone; return whether the journal could be read."""
        journal = self._journal.journal
        try:
            async with self._turn:
                for run in await journal.runs():
                    ours = run.of_session and run.agent not in KEPT
                    if ours and await is_interrupted(journal, run.id):
                        await self._find_session(SessionName.of(run)).run()
        except (JournalError, StaleIncarnationError) as error:
            log.debug("cannot take up earlier sessions: %s", error)
            return False
        return True

    async def answer(self, request: web.Request) -> web.Response:
        """Answer an exporter's request."""
        json = _TYPES.get(request.content_type)
        # A web page cannot send these types, except by a host name that resolves to this machine.
        if json is None:
            return _error_response(
                415, f"the content type must be one of {', '.join(_TYPES)}", json=None
            )
        if request.url.host not in _HERE:
            return _error_response(421, "another name leads to this server", json=json)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.read()
            await self.take(await asyncio.to_thread(spans_in, body, json=json))
        except TimeoutError:
            return _error_response(408, f"not sent within {_BODY_SECONDS:g} s", json=json)
        except (TraceError, web.RequestPayloadError) as error:
            log.warning("%s", error)
            return _error_response(400, str(error), json=json)
        except JournalError as error:  # the exporter tries again
            log.warning("cannot store spans: %s", error)
            return _error_response(503, "the journal cannot store spans now", json=json)
        return web.Response(content_type=request.content_type, body=b"{}" if json else b"")

    async def take(self, spans: Sequence[JsonNode]) -> None:
        """Take in spans in the order of their ends. Raises JournalError."""
        async with self._turn:
            for name, lines in self._by_session(spans).items():
                try:
                    await self._find_session(name).tell(lines)
                except StaleIncarnationError:
                    log.warning("%s is followed by another process", name.task)
                    self._stop_following(name)
                except JournalError:
                    self._stop_following(name)  # what was taken in, and not stored, is sent again
                    raise

    def _by_session(self, spans: Sequence[JsonNode]) -> Mapping[SessionName, Sequence[JsonNode]]:
        acts = [each for each in spans if span_kind(each) is not None]
        if acts:
            self._late_at = None
        for span in acts:
            if said := conversation(span):
                self._conversations.pop(span["trace"].text, None)
                self._conversations[span["trace"].text] = said
                if len(self._conversations) > _MOST:
                    del self._conversations[next(iter(self._conversations))]
        found = dict[SessionName, list[JsonNode]]()
        for span in acts:
            trace = span["trace"].text
            id = conversation(span) or self._conversations.get(trace) or trace
            name = SessionName(
                agent=_clean_name(span["service"].text) or "otlp", id=_clean_name(id) or "0"
            )
            found.setdefault(name, []).append(span)
        return found

    def _find_session(self, name: SessionName) -> ForeignSession:
        session = self._sessions.pop(name, None)
        if session is None:
            locked = sum(each.locked for each in self._sessions.values())
            session = ForeignSession(
                name,
                tail=None,
                reader=SpanSession(),
                journal=self._journal,
                locks=locked < _MOST_LOCKED,
            )
        self._sessions[name] = session
        if len(self._sessions) > _MOST:
            self._stop_following(next(iter(self._sessions)))
        return session

    def _stop_following(self, name: SessionName) -> None:
        """Stop following a session."""
        self._sessions.pop(name).close()


def _error_response(status: int, reason: str, *, json: bool | None) -> web.Response:
    """Return what OTLP sends when a request fails: a Status in the request's own encoding."""
    if json is None:
        return web.Response(status=status, text=reason)
    if json:
        return web.json_response({"message": reason}, status=status)
    from google.rpc.status_pb2 import Status

    body = Status(message=reason).SerializeToString()
    return web.Response(status=status, body=body, content_type="application/x-protobuf")


def _clean_name(text: str) -> str:
    """Return a name without characters that would end it or control a terminal."""
    return _STRANGE.sub("-", text)[:_LONGEST]
