"""Sends the journal as spans to a collector, without holding up the work."""

import asyncio
import logging
import os
from collections.abc import Sequence
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.util.re import parse_env_headers

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.settings import TelemetrySettings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AttemptTransition, Change, Entry, Step, SupervisedBy
from midwatch_supervisor.telemetry.exporting import headers_of
from midwatch_supervisor.telemetry.spans import TaskSpans

log = logging.getLogger(__name__)

_MOST = 4096
"""Number of spans that wait to be sent; beyond that the oldest are dropped."""
_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 5.0
_WORK = (AttemptTransition, Change, Step)
"""Records of a running task; what is learned from it later opens no span."""
_LAST_SECONDS = 5.0
"""Time for the last spans when the work is over; none if the collector is away."""


class Export:
    """Follows the journal and sends complete spans, in a thread that nobody waits for."""

    def __init__(
        self, journal: Journal, settings: TelemetrySettings, *, run: int | None, after: int
    ) -> None:
        """Send what follows the entry with id `after`."""
        self._journal = journal
        self._content = settings.content
        self._run = run
        self._after = after
        self._tasks: dict[int, TaskSpans] = {}
        self._others: set[int] = set()
        """Tasks of runs that another process exports."""
        self._collector = _Collector(settings)
        self._sender = BatchSpanProcessor(
            self._collector, max_queue_size=_MOST, schedule_delay_millis=_EVERY_SECONDS * 1000
        )

    async def follow(self, bus: Bus) -> None:
        """Send new spans, until canceled."""
        async with bus.subscribe() as hints:
            while True:
                await self._poll_journal()
                await hints.wait(_EVERY_SECONDS)

    async def finish(self) -> None:
        """Send the rest, waiting only briefly."""
        await self._poll_journal()
        # In a thread, as it may wait for half a minute.
        ending = Thread(target=self._sender.shutdown, name="telemetry", daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, 0 if self._collector.away else _LAST_SECONDS)

    async def _poll_journal(self) -> None:
        try:
            async for entry in self._journal.all_entries(self._after, run=self._run):
                for span in await self._completed_spans(entry):
                    self._sender.on_end(span)
                self._after = entry.id
        except JournalError as error:  # the next look tries again
            log.debug("telemetry waits for the journal: %s", error)

    async def _completed_spans(self, entry: Entry) -> Sequence[ReadableSpan]:
        """Return the spans that an entry completes."""
        known = entry.task in self._tasks or entry.task in self._others
        if not known and isinstance(entry.record, _WORK):
            await self._read_earlier_entries(entry)
        task = self._tasks.get(entry.task)
        if task is None:
            return ()
        spans = await self._take_entry(task, entry)
        if task.over:
            del self._tasks[entry.task]
        return spans

    async def _read_earlier_entries(self, first: Entry) -> None:
        """Read a task's entries before its first known one."""
        task = await self._journal.task(first.task)
        run = await self._journal.run(task.run)
        if self._run is None and run.supervised_by is not SupervisedBy.MONITOR:
            self._others.add(task.id)
            return
        spans = TaskSpans(run, task, content=self._content)
        async for entry in self._journal.all_entries(task=task.id):
            if entry.id >= first.id:
                break
            await self._take_entry(spans, entry)
        self._tasks[task.id] = spans

    async def _take_entry(self, task: TaskSpans, entry: Entry) -> Sequence[ReadableSpan]:
        if task.lacks(entry) and entry.attempt is not None:
            task.meet(await self._journal.attempt(entry.attempt))
        return task.take(entry)


class _Collector(SpanExporter):
    """Logs once that spans are refused, and once that they are accepted again."""

    def __init__(self, settings: TelemetrySettings) -> None:
        # They log every try, and every span that finds the queue full.
        for name in ("opentelemetry.exporter", "opentelemetry.sdk"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        headers = headers_of(settings, os.environ)
        self._address = f"{settings.endpoint.removesuffix('/v1/traces')}/v1/traces"
        self._exporter = OTLPSpanExporter(
            endpoint=self._address,
            headers=parse_env_headers(headers, liberal=True),
            timeout=_REQUEST_SECONDS,
        )
        self.away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away and not self.away:
            log.warning("%s accepts no telemetry; the work continues without it", self._address)
        elif self.away and not away:
            log.info("%s accepts telemetry again", self._address)
        self.away = away
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
