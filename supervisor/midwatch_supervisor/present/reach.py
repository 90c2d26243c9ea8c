"""What reaches a worker that somebody else started. Pure."""

from collections.abc import Mapping

from midwatch_monitor.records import Action
from midwatch_monitor.state.attempt import AttemptState

_DONE: Mapping[Action, str] = {
    Action.NUDGE: "guided",
    Action.PAUSE: "paused",
    Action.STOP: "stopped",
}


def reach_text(acts: tuple[Action, ...]) -> str:
    """What can be done to it from here."""
    possible = " and ".join(word for each, word in _DONE.items() if each in acts)
    return f"it can be {possible} from here" if possible else "it is only watched"


def out_of_reach(state: AttemptState, action: Action | None) -> str:
    """Why an act reaches nobody; empty where it does."""
    acts, worker = state.acts, state.attempt.worker
    if acts is None or action is None or action in acts or action.of_alerts:
        return ""
    from midwatch_monitor.traces.session_files import KEPT  # with it come all formats

    hint = ""
    if worker in KEPT and Action.NUDGE not in acts:
        hint = f"; `midwatch hook install {worker}` lets you guide and stop its next session"
    return f"somebody else started it: {reach_text(acts)}{hint}"
