"""The command line in this process, as a person uses it beside a journal."""

import asyncio
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Draft, Record
from midwatch_supervisor.cli import main


async def midwatch(*argv: str) -> int:
    """Run a command; its exit code."""
    return await asyncio.to_thread(main, argv)


async def write(journal: Journal, attempt: Attempt, at: datetime, *records: Record) -> int:
    """Write records about an attempt; the id of the last."""
    drafts = tuple(
        Draft(record=record, at=at, task=attempt.task, attempt=attempt.id) for record in records
    )
    return (await journal.commit(Commit(drafts=drafts)))[-1].id
