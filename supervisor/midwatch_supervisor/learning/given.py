"""What an attempt was given of what had been learned, looked up by its ids."""

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Recall
from midwatch_supervisor.present.learning_text import NOTHING, Given


async def given_by(learned: Learned, recall: Recall) -> Given:
    """What a recall names, as it stands now; nothing where the journal has it no more."""
    lessons = [each.lesson for each in recall.lessons]
    try:
        version = recall.guidelines
        return Given(
            lessons=tuple(await learned.lessons(ids=lessons)) if lessons else (),
            facts=tuple(await learned.facts(ids=recall.facts, live=False)) if recall.facts else (),
            guidelines=None if version is None else await learned.guidelines_version(version),
        )
    except JournalError:
        return NOTHING
