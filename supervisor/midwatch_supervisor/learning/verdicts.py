"""The verdicts of a journal as they are listed: on which attempt, by whom, resting on what."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.verdict import verdict_of
from midwatch_monitor.words import Attempt, Entry, Feedback, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A verdict on an attempt."""

    task: Task
    attempt: Attempt
    at: datetime
    verdict: Feedback
    id: int | None = None
    """Of the journal's entry that says or implies it; `None` if it is not stored."""


async def given_verdicts(journal: Journal, entries: Iterable[Entry]) -> AsyncIterator[Given]:
    """The verdicts among entries; how an attempt ended is one too."""
    for entry in entries:
        verdict = verdict_of(entry.record)
        if verdict is not None and entry.attempt is not None:
            yield Given(
                task=await journal.task(entry.task),
                attempt=await journal.attempt(entry.attempt),
                at=entry.at,
                verdict=verdict,
                id=entry.id,
            )


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
