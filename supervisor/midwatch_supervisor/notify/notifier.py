"""Sends notifications: reads the journal, sends what is due, and journals what was sent.

Because that is journaled, neither a restarted process nor another monitor sends it again. A process
killed between a message and its record sends that message twice.
"""

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from midwatch_monitor.bus import Bus
from midwatch_monitor.config.notify import NotifySettings, TargetSettings
from midwatch_monitor.errors import JournalError, MissingExtraError, NotifyError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import Commit, Draft, Fault, Notified, Record
from midwatch_supervisor.notify.news import KINDS, STALE, News, Notification, RunNews, due, message
from midwatch_supervisor.notify.unreachable_targets import fault_part
from midwatch_supervisor.present.json_lines import moment
from midwatch_supervisor.present.lookup import meet_new
from midwatch_supervisor.present.text_line import brief

if TYPE_CHECKING:
    from apprise import Apprise


_SECONDS = 10
"""Time limit for a receiver."""


class Sender(Protocol):
    """A way to reach a person."""

    async def send(self, message: Notification) -> None:
        """Send a message. Raises NotifyError if it was not accepted."""
        ...


def senders_of(settings: NotifySettings, environ: Mapping[str, str]) -> dict[str, Sender]:
    """Return a sender for each target, by name; no connection is made yet.

    Raises UsageError for a missing variable or file and for a URL that no service recognises, and
    MissingExtraError if Apprise is needed and not installed.
    """
    return {name: _open_sender(name, each, environ) for name, each in settings.targets.items()}


def _open_sender(name: str, target: TargetSettings, environ: Mapping[str, str]) -> Sender:
    where = f"notify.targets.{name}"
    variable = target.secret_env or target.url_env
    secret = environ.get(variable, "")
    if variable and not secret:
        raise UsageError(f"{where}: the environment variable {variable} is not set")
    if target.webhook:
        return _Webhook(url=target.webhook, secret=secret)
    url = secret or target.url.get_secret_value()
    if target.url_file is not None:
        try:
            url = target.url_file.read_text("utf-8").strip()
        except OSError as error:
            said = f"{target.url_file} cannot be read: {error.strerror}"
            raise UsageError(f"{where}: {said}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{where}: {target.url_file} is not UTF-8 text") from None
    return _Service(_open_apprise(where, url))


def _open_apprise(where: str, url: str) -> "Apprise":
    try:
        from apprise import Apprise, AppriseAsset
    except ModuleNotFoundError:
        raise MissingExtraError(f"{where}: a service by its URL", "notify") from None
    # Silenced: errors are reported in our own words, and its logs would end up in the console.
    logs = logging.getLogger("apprise")
    logs.propagate = False
    logs.addHandler(logging.NullHandler())
    service = Apprise(asset=AppriseAsset(app_id="Midwatch"))
    if not service.add(url):  # pyright: ignore[reportUnknownMemberType]
        # Only the scheme: the rest may contain a secret.
        scheme, mark, _ = url.partition("://")
        said = f" ({brief(scheme, 20)}://)" if mark else ""
        raise UsageError(
            f"{where}: no service matches this URL{said}, a part of it is wrong, or a package "
            "that the service needs is not installed"
        )
    return service


@dataclass(frozen=True, slots=True)
class _Service:
    apprise: "Apprise"

    async def send(self, message: Notification) -> None:
        result = await self.apprise.async_notify(
            body=message.body,
            title=message.title,
            body_format="text",  # else a mail has it as HTML: one line, with others' elements
            timeout=_SECONDS,
            log_level=logging.WARNING,
        )
        if not result:
            said = next((str(each.message) for each in result.logs()), "no reason was given")
            raise NotifyError(f"the service rejected it: {brief(said, 200)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Webhook:
    url: str
    secret: str

    async def send(self, message: Notification) -> None:
        from httpx2 import AsyncClient, ConnectError, HTTPError, InvalidURL, TimeoutException

        body = _message_json(message)
        signed = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "Midwatch-Signature": f"sha256={signed}"}
        try:
            async with AsyncClient(timeout=_SECONDS) as client:
                answer = await client.post(self.url, content=body, headers=headers)
        # The error's own message is left out, because it may contain the URL.
        except TimeoutException:
            raise NotifyError(f"the webhook did not answer within {_SECONDS} s") from None
        except ConnectError:
            raise NotifyError("the webhook cannot be reached: no connection to its host") from None
        except (HTTPError, InvalidURL) as error:
            raise NotifyError(f"the webhook cannot be reached: {type(error).__name__}") from None
        if not answer.is_success:
            raise NotifyError(f"the webhook answered HTTP {answer.status_code}")


