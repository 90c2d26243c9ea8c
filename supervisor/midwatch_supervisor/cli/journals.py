"""The journal that a command uses."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import JournalReadOnlyError, UsageError
from midwatch_tools.journal_location import journal_location

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings
    from midwatch_monitor.journal import Journal

JournalOption = Annotated[
    str | None,
    Parameter(
        name="--journal",
        help="Path or URL of the journal. Default: $MIDWATCH_JOURNAL, else .midwatch/journal.db "
        "in the main worktree around this folder.",
    ),
]
FromOption = Annotated[
    str | None, Parameter(name="--from", help="The author. Default: the user's name.")
]
RunOption = Annotated[
    int | None, Parameter(name="--run", help="Number of the run. Default: the latest.")
]
OnlyRunOption = Annotated[
    int | None, Parameter(name="--run", help="Number of the run. Default: all of them.")
]
DryRunOption = Annotated[bool, Parameter(name="--dry-run", help="Only print what would be done.")]


def journal_place(option: str | None) -> str:
    """Return where a command's journal is: a path or a URL.

    Raises UsageError for a path that cannot be accessed.
    """
    location = journal_location(option, os.environ, Path.cwd())
    if "://" not in location:
        try:
            Path(location).exists()
        except OSError as error:
            raise UsageError(
                f"a journal cannot be created at {location}: {error.strerror}; name another with "
                "--journal"
            ) from error
    return location


def masked_note(journal: "Journal", *texts: str) -> str:
    """Return a note that says how a text was masked before it was stored; empty if it was not."""
    said = " ".join(filter(None, texts))
    kept = journal.masker.text(said)
    return f"; secrets in it are masked: {kept}" if kept != said else ""


async def journal_of_work(location: str, settings: "Settings") -> "Journal":
    """Open the journal of a process that runs or monitors tasks, and create it if there is none."""
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.secrets.masking import known_secrets

    return await Journal.open(
        location,
        synchronous=settings.journal.synchronous,
        max_batch=settings.journal.max_batch,
        patience_seconds=settings.journal.patience_seconds,
        secrets=known_secrets(os.environ, settings.secrets.patterns),
    )


async def journal_to_read(option: str | None) -> "Journal":
    """Open the existing journal read-only. Raises UsageError if there is none."""
    return await _open_named(option, to_write=False)


async def journal_to_write(option: str | None, *, dry_run: bool = False) -> "Journal":
    """Open the existing journal for reading and writing; in a dry run, for reading only.

    Raises UsageError if there is none, and JournalReadOnlyError if it may only be read.
    """
    return await _open_named(option, to_write=not dry_run)


async def journal_to_watch(
    option: str | None, *, patience_seconds: float | None = None
) -> tuple["Journal", str]:
    """Open the existing journal for writing, or read-only if that is refused, and return why.

    `patience_seconds` is how long to wait for a lost connection, instead of the default. Raises
    UsageError if there is no journal.
    """
    try:
        return await _open_named(option, patience_seconds, to_write=True), ""
    except JournalReadOnlyError as error:
        return await _open_named(option, patience_seconds, to_write=False), str(error)


async def _open_named(
    option: str | None, patience: float | None = None, *, to_write: bool
) -> "Journal":
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.journal.core.outage import PATIENCE_SECONDS
    from midwatch_monitor.secrets.masking import known_secrets

    location = _existing_location(option)
    opening = partial(Journal.open, create=False) if to_write else Journal.open_to_read
    patience = PATIENCE_SECONDS if patience is None else patience
    secrets = known_secrets(os.environ)
    return await opening(location, patience_seconds=patience, secrets=secrets)


def _existing_location(option: str | None) -> str:
    from midwatch_monitor.journal.core.engine import is_url

    location = journal_place(option)
    if not is_url(location) and not Path(location).exists():
        raise UsageError(
            f"there is no journal at {location}: start with `{command('run FILE')}`, or name "
            "another with --journal"
        )
    return location
