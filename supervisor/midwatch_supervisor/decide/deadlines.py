"""What becomes of a question that no person answered in time. Pure: the moment is an argument."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.records import (
    Action,
    Actor,
    Delivery,
    DeliveryState,
    Intervention,
)
from midwatch_supervisor.decide.open_questions import OpenQuestions

AUTHOR = "timeout"
"""Who acts where a person did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is to be written now, and of which attempt."""

    task: int
    attempt: int
    record: Delivery | Intervention


def overdue(
    agenda: OpenQuestions, person: PersonSettings, now: datetime, *, began: datetime
) -> tuple[Due, ...]:
    """What the policy does in the place of the person; nothing while waiting has no limit.

    The time before this process `began` does not count: there was nobody to answer to. A stamp
    knows nothing of the attempt's steps: its `step` is 0.
    """
    if not person.timeout_minutes:
        return ()
    limit = timedelta(minutes=person.timeout_minutes)
    late = f"nobody answered within {person.timeout_minutes:g} minutes"
    approvals = [
        Due(task=entry.task, attempt=entry.attempt, record=_stamp(id, person, late))
        for id, entry in agenda.held.items()
        if entry.attempt is not None and now - max(entry.at, began) >= limit
    ]
    questions = [
        Due(task=parked.task, attempt=id, record=_answer(parked.question, person, late))
        for id, parked in agenda.parked.items()
        if now - max(parked.since, began) >= limit
    ]
    return (*approvals, *questions)


def _stamp(intervention: int, person: PersonSettings, late: str) -> Delivery:
    approved = person.approval is Unapproved.APPROVE
    state = DeliveryState.APPROVED if approved else DeliveryState.REJECTED
    return Delivery(intervention=intervention, state=state, author=AUTHOR, comment=late)


def _answer(question: str, person: PersonSettings, late: str) -> Intervention:
    if person.question is Unanswered.RESUME:
        message = f"{late}: {question} Go on without an answer, with the safest way that you know."
        return Intervention(
            action=Action.RESUME, by=Actor.POLICY, author=AUTHOR, message=message.strip()
        )
    return Intervention(
        action=Action.STOP, by=Actor.POLICY, author=AUTHOR, message=f"{late}: {question}"
    )
