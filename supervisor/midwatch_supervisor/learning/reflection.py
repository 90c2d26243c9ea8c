"""A look back at a project's attempts, from the journal and into it.

A watermark says how far summaries were looked at, so that no attempt is used twice or missed:

- Attempts with too few turns will never have more: the watermark passes them.
- As long as there are too few deep ones, it stops before the first of these, and they wait.
- Where the first question fails, it stays, and the next look takes up the same attempts; after
  `learning.tries` failures it passes them, so that one bad answer does not stop everything.
- Where only the second fails, what the first came to is kept, and the watermark passes.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pydantic_ai.models import Model

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
    Birth,
    Commit,
    Delivery,
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
    Origin,
    Record,
    Reflection,
)
from midwatch_supervisor.present.lesson_history import lesson_marks
from midwatch_tools.data_blocks import fold_lines

log = logging.getLogger(__name__)

PART = "learning: guidelines"
"""The part that a fault names."""
OFF = "guidelines are switched off"
NO_MODEL = "there is no model to look back with"
_PAGE = 100
_EACH = 5
"""Asides of one attempt and kind at most."""
_EARLIER = 40
"""Insights of earlier looks that a new text is written with at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The summaries since the last look."""

    deep: tuple[KnownSummary, ...] = ()
    """Those with enough turns, oldest first."""
    newest: KnownSummary | None = None
    """The last one that was looked at."""
    before: KnownSummary | None = None
    """The last one before the first of the deep ones."""


async def reflect_project(
    journal: Journal,
    project: str,
    *,
    model: Model | None,
    settings: Settings,
    now: Callable[[], datetime],
) -> Reflection | None:
    """Look back at the attempts of a project since the last time; what it came to.

    All that comes of it is stored in one commit: insights as lessons, a new version of the
    guidelines, proposed and never in force by itself, how far the look went, and what it cost.
    What was skipped stands in the journal only where that moves the watermark. Answers `None`
    where another process looked back at the same time; then nothing is stored.
    Raises JournalError, and nothing else.
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
    """The summaries above a watermark, with at most `max_runs` deep ones among them."""
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
        log.debug("no look back at %s: %s", self.project, reason)
        return Reflection(watermark=mark, skipped=reason)

    async def pass_over(self, batch: Batch, mark: int, reason: str) -> Reflection:
        """Leave out the attempts that will never count; those that may, wait."""
        shallow = batch.before if batch.deep else batch.newest
        if shallow is None:
            return self.leave(mark, reason)
        skipped = Reflection(watermark=shallow.id, skipped=reason)
        await self._commit(shallow, (skipped,))
        return skipped

    async def back(self, batch: Batch, mark: int, newest: KnownSummary, model: Model) -> Reflection:
        learning = self.settings.learning
        versions = await self.learned.guidelines(self.project)
        live = next(filter(_live, versions), None)
        result = await reflect_on_runs(
            batch.deep,
            live.guidelines.text if live else None,
            model,
            learning.guidelines,
            asides=await self._asides(batch),
            earlier=await self._earlier(versions),
            seconds=learning.timeout_seconds,
        )
        if not result.spending:
            return await self._note_failure(batch, mark, newest, result)
        result = await self._without_known(result)
        text = "" if _known(result.guidelines, versions) else (result.guidelines or "")
        reflection = Reflection(
            watermark=newest.id,
            attempts=tuple(each.attempt for each in batch.deep),
            insights=len(result.insights) if learning.lessons.enabled else 0,
            proposed=bool(text),
            error=_error(result),
        )
        await self._store(batch, result, reflection, text, versions, model.model_name)
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
        """The lessons of attempts, and what operators told and answered them, as far as wanted."""
        wanted, found = self.settings.learning.guidelines, list[AttemptAside]()
        kinds = (Intervention, Delivery, Feedback)
        for attempt in (each.attempt for each in batch.deep):
            known = await self.learned.lessons(attempt=attempt, limit=_EACH)
            found += [
                AttemptAside(attempt=attempt, kind="lesson", text=each.lesson.text)
                for each in (known if wanted.with_lessons else ())
                # An insight is what looks back came to themselves.
                if not each.obsolete and each.lesson.born is Birth.VERDICT
            ]
            entries = await self.journal.entries(attempt=attempt, kinds=kinds)
            said = [each for entry in entries if (each := _aside_of(attempt, entry)) is not None]
            found += said[-_EACH:] if wanted.with_operators else ()
        return tuple(found)

    async def _without_known(self, result: ReflectionResult) -> ReflectionResult:
        """Without insights that say what a lesson of the project says, also one that is retired.

        What was retired would come back by them, and what hurt would begin anew with no uses.
        """
        if not result.insights:
            return result
        known = every(lambda before: self.learned.lessons(project=self.project, before=before))
        texts = {fold_lines(each.lesson.text) async for each in known}
        fresh = tuple(each for each in result.insights if fold_lines(each.content) not in texts)
        dropped = result.dropped + len(result.insights) - len(fresh)
        return replace(result, insights=fresh, dropped=dropped)

    async def _earlier(self, versions: Sequence[KnownGuidelines]) -> list[str]:
        """Insights that neither the text in force nor one that was turned down was made from."""
        settled = {GuidelinesState.LIVE, GuidelinesState.REJECTED}
        since = max((each.id for each in versions if each.state in settled), default=0)
        known = await self.learned.lessons(project=self.project)
        found = [
            each.lesson.text
            for each in known
            if each.lesson.born is Birth.REFLECTION and each.id > since and not each.obsolete
        ]
        return found[:_EARLIER][::-1]

    async def _note_failure(
        self, batch: Batch, mark: int, newest: KnownSummary, result: ReflectionResult
    ) -> Reflection:
        """The first question failed: try the same attempts later, but not for ever."""
        tries = await self._failures(mark) + 1
        over = tries >= self.settings.learning.tries
        reflection = Reflection(watermark=newest.id if over else mark, error=_error(result))
        log.warning("the look back at %s failed, try %d", self.project, tries)
        await self._commit(batch.deep[-1], (reflection, Fault(part=PART, error=reflection.error)))
        return reflection

    async def _failures(self, mark: int) -> int:
        """How often a look from here failed at its first question."""
        looks: list[Reflection] = []
        async for entry in self.journal.all_entries(mark, kinds=(Reflection,)):
            match entry.record:
                case Reflection(watermark=at) as look if at == mark:
                    task = await self.journal.task(entry.task)
                    looks += [look] if task.project == self.project else []
                case _:
                    pass
        # What brought the watermark here looked back from before, whatever became of that.
        since = looks[1:] if mark else looks
        return sum(bool(each.error) for each in since)

    async def _store(
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
                base=next((each.id for each in versions if _live(each)), None),
                sources=reflection.attempts,
                model=model,
            )
            records.insert(0, version)
        if reflection.error:
            records.append(Fault(part=PART, error=reflection.error))
        insights = result.insights if self.settings.learning.lessons.enabled else ()
        at = self.now()
        by_attempt = {each.attempt: each for each in batch.deep}
        # The lessons first: a version that was made from them has the higher id.
        lessons = [_lesson(each, by_attempt, model, at) for each in insights]
        await self._commit(batch.deep[-1], records, lessons)

    async def _commit(
        self, newest: KnownSummary, records: Sequence[Record], lessons: Sequence[Draft] = ()
    ) -> None:
        # People look for faults at attempts; the rest is the project's.
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


