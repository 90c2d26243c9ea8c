"""What reaches a worker that somebody else started. Pure."""

from collections.abc import Mapping

from midwatch_monitor.records import Action
from midwatch_monitor.state.attempt import AttemptState

_DONE: Mapping[Action, str] = {
    Action.NUDGE: "guided",
    Action.PAUSE: "paused",
    Action.STOP: "stopped",
}


def out_of_reach(state: AttemptState, action: Action | None) -> str:
    """Why an act reaches nobody; empty where it does."""
    acts = state.acts
    if acts is None or action is None or action in acts or action.of_alerts:
        return ""
    possible = " and ".join(word for each, word in _DONE.items() if each in acts)
    if not possible:
        return "it is only watched: nothing that is said here reaches it"
    return f"somebody else started it: it can be {possible} from here, and no more"
