"""An operator's commands on a row: when each is possible, what it asks, and its result.

Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import (
    Action,
    BudgetRequest,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.operator.tasks import (
    OpenQuestion,
    act_refusal,
    is_held,
    out_of_reach,
    questions,
)
from midwatch_supervisor.present.intervention_text import (
    action_text,
    proposal_text,
    request_name,
    request_text,
)
from midwatch_supervisor.present.numbers import budget_text, grant_text, parse_grant
from midwatch_supervisor.tui.state.row import Need, Row


class OperatorCommand(StrEnum):
    """What a person does at the console; an `Action` is what happens to an attempt."""

    GUIDE = "guide"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    RESTART = "restart"
    GRANT = "grant"
    """More budget, also as the answer to a worker's request."""
    SWITCH = "switch"
    """Continue with another model."""
    APPROVE = "approve"
    """Let a waiting decision take effect, or grant a worker's request."""
    MODIFY = "modify"
    """Let a waiting decision take effect in the operator's words."""
    REJECT = "reject"
    """Reject a waiting decision or a worker's request."""
    ACCEPT = "accept"
    """Accept the result."""
    REFUSE = "refuse"
    """Reject the result."""
    ACKNOWLEDGE = "acknowledge"
    SILENCE = "silence"

    @property
    def of_decision(self) -> bool:
        """Whether it is about a decision or request that waits for a person."""
        return self in {OperatorCommand.APPROVE, OperatorCommand.MODIFY, OperatorCommand.REJECT}

    @property
    def of_result(self) -> bool:
        """Whether it is about the result of an ended attempt."""
        return self in {OperatorCommand.ACCEPT, OperatorCommand.REFUSE}

    @property
    def of_alerts(self) -> bool:
        """Whether it is about firing alerts."""
        return self in {OperatorCommand.ACKNOWLEDGE, OperatorCommand.SILENCE}

    @property
    def effect(self) -> "CommandEffect":
        return _EFFECTS[self]


@dataclass(frozen=True, slots=True)
class CommandEffect:
    """What a command does. Positional, so that the table reads as a table."""

    confirmation: str
    """Shown once it is in the journal."""
    action: Action | None = None
    """The intervention it is, if it is one."""


