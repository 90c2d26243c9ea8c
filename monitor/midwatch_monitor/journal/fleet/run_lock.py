"""Which process works on a run: a file lock beside a SQLite journal, a lease in PostgreSQL.

A file lock ends with its process, however the process ends. A lease is renewed while its process
lives, and expires some seconds after the process is killed.
"""

import asyncio
import logging
import os
import platform
import secrets
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.file_lock import is_locked, lock_file
from midwatch_monitor.journal.core.engine import is_url
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import RUN_POST, MonitorLeases, Post
from midwatch_monitor.records.fleet import holder_of

log = logging.getLogger(__name__)

_TRIES = 50
_PAUSE = 0.01
"""Seconds between two tries: a process that only checks also holds the lock for a moment."""
_LOOK_SECONDS = 0.5
"""Seconds between two checks of a lease that another process may renew."""


@asynccontextmanager
async def hold_run(journal: Journal, run: int, *, lease_seconds: float) -> AsyncGenerator[None]:
    """Work on a run as the only process. A lease lasts `lease_seconds`, and is renewed.

    A journal in memory needs neither lock nor lease. Raises UsageError if another process is
    working on the run.
    """
    lock = await take_lock(journal.name, run)
    try:
        if is_url(journal.name):
            async with _lease(MonitorLeases(journal), run, lease_seconds):
                yield
        else:
            yield
    finally:
        if lock is not None:
            os.close(lock)


@asynccontextmanager
async def _lease(monitor_leases: MonitorLeases, run: int, seconds: float) -> AsyncGenerator[None]:
    holder = _new_holder()
    if await monitor_leases.take_post(_run_post(run), holder=holder, seconds=seconds) is None:
        raise _at_work(run)
    renewing = asyncio.create_task(_renew(monitor_leases, run, holder, seconds))
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        with suppress(JournalError):  # it expires by itself
            await monitor_leases.release_post(_run_post(run), holder=holder)


async def _renew(monitor_leases: MonitorLeases, run: int, holder: str, seconds: float) -> None:
    taken: int | None = 1
    while taken is not None:
        await asyncio.sleep(seconds / 3)
        try:
            taken = await monitor_leases.take_post(_run_post(run), holder=holder, seconds=seconds)
        except JournalError as error:
            log.debug("the lease of run %d is not renewed: %s", run, error)
    # This process's writes about attempts that the other one took over are refused.
    log.warning("run %d: the lease expired, and another process is now working on the run", run)


async def take_lock(journal: str, run: int) -> int | None:
    """Take the file lock of a run, for a process that works on several; return a descriptor.

    `journal` is the journal's name. Returns `None` if the journal is not a file. Raises UsageError
    if another process is working on the run.
    """
    file = _lock_file(journal, run)
    if file is None:
        return None
    lock = await lock_file(file, pause=_PAUSE, tries=_TRIES)
    if lock is None:
        raise _at_work(run)
    return lock


async def remember_lock(journal: Journal, run: int) -> None:
    """Record that no process is working on a run that is not over, until one takes it."""
    if (file := _lock_file(journal.name, run)) is not None:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    elif is_url(journal.name):  # as a lease that has already expired
        await MonitorLeases(journal).take_post(_run_post(run), holder=_new_holder(), seconds=0)


async def forget_lock(journal: Journal, run: int) -> None:
    """Remove the lock of a run that is over."""
    if (file := _lock_file(journal.name, run)) is not None:
        file.unlink(missing_ok=True)
    elif is_url(journal.name):
        with suppress(JournalError):  # nobody asks for the lock of such a run
            await MonitorLeases(journal).delete_post(_run_post(run))


async def is_interrupted(journal: Journal, run: int) -> bool:
    """Whether the process that was working on a run is gone, as far as this machine knows."""
    return run in await interrupted_runs(journal, [run])


async def interrupted_runs(journal: Journal, runs: Collection[int]) -> frozenset[int]:
    """Return those of these runs whose process is gone, as far as this machine knows."""
    if is_url(journal.name):
        posts = await MonitorLeases(journal).posts([_run_post(run) for run in runs])
        return frozenset(
            run for run in runs if _run_post(run) in posts and posts[_run_post(run)].expired
        )
    files = {run: _lock_file(journal.name, run) for run in runs}
    return frozenset(run for run, file in files.items() if file and is_locked(file) is False)


async def refuse_held(journal: Journal, run: int, *, tell: Callable[[str], object]) -> None:
    """Raise UsageError if a process is working on a run.

    Only its renewal or expiry shows whether the holder of a lease is still alive: until then, this
    waits, and says so through `tell`.
    """
    file = _lock_file(journal.name, run)
    if file is not None and is_locked(file):
        raise _at_work(run)
    first = await _read_post(journal, run) if is_url(journal.name) else None
    if first is None or first.expired:
        return
    tell(
        f"a process was working on run {run} a moment ago: waiting up to "
        f"{first.seconds_left:.0f} s to see whether it still is"
    )
    while (post := await _read_post(journal, run)) is not None and not post.expired:
        if post.until > first.until:
            raise _at_work(run)
        await asyncio.sleep(_LOOK_SECONDS)


async def _read_post(journal: Journal, run: int) -> Post | None:
    return (await MonitorLeases(journal).posts([_run_post(run)])).get(_run_post(run))


def _new_holder() -> str:
    return holder_of(platform.node(), secrets.token_hex(4))


def _at_work(run: int) -> UsageError:
    return UsageError(
        f"another process is working on run {run}: `{command('watch')}` shows it; "
        "end that process first"
    )


def _run_post(run: int) -> str:
    return f"{RUN_POST}{run}"


def _lock_file(journal: str, run: int) -> Path | None:
    if is_url(journal) or journal == ":memory:":
        return None
    return Path(f"{journal}.run-{run}.lock")
