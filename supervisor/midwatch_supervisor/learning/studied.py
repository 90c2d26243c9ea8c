"""What became of the newest verdict on an attempt, as the journal says."""

from dataclasses import dataclass

from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import AttemptTransition, Chore, Feedback, Lesson, Record, Study
from midwatch_monitor.records.verdict import teaches, verdict_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """What came of studying one attempt."""

    lesson: int | None = None
    """The lesson that its newest verdict came to, by journal id."""
    reason: str = ""
    """Why there is none."""


async def studied(journal: Journal, attempt: int, *, settings: LearningSettings) -> Studied:
    """The lesson of the newest verdict on an attempt, or why there is none."""
    rejection = 0
    kinds: tuple[type[Record], ...] = (AttemptTransition, Feedback, Lesson, Study)
    lessons: dict[int, int] = {}
    studies: dict[int, Study] = {}
    async for entry in journal.all_entries(attempt=attempt, kinds=kinds):
        match entry.record:
            case Lesson(verdict=int() as verdict):
                lessons[verdict] = entry.id
            case Study(about=about, chore=Chore.LESSON) as study:
                studies[about] = study
            case record if verdict_of(record) is not None:
                rejection = entry.id if teaches(record) else 0
            case _:
                pass
    if not rejection:
        return Studied(reason="there is no rejection to learn from")
    if rejection in lessons:
        return Studied(lesson=lessons[rejection])
    if rejection in studies:
        return Studied(reason=studies[rejection].reason)
    return Studied(reason=await _untouched(journal, attempt, settings))


async def _untouched(journal: Journal, attempt: int, settings: LearningSettings) -> str:
    """Why nobody tried to draw a lesson."""
    if not settings.lessons.enabled:
        return "lessons are switched off"
    task = await journal.task((await journal.attempt(attempt)).task)
    return "" if task.project else "its task belongs to no project"


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
