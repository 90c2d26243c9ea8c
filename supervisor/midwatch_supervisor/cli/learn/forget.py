"""`midwatch forget`: delete everything about a project."""

import asyncio
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Erasure
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    journal_to_write,
)
from midwatch_supervisor.cli.learn.options import project_named
from midwatch_supervisor.cli.output import confirm, write_error, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import operator_name
from midwatch_supervisor.present.json_lines import moment
from midwatch_supervisor.present.numbers import count_noun

KEPT = "Git is not touched: worktrees, branches and merged work stay where they are."


async def forget(
    project: Annotated[
        str,
        Parameter(
            name="PROJECT",
            help="The project: its name, a unique prefix of it, or its folder's name.",
        ),
    ],
    /,
    *,
    yes: Annotated[
        bool,
        Parameter(name="--yes", help="Do not ask for confirmation; needed without a terminal."),
    ] = False,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Delete everything about a project from the journal: tasks, attempts, all that was learned."""
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        learned = Learned(opened)
        name = await project_named(learned, project)
        found = await learned.footprint(name)
        if dry_run:
            _print_erasure(name, found, dry_run=True, json=json)
            return 0
        if not yes:
            loss = f"{_count_words(found)} of {name} for good"
            notice = f"This deletes {loss}. {KEPT}"
            if not await asyncio.to_thread(confirm, f"delete {loss}", notice):
                write_error("nothing was deleted")
                return 1
        done = await learned.forget(name, author=operator_name(author), at=await opened.now())
    _print_erasure(name, done, dry_run=False, json=json)
    return 0


def _print_erasure(project: str, erasure: Erasure, *, dry_run: bool, json: bool) -> None:
    if json:
        write_json(
            {
                "type": "erasure",
                "id": erasure.id or None,
                "at": None if dry_run else moment(erasure.at),
                "project": project,
                "tasks": erasure.tasks,
                "attempts": erasure.attempts,
                "entries": erasure.entries,
                "dry_run": dry_run,
            }
        )
        return
    verb = "would delete" if dry_run else "deleted"
    record = "" if dry_run else f" (record {erasure.id})"
    write_line(f"{verb} {_count_words(erasure)} of {project}{record}")
    write_line(KEPT)


def _count_words(erasure: Erasure) -> str:
    tasks, attempts = count_noun(erasure.tasks, "task"), count_noun(erasure.attempts, "attempt")
    entries = "1 entry" if erasure.entries == 1 else f"{erasure.entries} entries"
    return f"{tasks}, {attempts} and {entries}"
