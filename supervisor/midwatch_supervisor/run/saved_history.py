"""The messages of an attempt, from which its worker continues."""

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from midwatch_monitor.errors import JournalCorruptError, WorkerError
from midwatch_monitor.journal import Journal
from midwatch_supervisor.present.numbers import count_noun


async def saved_history(journal: Journal, attempt: int) -> list[ModelMessage]:
    """Return the messages so far. Raise WorkerError if the attempt cannot resume from them."""
    try:
        saved = await journal.messages(attempt)
        await journal.results(attempt)  # raises if corrupt; the watch reads them again
        return [
            message
            for each in saved
            for message in ModelMessagesTypeAdapter.validate_json(each.body)
        ]
    except JournalCorruptError as error:
        raise WorkerError(f"the attempt cannot be resumed: {error}") from error
    except ValidationError as error:  # not chained: it quotes the history
        broken = f"its history is not valid ({count_noun(error.error_count(), 'error')})"
        raise WorkerError(f"the attempt cannot be resumed: {broken}") from None