def _message_json(message: Notification) -> bytes:
    told = {**asdict(message), "body": message.body}
    return json.dumps(told, ensure_ascii=False, default=moment).encode("utf-8", "replace")


log = logging.getLogger(__name__)

Grown = Callable[[], Awaitable[Iterable[int]]]
"""Returns the runs in which something may be new since the last call."""

_TRIES = 3
_REST_SECONDS = 120.0
"""How long a target is left alone after these failed tries."""
_BREATH = 0.5
"""Seconds between two looks at the journal, however many hints arrive."""
_END_SECONDS = 10.0
"""How long the end of a run waits for its last messages."""


class Notifier:
    """Notifies the targets of one process."""

    def __init__(
        self,
        journal: Journal,
        *,
        settings: NotifySettings,
        senders: Mapping[str, Sender],
        grown: Grown,
        clock: Clock,
    ) -> None:
        """Notify through `senders`, one for each target, about the runs that `grown` returns."""
        self._journal = journal
        self._settings = settings
        self._senders = senders
        self._grown = grown
        self._clock = clock
        self._runs: dict[int, RunNews] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._saying: dict[str, Sequence[News]] = {}
        """The news being sent to each target, or sent last."""
        self._rests: dict[str, float] = {}
        """Until when a target is left alone, by the event loop's clock."""
        self._failing = False

    async def run(self, bus: Bus, poll_seconds: float) -> None:
        """Look on hints and at intervals, until canceled; call `close` afterwards."""
        async with bus.subscribe() as hints:
            while True:
                await self._try_to_look()
                await asyncio.sleep(_BREATH)
                await hints.wait(poll_seconds)

    async def finish(self) -> None:
        """Send now what would be due soon; targets that failed recently are skipped."""
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._try_to_look(at_once=True)
                while busy := [each for each in self._sending.values() if not each.done()]:
                    # A slow target must not delay the last messages of the others.
                    await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
                    await self._try_to_look(at_once=True)
        except TimeoutError:
            late = [name for name, each in self._sending.items() if not each.done()]
            log.warning(
                "not all messages were sent before the end: no answer from %s", ", ".join(late)
            )
            for name in late:
                await self._record_failure(
                    name, self._saying[name], "no answer before the end of the run"
                )

    async def close(self) -> None:
        """Abandon what is being sent."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def _try_to_look(self, *, at_once: bool = False) -> None:
        try:
            for run in await self._grown():
                await self._read_run(run)
        except JournalError as error:
            level = logging.DEBUG if self._failing else logging.WARNING
            log.log(level, "notifications cannot be sent at the moment: %s", error)
            self._failing = True
            return
        self._failing = False
        self._start_sending(at_once=at_once)

    async def _read_run(self, id: int) -> None:
        run = self._runs.get(id)
        if run is None:
            run = self._runs[id] = RunNews(id)
            for task in await self._journal.tasks(id):
                run.state.meet_task(task)
        after = run.last.id if run.last else 0
        async for entry in self._journal.all_entries(after, run=id, kinds=KINDS):
            await meet_new(self._journal, run.state, entry)
            run.fold(entry)

    def _start_sending(self, *, at_once: bool) -> None:
        now = self._clock()
        self._forget_old_runs(now)
        settings = self._settings
        if at_once:
            settings = settings.model_copy(update={"group_seconds": 0.0})
        seconds = asyncio.get_running_loop().time()
        news = [each for run in self._runs.values() for each in run.news()]
        for name in self._senders if news else ():
            busy = name in self._sending and not self._sending[name].done()
            if busy or seconds < self._rests.get(name, 0):
                continue
            told = {key: at for run in self._runs.values() for key, at in run.told[name].items()}
            target = settings.targets[name]
            # Converted each time, as the machine's zone may change.
            local = now.astimezone()
            if said := due(news, told, target=target, settings=settings, now=local):
                self._saying[name] = said
                self._sending[name] = asyncio.create_task(self._send_news(name, said, now))

    def _forget_old_runs(self, now: datetime) -> None:
        """Forget runs that ended long ago; one that continues is read again."""
        for id, run in list(self._runs.items()):
            if run.over and run.last is not None and now - run.last.at > STALE:
                del self._runs[id]

    async def _send_news(self, name: str, news: Sequence[News], at: datetime) -> None:
        content = self._settings.targets[name].content
        mask, part = self._journal.masker.text, fault_part(name)
        # Set beforehand, so that no failure makes it send again and again.
        self._rests[name] = asyncio.get_running_loop().time() + _REST_SECONDS
        said = message(news, content=content, link=self._settings.link, mask=mask)
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(_TRIES),
                wait=wait_exponential(multiplier=0.5, max=5),
                retry=retry_if_exception_type(NotifyError),
                reraise=True,
            ):
                with attempt:
                    await self._senders[name].send(said)
        except NotifyError as error:
            await self._record_failure(name, news, mask(str(error)))
            return
        except Exception:  # the call may fail; the work must not
            log.exception("the %s failed", part)
            return
        del self._rests[name]
        for run in self._runs.values():
            run.failed.discard(part)
        notes: list[tuple[int, Record]] = []
        for id in dict.fromkeys(each.run for each in news):
            ours = [each for each in news if each.run == id]
            keys = tuple(each.key for each in ours)
            # Noted here too: the next look may come before it is journaled.
            if id in self._runs:
                self._runs[id].told[name] |= dict.fromkeys(keys, at)
            notes.append((ours[0].task, Notified(target=name, keys=keys)))
        await self._commit_records(notes)

    async def _record_failure(self, name: str, news: Sequence[News], error: str) -> None:
        """Journal that a target cannot be reached, unless that is known."""
        part = fault_part(name)
        if not any(part in run.failed for run in self._runs.values()):
            if (run := self._runs.get(news[0].run)) is not None:
                run.failed.add(part)
            await self._commit_records([(news[0].task, Fault(part=part, error=error))])

    async def _commit_records(self, notes: Iterable[tuple[int, Record]]) -> None:
        at = self._clock()
        drafts = tuple(Draft(record=record, at=at, task=task) for task, record in notes)
        try:
            await self._journal.commit(Commit(drafts=drafts))
        except JournalError as error:
            log.warning("sent notifications cannot be recorded, and may be sent again: %s", error)


@asynccontextmanager
async def run_notifier(
    journal: Journal,
    *,
    run: int,
    settings: NotifySettings,
    senders: Mapping[str, Sender],
    bus: Bus,
    poll_seconds: float,
    clock: Clock,
) -> AsyncGenerator[None]:
    """Notify about a run of this process, during the run and at its end.

    If the run is interrupted, nothing more is sent.
    """
    if not senders:
        yield
        return

    async def only_one() -> Iterable[int]:
        return (run,)

    notifier = Notifier(journal, settings=settings, senders=senders, grown=only_one, clock=clock)
    working = asyncio.create_task(notifier.run(bus, poll_seconds))
    try:
        yield
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await notifier.finish()
    finally:
        working.cancel()
        await notifier.close()


def fleet_runs(journal: Journal, monitor_leases: MonitorLeases, clock: Clock) -> Grown:
    """Return a function that finds grown runs that have no process of their own."""
    after: int | None = None

    async def grown() -> Iterable[int]:
        nonlocal after
        if after is None:
            last = await journal.last_id()
            found = await monitor_leases.unfinished(since=clock() - STALE)
            after = last
            return found
        news = await monitor_leases.news(after)
        after = news.last
        return news.hints

    return grown
