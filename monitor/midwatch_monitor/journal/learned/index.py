"""Updates the index of what was learned, in the transaction that appends an entry.

Nothing is learned from a task without a project: its entries are in the log only.
"""

from sqlalchemy import Connection, select

from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import kind_of, rows_of
from midwatch_monitor.journal.learned import chores, facts, lessons, versions
from midwatch_monitor.journal.learned.projects import EntryOwner, owner_of
from midwatch_monitor.records import (
    AttemptTransition,
    Chore,
    Entry,
    Fact,
    FactMark,
    FactState,
    Feedback,
    Guidelines,
    GuidelinesMark,
    Lesson,
    LessonMark,
    Origin,
    Recall,
    Record,
    Reflection,
    Study,
    Summary,
)
from midwatch_monitor.records.verdict import teaches, verdict_of

_NEW = (AttemptTransition, Feedback, Recall, Summary, Lesson, Fact, Guidelines, Reflection)
"""Records that add to the index of a project."""
KINDS: frozenset[type[Record]] = frozenset({LessonMark, FactMark, GuidelinesMark, Study, *_NEW})
"""All kinds of records that `index_entry` handles."""


def index_entry(connection: Connection, entry: Entry) -> None:
    """Update the index for an entry; most entries change nothing in it.

    Raises StaleIncarnationError if somebody else did the same first, and JournalError for a
    reference to something that does not exist.
    """
    match entry.record:
        case LessonMark() as mark:
            lessons.mark(connection, mark)
        case FactMark() as mark:
            facts.mark(connection, mark)
        case GuidelinesMark() as mark:
            versions.mark(connection, entry, mark)
        case Study() as study:
            chores.study(connection, study)
        case record if isinstance(record, _NEW):
            _refuse_twice(connection, entry)
            owner = owner_of(connection, entry.task)
            if owner is not None:
                _add(connection, entry, owner)
        case _:
            pass


def _refuse_twice(connection: Connection, entry: Entry) -> None:
    """Refuse an implied verdict that an attempt already has: several processes may find it."""
    implied, table = entry.record, tables.entry
    if not isinstance(implied, Feedback) or implied.origin is not Origin.IMPLIED:
        return
    before = select(table.c.id.label("entry"), table.c.body).where(
        table.c.attempt == entry.attempt,
        table.c.kind == kind_of(Feedback),
        table.c.id < entry.id,
    )
    for _, said in rows_of(connection, before, Feedback):
        if said.origin is Origin.IMPLIED and said.sign is implied.sign:
            raise StaleIncarnationError(
                f"another process has already stored that attempt {entry.attempt} is "
                f"{implied.sign.value}"
            )


def _add(connection: Connection, entry: Entry, owner: EntryOwner) -> None:
    match entry.record:
        case AttemptTransition() | Feedback():
            _index_outcome(connection, entry, owner)
        case Recall() as recall:
            lessons.use(connection, entry, recall, owner)
        case Summary():
            chores.sum_up(connection, entry, owner)
        case Lesson() as lesson:
            lessons.add(connection, entry, lesson, owner)
        case Fact() as fact:
            attempt = facts.add(connection, entry, fact, owner)
            if fact.state is FactState.PENDING:
                chores.wait(connection, attempt, owner)
        case Guidelines() as proposal:
            versions.propose(connection, entry, proposal, owner)
        case Reflection() as reflection:
            versions.look_back(connection, entry, reflection, owner)
        case _:
            pass


def _index_outcome(connection: Connection, entry: Entry, owner: EntryOwner) -> None:
    if entry.attempt is None:
        return
    verdict = verdict_of(entry.record)
    if verdict is not None:
        lessons.judge(connection, entry.attempt, verdict)
    if isinstance(entry.record, AttemptTransition) and entry.record.lifecycle.over:
        chores.end(connection, entry, entry.attempt, owner)
    if teaches(entry.record):
        chores.open_chore(connection, entry.id, Chore.LESSON, attempt=entry.attempt, owner=owner)
