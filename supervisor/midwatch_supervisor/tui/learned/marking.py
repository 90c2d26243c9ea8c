"""How a mark is written: each is a row of the journal under the operator's name."""

from midwatch_monitor.records import KnownFact, KnownLesson
from midwatch_supervisor.operator.learning_actions import LearningActions
from midwatch_supervisor.tui.learned.learning_view import Marked
from midwatch_supervisor.tui.learned.marks import Mark, rating_in


async def write(shelf: LearningActions, mark: Mark, known: Marked, words: str) -> int:
    """Store a mark that makes sense; answers its journal id. Raises JournalError."""
    match known:
        case KnownLesson():
            return await _of_lesson(shelf, mark, known.id, words)
        case KnownFact():
            store = {
                Mark.APPROVE: shelf.approve_fact,
                Mark.RESTORE: shelf.restore_fact,
                Mark.RETIRE: shelf.retire_fact,
            }[mark]
            return await store(known.id, words)
        case _:
            store = {
                Mark.APPROVE: shelf.approve,
                Mark.REJECT: shelf.reject,
                Mark.ROLL_BACK: shelf.roll_back,
            }[mark]
            return await store(known.id, words)


async def _of_lesson(shelf: LearningActions, mark: Mark, lesson: int, words: str) -> int:
    match mark:
        case Mark.RATE:
            rating, comment = rating_in(words)
            return await shelf.rate_lesson(lesson, rating, comment)
        case Mark.RETIRE:
            return await shelf.retire_lesson(lesson, words)
        case _:
            return await shelf.restore_lesson(lesson, words)