_EFFECTS: Mapping[OperatorCommand, CommandEffect] = {
    OperatorCommand.GUIDE: CommandEffect(
        "guidance sent; the worker reads it at its next request", Action.NUDGE
    ),
    OperatorCommand.PAUSE: CommandEffect(
        "pause sent; it takes effect at the next request", Action.PAUSE
    ),
    OperatorCommand.RESUME: CommandEffect("resume sent", Action.RESUME),
    OperatorCommand.STOP: CommandEffect("stop sent", Action.STOP),
    OperatorCommand.RESTART: CommandEffect("restart sent", Action.RESTART),
    OperatorCommand.GRANT: CommandEffect("more budget sent", Action.GRANT_BUDGET),
    OperatorCommand.SWITCH: CommandEffect("model switch sent", Action.SWITCH_MODEL),
    OperatorCommand.APPROVE: CommandEffect("approved"),
    OperatorCommand.MODIFY: CommandEffect("approved in your own words"),
    OperatorCommand.REJECT: CommandEffect("rejected"),
    OperatorCommand.ACCEPT: CommandEffect("result accepted"),
    OperatorCommand.REFUSE: CommandEffect("result rejected; a lesson follows"),
    OperatorCommand.ACKNOWLEDGE: CommandEffect("alerts acknowledged", Action.ACKNOWLEDGE),
    OperatorCommand.SILENCE: CommandEffect("alerts silenced for this attempt", Action.SILENCE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogQuestion:
    """The question before a command."""

    title: str
    send: str
    quote: str = ""
    """The text that the command answers."""
    text: str = ""
    """The initial text of the answer."""
    required: bool = True
    confirm: bool = False
    """Whether it is a yes-or-no question; `send` is the yes, `leave` the no."""
    leave: str = "Cancel"
    check: Callable[[str], str] | None = None
    """Returns what is wrong with an answer; empty if nothing."""


def begins_again(command: OperatorCommand, row: Row) -> bool:
    """Whether a command restarts a task whose attempt is over."""
    return command is OperatorCommand.RESTART and row.over


def confirmation(command: OperatorCommand, row: Row) -> str:
    """Return what is shown once the command is in the journal."""
    return "begun again" if begins_again(command, row) else command.effect.confirmation


_TAKEN_OVER = {
    Ending.RESTARTED: "a later attempt has taken over",
    Ending.SPLIT: "it was split: begin the failed part again",
}


def refusal(
    command: OperatorCommand, row: Row, *, pausing: bool = False, models: Sequence[str] = ()
) -> str:
    """Return why a command is impossible for a row; empty if it is possible.

    `pausing` means that a pause is being stored; `models` are as for `question`.
    """
    if row.attempt is None:
        return "it has not begun yet"
    if why := out_of_reach(row.state, command.effect.action):
        return why
    return _refusal_now(command, row, pausing=pausing, models=models)


def _refusal_now(
    command: OperatorCommand, row: Row, *, pausing: bool, models: Sequence[str]
) -> str:
    """Return why a command that reaches the attempt is impossible now."""
    if command.of_result:
        return "" if row.over else f"there is no result yet: {row.status}"
    if begins_again(command, row):
        # After a split, its parts are tasks of their own that can be restarted.
        return _TAKEN_OVER.get(row.state.transition.ending or Ending.DONE, "")
    if row.over:
        return f"it is over: {row.status}; nothing reaches it any more"
    if command.of_decision:
        decisions = command is OperatorCommand.MODIFY
        waiting = row.state.interventions.held if decisions else questions(row.state)
        return "" if waiting else "no decision is waiting for approval"
    if command.of_alerts:
        return _alerts_refusal(command, row)
    if command is OperatorCommand.SWITCH and models and {*models} <= {row.state.model}:
        return f"its worker may only use {row.state.model}"
    held = pausing or is_held(row.state)
    return act_refusal(row.state, command.effect.action, held=held)


def _alerts_refusal(command: OperatorCommand, row: Row) -> str:
    """Return why a command about firing alerts is impossible; empty if it is possible."""
    if not row.state.firing:
        return "no alert is firing"
    if command is OperatorCommand.ACKNOWLEDGE:
        return "" if row.state.unseen else "the firing alerts are already acknowledged"
    hushed = {each.key for each in row.state.firing} <= row.state.silenced
    return "the firing alerts are already silenced" if hushed else ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A possible command, as shown in the footer."""

    key: str
    """The id of its key."""
    does: str
    """One or two words."""


_EITHER = OperatorCommand.PAUSE, OperatorCommand.RESUME
"""Commands that share a key, of which only one is possible at a time."""
_GOES_ON = (
    OperatorCommand.GUIDE,
    *_EITHER,
    OperatorCommand.STOP,
    OperatorCommand.RESTART,
    OperatorCommand.ACKNOWLEDGE,
)
_WAITS = (OperatorCommand.APPROVE, OperatorCommand.MODIFY, OperatorCommand.REJECT, *_GOES_ON)
_LIKELY: Mapping[Need, Sequence[OperatorCommand]] = {
    Need.ANSWER: tuple(each for each in _GOES_ON if each is not OperatorCommand.RESTART),
    Need.STUCK: (
        OperatorCommand.GUIDE,
        OperatorCommand.RESTART,
        *_EITHER,
        OperatorCommand.STOP,
        OperatorCommand.ACKNOWLEDGE,
    ),
    Need.OVER: (OperatorCommand.ACCEPT, OperatorCommand.REFUSE, OperatorCommand.RESTART),
}
"""Likely commands by a row's need, the most likely first; by default those while it works."""


def offers(row: Row, *, pausing: bool = False) -> tuple[Offer, ...]:
    """Return what can be done with a row now, most likely first. Arguments as for `refusal`."""
    likely = _LIKELY.get(row.need, _GOES_ON)
    if questions(row.state):
        likely = _WAITS
    elif row.state.paused:
        likely = (OperatorCommand.RESUME, OperatorCommand.GUIDE, OperatorCommand.STOP)
    return tuple(
        Offer("pause" if each is OperatorCommand.RESUME else each.value, _command_name(each, row))
        for each in likely
        if not refusal(each, row, pausing=pausing)
    )


def _command_name(command: OperatorCommand, row: Row) -> str:
    """Return a command's name for a row."""
    match command:
        case OperatorCommand.GUIDE if row.state.question is not None:
            return "Answer"
        case OperatorCommand.REFUSE:
            return "Reject result"
        case _:
            return command.value.capitalize()


Waiting = tuple[int, OpenQuestion]
"""A decision that waits for approval, or a worker's request, with its journal id."""


def question_for(command: OperatorCommand, row: Row) -> Waiting | None:
    """Return what a command answers: what has waited longest, decisions before requests."""
    state = row.state
    if command is OperatorCommand.GRANT:
        for id, request in state.open_requests.items():
            if isinstance(request, BudgetRequest):
                return id, request
    elif command.of_decision:
        return next(iter(questions(state).items()), None)
    return None


def terms_in(command: OperatorCommand, words: str) -> tuple[Terms, str]:
    """Return the terms in an answer's first line, and the rest as the message."""
    first, _, rest = words.strip().partition("\n")
    if command is OperatorCommand.GRANT and (grant := parse_grant(first)) is not None:
        return Terms(grant=grant), rest.strip()
    if command is OperatorCommand.SWITCH:
        return Terms(model=first.strip()), rest.strip()
    return Terms(), words


def question(
    command: OperatorCommand, row: Row, *, models: Sequence[str] = (), unheard: str = ""
) -> DialogQuestion | None:
    """Return the question before a command; `None` if there is none.

    `models` are those that the worker may use, if known; `unheard` says what must happen before the
    worker receives anything.
    """
    name = row.label
    match command:
        case OperatorCommand.GRANT:
            return _grant_question(row)
        case OperatorCommand.SWITCH:
            return _switch_question(row, models)
        case OperatorCommand.GUIDE:
            return DialogQuestion(
                title=f"Guidance for {name}", send="Send", quote=_trouble_text(row)
            )
        case OperatorCommand.RESTART:
            what = row.name if row.over else name
            title = f"Restart {what}: what should the next attempt do differently?"
            return DialogQuestion(title=title, send="Restart", quote=_restart_facts(row))
        case OperatorCommand.STOP:
            quote = _stop_facts(row, unheard)
            return DialogQuestion(title=f"Stop {name}?", send="Stop it", quote=quote, confirm=True)
        case OperatorCommand.SILENCE:
            title = f"Silence these alerts of {name} until the attempt ends?"
            quote = (
                f"{_alerts_text(row)}\nThey no longer call anybody, and nothing is done about them."
            )
            return DialogQuestion(title=title, send="Silence", quote=quote, confirm=True)
        case OperatorCommand.APPROVE | OperatorCommand.MODIFY | OperatorCommand.REJECT:
            return _decision_question(command, row)
        case OperatorCommand.ACCEPT | OperatorCommand.REFUSE:
            accept = f"Accept the result of {name} (comment optional)"
            reject = f"Reject the result of {name}: what went wrong? (optional)"
            title, send = (
                (accept, "Accept") if command is OperatorCommand.ACCEPT else (reject, "Reject")
            )
            reason = row.state.transition.reason
            return DialogQuestion(title=title, send=send, quote=reason, required=False)
        case _:
            return None


_FAR_REACHING = frozenset({Action.REPLAN, Action.RESTART, Action.SPLIT, Action.STOP})
"""Decisions that discard or redirect work: their approval is confirmed by name."""


def _decision_question(command: OperatorCommand, row: Row) -> DialogQuestion | None:
    match question_for(command, row):
        case None:
            return None
        case _, InterventionState() as held:
            return _proposal_question(command, row.label, held.intervention)
        case _, request:
            return _request_question(command, row, request)


def _request_question(
    command: OperatorCommand, row: Row, request: WorkerRequest
) -> DialogQuestion | None:
    if command is OperatorCommand.APPROVE:
        if isinstance(request, BudgetRequest):
            return None
        title = f"Approve the {request_name(request)} of {row.label}?"
        return DialogQuestion(
            title=title, send="Approve", quote=request_text(request), confirm=True
        )
    quote = "\n".join(map(request_text, row.state.open_requests.values()))
    title = f"Reject the request of {row.label} (reason optional)"
    return DialogQuestion(title=title, send="Reject", quote=quote, required=False)


def _proposal_question(
    command: OperatorCommand, name: str, held: Intervention
) -> DialogQuestion | None:
    quote = f"{action_text(held.action, held.terms)} by {held.by}: {proposal_text(held)}"
    if command is OperatorCommand.APPROVE:
        if held.action not in _FAR_REACHING:
            return None
        title = f"Approve the {held.action} for {name}?"
        return DialogQuestion(title=title, send="Approve", quote=quote, confirm=True)
    if command is OperatorCommand.MODIFY:
        title = f"Approve the {held.action} for {name} in your own words"
        return DialogQuestion(title=title, send="Approve", quote=quote, text=held.message)
    title = f"Reject the {held.action} for {name} (reason optional)"
    return DialogQuestion(title=title, send="Reject", quote=quote, required=False)


def _kept_words(row: Row) -> str:
    return (
        "Its workspace is kept as it is, and so is what was learned; "
        f"`{command(f'diff {row.label}')}` shows its changes."
    )


def _stop_facts(row: Row, unheard: str) -> str:
    """Return what a stop does, and what must happen before."""
    soon = "" if unheard else " at once"
    facts = (
        f"It ends{soon} and is canceled; the tasks that depend on it do not begin.\n"
        f"{_kept_words(row)}"
    )
    if row.state.acts is not None:  # somebody else's agent
        facts = "The agent is told to end its turn at its next step; then it is canceled."
    return f"{facts}\n{unheard[0].upper()}{unheard[1:]}." if unheard else facts


def _restart_facts(row: Row) -> str:
    """Return what the restart answers, and what it keeps and drops."""
    used = f"The budget used so far still counts: {budget_text(row.state.budget)}"
    if row.over:
        used = "The task gets its whole budget again; what was used still counts."
    parts = (
        row.state.transition.reason if row.over else _trouble_text(row),
        f"Attempt {row.number + 1} begins in a new workspace, without these changes and this "
        "conversation. It is told what was tried, why it ended, and your note.",
        _kept_words(row),
        used,
    )
    return "\n".join(filter(None, parts))


def _switch_question(row: Row, models: Sequence[str]) -> DialogQuestion:
    current = row.state.model
    others = [model for model in models if model != current]
    quote = [f"· {current} (current)"] if current else []
    quote += [f"· {model}" for model in others]
    quote.append("The same attempt continues with all it knows: a switch uses up no attempt.")

    def problem(words: str) -> str:
        name = words.strip().partition("\n")[0].strip()
        if name == current:
            return f"{current} is the current model"
        return "" if not models or name in models else f'Unknown model "{name}"'

    return DialogQuestion(
        title=f"Which model should continue {row.label}? Further lines are the message",
        send="Switch",
        quote="\n".join(quote),
        text=others[0] if others else "",
        check=problem,
    )


def _grant_question(row: Row) -> DialogQuestion:
    quote, text = "For example: 20 requests, 15 minutes", ""
    used = f"Used: {budget_text(row.state.budget)}"
    match question_for(OperatorCommand.GRANT, row):
        case _, BudgetRequest() as asked:
            quote, text = request_text(asked), grant_text(asked.wanted)
        case _:
            pass
    title = f"How much more budget for {row.label}? Further lines are the message"
    return DialogQuestion(
        title=title, send="Grant", quote=f"{used}\n{quote}", text=text, check=_grant_problem
    )


def _grant_problem(words: str) -> str:
    if parse_grant(words.strip().partition("\n")[0]) is not None:
        return ""
    return "enter amounts of requests, tokens, dollars or minutes: 20 requests, 15 minutes"


def _trouble_text(row: Row) -> str:
    """Return what a person would respond to: the question asked, else the alerts."""
    if row.lifecycle is Lifecycle.INPUT_REQUIRED:
        return row.state.transition.reason
    return _alerts_text(row)


def _alerts_text(row: Row) -> str:
    return "\n".join(f"{alert.key.rule}: {alert.summary}" for alert in row.state.firing)


_ACTION_NAMES = {
    Action.NUDGE: "guidance",
    Action.GRANT_BUDGET: "more budget",
    Action.SWITCH_MODEL: "model switch",
}
"""Names of actions whose own names are not plain English."""
_ARRIVED = {
    Action.PAUSE: "paused",
    Action.RESUME: "resumed",
    Action.STOP: "stopped",
    Action.RESTART: "ended; a new attempt follows",
}
"""What has happened once these are delivered; for others, "delivered"."""


def result_text(
    action: Action, news: Delivery | OutcomeReport, *, over: bool = True
) -> tuple[str, bool]:
    """Return an intervention's result and whether it is good; empty if its author knows it.

    `over` says whether its attempt is over: a worker may be told to stop before that.
    """
    what = _ACTION_NAMES.get(action, action.value)
    if isinstance(news, OutcomeReport):
        reason = f": {news.reason}" if news.reason else ""
        return f"{news.outcome} after {what}{reason}", news.outcome is Outcome.RECOVERED
    match news.state:
        case DeliveryState.DELIVERED if action is Action.STOP and not over:
            return news.comment or "told to stop", not news.comment
        case DeliveryState.DELIVERED if not action.of_alerts:
            return _ARRIVED.get(action, f"{what} delivered"), True
        case DeliveryState.EXPIRED:
            return f"{what} came too late: the attempt is over", False
        case DeliveryState.REJECTED:
            return f"{what} rejected", False
        case _:
            return "", True
