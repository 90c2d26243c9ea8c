"""What is known of attempts beside their summaries, for a look back that wants more."""

from collections.abc import Sequence

from midwatch_agents.learning.looking_back import Aside
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Actor,
    Birth,
    Delivery,
    Entry,
    Feedback,
    Intervention,
    Origin,
)

_EACH = 5
"""Asides of one attempt and kind at most."""


async def asides(
    journal: Journal, attempts: Sequence[int], *, lessons: bool, operators: bool
) -> tuple[Aside, ...]:
    """The lessons of attempts, and what operators told and answered them, as far as wanted."""
    found: list[Aside] = []
    for attempt in attempts:
        if lessons:
            found += await _lessons(journal, attempt)
        if operators:
            found += await _operators(journal, attempt)
    return tuple(found)


async def _lessons(journal: Journal, attempt: int) -> list[Aside]:
    known = await Learned(journal).lessons(attempt=attempt, limit=_EACH)
    return [
        Aside(attempt=attempt, kind="lesson", text=each.lesson.text)
        for each in known
        if not each.obsolete
        and each.lesson.born is Birth.VERDICT  # an insight is what looks back came to themselves
    ]


async def _operators(journal: Journal, attempt: int) -> list[Aside]:
    kinds = (Intervention, Delivery, Feedback)
    entries = await journal.entries(attempt=attempt, kinds=kinds)
    found = [each for entry in entries if (each := _said(attempt, entry)) is not None]
    return found[-_EACH:]


def _said(attempt: int, entry: Entry) -> Aside | None:
    """What a person said in an entry; `None` if nobody did."""
    match entry.record:
        case Intervention(by=Actor.OPERATOR, action=action, message=text) if text:
            return Aside(attempt=attempt, kind=f"an operator said ({action})", text=text)
        case Delivery(state=state, comment=text) if text:
            return Aside(attempt=attempt, kind=f"an operator {state} what was decided", text=text)
        case Feedback(origin=Origin.EXPLICIT, accepted=accepted, comment=text) if text:
            verdict = "accepted" if accepted else "rejected"
            return Aside(attempt=attempt, kind=f"a person {verdict} the result", text=text)
        case _:
            return None