def _lesson(insight: Insight, attempts: dict[int, KnownSummary], model: str, at: datetime) -> Draft:
    """An insight as a lesson, with the newest of the attempts that show it."""
    newest = attempts[max(insight.sources)]
    lesson = Lesson(
        text=insight.content,
        tags=insight.topics,
        model=model,
        born=Birth.REFLECTION,
        sources=insight.sources,
        waits=BY_A_MODEL,
    )
    return Draft(record=lesson, at=at, task=newest.task, attempt=newest.attempt)


def _live(known: KnownGuidelines) -> bool:
    return known.state is GuidelinesState.LIVE


def _known(text: str | None, versions: Sequence[KnownGuidelines]) -> bool:
    """Whether a text was proposed before, and waits or was turned down."""
    settled = {GuidelinesState.PROPOSED, GuidelinesState.REJECTED}
    return text is not None and any(
        each.guidelines.text.split() == text.split() for each in versions if each.state in settled
    )


def _error(result: ReflectionResult) -> str:
    """What failed, for people; that there is nothing new is no failure."""
    refused = (result.reason,) if result.refused and not result.errors else ()
    return "; ".join((*refused, *result.errors))


def _aside_of(attempt: int, entry: Entry) -> AttemptAside | None:
    """What a person said in an entry; `None` if nobody did."""
    match entry.record:
        case Intervention(by=Actor.OPERATOR, action=action, message=text) if text:
            return AttemptAside(attempt=attempt, kind=f"an operator said ({action})", text=text)
        case Delivery(state=state, comment=text) if text:
            return AttemptAside(
                attempt=attempt, kind=f"an operator {state} what was decided", text=text
            )
        case Feedback(origin=Origin.EXPLICIT, accepted=accepted, comment=text) if text:
            verdict = "accepted" if accepted else "rejected"
            return AttemptAside(attempt=attempt, kind=f"a person {verdict} the result", text=text)
        case _:
            return None


# -- lessons that nobody needs any more ----------------------------------------------------

AUTHOR = "midwatch"


async def archive(
    journal: Journal, projects: Iterable[str], *, settings: LessonSettings, now: datetime
) -> int:
    """Archive the lessons of these projects that nobody was given for long; how many that were.

    A lesson that was never given counts from when it was written. That a person restored or rated
    it counts as a use, or a restored one would be archived again at once. Raises JournalError.
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
            # A mark is the last thing that a person said of a lesson.
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
