"""The verdicts of a journal as they are listed: on which attempt, by whom, resting on what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Entry, Feedback, Task
from midwatch_monitor.records.verdict import verdict_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A verdict on an attempt."""

    task: Task
    attempt: Attempt
    at: datetime
    verdict: Feedback
    id: int | None = None
    """Of the journal's entry that says or implies it; `None` if it is not stored."""


async def given_verdicts(journal: Journal, entries: Iterable[Entry]) -> list[Given]:
    """The verdicts among a page of entries, in their order; how an attempt ended is one too.

    What is erased meanwhile is left out. Two questions to the journal, whatever their number.
    """
    found = [
        (entry, entry.attempt, verdict)
        for entry in entries
        if entry.attempt is not None and (verdict := verdict_of(entry.record)) is not None
    ]
    if not found:
        return []
    named = await journal.attempts_with({attempt for _, attempt, _ in found})
    attempts = {each.id: each for each in named}
    tasks = {each.id: each for each in await journal.tasks_with({each.task for each in named})}
    return [
        Given(
            task=tasks[entry.task],
            attempt=attempts[attempt],
            at=entry.at,
            verdict=verdict,
            id=entry.id,
        )
        for entry, attempt, verdict in found
        if attempt in attempts and entry.task in tasks
    ]


def verdict_fields(given: Given) -> Mapping[str, object]:
    """A verdict as JSON takes it."""
    moment = given.at.astimezone(UTC).isoformat(timespec="milliseconds")
    return {
        "type": "feedback",
        "at": moment.replace("+00:00", "Z"),
        "id": given.id,
        "project": given.task.project,
        "task": given.task.name,
        "attempt": given.attempt.id,
        "number": given.attempt.number,
        "accepted": given.verdict.accepted,
        "origin": given.verdict.origin,
        "sign": given.verdict.sign,
        "author": given.verdict.author,
        "comment": given.verdict.comment,
        "diff": given.verdict.diff,
    }


def verdict_words(given: Given) -> str:
    """A verdict on one line for people; a diff only as its length."""
    verdict = given.verdict
    id = "" if given.id is None else f"{given.id} "
    when = f"{given.at.astimezone():%Y-%m-%d %H:%M}"
    what = "accepted" if verdict.accepted else "rejected"
    by = f" by {verdict.author}" if verdict.author else ""
    comment = f": {' '.join(verdict.comment.split())}" if verdict.comment.strip() else ""
    diff = f" (diff of {len(verdict.diff)} characters)" if verdict.diff else ""
    name = f"{given.task.name}#{given.attempt.number}"
    return f"{id}{when} {name} {what} ({verdict.origin}, {verdict.sign}){by}{comment}{diff}"
