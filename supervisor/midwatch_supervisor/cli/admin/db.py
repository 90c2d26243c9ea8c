"""`midwatch db`: maintain a journal's database."""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from midwatch_monitor.command_hint import command
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_place
from midwatch_supervisor.cli.output import write_either, write_error, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.present.numbers import count_noun

if TYPE_CHECKING:
    from midwatch_monitor.journal.admin.check import JournalHealth
    from midwatch_monitor.journal.core.engine import Access, Store

app = App(name="db")

_TOLD = 10_000
"""A copy prints its progress every so many rows of a table."""

PlaceArgument = Annotated[
    str,
    Parameter(help="Path or URL. The password may come from PostgreSQL's PGPASSWORD or ~/.pgpass."),
]


@app.command(name="upgrade")
def upgrade(
    *, journal: JournalOption = None, dry_run: DryRunOption = False, json: JsonOption = False
) -> int:
    """Bring the tables up to date, even while others are working, or set up an empty database."""
    from midwatch_monitor.journal.core.engine import Access
    from midwatch_monitor.journal.core.schema import upgrade as bring_up

    with closing(_open_store(journal_place(journal), Access.WRITE)) as store:
        done = bring_up(store, dry_run=dry_run)
        unread = "" if dry_run or done.before in {None, done.after} else _unread_words(store)
    fields = {"journal": store.name, "before": done.before, "after": done.after}
    fields |= {"oldest": done.oldest, "dry_run": dry_run}
    verb = "would be" if dry_run else "were"
    text = (
        f"{store.name}: the tables {verb} upgraded from {done.before or 'nothing'} to "
        f"{done.after}, for Midwatch at {done.oldest} or newer"
    )
    if done.before == done.after:
        text = f"{store.name} is up to date: its tables are at {done.after}"
    write_either({"type": "upgrade", **fields}, text, json=json)
    if unread and not json:
        write_line(unread)
    return 0


def _unread_words(store: "Store") -> str:
    """Name what attempts are given though no person had to approve it; empty if there is none."""
    from sqlalchemy import not_

    from midwatch_monitor.journal.admin.copy import count_rows
    from midwatch_monitor.journal.core.tables import fact, lesson
    from midwatch_monitor.records import FactState

    unreviewed = fact.c.live & (fact.c.state == FactState.UNREVIEWED.value)
    with store.reader.connect() as connection:
        lessons = count_rows(connection, lesson, not_(lesson.c.obsolete))
        facts = count_rows(connection, fact, unreviewed)
    found = (
        f"{count_noun(number, what)} (`{command(f'{what}s list')}`)"
        for number, what in ((lessons, "lesson"), (facts, "fact"))
        if number
    )
    named = " and ".join(found)
    return named and f"in use, though nobody had to approve it before: {named}"


@app.command(name="check")
def check(*, journal: JournalOption = None, json: JsonOption = False) -> int:
    """Check a journal's database and print what it holds; exit with 1 if it is damaged."""
    from midwatch_monitor.journal.admin.check import check as looked_through
    from midwatch_monitor.journal.core.engine import Access, explain_errors
    from midwatch_monitor.journal.postgres.rights import require_reading

    with closing(_open_store(journal_place(journal), Access.READ)) as store:
        engine = store.reading or store.writing
        assert engine is not None
        with explain_errors(store.name), engine.connect() as connection:
            if store.connections is not None:
                require_reading(connection, store.name)
            health = looked_through(connection)
    _tell_health(store.name, health, json=json)
    return 1 if health.problems else 0


