"""The learner: draws lessons, summaries and facts from ended attempts, beside the work.

It never holds up the work and never breaks it. What it cannot do is told in the journal and tried
again by the next run; what another process has done meanwhile is left as that did it.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.bus import Bus, Subscription
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned import Learned
from midwatch_monitor.journal.records import hint_of, kind_of
from midwatch_monitor.recorder import Clock
from midwatch_monitor.verdict import teaches, verdict_of
from midwatch_monitor.words import (
    AttemptState,
    Chore,
    Commit,
    Draft,
    Entry,
    Feedback,
    Lesson,
    OpenChore,
    Record,
    Study,
    StudyState,
)
from midwatch_supervisor.learning.archive import archive
from midwatch_supervisor.learning.facts import settle
from midwatch_supervisor.learning.implied import scan
from midwatch_supervisor.learning.lookback import look_back_at
from midwatch_supervisor.learning.reflectors import Reflectors
from midwatch_supervisor.learning.study import (
    Drawn,
    Subject,
    lesson_from,
    summary_from,
    why,
)

log = logging.getLogger(__name__)

_ORDER = (Chore.LESSON, Chore.SUMMARY, Chore.REVIEW)
"""Of the chores of one entry: a review comes after the facts that a summary brings."""
_NEWS = frozenset({kind_of(AttemptState), kind_of(Feedback)})
"""Kinds of entries that a chore may follow from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """What came of studying one attempt."""

    lesson: int | None = None
    """The lesson that its newest verdict came to, by journal id."""
    reason: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many chores were done, refused and failed."""

    done: int = 0
    refused: int = 0
    failed: int = 0

    def __add__(self, other: "Progress") -> "Progress":
        return Progress(
            done=self.done + other.done,
            refused=self.refused + other.refused,
            failed=self.failed + other.failed,
        )

    @property
    def all(self) -> int:
        """How many were taken up."""
        return self.done + self.refused + self.failed


class Learner:
    """Does the open chores of a journal, whichever run they come from. Each is tried once."""

    def __init__(
        self, journal: Journal, *, settings: Settings, clock: Clock, bus: Bus | None = None
    ) -> None:
        """Learn from a journal; with a bus, others hear of it, and it hears of new verdicts."""
        self._journal = journal
        self._learned = Learned(journal)
        self._settings = settings
        self._clock = clock
        self._bus = bus
        self._reflectors = Reflectors(settings.provider)
        self._busy = asyncio.Lock()
        self._tried: set[tuple[int, Chore]] = set()
        self._old: set[int] = set()
        """Attempts of earlier runs that were taken up."""
        self._began: int | None = None
        """The newest entry when its run began; of what is older it takes up so much only."""

    # -- beside a run ----------------------------------------------------------------------

    async def run(self) -> None:
        """Learn from what ends, until cancelled or until the journal cannot be used any more."""
        try:
            self._began = await self._journal.last_id()
            await self._scan()
            await self._follow()
        except Exception as error:  # the work goes on, and it has no part in this
            log.warning("nothing is learned any more: %s", why(error))

    async def finish(self, projects: Iterable[str], *, home: Path, seconds: float) -> None:
        """Do what is left, then look back at these projects; no longer than so many seconds.

        What is cut off by that is done by the next run, or by `midwatch reflect`. New guidelines
        are tried in workspaces below `home`.
        """
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self.study_all()
                for project in sorted({each for each in projects if each}):
                    await self._look_back(project, home)
        except TimeoutError:
            log.warning("the next run goes on with what is not learned within %g s", seconds)
        except Exception as error:  # the exit code of the run does not depend on it
            log.warning("nothing is learned any more: %s", why(error))

    async def _follow(self) -> None:
        if self._bus is None:
            await self.study_all()
            return
        async with self._bus.subscribe() as hints:
            while True:
                await self.study_all()
                await _news(hints, self._settings.monitor.tick_seconds)
                # What was done about the attempt is judged in these moments.
                await asyncio.sleep(self._settings.monitor.poll_seconds)

    async def _scan(self) -> None:
        """Look for verdicts that nobody spoke."""
        feedback = self._settings.learning.feedback
        if not feedback.implied:
            return
        try:
            entries = await scan(self._journal, settings=feedback, now=self._clock())
        except JournalError:
            raise
        except Exception as error:  # git, or a repository as nobody expected it
            log.warning("implied verdicts are not looked for: %s", type(error).__name__)
            return
        self._tell(entries)

    async def _look_back(self, project: str, home: Path) -> None:
        await look_back_at(
            self._journal,
            project,
            settings=self._settings,
            reflectors=self._reflectors,
            home=home,
            clock=self._clock,
        )
        lessons = self._settings.learning.lessons
        await archive(self._journal, [project], settings=lessons, now=self._clock())

    # -- for a command ---------------------------------------------------------------------

    async def study_all(self) -> Progress:
        """Do every open chore once. Raises JournalError."""
        async with self._busy:
            return await self._everything()

    async def study(self, *, attempt: int) -> Studied:
        """Draw the lessons of one attempt; what came of its newest verdict.

        Its summary is left to the next run: nobody waits for that. Raises JournalError.
        """
        async with self._busy:
            await self._pass(attempt=attempt, only=Chore.LESSON)
        return await self._studied(attempt)

    async def _studied(self, attempt: int) -> Studied:
        """What became of the newest verdict on an attempt, as the journal says."""
        rejection, after = 0, 0
        kinds: tuple[type[Record], ...] = (AttemptState, Feedback, Lesson, Study)
        lessons: dict[int, int] = {}
        studies: dict[int, Study] = {}
        while page := await self._journal.entries(after, attempt=attempt, kinds=kinds):
            for entry in page:
                match entry.record:
                    case Lesson(verdict=int() as verdict):
                        lessons[verdict] = entry.id
                    case Study(about=about, chore=Chore.LESSON) as study:
                        studies[about] = study
                    case record if verdict_of(record) is not None:
                        rejection = entry.id if teaches(record) else 0
                    case _:
                        pass
            after = page[-1].id
        if not rejection:
            return Studied(reason="there is no rejection to learn from")
        if rejection in lessons:
            return Studied(lesson=lessons[rejection])
        if rejection in studies:
            return Studied(reason=studies[rejection].reason)
        return Studied(reason=await self._untouched(attempt))

    async def _untouched(self, attempt: int) -> str:
        """Why nobody tried to draw a lesson."""
        if not self._settings.learning.lessons.enabled:
            return "lessons are switched off"
        task = await self._journal.task((await self._journal.attempt(attempt)).task)
        return "" if task.project else "its task belongs to no project"

    # -- chores ----------------------------------------------------------------------------

    async def _everything(self) -> Progress:
        """Do what is open until nothing is: the facts of a summary are to be reviewed after it."""
        total = Progress()
        while (progress := await self._pass()).all:
            total += progress
        return total

    async def _pass(self, *, attempt: int | None = None, only: Chore | None = None) -> Progress:
        """Do what is open now, the newest first."""
        learning = self._settings.learning
        chores = await self._learned.chores(
            tries=learning.tries, limit=learning.look_back, attempt=attempt
        )
        waiting = {each.about for each in chores if each.chore is Chore.SUMMARY}
        progress = Progress()
        for chore in sorted(chores, key=_turn):
            if chore.chore is Chore.REVIEW and chore.about in waiting:
                continue  # its summary failed, and may yet bring facts
            if only not in (None, chore.chore) or not self._takes(chore, asked=only is not None):
                continue
            state = await self._do(chore)
            if chore.chore is Chore.SUMMARY and state is not StudyState.FAILED:
                waiting.discard(chore.about)
            progress += _counted(state)
        return progress

    def _takes(self, chore: OpenChore, *, asked: bool) -> bool:
        """Whether a chore is to be done here and now; if so, it counts as tried."""
        key = (chore.about, chore.chore)
        if key in self._tried:
            return False
        if chore.chore is Chore.LESSON and not self._settings.learning.lessons.enabled:
            return False
        if not asked and self._began is not None and chore.about <= self._began:
            if len(self._old | {chore.attempt}) > self._settings.learning.look_back:
                return False
            self._old.add(chore.attempt)
        self._tried.add(key)
        return True

    async def _do(self, chore: OpenChore) -> StudyState | None:
        """One chore by itself: whatever fails in it is stored, and the others go on.

        `None` if nothing was left to do of it, or another process has done it. Raises JournalError
        where not even a failure can be stored.
        """
        try:
            drawn = await self._drawn(chore)
            if drawn is None:
                return None
            await self._store(chore, drawn)
        except StaleIncarnationError:
            return None
        except Exception as error:  # a model, a provider's client, a journal that lacks something
            log.warning(
                "the %s of attempt %d failed: %s", chore.chore, chore.attempt, type(error).__name__
            )
            return await self._fail(chore, why(error))
        return drawn.state

    async def _fail(self, chore: OpenChore, reason: str) -> StudyState | None:
        try:
            await self._store(chore, Drawn(state=StudyState.FAILED, reason=reason))
        except StaleIncarnationError:
            return None
        return StudyState.FAILED

    async def _drawn(self, chore: OpenChore) -> Drawn | None:
        """What a chore comes to; `None` if there is nothing left to do."""
        task = await self._journal.task(chore.task)
        attempt = await self._journal.attempt(chore.attempt)
        subject = Subject(task=task, attempt=attempt, model=self._reflectors.of(task))
        match chore.chore:
            case Chore.LESSON:
                return await lesson_from(self._journal, subject, chore, settings=self._settings)
            case Chore.SUMMARY:
                return await summary_from(
                    self._journal, subject, settings=self._settings, clock=self._clock
                )
            case Chore.REVIEW:
                study = await settle(
                    self._journal,
                    attempt,
                    task,
                    model=subject.model,
                    settings=self._settings,
                    now=self._clock(),
                )
                return Drawn(state=study.state, reason=study.reason) if study else None

    async def _store(self, chore: OpenChore, drawn: Drawn) -> None:
        study = Study(about=chore.about, chore=chore.chore, state=drawn.state, reason=drawn.reason)
        at = self._clock()
        drafts = tuple(
            Draft(record=record, at=at, task=chore.task, attempt=chore.attempt)
            for record in (*drawn.records, study)
        )
        self._tell(await self._journal.commit(Commit(drafts=drafts)))
        # Numbers only: what a lesson says belongs into the journal, and into no log.
        log.debug("the %s of attempt %d: %s", chore.chore, chore.attempt, drawn.state)

    def _tell(self, entries: Sequence[Entry]) -> None:
        if self._bus is not None:
            for entry in entries:
                self._bus.publish(hint_of(entry))


async def _news(hints: Subscription, seconds: float) -> None:
    """Wait until an attempt or a verdict is new, or for so many seconds: hints may get lost."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not any(hint.kind in _NEWS for hint in await hints.wait()):
                pass


def _turn(chore: OpenChore) -> tuple[int, int]:
    """The newest entry first, its chores in their order."""
    return -chore.about, _ORDER.index(chore.chore)


def _counted(state: StudyState | None) -> Progress:
    match state:
        case StudyState.DONE:
            return Progress(done=1)
        case StudyState.REFUSED:
            return Progress(refused=1)
        case StudyState.FAILED:
            return Progress(failed=1)
        case None:
            return Progress()
