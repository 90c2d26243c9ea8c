"""What becomes of a question that no person answered in time. Pure: the moment is an argument."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from midwatch_monitor.config.policy import PersonSettings, Unanswered, Unapproved
from midwatch_monitor.records import Action, Actor, Delivery, DeliveryState, Intervention
from midwatch_monitor.state.run import Question, RunState

AUTHOR = "timeout"
"""Who acts where a person did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueQuestions:
    """What is to be written now, and of which attempt."""

    task: int
    attempt: int
    record: Delivery | Intervention


def overdue(
    run: RunState, person: PersonSettings, now: datetime, *, began: datetime
) -> tuple[DueQuestions, ...]:
    """What the policy does in the place of the person; nothing while waiting has no limit.

    The time before this process `began` does not count: there was nobody to answer to. A stamp
    knows nothing of the attempt's steps: its `step` is 0.
    """
    if not person.timeout_minutes:
        return ()
    limit = timedelta(minutes=person.timeout_minutes)
    late = f"nobody answered within {person.timeout_minutes:g} minutes"
    approvals = [
        DueQuestions(task=held.task, attempt=held.attempt, record=_stamp(held.id, person, late))
        for held in run.held
        if held.attempt is not None and now - max(held.issued_at, began) >= limit
    ]
    questions = [
        DueQuestions(task=each.task, attempt=each.attempt, record=_answer(each, person, late))
        for each in run.questions
        if now - max(each.since, began) >= limit
    ]
    return (*approvals, *questions)


def _stamp(intervention: int, person: PersonSettings, late: str) -> Delivery:
    approved = person.approval is Unapproved.APPROVE
    state = DeliveryState.APPROVED if approved else DeliveryState.REJECTED
    return Delivery(intervention=intervention, state=state, author=AUTHOR, comment=late)


def _answer(asked: Question, person: PersonSettings, late: str) -> Intervention:
    action, message = Action.STOP, f"{late}: {asked.text}"
    if asked.petition is not None:
        action, message = Action.NUDGE, f"Refused: {late}. You may not {asked.text}."
    elif person.question is Unanswered.RESUME:
        action = Action.RESUME
        message += " Go on without an answer, with the safest way that you know."
    return Intervention(
        action=action, by=Actor.POLICY, author=AUTHOR, message=message, petition=asked.petition
    )
