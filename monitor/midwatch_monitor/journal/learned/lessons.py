"""Lessons in the index: their current state, and the outcomes of their use."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    case,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from midwatch_monitor.errors import JournalCorruptError, JournalError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of, read, rows_of
from midwatch_monitor.journal.learned import projects, search
from midwatch_monitor.journal.learned.projects import EntryOwner, sources_of
from midwatch_monitor.journal.learned.search import TextIndex, Wording
from midwatch_monitor.records import (
    Candidate,
    Entry,
    Fact,
    Feedback,
    KnownLesson,
    LearnedQuery,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Origin,
    Recall,
)
from midwatch_monitor.records.verdict import weight

RecordT = TypeVar("RecordT", Lesson, Fact)
_OBSOLETE = {
    LessonAct.RETIRED: True,
    LessonAct.ARCHIVED: True,
    LessonAct.RESTORED: False,
    LessonAct.APPROVED: False,
}


def add(connection: Connection, entry: Entry, lesson: Lesson, owner: EntryOwner) -> None:
    """Store a lesson in searchable form."""
    sources = sources_of(connection, owner, lesson.sources, entry.attempt)
    of_none = lesson.born is LessonOrigin.PERSON and not lesson.sources
    values = {
        "entry": entry.id,
        "project": owner.project,
        "task": "" if of_none else owner.task,
        "attempt": sources[0],
        "verdict": lesson.verdict,
        "obsolete": bool(lesson.waits),
        "rating": 0,
    }
    connection.execute(insert(tables.lesson), values)
    rows = [{"lesson": entry.id, "attempt": each} for each in sources]
    connection.execute(insert(tables.lesson_source), rows)
    add_tags(connection, tables.lesson, owner, entry.id, index_tags(lesson.tags, lesson.files))
    if not lesson.waits:
        search.put(connection, TextIndex.LESSONS, owner.project, {entry.id: wording_of(lesson)})


def add_tags(
    connection: Connection, kept: Table, owner: EntryOwner, key: int, tags: Sequence[str]
) -> None:
    """Make a lesson or a fact searchable by tags and files."""
    rows = [{"project": owner.project, "tag": tag, kept.name: key} for tag in tags]
    if rows:
        connection.execute(insert(tables.metadata.tables[f"{kept.name}_tag"]), rows)


def index_tags(tags: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """Return tags and files as indexed: `API` and `api` are one tag, but two files.

    Without NUL, which PostgreSQL does not store.
    """
    named = (*(tag.casefold() for tag in tags), *(f"file:{path}" for path in files))
    return tuple(dict.fromkeys(each.replace("\0", "") for each in named))


def wording_of(lesson: Lesson) -> Wording:
    """Return the text that a lesson is found by."""
    return Wording(
        text=lesson.text,
        more=" ".join(lesson.insights),
        tags=" ".join((*lesson.tags, *lesson.files)),
    )


def mark(connection: Connection, mark: LessonMark) -> None:
    """Update a lesson's state. Raises JournalError if there is none with that id."""
    table = tables.lesson
    query = select(table.c.project, table.c.obsolete).where(table.c.entry == mark.lesson)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise JournalError(f"there is no lesson {mark.lesson}")
    change = update(table).where(table.c.entry == mark.lesson)
    if mark.act is LessonAct.RATED:
        connection.execute(change, {"rating": mark.rating})
        return
    if mark.act is LessonAct.GIVEN:
        return
    obsolete = _OBSOLETE[mark.act]
    if obsolete == row.obsolete:
        return
    connection.execute(change, {"obsolete": obsolete})
    if obsolete:
        search.remove_texts(connection, TextIndex.LESSONS, [mark.lesson])
    else:
        lesson = body_of(connection, mark.lesson, Lesson)
        search.put(connection, TextIndex.LESSONS, row.project, {mark.lesson: wording_of(lesson)})


def body_of(connection: Connection, key: int, kind: type[RecordT]) -> RecordT:
    """Return the lesson or fact of an entry. Raises JournalCorruptError if it is something else."""
    query = select(tables.entry.c.body).where(tables.entry.c.id == key)
    record = read(kind_of(kind), connection.execute(query).scalar_one())
    if not isinstance(record, kind):
        name = kind.__name__.lower()
        raise JournalCorruptError(f"the journal holds something else in place of a {name}")
    return record


def use(connection: Connection, entry: Entry, recall: Recall, owner: EntryOwner) -> None:
    """Record which lessons an attempt was given; the outcome is added later.

    A lesson that no longer exists, or was already recorded, is skipped without an error.
    """
    if entry.attempt is None or not recall.lessons:
        return
    table, lesson = tables.lesson_use, tables.lesson
    there = select(lesson.c.entry).where(
        lesson.c.entry.in_([each.lesson for each in recall.lessons]),
        lesson.c.project == owner.project,
    )
    noted = select(table.c.lesson).where(table.c.attempt == entry.attempt)
    known = set(connection.execute(there).scalars()) - set(connection.execute(noted).scalars())
    rows = {
        each.lesson: {
            "lesson": each.lesson,
            "attempt": entry.attempt,
            "method": each.method.value,
            "score": each.score,
            "at": entry.at,
        }
        for each in recall.lessons
        if each.lesson in known
    }
    if rows:
        connection.execute(insert(table), list(rows.values()))


