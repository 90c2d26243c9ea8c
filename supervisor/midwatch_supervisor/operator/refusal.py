"""What waits for a person's word in an attempt, and which acts would come to nothing. Pure."""

from collections.abc import Mapping

from midwatch_monitor.records import Action
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.present.intervention_text import reach_text, request_name
from midwatch_supervisor.present.waiting import attempt_waits_for

OpenQuestion = InterventionState | WorkerRequest
"""A decision that waits for approval, or what a worker asks for."""


def questions(state: AttemptState) -> Mapping[int, OpenQuestion]:
    """What waits for a person's word, by journal id: decisions first, the oldest of each first."""
    if state.over:
        return {}
    return {**{each.id: each for each in state.interventions.held}, **state.open_requests}


def question_name(question: OpenQuestion) -> str:
    """What it is, in a word or two."""
    if isinstance(question, InterventionState):
        return question.action.value
    return request_name(question)


def is_held(state: AttemptState) -> bool:
    """Whether an attempt stands still until a person speaks, or soon will."""
    coming = () if state.over else state.interventions.under_way
    return state.parked or any(each.action is Action.PAUSE for each in coming)


def act_refusal(state: AttemptState, action: Action | None, *, held: bool) -> str:
    """Why an act on an attempt that is not over would come to nothing; empty if it would not.

    `held` is as `is_held` says, or whether a pause is on its way that the journal lacks.
    """
    if why := out_of_reach(state, action):
        return why
    if action is Action.PAUSE and held:
        return "it is paused already, or waits for you"
    if action is not Action.RESUME:
        return ""
    if state.permission is not None:
        return f"it waits for {attempt_waits_for(state)}"
    return "" if held else f"it is not paused: {state.status}"


def out_of_reach(state: AttemptState, action: Action | None) -> str:
    """Why an act reaches nobody, in an attempt that somebody else started; empty where it does."""
    acts, worker = state.acts, state.attempt.worker
    if acts is None or action is None or action in acts or action.of_alerts:
        return ""
    from midwatch_monitor.traces.session_files import KEPT  # with it come all formats

    hint = ""
    if worker in KEPT and Action.NUDGE not in acts:
        hint = f"; `midwatch hook install {worker}` lets you guide and stop its next session"
    return f"somebody else started it: {reach_text(acts)}{hint}"
