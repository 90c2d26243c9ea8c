"""What was learned, in its current state; the journal's log has the history."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, select

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.admin import erase
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.journal import JournalPart, read_method
from midwatch_monitor.journal.learned import chores as open_chores
from midwatch_monitor.journal.learned import facts as fact_index
from midwatch_monitor.journal.learned import lessons as lesson_index
from midwatch_monitor.journal.learned import projects as project_index
from midwatch_monitor.journal.learned import versions
from midwatch_monitor.records import (
    Erasure,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
)

KnownT = TypeVar("KnownT", KnownLesson, KnownFact)

_UNUSED = 1000
"""Number of the newest unused lessons that are searched for those that wait for a person."""


class Learned(JournalPart):
    """Lessons, facts, guidelines and chores in an open journal, even a read-only one.

    Writing goes through `Journal.commit`, except for `forget`. Every method raises a JournalError
    if the database fails.
    """

    projects = read_method(project_index.names)
    candidates = read_method(lesson_index.candidates)
    facts_like = read_method(fact_index.similar_facts)
    summaries = read_method(open_chores.summaries)
    chores = read_method(open_chores.still_open)
    watermark = read_method(versions.watermark)
    footprint = read_method(erase.footprint)

    async def lessons(
        self,
        *,
        project: str | None = None,
        task: str | None = None,
        failure_class: str | None = None,
        attempt: int | None = None,
        ids: Sequence[int] | None = None,
        obsolete: bool = True,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[KnownLesson]:
        """Return lessons with ids below `before`, newest first.

        `obsolete` includes lessons that are out of use, and those that wait for a person. `attempt`
        is any attempt that they come from, `task` the name of their task.
        """
        lesson, source = tables.lesson, tables.lesson_source
        wanted = _selection(lesson.c.entry, project, ids, before)
        if attempt is not None:
            of = select(source.c.lesson).where(source.c.attempt == attempt)
            wanted.append(lesson.c.entry.in_(of))
        if task is not None:
            wanted.append(lesson.c.task == task)
        if failure_class is not None:
            wanted.append(lesson_index.of_class(failure_class))
        if not obsolete:
            wanted.append(lesson.c.obsolete.is_(False))
        return await self.journal.read(lesson_index.known_lessons, *wanted, limit=limit)

    async def count_waiting(self) -> tuple[Counter[str], Counter[str]]:
        """Return how many lessons and facts of each project wait for a person."""
        obsolete = tables.lesson.c.obsolete.is_(True)
        unused = await self.journal.read(lesson_index.known_lessons, obsolete, limit=_UNUSED)
        held = await self.journal.read(fact_index.count_waiting)
        return Counter(each.project for each in unused if each.waiting), held

    async def facts(
        self,
        *,
        project: str | None = None,
        attempt: int | None = None,
        ids: Sequence[int] | None = None,
        live: bool = True,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[KnownFact]:
        """Return facts with ids below `before`, newest first; `live` leaves out those that no
        longer hold.

        `attempt` is any attempt that stated them.
        """
        fact, source = tables.fact, tables.fact_source
        wanted = _selection(fact.c.entry, project, ids, before)
        if attempt is not None:
            of = select(source.c.fact).where(source.c.attempt == attempt)
            wanted.append(fact.c.entry.in_(of))
        if live:
            wanted.append(fact.c.live.is_(True))
        return await self.journal.read(fact_index.known_facts, *wanted, limit=limit)

    async def guidelines(self, project: str | None = None) -> list[KnownGuidelines]:
        """Return all versions of one project or of all, newest first."""
        wanted = [] if project is None else [tables.project.c.name == project]
        return await self.journal.read(versions.known_versions, *wanted)

    async def guidelines_version(self, id: int) -> KnownGuidelines:
        """Return the version with that journal id. Raises JournalError if there is none."""
        found = await self.journal.read(versions.known_versions, tables.guidelines.c.entry == id)
        if not found:
            raise JournalError(f"{self.journal.name} has no version of guidelines {id}")
        return found[0]

    async def live_guidelines(self, project: str) -> KnownGuidelines | None:
        """Return the version in force in a project; `None` if there is none."""
        live = tables.guidelines.c.state == GuidelinesState.LIVE.value
        found = await self.journal.read(
            versions.known_versions, tables.project.c.name == project, live
        )
        return found[0] if found else None

    async def forget(self, project: str, *, author: str, at: datetime) -> Erasure:
        """Delete everything about a project; the remaining record says when and how much, not what.

        Raises UsageError for an unknown project, and while one of its attempts is under way.
        """
        done = await self.journal.write(erase.forget, project, author=author, at=at)
        await self.journal.flush()
        return done


async def every(read: Callable[[int | None], Awaitable[Sequence[KnownT]]]) -> AsyncIterator[KnownT]:
    """Yield everything, newest first: `read` returns the page below a given id."""
    before: int | None = None
    while page := await read(before):
        for known in page:
            yield known
        before = page[-1].id


def _selection(
    key: ColumnElement[int], project: str | None, ids: Sequence[int] | None, before: int | None
) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = []
    if project is not None:
        wanted.append(tables.project.c.name == project)
    if ids is not None:
        wanted.append(key.in_(ids))
    if before is not None:
        wanted.append(key < before)
    return wanted
