"""`midwatch facts`: what workers found out about a workspace, and what a person thinks of it."""

import json as json_
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from pydantic import JsonValue

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Certainty, Entry, FactAct, FactMark, FactState, KnownFact
from midwatch_supervisor.cli.journals import (
    JournalOption,
    journal_to_read,
)
from midwatch_supervisor.cli.learn.options import UNSAID, Remark
from midwatch_supervisor.cli.learn.projects import ProjectOption, project_named
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.learning_actions import LearningActions

if TYPE_CHECKING:
    from midwatch_monitor.journal import Journal
    from midwatch_monitor.journal.learned.learned import Learned

app = App(name="facts")

FactNumber = Annotated[int, Parameter(name="ID", help="The fact's number, as `list` tells it.")]

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLine:
    """One fact as it stands."""

    type: Literal["fact"] = "fact"
    id: int
    text: str
    certainty: str
    state: str
    files: tuple[str, ...]
    tags: tuple[str, ...]
    value: JsonValue
    """As it was recorded; `None` if there is none."""
    live: bool
    instead: int | None
    """The fact that stands in its place."""
    ended: str | None
    """What ended it: `replaced`, `removed` or `retired`; `None` while it stands."""
    sources: tuple[int, ...]
    """All attempts that said it."""
    source_attempt: int
    reason: str
    """Of the last change."""
    project: str


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
    from midwatch_monitor.journal.learned.learned import Learned

    async with await journal_to_read(journal) as opened:
        learned, told = Learned(opened), 0
        if await learned.projects() or project:
            name = await project_named(learned, project)
            async for known in _facts(learned, name, live=not everything):
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
            write_json(asdict(fact_line(known)))
            return
        _tell(known, json=False)
        for line in _details(known):
            write_line(f"    {line}")
        for entry, mark in await _marks(opened, known):
            who = f" by {mark.author}" if mark.author else ""
            why = f": {mark.reason}" if mark.reason else ""
            write_line(f"    {entry.at.astimezone():%Y-%m-%d %H:%M} {mark.act}{who}{why}")


@app.command
async def approve(*numbers: FactNumber, remark: Remark = UNSAID) -> None:
    """Let facts that wait for a person be shared with workers; read them first."""
    for number in numbers:
        await _mark(number, FactAct.REVIEWED, "approve", remark)


@app.command
async def retire(number: FactNumber, *, remark: Remark = UNSAID) -> None:
    """Take a fact back: no worker is given it from now on."""
    await _mark(number, FactAct.RETIRED, "retire", remark)


@app.command
async def restore(number: FactNumber, *, remark: Remark = UNSAID) -> None:
    """Let a fact that was replaced, removed or retired stand again."""
    await _mark(number, FactAct.RESTORED, "restore", remark)


async def _mark(number: int, act: FactAct, verb: str, remark: Remark) -> None:
    async with await remark.opened() as opened:
        known = await _known(opened, number)
        if act is FactAct.REVIEWED and not known.waiting:
            raise UsageError(f"fact {number} does not wait for anybody")
        if known.live == (act is FactAct.RESTORED):
            raise UsageError(f"fact {number} {'stands' if known.live else 'is gone'} already")
        shelf = remark.shelf(opened)
        mark = None if remark.dry_run else await _write(shelf, number, act, remark.comment)
    if remark.json:
        fields = {"fact": number, "act": act.value, "dry_run": remark.dry_run}
        write_json({"type": "fact_mark", "id": mark, **fields})
    elif remark.dry_run:
        write_line(f"would {verb} fact {number}: {known.fact.text}")
    else:
        write_line(f"{'approved' if act is FactAct.REVIEWED else act} fact {number} ({mark})")


async def _write(shelf: "LearningActions", number: int, act: FactAct, comment: str) -> int:
    acts = {
        FactAct.REVIEWED: shelf.approve_fact,
        FactAct.RESTORED: shelf.restore_fact,
        FactAct.RETIRED: shelf.retire_fact,
    }
    return await acts[act](number, comment)


async def _known(journal: "Journal", number: int) -> KnownFact:
    from midwatch_monitor.journal.learned.learned import Learned

    found = await Learned(journal).facts(ids=[number], live=False)
    if not found:
        raise UsageError(f"there is no fact {number}; `midwatch facts list --all` lists them")
    return found[0]


def fact_line(known: KnownFact) -> FactLine:
    """What is said of one fact."""
    fact = known.fact
    return FactLine(
        id=known.id,
        text=fact.text,
        certainty=fact.certainty.value,
        state=known.state.value,
        files=fact.files,
        tags=fact.tags,
        value=_value(fact.value),
        live=known.live,
        instead=known.instead,
        ended=known.ended.value if known.ended else None,
        sources=tuple(dict.fromkeys((known.attempt, *known.sources))),
        source_attempt=known.attempt,
        reason=known.reason,
        project=known.project,
    )


def _value(text: str) -> JsonValue:
    """The structured value; one that is no JSON, from whatever source, as the text that it is."""
    try:
        return json_.loads(text) if text else None
    except ValueError:
        return text


async def _facts(learned: "Learned", project: str, *, live: bool) -> AsyncIterator[KnownFact]:
    before: int | None = None
    while page := await learned.facts(project=project, live=live, before=before, limit=_PAGE):
        for known in page:
            yield known
        before = page[-1].id


async def _marks(journal: "Journal", known: KnownFact) -> list[tuple[Entry, FactMark]]:
    return [
        (entry, entry.record)
        async for entry in journal.all_entries(attempt=known.attempt, kinds=(FactMark,))
        if isinstance(entry.record, FactMark) and entry.record.fact == known.id
    ]


def _tell(known: KnownFact, *, json: bool) -> None:
    if json:
        write_json(asdict(fact_line(known)))
        return
    doubts = [
        *([known.ended.value] if known.ended else []),
        *([] if known.state is FactState.REVIEWED or known.waiting else [known.state.value]),
        *([f"waits for you{because(known)}"] if known.waiting else []),
        *(["inferred"] if known.fact.certainty is Certainty.INFERRED else []),
    ]
    said = f" ({', '.join(doubts)})" if doubts else ""
    write_line(f"{known.id}{said}: {known.fact.text}")


def because(known: KnownFact) -> str:
    """Why a fact waits for a person, where its review said that."""
    return f": {known.reason}" if known.reason else ""


def _details(known: KnownFact) -> list[str]:
    fact = known.fact
    attempts = ", ".join(map(str, dict.fromkeys((known.attempt, *known.sources))))
    return [
        *([f"value: {fact.value}"] if fact.value else []),
        *([f"files: {', '.join(fact.files)}"] if fact.files else []),
        *([f"tags: {', '.join(fact.tags)}"] if fact.tags else []),
        f"said by the {fact.maker} in task {known.task}, attempts: {attempts}",
        *([f"in its place: fact {known.instead}"] if known.instead else []),
    ]
