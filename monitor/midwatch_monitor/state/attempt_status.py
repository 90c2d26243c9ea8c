"""Where an attempt stands, in a word for people. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from midwatch_monitor.records import Action, Ending
from midwatch_monitor.state.intervention import Interventions


class AttemptStatus(StrEnum):
    """Where an attempt stands, in a word for people. Programs read its lifecycle."""

    SUBMITTED = "submitted"
    WORKING = "working"
    PAUSED = "paused"
    """Until a person resumes it."""
    WAITING = "waits for you"
    """For a person's answer."""
    IDLE = "idle"
    """Until somebody asks it for more, at its own terminal."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    SPLIT = "split"
    """Smaller tasks took over: it is over, and no failure."""
    RESTARTED = "restarted"
    """A new attempt took over: it is over, and no failure."""
    PAUSING = "pausing…"
    """What was asked for is in the journal, and has not arrived. So are the next three."""
    RESUMING = "resuming…"
    STOPPING = "stopping…"
    RESTARTING = "restarting…"


_COMING: Mapping[Action, AttemptStatus] = {
    Action.PAUSE: AttemptStatus.PAUSING,
    Action.RESUME: AttemptStatus.RESUMING,
    Action.STOP: AttemptStatus.STOPPING,
    Action.RESTART: AttemptStatus.RESTARTING,
}

ENDED_AS: Mapping[Ending, AttemptStatus] = {
    Ending.SPLIT: AttemptStatus.SPLIT,
    Ending.RESTARTED: AttemptStatus.RESTARTED,
}
"""The endings that are no failure although the attempt did not complete."""


def coming_status(interventions: Interventions) -> AttemptStatus | None:
    """What is about to change where the attempt stands; `None` if nothing is on its way.

    The newest counts, but what ends the attempt comes before the rest, and a stop before all.
    """
    coming = [each.action for each in interventions.on_their_way if each.action in _COMING]
    if not coming:
        return None
    ends = [action for action in coming if action.at_once]
    return _COMING[Action.STOP if Action.STOP in ends else (ends or coming)[-1]]
