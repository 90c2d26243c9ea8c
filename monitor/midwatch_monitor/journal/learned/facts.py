"""Facts in the index, in their current state."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import rows_of
from midwatch_monitor.journal.learned import projects, search
from midwatch_monitor.journal.learned.lessons import add_tags, body_of, index_tags, of_tags
from midwatch_monitor.journal.learned.projects import EntryOwner, sources_of
from midwatch_monitor.journal.learned.search import TextIndex, Wording
from midwatch_monitor.records import (
    Entry,
    Fact,
    FactAct,
    FactMark,
    FactState,
    KnownFact,
    LearnedQuery,
)

_SHARED = [each.value for each in FactState if each.shared]


def add(connection: Connection, entry: Entry, fact: Fact, owner: EntryOwner) -> int:
    """Store a fact, searchable if it is shared; return the attempt it comes from."""
    sources = sources_of(connection, owner, fact.sources, entry.attempt)
    values = {
        "entry": entry.id,
        "project": owner.project,
        "attempt": sources[0],
        "state": fact.state.value,
        "live": True,
        "ended": None,
        "reason": "",
    }
    connection.execute(insert(tables.fact), values)
    _said_by(connection, entry.id, sources)
    add_tags(connection, tables.fact, owner, entry.id, index_tags(fact.tags, fact.files))
    if fact.state.shared:
        search.put(connection, TextIndex.FACTS, owner.project, {entry.id: wording_of(fact)})
    return sources[0]


def wording_of(fact: Fact) -> Wording:
    """Return the text that a fact is found by."""
    return Wording(text=fact.text, tags=" ".join((*fact.tags, *fact.files)))


def _said_by(connection: Connection, fact: int, attempts: Iterable[int]) -> None:
    table = tables.fact_source
    noted = set(connection.execute(select(table.c.attempt).where(table.c.fact == fact)).scalars())
    rows = [{"fact": fact, "attempt": each} for each in attempts if each not in noted]
    if rows:
        connection.execute(insert(table), rows)


def mark(connection: Connection, mark: FactMark) -> None:
    """Update a fact's state. Raises JournalError if there is none with that id."""
    row = _row(connection, mark.fact)
    state, live = _state_after(FactState(row.state), row.live, mark.act)
    if mark.act is FactAct.REPLACED and mark.instead is not None:
        _merge(connection, mark.fact, mark.instead)
    instead = row.instead if live == row.live else None
    values = {
        "state": state.value,
        "live": live,
        "ended": None if live else _reason_ended(row, mark.act),
        "instead": mark.instead if mark.act is FactAct.REPLACED else instead,
        "reason": mark.reason,
    }
    table = tables.fact
    connection.execute(update(table).where(table.c.entry == mark.fact), values)
    _update_text_index(connection, row, shared=live and state.shared)


def _row(connection: Connection, key: int) -> Row[Any]:
    row = connection.execute(select(tables.fact).where(tables.fact.c.entry == key)).one_or_none()
    if row is None:
        raise JournalError(f"there is no fact {key}")
    return row


def _state_after(state: FactState, live: bool, act: FactAct) -> tuple[FactState, bool]:
    """Return a fact's state after an act, and whether it still holds."""
    match act:
        case FactAct.REVIEWED:
            return FactState.REVIEWED, live
        case FactAct.RELEASED:
            # One of two concurrent reviews may fail: what the other has reviewed stays reviewed.
            seen = state is FactState.REVIEWED
            return (state if seen else FactState.UNREVIEWED), live
        case FactAct.RESTORED:
            # A restored fact is to be shared, and no review will follow.
            return (state if state.shared else FactState.UNREVIEWED), True
        case FactAct.HELD:
            return (state if state is FactState.REVIEWED else FactState.WAITING), live
        case FactAct.REPLACED | FactAct.REMOVED | FactAct.RETIRED:
            return state, False


def _reason_ended(before: Row[Any], act: FactAct) -> str:
    """Return the act that ended a fact: the first one, or a later replacement."""
    first = before.live or act is FactAct.REPLACED
    return act.value if first else before.ended


