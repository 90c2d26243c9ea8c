"""Lessons that may fit an attempt, looked for in every way that an index answers at once."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest

from sqlalchemy import Connection, select, union_all

from midwatch_monitor.journal import lessons, projects, search, tables
from midwatch_monitor.journal.search import Shelf
from midwatch_monitor.words import Candidate, Wanted

EACH = 20
"""Newest lessons of the same task, and of each tag and file."""
TAGS = 12
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
    ways = (
        _of_task(connection, project, wanted.task),
        _of_tags(connection, project, wanted),
        list(alike),
    )
    keys = _in_turn(ways)[:limit]
    lesson = tables.lesson
    found = lessons.known(
        connection, lesson.c.entry.in_(keys), lesson.c.obsolete.is_(False), limit=limit
    )
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


def _of_tags(connection: Connection, project: int, wanted: Wanted) -> list[int]:
    """Those with the most tags and files in common first."""
    tags = lessons.tagged(wanted.tags, wanted.files)[:TAGS]
    if not tags:
        return []
    tag, lesson = tables.lesson_tag, tables.lesson
    newest = (
        select(tag.c.lesson)
        .join(lesson, lesson.c.entry == tag.c.lesson)
        .where(tag.c.project == project, tag.c.tag == each, lesson.c.obsolete.is_(False))
        .order_by(tag.c.lesson.desc())
        .limit(EACH)
        .subquery()
        for each in tags
    )
    query = union_all(*(select(each.c.lesson) for each in newest))
    common = Counter(connection.execute(query).scalars())
    return sorted(common, key=lambda key: (common[key], key), reverse=True)


def _in_turn(ways: Sequence[Sequence[int]]) -> list[int]:
    """The first of each way, then the second of each, and so on; each once."""
    rounds = chain.from_iterable(zip_longest(*ways))
    return list(dict.fromkeys(key for key in rounds if key is not None))
