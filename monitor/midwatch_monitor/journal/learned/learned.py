"""What was learned, as it stands now; the journal's log says how it came to be."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, select

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.admin import erase as erasure
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.journal import Journal
from midwatch_monitor.journal.learned import chores, facts, lessons, projects, versions
from midwatch_monitor.records import (
    Candidate,
    Chore,
    Erasure,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    KnownSummary,
    OpenChore,
    Recalled,
    Wanted,
)

T = TypeVar("T")
KnownT = TypeVar("KnownT", KnownLesson, KnownFact)

_UNUSED = 1000
"""Lessons out of use that are looked at for those that wait, the newest."""


class Learned:
    """Lessons, facts, guidelines and chores in an open journal, also one opened to be read.

    Writing goes through `Journal.commit`; only `forget` is done here. Every method raises a
    JournalError when the database cannot do it.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def projects(self) -> list[str]:
        """The names of the projects that have a task in the journal, in order."""
        return await self._journal.read(projects.names)

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
        """Lessons, newest first, those of lower ids than `before`; obsolete ones, and those that
        wait for a person, too or not.

        `attempt` is any that they come from, `task` the name of their task.
        """
        lesson, source = tables.lesson, tables.lesson_source
        wanted = _selection(lesson.c.entry, project, ids, before)
        if attempt is not None:
            of = select(source.c.lesson).where(source.c.attempt == attempt)
            wanted.append(lesson.c.entry.in_(of))
        if task is not None:
            wanted.append(lesson.c.task == task)
        if failure_class is not None:
            wanted.append(lessons.of_class(failure_class))
        if not obsolete:
            wanted.append(lesson.c.obsolete.is_(False))
        return await self._journal.read(lessons.known_lessons, *wanted, limit=limit)

    async def count_waiting(self) -> tuple[Counter[str], Counter[str]]:
        """How many lessons and facts of each project wait for a person."""
        obsolete = tables.lesson.c.obsolete.is_(True)
        unused = await self._journal.read(lessons.known_lessons, obsolete, limit=_UNUSED)
        held = await self._journal.read(facts.count_waiting)
        return Counter(each.project for each in unused if each.waiting), held

    async def lesson(self, id: int) -> KnownLesson:
        """The lesson with that id. Raises JournalError if there is none."""
        return self._only(await self.lessons(ids=[id]), f"lesson {id}")

    async def candidates(self, wanted: Wanted, *, limit: int = 50) -> list[Candidate]:
        """Lessons of the project that may fit and are not obsolete, the likeliest first."""
        return await self._journal.read(lessons.candidates, wanted, limit=limit)

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
        """Facts, newest first, those of lower ids than `before`; `live` leaves out what ended.

        `attempt` is any that said them.
        """
        fact, source = tables.fact, tables.fact_source
        wanted = _selection(fact.c.entry, project, ids, before)
        if attempt is not None:
            of = select(source.c.fact).where(source.c.attempt == attempt)
            wanted.append(fact.c.entry.in_(of))
        if live:
            wanted.append(fact.c.live.is_(True))
        return await self._journal.read(facts.known_facts, *wanted, limit=limit)

    async def fact(self, id: int) -> KnownFact:
        """The fact with that id. Raises JournalError if there is none."""
        return self._only(await self.facts(ids=[id], live=False), f"fact {id}")

    async def facts_like(self, wanted: Wanted, *, limit: int = 100) -> list[KnownFact]:
        """Shared facts of the project: of the same files, then the same tags, then words."""
        return await self._journal.read(facts.like, wanted, limit=limit)

    async def guidelines(self, project: str | None = None) -> list[KnownGuidelines]:
        """All versions, newest first."""
        wanted = [] if project is None else [tables.project.c.name == project]
        return await self._journal.read(versions.known_versions, *wanted)

    async def guidelines_version(self, id: int) -> KnownGuidelines:
        """The version with that journal id. Raises JournalError if there is none."""
        found = await self._journal.read(versions.known_versions, tables.guidelines.c.entry == id)
        return self._only(found, f"version of guidelines {id}")

    async def live_guidelines(self, project: str) -> KnownGuidelines | None:
        """The version in force in a project."""
        live = tables.guidelines.c.state == GuidelinesState.LIVE.value
        found = await self._journal.read(
            versions.known_versions, tables.project.c.name == project, live
        )
        return found[0] if found else None

    async def summaries(
        self, project: str, *, after: int = 0, limit: int = 50
    ) -> list[KnownSummary]:
        """Summaries of attempts, oldest first, those with ids above `after`; one an attempt."""
        return await self._journal.read(chores.summaries, project, after=after, limit=limit)

    async def watermark(self, project: str) -> int:
        """The newest summary that was looked back at, by journal id; 0 before the first look."""
        return await self._journal.read(versions.watermark, project)

    async def chores(
        self, *, tries: int, attempt: int | None = None, kinds: Collection[Chore] = tuple(Chore)
    ) -> list[OpenChore]:
        """What is still to be drawn from attempts, newest first.

        What failed `tries` times is left out, but no review: until that is done, facts wait.
        """
        return await self._journal.read(
            chores.still_open, tries=tries, attempt=attempt, kinds=kinds
        )

    async def uses(self, attempt: int) -> list[Recalled]:
        """The lessons that an attempt was given, the best first."""
        return await self._journal.read(lessons.uses, attempt)

    async def footprint(self, project: str) -> Erasure:
        """What `forget` would delete; its id is 0. Raises UsageError for an unknown project."""
        return await self._journal.read(erasure.footprint, project)

    async def forget(self, project: str, *, author: str, at: datetime) -> Erasure:
        """Delete everything about a project; what is left says when and how much, not what.

        Raises UsageError for an unknown project, and while an attempt of it is under way.
        """
        done = await self._journal.write(erasure.forget, project, author=author, at=at)
        await self._journal.flush()
        return done

    async def erasures(self) -> list[Erasure]:
        """What was deleted, oldest first."""
        return await self._journal.read(erasure.erasures)

    def _only(self, found: list[T], what: str) -> T:
        if not found:
            raise JournalError(f"{self._journal.name} has no {what}")
        return found[0]


async def every(read: Callable[[int | None], Awaitable[Sequence[KnownT]]]) -> AsyncIterator[KnownT]:
    """All that `read` finds, newest first; it answers the page of lower ids than the given one."""
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
