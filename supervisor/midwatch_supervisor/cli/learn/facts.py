"""`midwatch facts`: what workers found out about a workspace, and what a person thinks of it."""

import json as json_
from typing import Annotated

from cyclopts import App, Parameter
from pydantic import JsonValue

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import Certainty, FactAct, FactMark, FactState, KnownFact
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.learn.options import (
    UNMARKED,
    MarkOptions,
    ProjectOption,
    project_named,
)
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.present.text_line import because, by

app = App(name="facts")

FactNumber = Annotated[int, Parameter(name="ID", help="The fact's number, as `list` tells it.")]


@app.command(name="list")
async def list_facts(
    *,
    project: ProjectOption = None,
    everything: Annotated[
        bool,
        Parameter(name="--all", negative="", help="Also those that were replaced or taken back."),
    ] = False,
    unreviewed: Annotated[
        bool, Parameter(name="--unreviewed", negative="", help="Only those nobody looked at.")
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
                _tell(known, json=json)
        if not told and not json:
            write_line(f"no fact like that in {opened.name}")


@app.command
async def show(
    number: FactNumber, *, json: JsonOption = False, journal: JournalOption = None
) -> None:
    """Print everything about one fact: where it comes from, and what became of it."""
    async with await journal_to_read(journal) as opened:
        known = await _known(opened, number)
        if json:
            write_json(_fields(known))
            return
        _tell(known, json=False)
        for line in _details(known):
            write_line(f"    {line}")
        async for entry in opened.all_entries(attempt=known.attempt, kinds=(FactMark,)):
            match entry.record:
                case FactMark(fact=id) as mark if id == known.id:
                    when = f"{entry.at.astimezone():%Y-%m-%d %H:%M}"
                    write_line(f"    {when} {mark.act}{by(mark.author)}{because(mark.reason)}")
                case _:
                    pass


@app.command
async def approve(*numbers: FactNumber, options: MarkOptions = UNMARKED) -> None:
    """Let facts that wait for a person be shared with workers; read them first."""
    for number in numbers:
        await _mark(number, FactAct.REVIEWED, "approve", options)


@app.command
async def retire(number: FactNumber, *, options: MarkOptions = UNMARKED) -> None:
    """Take a fact back: no worker is given it from now on."""
    await _mark(number, FactAct.RETIRED, "retire", options)


@app.command
async def restore(number: FactNumber, *, options: MarkOptions = UNMARKED) -> None:
    """Let a fact that was replaced, removed or retired stand again."""
    await _mark(number, FactAct.RESTORED, "restore", options)


async def _mark(number: int, act: FactAct, verb: str, options: MarkOptions) -> None:
    done = "approved" if act is FactAct.REVIEWED else act.value
    async with await options.opened() as opened:
        known = await _known(opened, number)
        if act is FactAct.REVIEWED and not known.waiting:
            raise UsageError(f"fact {number} does not wait for anybody")
        if known.live == (act is FactAct.RESTORED):
            raise UsageError(f"fact {number} {'stands' if known.live else 'is gone'} already")
        await options.store(
            opened,
            lambda actions: actions.mark_fact(number, act, options.comment),
            kind="fact_mark",
            fields={"fact": number, "act": act.value},
            text=lambda mark: (
                f"{done} fact {number} ({mark})"
                if mark
                else f"would {verb} fact {number}: {known.fact.text}"
            ),
        )


async def _known(journal: Journal, number: int) -> KnownFact:
    found = await Learned(journal).facts(ids=[number], live=False)
    if not found:
        raise UsageError(f"there is no fact {number}; `midwatch facts list --all` lists them")
    return found[0]


def _fields(known: KnownFact) -> dict[str, object]:
    """A fact as one object."""
    fact = known.fact
    return {
        "type": "fact",
        "id": known.id,
        "text": fact.text,
        "certainty": fact.certainty.value,
        "state": known.state.value,
        "files": fact.files,
        "tags": fact.tags,
        "value": _value(fact.value),
        "live": known.live,
        "instead": known.instead,
        "ended": known.ended.value if known.ended else None,
        "sources": tuple(dict.fromkeys((known.attempt, *known.sources))),
        "source_attempt": known.attempt,
        "reason": known.reason,
        "project": known.project,
    }


def _value(text: str) -> JsonValue:
    """The structured value; one that is no JSON, from whatever source, as the text that it is."""
    try:
        return json_.loads(text) if text else None
    except ValueError:
        return text


def _tell(known: KnownFact, *, json: bool) -> None:
    if json:
        write_json(_fields(known))
        return
    state = "" if known.state is FactState.REVIEWED else known.state.value
    doubts = (
        known.ended.value if known.ended else "",
        f"waits for you{because(known.reason)}" if known.waiting else state,
        "inferred" if known.fact.certainty is Certainty.INFERRED else "",
    )
    said = ", ".join(filter(None, doubts))
    write_line(f"{known.id}{f' ({said})' if said else ''}: {known.fact.text}")


def _details(known: KnownFact) -> list[str]:
    fact = known.fact
    attempts = ", ".join(map(str, dict.fromkeys((known.attempt, *known.sources))))
    lines = (
        f"value: {fact.value}" if fact.value else "",
        f"files: {', '.join(fact.files)}" if fact.files else "",
        f"tags: {', '.join(fact.tags)}" if fact.tags else "",
        f"said by the {fact.maker} in task {known.task}, attempts: {attempts}",
        f"in its place: fact {known.instead}" if known.instead else "",
    )
    return list(filter(None, lines))
