"""Looks back at a project's attempts: reads them from the journal, and stores the results.

A watermark says up to where summaries were used, so that no attempt is used twice or missed:

- Attempts with too few turns will never have more: the watermark passes them.
- While there are too few deep ones, it stops before the first of these, and they wait.
- If the first question fails, it stays, and the next look takes the same attempts again; after
  `learning.tries` failures it passes them, so that one bad answer does not block everything.
- If only the second fails, the first result is kept, and the watermark passes them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pydantic_ai.models import Model

from midwatch_agents.consultation import spent_before
from midwatch_agents.learning.guidelines import (
    NO_ATTEMPTS,
    NO_DEPTH,
    AttemptAside,
    Insight,
    ReflectionResult,
    deep,
    gate,
    reflect_on_runs,
)
from midwatch_agents.learning.text_safety import BY_A_MODEL
from midwatch_monitor.config.learning import GuidelinesSettings, LessonSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned, every
from midwatch_monitor.records import (
    Actor,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesState,
    Intervention,
    KnownGuidelines,
    KnownLesson,
    KnownSummary,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Origin,
    Record,
    Reflection,
)
from midwatch_supervisor.present.lesson_history import lesson_marks
from midwatch_tools.data_blocks import fold_lines

log = logging.getLogger(__name__)

PART = "learning: guidelines"
"""The part of Midwatch that a fault names."""
OFF = "guidelines are switched off"
NO_MODEL = "there is no model to look back with: its newest task has none for the role `reflector`"
_PAGE = 100
_EACH = 5
"""Largest number of asides for one attempt and kind."""
_EARLIER = 40
"""Largest number of earlier insights used for a new text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The summaries since the last look."""

    deep: tuple[KnownSummary, ...] = ()
    """Summaries with enough turns, oldest first."""
    newest: KnownSummary | None = None
    """The last summary that was read."""
    before: KnownSummary | None = None
    """The last summary before the first deep one."""


async def reflect_project(
    journal: Journal,
    project: str,
    *,
    model: Model | None,
    settings: Settings,
    now: Callable[[], datetime],
) -> Reflection | None:
    """Look back at a project's attempts since the last time, and return the result.

    Everything is stored in one commit: insights as lessons, a proposed version of the guidelines
    (never in force by itself), the watermark, and the cost. A skipped look is journaled only if it
    moves the watermark. Returns `None` and stores nothing if another process looked back at the
    same time. Raises only JournalError.
    """
    config = settings.learning.guidelines
    learned = Learned(journal)
    mark = await learned.watermark(project)
    look = _Look(journal=journal, learned=learned, project=project, settings=settings, now=now)
    try:
        if not config.enabled or model is None:
            return look.leave(mark, NO_MODEL if config.enabled else OFF)
        batch = await read_batch(learned, project, config, after=mark)
        if batch.newest is None:
            return look.leave(mark, NO_ATTEMPTS)
        if reason := gate(batch.deep, config):
            return await look.pass_over(batch, mark, reason if batch.deep else NO_DEPTH)
        return await look.back(batch, mark, batch.newest, model)
    except StaleIncarnationError:
        log.info("another process looked back at the same attempts; this look stores nothing")
        return None


async def read_batch(
    learned: Learned, project: str, config: GuidelinesSettings, *, after: int
) -> Batch:
    """Return the summaries above a watermark, with at most `max_runs` deep ones."""
    found: list[KnownSummary] = []
    newest = before = None
    while page := await learned.summaries(project, after=after, limit=_PAGE):
        for each in page:
            if deep([each], config):
                if len(found) == config.max_runs:
                    return Batch(deep=tuple(found), newest=newest, before=before)
                found.append(each)
            elif not found:
                before = each
            newest, after = each, each.id
    return Batch(deep=tuple(found), newest=newest, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    journal: Journal
    learned: Learned
    project: str
    settings: Settings
    now: Callable[[], datetime]

    def leave(self, mark: int, reason: str) -> Reflection:
        """Ask nothing, and leave the watermark where it is."""
        log.debug("did not look back at %s: %s", self.project, reason)
        return Reflection(watermark=mark, skipped=reason)

    async def pass_over(self, batch: Batch, mark: int, reason: str) -> Reflection:
        """Skip the attempts that will never count; those that may count wait."""
        shallow = batch.before if batch.deep else batch.newest
        if shallow is None:
            return self.leave(mark, reason)
        skipped = Reflection(watermark=shallow.id, skipped=reason)
        await self._commit(shallow, (skipped,))
        return skipped

    async def back(self, batch: Batch, mark: int, newest: KnownSummary, model: Model) -> Reflection:
        learning = self.settings.learning
        versions = await self.learned.guidelines(self.project)
        live = next(filter(_is_live, versions), None)
        asides, earlier = await self._asides(batch), await self._earlier_insights(versions)
        try:
            result = await reflect_on_runs(
                batch.deep,
                live.guidelines.text if live else None,
                model,
                learning.guidelines,
                asides=asides,
                earlier=earlier,
                seconds=learning.timeout_seconds,
            )
        except asyncio.CancelledError as canceled:
            if spent := spent_before(canceled):
                await self._commit(batch.deep[-1], spent)
            raise
        if result.errors and not result.insights:  # the first question failed
            return await self._note_failure(batch, mark, newest, result)
        result = await self._without_known(result)
        text = "" if _is_known(result.guidelines, versions) else (result.guidelines or "")
        reflection = Reflection(
            watermark=newest.id,
            attempts=tuple(each.attempt for each in batch.deep),
            insights=len(result.insights) if learning.lessons.enabled else 0,
            proposed=bool(text),
            error=_error_text(result),
        )
        await self._store_reflection(batch, result, reflection, text, versions, model.model_name)
        log.info(
            "looked back at %d attempts of %s: %d insights, %d dropped, %s",
            len(batch.deep),
            self.project,
            len(result.insights),
            result.dropped,
            f"{len(text.split())} words proposed" if text else "no new guidelines",
        )
        return reflection

    async def _asides(self, batch: Batch) -> tuple[AttemptAside, ...]:
        """Return lessons of the attempts and messages of operators, as far as configured."""
        wanted, found = self.settings.learning.guidelines, list[AttemptAside]()
        kinds = (Intervention, Delivery, Feedback)
        for attempt in (each.attempt for each in batch.deep):
            known = await self.learned.lessons(attempt=attempt, limit=_EACH)
            found += [
                AttemptAside(attempt=attempt, kind="lesson", text=each.lesson.text)
                for each in (known if wanted.with_lessons else ())
                # Insights are themselves results of earlier looks back.
                if not each.obsolete and each.lesson.born is LessonOrigin.VERDICT
            ]
            entries = await self.journal.entries(attempt=attempt, kinds=kinds)
            said = [each for entry in entries if (each := _aside_of(attempt, entry)) is not None]
            found += said[-_EACH:] if wanted.with_operators else ()
        return tuple(found)

    async def _without_known(self, result: ReflectionResult) -> ReflectionResult:
        """Drop insights that repeat a lesson of the project, including retired ones.

        Otherwise retired lessons would return, and harmful ones would start again without their
        record.
        """
        if not result.insights:
            return result
        known = every(lambda before: self.learned.lessons(project=self.project, before=before))
        texts = {fold_lines(each.lesson.text) async for each in known}
        fresh = tuple(each for each in result.insights if fold_lines(each.content) not in texts)
        dropped = result.dropped + len(result.insights) - len(fresh)
        return replace(result, insights=fresh, dropped=dropped)

    async def _earlier_insights(self, versions: Sequence[KnownGuidelines]) -> list[str]:
        """Return insights that neither the current text nor a rejected one was made from."""
        settled = {GuidelinesState.LIVE, GuidelinesState.REJECTED}
        since = max((each.id for each in versions if each.state in settled), default=0)
        known = await self.learned.lessons(project=self.project)
        found = [
            each.lesson.text
            for each in known
            if each.lesson.born is LessonOrigin.REFLECTION and each.id > since and not each.obsolete
        ]
        return found[:_EARLIER][::-1]

    async def _note_failure(
        self, batch: Batch, mark: int, newest: KnownSummary, result: ReflectionResult
    ) -> Reflection:
        """Note that the first question failed; the same attempts are retried, but not forever."""
        tries = await self._count_failures(mark) + 1
        over = tries >= self.settings.learning.tries
        reflection = Reflection(watermark=newest.id if over else mark, error=_error_text(result))
        log.warning("looking back at %s failed, try %d", self.project, tries)
        fault = Fault(part=PART, error=reflection.error)
        await self._commit(batch.deep[-1], (reflection, *result.spending, fault))
        return reflection

    async def _count_failures(self, mark: int) -> int:
        """Return how often a look from this watermark failed at its first question."""
        looks: list[Reflection] = []
        async for entry in self.journal.all_entries(mark, kinds=(Reflection,)):
            match entry.record:
                case Reflection(watermark=at) as look if at == mark:
                    task = await self.journal.task(entry.task)
                    looks += [look] if task.project == self.project else []
                case _:
                    pass
        # The first one is the look that moved the watermark here, from an earlier one.
        since = looks[1:] if mark else looks
        return sum(bool(each.error) for each in since)

    async def _store_reflection(
        self,
        batch: Batch,
        result: ReflectionResult,
        reflection: Reflection,
        text: str,
        versions: Sequence[KnownGuidelines],
        model: str,
    ) -> None:
        records: list[Record] = [reflection, *result.spending]
        if text:
            version = Guidelines(
                version=max((each.guidelines.version for each in versions), default=0) + 1,
                text=text,
                base=next((each.id for each in versions if _is_live(each)), None),
                sources=reflection.attempts,
                model=model,
            )
            records.insert(0, version)
        if reflection.error:
            records.append(Fault(part=PART, error=reflection.error))
        insights = result.insights if self.settings.learning.lessons.enabled else ()
        at = self.now()
        by_attempt = {each.attempt: each for each in batch.deep}
        # Lessons first: the version made from them must have the higher id.
        lessons = [_insight_lesson(each, by_attempt, model, at) for each in insights]
        await self._commit(batch.deep[-1], records, lessons)

    async def _commit(
        self, newest: KnownSummary, records: Sequence[Record], lessons: Sequence[Draft] = ()
    ) -> None:
        # Faults are attached to the attempt, where people look for them; the rest to the project.
        drafts = [
            Draft(
                record=each,
                at=self.now(),
                task=newest.task,
                attempt=newest.attempt if isinstance(each, Fault) else None,
            )
            for each in records
        ]
        await self.journal.commit(Commit(drafts=(*lessons, *drafts)))


def _insight_lesson(
    insight: Insight, attempts: dict[int, KnownSummary], model: str, at: datetime
) -> Draft:
    """Return an insight as a lesson, attached to the newest attempt that shows it."""
    newest = attempts[max(insight.sources)]
    lesson = Lesson(
        text=insight.content,
        tags=insight.topics,
        model=model,
        born=LessonOrigin.REFLECTION,
        sources=insight.sources,
        waits=BY_A_MODEL,
    )
    return Draft(record=lesson, at=at, task=newest.task, attempt=newest.attempt)


def _is_live(known: KnownGuidelines) -> bool:
    return known.state is GuidelinesState.LIVE


def _is_known(text: str | None, versions: Sequence[KnownGuidelines]) -> bool:
    """Whether a text was proposed before, and waits or was rejected."""
    settled = {GuidelinesState.PROPOSED, GuidelinesState.REJECTED}
    return text is not None and any(
        each.guidelines.text.split() == text.split() for each in versions if each.state in settled
    )


def _error_text(result: ReflectionResult) -> str:
    """Return what failed, for people; finding nothing new is not a failure."""
    refused = (result.reason,) if result.refused and not result.errors else ()
    return "; ".join((*refused, *result.errors))


def _aside_of(attempt: int, entry: Entry) -> AttemptAside | None:
    """Return a person's message in an entry; `None` if there is none."""
    match entry.record:
        case Intervention(by=Actor.OPERATOR, action=action, message=text) if text:
            return AttemptAside(attempt=attempt, kind=f"an operator said ({action})", text=text)
        case Delivery(state=state, comment=text) if text and state is not DeliveryState.DELIVERED:
            return AttemptAside(
                attempt=attempt, kind=f"an operator {state} what was decided", text=text
            )
        case Feedback(origin=Origin.EXPLICIT, accepted=accepted, comment=text) if text:
            verdict = "accepted" if accepted else "rejected"
            return AttemptAside(attempt=attempt, kind=f"a person {verdict} the result", text=text)
        case _:
            return None


