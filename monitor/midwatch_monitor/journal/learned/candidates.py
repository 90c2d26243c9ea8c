"""Lessons that may fit an attempt, looked for in every way that an index answers at once."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest

from sqlalchemy import ColumnElement, Connection, Table, select, union_all

from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.learned import lessons, projects, search
from midwatch_monitor.journal.learned.search import Shelf
from midwatch_monitor.records import Candidate, Wanted

EACH = 20
"""Newest lessons of the same task, and of each tag and file."""
TAGS = 24
"""Tags and files that are looked for."""


def candidates(connection: Connection, wanted: Wanted, *, limit: int) -> list[Candidate]:
    """At most `limit` lessons of the project that are not obsolete, each once.

    Those that any one way found best come first: of the same task, with the same tags or files,
    with the same words. What is of the same kind counts only with words in common.
    """
    project = projects.key_of(connection, wanted.project)
    if project is None:
        return []
    alike = dict(search.found(connection, Shelf.LESSONS, project, wanted.text, limit))
    live = tables.lesson.c.obsolete.is_(False)
    tags = lessons.tagged(wanted.tags, wanted.files)
    ways = (
        _of_task(connection, project, wanted.task),
        of_tags(connection, tables.lesson, project, tags, live, each=EACH),
        list(alike),
    )
    keys = _in_turn(ways)[:limit]
    lesson = tables.lesson
    found = lessons.known(connection, lesson.c.entry.in_(keys), live, limit=limit)
    place = {key: number for number, key in enumerate(keys)}
    return [
        Candidate(known=each, bm25=alike.get(each.id, 0.0))
        for each in sorted(found, key=lambda each: place[each.id])
    ]


def _of_task(connection: Connection, project: int, task: str) -> list[int]:
    lesson = tables.lesson
    query = (
        select(lesson.c.entry)
        .where(lesson.c.project == project, lesson.c.task == task, lesson.c.obsolete.is_(False))
        .order_by(lesson.c.entry.desc())
        .limit(EACH)
    )
    return list(connection.execute(query).scalars()) if task else []


def of_tags(
    connection: Connection,
    kept: Table,
    project: int,
    tags: Sequence[str],
    *wanted: ColumnElement[bool],
    each: int,
) -> list[int]:
    """Lessons or facts with any of the first few tags and files, the newest `each` of every one.

    Those with the most in common come first, of these the newest.
    """
    tag = tables.metadata.tables[f"{kept.name}_tag"]
    key = tag.c[kept.name]
    newest = (
        select(key.label("key"))
        .join(kept, kept.c.entry == key)
        .where(tag.c.project == project, tag.c.tag == name, *wanted)
        .order_by(key.desc())
        .limit(each)
        .subquery()
        for name in tags[:TAGS]
    )
    parts = [select(part.c.key) for part in newest]
    if not parts:
        return []
    common = Counter(connection.execute(union_all(*parts)).scalars())
    return sorted(common, key=lambda key: (common[key], key), reverse=True)


def _in_turn(ways: Sequence[Sequence[int]]) -> list[int]:
    """The first of each way, then the second of each, and so on; each once."""
    rounds = chain.from_iterable(zip_longest(*ways))
    return list(dict.fromkeys(key for key in rounds if key is not None))
