"""File locks beside the journal that show which runs a process of this machine works on."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import UsageError
from midwatch_monitor.file_lock import is_locked, lock_file
from midwatch_monitor.journal.core.engine import is_url

_TRIES = 50
_PAUSE = 0.01
"""Seconds between two tries: a process that only checks also holds the lock for a moment."""


@asynccontextmanager
async def hold_run(journal: str, run: int) -> AsyncGenerator[None]:
    """Work on a run as the only process; the lock ends with the process, however that ends.

    `journal` is its name. Only a file has locks. Raises UsageError if another process works on the
    run.
    """
    lock = await take_lock(journal, run)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


async def take_lock(journal: str, run: int) -> int | None:
    """Take the lock of a run, for a process that works on several; return a descriptor to close.

    Returns `None` if the journal is not a file.
    """
    file = _file(journal, run)
    if file is None:
        return None
    lock = await lock_file(file, pause=_PAUSE, tries=_TRIES)
    if lock is None:
        raise _at_work(run)
    return lock


def remember_lock(journal: str, run: int) -> None:
    """Create a resumed run's lock file: until a process takes it, nobody works on the run."""
    if (file := _file(journal, run)) is not None:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))


def forget_lock(journal: str, run: int) -> None:
    """Remove the lock file of a run that is over."""
    if (file := _file(journal, run)) is not None:
        file.unlink(missing_ok=True)


def is_interrupted(journal: str, run: int) -> bool:
    """Whether the process that worked on a run is gone, as far as this machine knows."""
    return _is_held(journal, run) is False


def refuse_held(journal: str, run: int) -> None:
    """Raise UsageError if a process of this machine works on a run."""
    if _is_held(journal, run):
        raise _at_work(run)


def _is_held(journal: str, run: int) -> bool | None:
    """Whether a process holds the lock; `None` if there is no lock file."""
    file = _file(journal, run)
    return None if file is None else is_locked(file)


def _at_work(run: int) -> UsageError:
    return UsageError(
        f"another process works on run {run}: `{command('watch')}` shows it; "
        "to go on with it here, end that process first"
    )


def _file(journal: str, run: int) -> Path | None:
    if is_url(journal) or journal == ":memory:":
        return None
    return Path(f"{journal}.run-{run}.lock")