# -- unused lessons ------------------------------------------------------------------------

AUTHOR = "midwatch"


async def archive(
    journal: Journal, projects: Iterable[str], *, settings: LessonSettings, now: datetime
) -> int:
    """Archive the projects' lessons that have not been used for long; return their number.

    A lesson that was never given counts from its creation. Restoring or rating by a person counts
    as a use, or a restored lesson would be archived again at once. Raises JournalError.
    """
    if not (limit := settings.archive_unused_after.seconds):
        return 0
    drafts: list[Draft] = []
    learned = Learned(journal)
    for project in projects:
        in_use = partial(_in_use, learned, project)
        async for known in every(in_use):
            if (now - (known.last_used or known.at)).total_seconds() < limit:
                continue
            # The last mark is a person's latest act on a lesson.
            touched = [at async for at, _ in lesson_marks(journal, known)]
            if touched and (now - touched[-1]).total_seconds() < limit:
                continue
            mark = LessonMark(lesson=known.id, act=LessonAct.ARCHIVED, author=AUTHOR)
            task = (await journal.attempt(known.attempt)).task
            drafts.append(Draft(record=mark, at=now, task=task, attempt=known.attempt))
    if drafts:
        await journal.commit(Commit(drafts=tuple(drafts)))
    return len(drafts)


async def _in_use(learned: Learned, project: str, before: int | None) -> list[KnownLesson]:
    return await learned.lessons(project=project, obsolete=False, before=before)