@app.command(name="copy")
def copy(
    source: Annotated[PlaceArgument, Parameter(name="FROM")],
    target: Annotated[PlaceArgument, Parameter(name="TO")],
    /,
    *,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> int:
    """Copy a journal into a new or empty database: SQLite to PostgreSQL, or back.

    First stop all processes that write to it: entries added later are not copied. A journal with a
    run that a process works on is refused. At the end, both are compared; if anything is wrong, the
    new one stays empty. Then use only the new one: both know the same workspaces.
    """
    from midwatch_monitor.journal.admin import copy as copying
    from midwatch_monitor.journal.core.engine import Access

    with closing(_open_store(source, Access.READ)) as old:
        counts = copying.contents(old)
        interrupted = INTERRUPTS.run(_interrupted_runs(source))
        if dry_run and _is_new(target):
            _tell_copied(old.name, target, counts, dry_run=True, json=json)
            return 0
        with closing(_open_store(target, Access.READ if dry_run else Access.CREATE)) as new:
            if dry_run:
                copying.require_room(new)
            else:
                counts = copying.copy(old, new, _progress_printer(counts, silent=json))
                INTERRUPTS.run(_remember_interrupted(target, interrupted))
            _tell_copied(old.name, new.name, counts, dry_run=dry_run, json=json)
    return 0


async def _interrupted_runs(location: str) -> Collection[int]:
    """Return the runs whose process is gone. Raises UsageError if a process works on a run."""
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.journal.fleet.run_lock import interrupted_runs, refuse_held

    async with await Journal.open_to_read(location) as journal:
        runs = [run.id for run in await journal.runs()]
        for run in runs:
            await refuse_held(journal, run, tell=write_error)
        return await interrupted_runs(journal, runs)


async def _remember_interrupted(location: str, runs: Collection[int]) -> None:
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.journal.fleet.run_lock import remember_lock

    async with await Journal.open(location, create=False) as journal:
        for run in runs:
            await remember_lock(journal, run)


def _open_store(location: str, access: "Access") -> "Store":
    from midwatch_monitor.config.settings import Synchronous
    from midwatch_monitor.journal.core.engine import connect

    return connect(location, access, Synchronous.FULL)


def _is_new(location: str) -> bool:
    """Whether the location is a file that does not exist yet."""
    from midwatch_monitor.journal.core.engine import is_url

    return not is_url(location) and not Path(location).exists()


def _progress_printer(counts: Mapping[str, int], *, silent: bool) -> Callable[[str, int], None]:
    def tell(table: str, done: int) -> None:
        if not silent and (done == counts[table] or done % _TOLD == 0):
            write_line(f"{table} {done} of {counts[table]}")

    return tell


def _tell_copied(
    source: str, target: str, counts: Mapping[str, int], *, dry_run: bool, json: bool
) -> None:
    fields = {"from": source, "to": target, "tables": dict(counts), "dry_run": dry_run}
    copied = f"{count_noun(sum(counts.values()), 'row')} from {source} to {target}"
    text = f"would copy {copied}" if dry_run else f"copied {copied}; both are the same"
    write_either({"type": "copy", **fields}, text, json=json)


def _tell_health(name: str, health: "JournalHealth", *, json: bool) -> None:
    from midwatch_supervisor.present.json_lines import moment

    age = None if health.latest is None else (datetime.now(UTC) - health.latest).total_seconds()
    if json:
        write_json(
            *({"type": "problem", "problem": problem} for problem in health.problems),
            {
                "type": "check",
                "journal": name,
                "revision": health.revision,
                "oldest": health.oldest,
                "tables": health.counts,
                "last": health.last,
                "latest_at": None if health.latest is None else moment(health.latest),
                "age_seconds": age,
                "newer": health.newer,
                "problems": len(health.problems),
            },
        )
        return
    write_line(name)
    if health.revision:
        since = f", for Midwatch at {health.oldest} or newer" if health.oldest else ""
        write_line(f"tables at {health.revision}{since}")
    write_line(*(f"{table} {rows}" for table, rows in health.counts.items() if rows))
    if age is not None:
        write_line(f"the newest entry is {health.last}, {age:.0f} s old")
    if health.newer:
        write_line(f"entries of kinds that only a newer Midwatch knows: {health.newer}")
    write_line(*(f"problem: {each}" for each in health.problems))
    if not health.problems:
        write_line("no problems")
