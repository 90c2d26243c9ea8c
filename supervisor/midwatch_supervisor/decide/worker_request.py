"""What a worker asks for, and how a person answers it. Pure."""

from midwatch_monitor.records import (
    Action,
    Actor,
    Intervention,
    PlanCheck,
    Terms,
)
from midwatch_monitor.state.intervention import WorkerRequest
from midwatch_supervisor.present.numbers import grant_text

GRANTED = "Granted."
APPROVED = "Approved."
REFUSED = "Refused."
"""What a worker hears when nobody said more."""


def granted(id: int, petition: WorkerRequest, *, author: str, message: str = "") -> Intervention:
    """The act by which an operator grants what was asked for; `id` is the petition's."""
    if isinstance(petition, PlanCheck):
        return Intervention(
            action=Action.REPLAN,
            by=Actor.OPERATOR,
            author=author,
            message=message or APPROVED,
            plan=petition.proposed,
            petition=id,
        )
    return Intervention(
        action=Action.GRANT_BUDGET,
        by=Actor.OPERATOR,
        author=author,
        message=message or GRANTED,
        terms=Terms(grant=petition.wanted),
        petition=id,
    )


def refused(id: int, *, author: str, message: str = "") -> Intervention:
    """The act by which an operator refuses what was asked for; `id` is the petition's."""
    return Intervention(
        action=Action.NUDGE,
        by=Actor.OPERATOR,
        author=author,
        message=message or REFUSED,
        petition=id,
    )


def petition_name(petition: WorkerRequest) -> str:
    """What it is, in a word or two."""
    return "plan revision" if isinstance(petition, PlanCheck) else "budget request"


def petition_words(petition: WorkerRequest) -> str:
    """What is asked for, and why."""
    if isinstance(petition, PlanCheck):
        plan = "; ".join(petition.proposed) or "the plan as it is"
        return f"asks to revise its plan: {plan} ({petition.choice or petition.reality})"
    wanted = grant_text(petition.wanted) or "more"
    return f"asks for budget: {wanted} ({petition.reason})"