def _merge(connection: Connection, fact: int, instead: int) -> None:
    """Record all attempts that stated a fact as sources of its replacement, of that one's
    replacement, and so on.
    """
    attempts = _sources(connection, [fact]).get(fact, ())
    heir: int | None = instead
    while heir is not None:
        if heir == fact:
            raise StaleIncarnationError(f"fact {fact} already replaces fact {instead}")
        after = _row(connection, heir).instead
        _said_by(connection, heir, attempts)
        heir = after


def _update_text_index(connection: Connection, before: Row[Any], *, shared: bool) -> None:
    if shared == (before.live and FactState(before.state).shared):
        return
    if not shared:
        search.remove_texts(connection, TextIndex.FACTS, [before.entry])
        return
    fact = body_of(connection, before.entry, Fact)
    search.put(connection, TextIndex.FACTS, before.project, {before.entry: wording_of(fact)})


def known_facts(
    connection: Connection, *wanted: ColumnElement[bool], limit: int
) -> list[KnownFact]:
    """Return facts with their current state, newest first."""
    fact, entry, task, project = tables.fact, tables.entry, tables.task, tables.project
    query = (
        select(fact, entry.c.at, entry.c.body, task.c.name.label("task"), project.c.name)
        .join(entry, entry.c.id == fact.c.entry)
        .join(task, task.c.id == entry.c.task)
        .join(project, project.c.id == fact.c.project)
        .where(*wanted)
        .order_by(fact.c.entry.desc())
    )
    rows = rows_of(connection, query, Fact, limit)
    sources = _sources(connection, [row.entry for row, _ in rows])
    return [
        KnownFact(
            id=row.entry,
            at=row.at,
            project=row.name,
            task=row.task,
            attempt=row.attempt,
            fact=said,
            state=FactState(row.state),
            live=row.live,
            ended=FactAct(row.ended) if row.ended else None,
            instead=row.instead,
            sources=sources.get(row.entry, ()),
            reason=row.reason,
        )
        for row, said in rows
    ]


def count_waiting(connection: Connection) -> Counter[str]:
    """Return how many facts of each project wait for a person."""
    fact, project = tables.fact, tables.project
    query = (
        select(project.c.name, func.count())
        .join(fact, fact.c.project == project.c.id)
        .where(fact.c.state == FactState.WAITING.value, fact.c.live.is_(True))
        .group_by(project.c.name)
        .order_by(project.c.name)
    )
    return Counter({row[0]: row[1] for row in connection.execute(query)})


def _sources(connection: Connection, keys: Sequence[int]) -> dict[int, tuple[int, ...]]:
    table = tables.fact_source
    query = select(table).where(table.c.fact.in_(keys)).order_by(table.c.attempt)
    found: dict[int, tuple[int, ...]] = {}
    for row in connection.execute(query) if keys else ():
        found[row.fact] = (*found.get(row.fact, ()), row.attempt)
    return found


def similar_facts(
    connection: Connection, wanted: LearnedQuery, *, limit: int = 100
) -> list[KnownFact]:
    """Return shared facts of a project that fit: by the same files first, then by tags, then by
    words.
    """
    project = projects.key_of(connection, wanted.project)
    if project is None:
        return []
    fact = tables.fact
    shared = (fact.c.live.is_(True), fact.c.state.in_(_SHARED))
    ways = (
        *(
            of_tags(connection, fact, project, tags, *shared, each=limit)
            for tags in (index_tags((), wanted.files), index_tags(wanted.tags, ()))
        ),
        dict(search.find(connection, TextIndex.FACTS, project, wanted.text, limit)),
    )
    keys = list(dict.fromkeys(key for way in ways for key in way))[:limit]
    found = known_facts(connection, fact.c.entry.in_(keys), limit=limit)
    place = {key: number for number, key in enumerate(keys)}
    return sorted(found, key=lambda each: place[each.id])
