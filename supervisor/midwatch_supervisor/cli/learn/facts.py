"""`midwatch facts`: read what workers found out about a project, and decide on it."""

from typing import Annotated

from cyclopts import App, Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import FactMark, FactState, KnownFact
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.learn.options import (
    UNMARKED,
    MarkOptions,
    ProjectOption,
    project_named,
    write_parts,
)
from midwatch_supervisor.cli.output import write_either, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import LearningMark
from midwatch_supervisor.present.known_text import fact_detail, fact_fields, fact_line

app = App(name="facts")

FactNumber = Annotated[int, Parameter(name="ID", help="The fact's number, from `facts list`.")]


@app.command(name="list")
async def list_facts(
    *,
    project: ProjectOption = None,
    everything: Annotated[
        bool, Parameter(name="--all", help="Include replaced and retired ones.")
    ] = False,
    unreviewed: Annotated[
        bool, Parameter(name="--unreviewed", help="Only unreviewed ones.")
    ] = False,
    json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Print the facts of a project, newest first."""
    async with await journal_to_read(journal) as opened:
        learned, told = Learned(opened), 0
        if await learned.projects() or project:
            name = await project_named(learned, project)
            live = not everything
            async for known in every(
                lambda before: learned.facts(project=name, live=live, before=before)
            ):
                if unreviewed and known.state is FactState.REVIEWED:
                    continue
                told += 1
                write_either(fact_fields(known), fact_line(known), json=json)
        if not told and not json:
            write_line(f"there are no facts to list in {opened.name}")


@app.command
async def show(
    number: FactNumber, /, *, json: JsonOption = False, journal: JournalOption = None
) -> None:
    """Print everything about one fact: its source and its history."""
    async with await journal_to_read(journal) as opened:
        known = await _find_fact(opened, number)
        if json:
            write_json(fact_fields(known))
            return
        ids = [] if known.instead is None else [known.instead]
        instead = await Learned(opened).facts(ids=ids, live=False)
        marks = [
            (entry.at, entry.record)
            async for entry in opened.all_entries(attempt=known.attempt, kinds=(FactMark,))
            if isinstance(entry.record, FactMark) and entry.record.fact == known.id
        ]
    write_line(fact_line(known))
    write_parts(fact_detail(known, next(iter(instead), None), marks=marks))


@app.command
async def approve(*numbers: FactNumber, options: MarkOptions = UNMARKED) -> None:
    """Allow facts waiting for review to be shared with workers; read them first."""
    if not numbers:
        raise UsageError(f"name facts by their numbers: `{command('facts list')}` shows them")
    for number in numbers:
        await _mark_fact(number, LearningMark.APPROVE, options)


@app.command
async def retire(number: FactNumber, /, *, options: MarkOptions = UNMARKED) -> None:
    """Retire a fact: it is no longer given to workers."""
    await _mark_fact(number, LearningMark.RETIRE, options)


@app.command
async def restore(number: FactNumber, /, *, options: MarkOptions = UNMARKED) -> None:
    """Restore a fact that was replaced, removed or retired."""
    await _mark_fact(number, LearningMark.RESTORE, options)


async def _mark_fact(number: int, mark: LearningMark, options: MarkOptions) -> None:
    async with await options.open_journal() as opened:
        await options.mark(opened, mark, await _find_fact(opened, number))


async def _find_fact(journal: Journal, number: int) -> KnownFact:
    found = await Learned(journal).facts(ids=[number], live=False)
    if not found:
        raise UsageError(f"there is no fact {number}; `{command('facts list --all')}` lists them")
    return found[0]
