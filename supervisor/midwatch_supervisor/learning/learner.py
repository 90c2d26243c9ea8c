"""The learner: draws lessons, summaries and facts from ended attempts while other work goes on.

It never delays or breaks the work. A failure is journaled and retried by the next run; chores done
meanwhile by another process are left as they are.

A reflector that cannot be built (missing key or package) may be available in the next run: lessons
and summaries wait for it, fail visibly, and take the fixed form at their last try. A review does
not wait: its facts are shared unreviewed, so that none stays hidden for lack of a model.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from midwatch_agents.consultation import spent_before
from midwatch_monitor.bus import Bus, Subscription
from midwatch_monitor.command_hint import command
from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import hint_of, kind_of
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.recorder import Clock
from midwatch_monitor.records import (
    AttemptTransition,
    Chore,
    Entry,
    Feedback,
    OpenChore,
    Record,
    Reflection,
    Study,
    StudyState,
    Task,
)
from midwatch_supervisor.learning.chores import (
    ChoreContext,
    ChoreResult,
    LessonResult,
    error_reason,
    is_last,
    lesson_from,
    lesson_result,
    note_fixed_form,
    review_from,
    summary_from,
)
from midwatch_supervisor.learning.facts import write_records
from midwatch_supervisor.learning.implied_feedback import scan
from midwatch_supervisor.learning.reflection import archive, reflect_project
from midwatch_supervisor.learning.reflectors import Outages, Reflectors, newest_task
from midwatch_supervisor.present.text_line import brief

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)

_WHY = 200
"""Characters of the reason in a warning; the journal has all of it."""
_MISSING = {
    Chore.SUMMARY: "{attempt} has no summary, so nothing is learned from it",
    Chore.LESSON: "the rejection of {attempt} teaches no lesson",
    Chore.REVIEW: "the facts that {attempt} found are not reviewed",
}
"""What is missing when a chore fails."""

ChoreCounts = Counter[StudyState]
"""Number of chores done, refused and failed."""

_NEWS = frozenset({kind_of(AttemptTransition), kind_of(Feedback)})
"""Kinds of entries that can lead to a chore."""


def enabled_chores(settings: LearningSettings) -> frozenset[Chore]:
    """Return the kinds of chores that are enabled."""
    return frozenset(Chore) - (set[Chore]() if settings.lessons.enabled else {Chore.LESSON})


class Learner:
    """Does the open chores of a journal, of all its runs. Each is tried once."""

    def __init__(
        self, journal: Journal, *, settings: Settings, clock: Clock, bus: Bus | None = None
    ) -> None:
        """Learn from a journal; a bus announces new records and brings hints of new verdicts."""
        self._journal = journal
        self._learned = Learned(journal)
        self._settings = settings
        self._clock = clock
        self._bus = bus
        self._reflectors = Reflectors(settings.provider)
        self._busy = asyncio.Lock()
        self._outages = Outages()
        self._tried: set[tuple[int, Chore]] = set()
        self._old: set[int] = set()
        """Attempts of earlier runs that count towards the look-back limit."""
        self._began: int | None = None
        """The newest entry when the run began; older attempts are limited in number."""

    # -- during a run ----------------------------------------------------------------------

    async def run(self) -> None:
        """Learn from ended attempts, until canceled or until the journal becomes unusable."""
        try:
            await self.begin()
            await self._scan_verdicts()
            await self._follow_hints()
        except Exception as error:  # the work continues: it does not depend on this
            log.warning("nothing more is learned from this run: %s", error_reason(error))

    async def begin(self) -> None:
        """From now on, limit how many older attempts are studied. Raises JournalError."""
        if self._began is None:
            self._began = await self._journal.last_id()

    async def finish(self, projects: Iterable[str], *, seconds: float) -> None:
        """Do the remaining chores, then look back at these projects, for at most `seconds`.

        The next run, or `midwatch learn`, does what is left. The run's exit code does not depend on
        it.
        """
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._catch_up(sorted({each for each in projects if each}))
        except TimeoutError:
            log.warning("learning took longer than %g s: the next run continues it", seconds)
        except Exception as error:
            log.warning("nothing more is learned from this run: %s", error_reason(error))

    async def _catch_up(self, projects: Sequence[str]) -> None:
        self._outages.probe()
        await self.study_all()
        for project in projects:
            await self._look_back(project)

    async def _follow_hints(self) -> None:
        if self._bus is None:
            await self.study_all()
            return
        async with self._bus.subscribe() as hints:
            failing = False
            while True:
                try:
                    await self.study_all()
                    failing = False
                except JournalError as error:  # perhaps another process holds it too long
                    # Logged once: it may last all night.
                    log.log(
                        logging.DEBUG if failing else logging.WARNING,
                        "cannot learn at present: %s",
                        error_reason(error),
                    )
                    failing = True
                await _wait_for_news(hints, self._settings.monitor.tick_seconds)
                # Gives the monitor time to judge the interventions of the attempt.
                await asyncio.sleep(self._settings.monitor.poll_seconds)

    async def _scan_verdicts(self) -> None:
        """Look for implied verdicts."""
        feedback = self._settings.learning.feedback
        if not feedback.implied:
            return
        try:
            entries = await scan(self._journal, settings=feedback, now=self._clock())
        except JournalError:
            raise
        except Exception as error:  # git, or an unexpected repository
            log.warning("the state of merged work could not be read: %s", error_reason(error))
            return
        self._publish_hints(entries)

    async def _look_back(self, project: str) -> None:
        """Have new guidelines proposed, unless that is disabled, and archive old lessons."""
        if self._settings.learning.guidelines.enabled:
            await self.reflect(project)
        lessons = self._settings.learning.lessons
        await archive(self._journal, [project], settings=lessons, now=self._clock())

    # -- for a command ---------------------------------------------------------------------

    async def study_all(self) -> ChoreCounts:
        """Do every open chore once. Raises JournalError."""
        total: ChoreCounts = Counter()
        async with self._busy:
            # Repeated until nothing is open: a summary's facts are reviewed after it.
            while (progress := await self._do_open_chores()) is not None:
                total += progress
        return total

    async def study(self, *, attempt: int) -> LessonResult:
        """Draw the lessons of one attempt; return the result for its newest verdict.

        Its summary is left to the next run, because nobody waits for it. Raises JournalError.
        """
        async with self._busy:
            while await self._do_open_chores(attempt=attempt, only=Chore.LESSON) is not None:
                pass
        return await lesson_result(self._journal, attempt, settings=self._settings.learning)

    async def reflect(self, project: str) -> Reflection:
        """Look back at a project with the reflector of its newest task, and return the result.

        A reflector that cannot be built becomes the result's error. Raises JournalError.
        """
        task = await newest_task(self._journal, project)
        model, lacks = (None, "") if task is None else self._reflector(task)
        found = await reflect_project(
            self._journal, project, model=model, settings=self._settings, now=self._clock
        )
        if lacks:  # a key or package is missing: the other projects may have one
            log.warning("did not look back at %s: %s", project, lacks)
            return Reflection(watermark=found.watermark if found else 0, error=lacks)
        return found or Reflection(watermark=0, skipped="another process is already looking back")

    # -- chores ----------------------------------------------------------------------------

    async def _do_open_chores(
        self, *, attempt: int | None = None, only: Chore | None = None
    ) -> ChoreCounts | None:
        """Do the open chores, the newest first; `None` if there was nothing to do."""
        learning = self._settings.learning
        kinds = enabled_chores(learning) & ({*Chore} if only is None else {only})
        chores = await self._learned.chores(tries=learning.tries, attempt=attempt, kinds=kinds)
        waiting = {each.about for each in chores if each.chore is Chore.SUMMARY}
        progress: ChoreCounts | None = None
        for chore in chores:
            if chore.about in waiting and await self._awaits_summary(chore):
                continue
            if not self._may_do(chore, asked=only is not None):
                continue
            if only is None and await self._is_postponed(chore):
                continue
            self._tried.add((chore.about, chore.chore))
            state = await self._do_chore(chore)
            if chore.chore is Chore.SUMMARY and state is not StudyState.FAILED:
                waiting.discard(chore.about)
            progress = Counter() if progress is None else progress
            progress.update([] if state is None else [state])
        return progress

    def _may_do(self, chore: OpenChore, *, asked: bool) -> bool:
        """Whether a chore is this learner's to do; each is tried once."""
        if (chore.about, chore.chore) in self._tried:
            return False
        if not asked and self._began is not None and chore.about <= self._began:
            if len(self._old | {chore.attempt}) > self._settings.learning.look_back:
                return False
            self._old.add(chore.attempt)
        return True

    async def _awaits_summary(self, chore: OpenChore) -> bool:
        """Whether a review waits for the failed summary of its attempt, which may bring more facts.

        Not if nobody can review them: then existing facts need not wait for more.
        """
        if chore.chore is not Chore.REVIEW:
            return False
        _, lacks = self._reflector(await self._journal.task(chore.task))
        return not lacks

    async def _is_postponed(self, chore: OpenChore) -> bool:
        """Whether a chore is postponed because its reflector does not answer at present."""
        if not self._outages:
            return False
        model, _ = self._reflector(await self._journal.task(chore.task))
        return self._outages.resting(model, self._clock())

    def _reflector(self, task: Task) -> tuple["Model | None", str]:
        """Return the model to ask about a task, and why there is none if there should be one."""
        try:
            return self._reflectors.of(task), ""
        except UsageError as error:  # a key, package or module is missing
            return None, str(error)

    async def _do_chore(self, chore: OpenChore) -> StudyState | None:
        """Do one chore; a failure is stored, and the others continue.

        `None` if nothing was left to do, or another process has done it. Raises JournalError if not
        even the failure can be stored.
        """
        try:
            drawn = await self._draw_result(chore)
            if drawn is None:
                return None
            await self._store_result(chore, drawn)
        except StaleIncarnationError:
            return None
        except asyncio.CancelledError as canceled:
            if spent := spent_before(canceled):
                await self._write_records(chore, spent)
            raise
        except Exception as error:  # a model, a provider's client, a journal that lacks something
            return await self._store_failure(chore, error)
        return drawn.state

    async def _name_of(self, chore: OpenChore) -> str:
        """Return the name of a chore's attempt; it may be of an earlier run."""
        try:
            attempt = await self._journal.attempt(chore.attempt)
            task = await self._journal.task(attempt.task)
        except JournalError:
            return f"attempt {chore.attempt}"
        return f"{task.name}#{attempt.number} of run {task.run}"

    async def _store_failure(self, chore: OpenChore, error: Exception) -> StudyState | None:
        """Warn about a failed chore, with the reason and whether it is retried, and store it."""
        reason = error_reason(error)
        over = is_last(chore, self._settings)
        log.warning(
            "%s: %s; the work is not affected, and %s",
            _MISSING[chore.chore].format(attempt=await self._name_of(chore)),
            brief(reason, _WHY),
            "it will not be tried again" if over else f"`{command('learn')}` will try again",
        )
        with suppress(StaleIncarnationError):
            failed = ChoreResult(
                state=StudyState.FAILED, reason=reason, records=spent_before(error)
            )
            await self._store_result(chore, failed)
            return StudyState.FAILED
        return None

    async def _draw_result(self, chore: OpenChore) -> ChoreResult | None:
        """Return the result of a chore; `None` if there is nothing left to do."""
        task = await self._journal.task(chore.task)
        attempt = await self._journal.attempt(chore.attempt)
        model, lacks = self._reflector(task)
        subject = ChoreContext(
            journal=self._journal,
            settings=self._settings,
            chore=chore,
            task=task,
            attempt=attempt,
            model=model,
            lacks=lacks,
        )
        if chore.chore is Chore.REVIEW:
            return await review_from(subject, self._clock)
        if lacks and not is_last(chore, self._settings):
            raise UsageError(lacks)
        return note_fixed_form(await self._ask_reflector(subject), lacks)

    async def _ask_reflector(self, subject: ChoreContext) -> ChoreResult:
        """Draw a lesson or a summary; success and failure count for the reflector's outage."""
        try:
            if subject.chore.chore is Chore.LESSON:
                drawn = await lesson_from(subject)
            else:
                drawn = await summary_from(subject, self._clock)
        except JournalError:
            raise
        except Exception:
            self._outages.note_failure(subject.model, self._clock())
            raise
        self._outages.note_success(subject.model)
        return drawn

    async def _store_result(self, chore: OpenChore, drawn: ChoreResult) -> None:
        study = Study(about=chore.about, chore=chore.chore, state=drawn.state, reason=drawn.reason)
        await self._write_records(chore, (*drawn.records, study))
        # Numbers only: a lesson's text belongs in the journal, not in a log.
        log.debug("the %s of attempt %d: %s", chore.chore, chore.attempt, drawn.state)

    async def _write_records(self, chore: OpenChore, records: Sequence[Record]) -> None:
        where = self._journal, chore.task, chore.attempt
        self._publish_hints(await write_records(*where, records, self._clock()))

    def _publish_hints(self, entries: Sequence[Entry]) -> None:
        if self._bus is not None:
            for entry in entries:
                self._bus.publish(hint_of(entry))


async def _wait_for_news(hints: Subscription, seconds: float) -> None:
    """Wait for a new attempt or verdict, but at most `seconds`: hints may be lost."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not any(hint.kind in _NEWS for hint in await hints.wait()):
                pass