def judge(connection: Connection, attempt: int, verdict: Feedback) -> None:
    """Add the outcome of an attempt to the lessons that it was given.

    The verdict with the highest weight counts, whenever it came; of equal ones, the newest.
    """
    table = tables.lesson_use
    weaker = [each for each in Origin if weight(each) <= weight(verdict.origin)]
    change = update(table).where(
        table.c.attempt == attempt,
        table.c.origin.is_(None) | table.c.origin.in_([each.value for each in weaker]),
    )
    connection.execute(change, {"accepted": verdict.accepted, "origin": verdict.origin.value})


def known_lessons(
    connection: Connection, *wanted: ColumnElement[bool], limit: int
) -> list[KnownLesson]:
    """Return lessons with their current state, newest first."""
    lesson, entry, project = tables.lesson, tables.entry, tables.project
    query = (
        select(lesson, entry.c.at, entry.c.body, project.c.name)
        .join(entry, entry.c.id == lesson.c.entry)
        .join(project, project.c.id == lesson.c.project)
        .where(*wanted)
        .order_by(lesson.c.entry.desc())
    )
    rows = rows_of(connection, query, Lesson, limit)
    counts = _use_counts(connection, [row.entry for row, _ in rows])
    found = [_known_lesson(row, said, counts.get(row.entry)) for row, said in rows]
    waiting = {each.id for each in found if each.obsolete and each.lesson.waits}
    waiting -= _find_decided(connection, sorted(waiting))
    return [
        replace(each, obsolete=False, waiting=True) if each.id in waiting else each
        for each in found
    ]


def _find_decided(connection: Connection, keys: Sequence[int]) -> set[int]:
    """Return which of some lessons were approved or retired.

    The index only knows which lessons are in use: the marks of waiting ones are in the log.
    """
    entry = tables.entry
    attempts = select(entry.c.attempt).where(entry.c.id.in_(keys))
    query = select(entry.c.id.label("entry"), entry.c.body).where(
        entry.c.attempt.in_(attempts), entry.c.kind == kind_of(LessonMark)
    )
    marks = rows_of(connection, query, LessonMark) if keys else ()
    return {each.lesson for _, each in marks if each.act is not LessonAct.RATED}


def of_class(name: str) -> ColumnElement[bool]:
    """Return a condition for a lesson's failure class, which is only in its body.

    No other string in the body can match: quotes inside JSON strings are escaped. Not `LIKE`, which
    ignores case in one database but not in the other.
    """
    body, value = tables.entry.c.body, json.dumps(name, ensure_ascii=False)
    forms = (f'"failure_class":{value}', f'"failure_class": {value}')  # with and without a space
    return or_(*(func.replace(body, form, "") != body for form in forms))


def _use_counts(connection: Connection, keys: Sequence[int]) -> dict[int, Row[Any]]:
    table = tables.lesson_use
    columns: list[ColumnElement[Any]] = [
        table.c.lesson,
        func.count().label("used"),
        func.sum(case((table.c.accepted.is_(True), 1), else_=0)).label("helped"),
        func.sum(case((table.c.accepted.is_(False), 1), else_=0)).label("hurt"),
        func.max(table.c.at).label("last"),
    ]
    query = select(*columns).where(table.c.lesson.in_(keys)).group_by(table.c.lesson)
    return {row.lesson: row for row in (connection.execute(query) if keys else ())}


def _known_lesson(row: Row[Any], said: Lesson, uses: Row[Any] | None) -> KnownLesson:
    return KnownLesson(
        id=row.entry,
        at=row.at,
        project=row.name,
        task=row.task,
        attempt=row.attempt,
        lesson=said,
        used=uses.used if uses else 0,
        helped=uses.helped if uses else 0,
        hurt=uses.hurt if uses else 0,
        rating=row.rating,
        last_used=uses.last if uses else None,
        obsolete=row.obsolete,
    )


EACH = 20
"""Number of newest lessons considered of the same task, and of each tag and file."""
TAGS = 24
"""Number of tags and files that are searched."""


def candidates(connection: Connection, wanted: LearnedQuery, *, limit: int = 50) -> list[Candidate]:
    """Return at most `limit` usable lessons of a project that may fit, each once.

    The best matches by task, by tags and files, and by words take turns. Lessons of the same kind
    of work count only if they have words in common.
    """
    project = projects.key_of(connection, wanted.project)
    if project is None:
        return []
    alike = dict(search.find(connection, TextIndex.LESSONS, project, wanted.text, limit))
    live = tables.lesson.c.obsolete.is_(False)
    tags = index_tags(wanted.tags, wanted.files)
    ways = (
        _of_task(connection, project, wanted.task),
        of_tags(connection, tables.lesson, project, tags, live, each=EACH),
        list(alike),
    )
    keys = _in_turn(ways)[:limit]
    lesson = tables.lesson
    found = known_lessons(connection, lesson.c.entry.in_(keys), live, limit=limit)
    place = {key: number for number, key in enumerate(keys)}
    asked = {*search.search_words(wanted.text)}
    return [
        Candidate(
            known=each,
            bm25=alike.get(each.id, 0.0),
            words=len(asked & {*wording_of(each.lesson).words}),
        )
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
    """Return lessons or facts with any of the first `TAGS` tags and files: the newest `each` per
    tag.

    Those with the most tags in common come first; of equal ones, the newest.
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
    """Interleave rankings: first the best of each, then the second of each, without repeats."""
    rounds = chain.from_iterable(zip_longest(*ways))
    return list(dict.fromkeys(key for key in rounds if key is not None))
