"""What an operator can do about a row, when it makes sense, and what it asks first. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records import Action, BudgetRequest, Intervention, Lifecycle, Terms
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.present.intervention_text import request_text, terms_text
from midwatch_supervisor.present.numbers import grant_text, parse_grant
from midwatch_supervisor.present.text_line import bracketed
from midwatch_supervisor.tui.state.row import Row


class Command(StrEnum):
    """What a person does at the console; an `Action` is what happens to an attempt."""

    GUIDE = "guide"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    RESTART = "restart"
    GRANT = "grant"
    """More budget, also as the answer to what the worker asked for."""
    SWITCH = "switch"
    """Another model goes on."""
    APPROVE = "approve"
    """A decision that waits takes effect, or the worker gets what it asked for."""
    MODIFY = "modify"
    """A decision that waits takes effect in the operator's words."""
    REJECT = "reject"
    """A decision that waits, or what the worker asked for, is turned down."""
    ACCEPT = "accept"
    """The result is good."""
    REFUSE = "refuse"
    """The result is not good."""
    ACKNOWLEDGE = "acknowledge"
    SILENCE = "silence"

    @property
    def of_decision(self) -> bool:
        """Whether it is about something that waits for a person's word."""
        return self in {Command.APPROVE, Command.MODIFY, Command.REJECT}

    @property
    def of_result(self) -> bool:
        """Whether it is about what an attempt that is over has left."""
        return self in {Command.ACCEPT, Command.REFUSE}

    @property
    def of_alerts(self) -> bool:
        """Whether it is about the alerts that fire."""
        return self in {Command.ACKNOWLEDGE, Command.SILENCE}


ACTIONS: Mapping[Command, Action] = {
    Command.GUIDE: Action.NUDGE,
    Command.PAUSE: Action.PAUSE,
    Command.RESUME: Action.RESUME,
    Command.STOP: Action.STOP,
    Command.RESTART: Action.RESTART,
    Command.GRANT: Action.GRANT_BUDGET,
    Command.SWITCH: Action.SWITCH_MODEL,
    Command.ACKNOWLEDGE: Action.ACKNOWLEDGE,
    Command.SILENCE: Action.SILENCE,
}
"""The commands that are an intervention of their own, and the intervention."""

ABOUT_ALERTS = frozenset(
    {
        Command.GUIDE,
        Command.RESTART,
        Command.GRANT,
        Command.SWITCH,
        Command.ACKNOWLEDGE,
        Command.SILENCE,
    }
)
"""The commands that answer the firing alerts; by those the outcome is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked before a command."""

    title: str
    send: str
    quote: str = ""
    """What the command answers, as others wrote it."""
    text: str = ""
    """What the answer begins with."""
    required: bool = True
    confirm: bool = False
    """Only yes or no; `send` is the yes."""
    check: Callable[[str], str] | None = None
    """Says what is wrong with an answer; empty if nothing is."""


def is_held(row: Row, *, pausing: bool = False) -> bool:
    """Whether an attempt stands still until a person speaks, or soon will.

    `pausing` tells of a pause that the journal does not have yet.
    """
    under_way = () if row.over else row.state.interventions.under_way
    return pausing or row.state.parked or any(each.action is Action.PAUSE for each in under_way)


def refusal(
    command: Command, row: Row, *, pausing: bool = False, attempts_left: int | None = None
) -> str:
    """Why a command makes no sense for a row; empty if it does.

    `held` tells that it stands still or soon will; `attempts_left` is `None` where nobody counts.
    """
    if row.attempt is None:
        return "it has not begun yet"
    if command.of_result:
        return "" if row.over else f"there is no result yet: {row.status}"
    if row.over:
        return f"it is over: {row.status}; nothing reaches it any more"
    if command.of_decision:
        waiting = row.state.interventions.held
        waiting = waiting or (row.state.open_requests and command is not Command.MODIFY)
        return "" if waiting else "no decision waits for approval"
    if command.of_alerts:
        return "" if row.state.firing else "no alert fires"
    return _unheard(
        command, row, waiting=is_held(row, pausing=pausing), attempts_left=attempts_left
    )


def _unheard(command: Command, row: Row, *, waiting: bool, attempts_left: int | None) -> str:
    match command:
        case Command.PAUSE if waiting:
            return "it is paused already, or waits for you"
        case Command.RESUME if not waiting:
            return f"it is not paused: {row.status}"
        case Command.RESTART if attempts_left is not None and attempts_left <= 0:
            return f"attempt {row.number} is the last that the task may have"
        case _:
            return ""


def sensible(
    row: Row, *, pausing: bool = False, attempts_left: int | None = None
) -> frozenset[Command]:
    """The commands that make sense for a row."""
    return frozenset(
        command
        for command in Command
        if not refusal(command, row, pausing=pausing, attempts_left=attempts_left)
    )


def held_decision(row: Row) -> InterventionState | None:
    """The decision that has waited longest for approval."""
    return next(iter(row.state.interventions.held), None)


def waiting_petition(row: Row) -> tuple[int, WorkerRequest] | None:
    """What the worker has waited longest for, with its journal id."""
    return next(iter(row.state.open_requests.items()), None)


def wanted_budget(row: Row) -> tuple[int, BudgetRequest] | None:
    """The oldest request for budget that waits for an answer, with its journal id."""
    for id, petition in row.state.open_requests.items():
        if isinstance(petition, BudgetRequest):
            return id, petition
    return None


def terms_in(command: Command, words: str) -> tuple[Terms, str]:
    """What an answer says exactly, from its first line, and the message, which is the rest."""
    first, _, rest = words.strip().partition("\n")
    if command is Command.GRANT and (grant := parse_grant(first)) is not None:
        return Terms(grant=grant), rest.strip()
    if command is Command.SWITCH:
        return Terms(model=first.strip()), rest.strip()
    return Terms(), words


def question(command: Command, row: Row, *, models: Sequence[str] = ()) -> Question | None:
    """What is asked before a command; `None` if it is done at once.

    `models` are those that the worker may have, where they are known.
    """
    name = row.label
    held = held_decision(row)
    words = _proposed(held.intervention) if held else ""
    match command:
        case Command.GRANT | Command.SWITCH:
            return (
                _grant_question(row) if command is Command.GRANT else _switch_question(row, models)
            )
        case Command.GUIDE:
            return Question(title=f"Guidance for {name}", send="Send", quote=_trouble(row))
        case Command.RESTART:
            title = f"Restart {name}: what should the next attempt do differently?"
            return Question(title=title, send="Restart", quote=_trouble(row))
        case Command.STOP:
            title = f"Stop {name}?"
            detail = "It ends at once and counts as failed. What it has done is kept."
            return Question(title=title, send="Stop it", quote=detail, confirm=True)
        case Command.MODIFY if held:
            title = f"The {held.action} for {name}, in your words"
            return Question(title=title, send="Issue", quote=words, text=held.intervention.message)
        case Command.REJECT if held:
            title = f"Reject the {held.action} for {name} (reason optional)"
            return Question(title=title, send="Reject", quote=words, required=False)
        case Command.REJECT if row.state.open_requests:
            quote = "\n".join(map(request_text, row.state.open_requests.values()))
            title = f"Refuse the request of {name} (reason optional)"
            return Question(title=title, send="Refuse", quote=quote, required=False)
        case Command.ACCEPT:
            title = f"Accept the result of {name} (comment optional)"
            return Question(
                title=title, send="Accept", quote=row.state.transition.reason, required=False
            )
        case Command.REFUSE:
            title = f"Reject the result of {name}: what went wrong? (optional)"
            return Question(
                title=title, send="Reject", quote=row.state.transition.reason, required=False
            )
        case _:
            return None


def _switch_question(row: Row, models: Sequence[str]) -> Question:
    others = [model for model in models if model != row.state.model]
    quote = f"Current model: {row.state.model}" if row.state.model else ""
    if others:
        quote = f"{quote}\nOther models: {', '.join(others)}".strip()
    return Question(
        title=f"Which model should continue {row.label}? Further lines are the message",
        send="Switch",
        quote=quote,
        text=others[0] if others else "",
        check=lambda words: _model_problem(words, row.state.model, models),
    )


def _grant_question(row: Row) -> Question:
    wanted = wanted_budget(row)
    return Question(
        title=f"How much more for {row.label}? Further lines are the message",
        send="Grant",
        quote=request_text(wanted[1]) if wanted else "For instance: 20 requests, 15 minutes",
        text=grant_text(wanted[1].wanted) if wanted else "",
        check=_grant_problem,
    )


def _grant_problem(words: str) -> str:
    if parse_grant(words.strip().partition("\n")[0]) is not None:
        return ""
    return "write amounts of requests, tokens, dollars or minutes: 20 requests, 15 minutes"


def _model_problem(words: str, model: str, models: Sequence[str]) -> str:
    name = words.strip().partition("\n")[0].strip()
    if name == model:
        return f"{model} is the current model"
    known = not models or name in models
    return "" if known else f'Unknown model "{name}"'


def _proposed(held: Intervention) -> str:
    plan = "".join(f"\n{n}. {title}" for n, title in enumerate(held.plan, start=1))
    what = f"{held.action}{bracketed(terms_text(held.terms))}"
    return f"{what} by {held.by}: {held.message or '(no message)'}{plan}"


def _trouble(row: Row) -> str:
    """What a person would answer: the question that was asked, else the alerts."""
    if row.lifecycle is Lifecycle.INPUT_REQUIRED:
        return row.state.transition.reason
    return "\n".join(f"{alert.key.rule}: {alert.summary}" for alert in row.state.firing)


def confirmation_text(command: Command, row: Row) -> str:
    """What a person is told once a command stands in the journal."""
    name = row.label
    return {
        Command.GUIDE: f"{name}: guidance sent; the worker reads it at its next request",
        Command.PAUSE: f"{name}: pause sent; it holds at the next request",
        Command.RESUME: f"{name}: resume sent",
        Command.STOP: f"{name}: stop sent",
        Command.RESTART: f"{name}: restart sent",
        Command.GRANT: f"{name}: more budget sent",
        Command.SWITCH: f"{name}: model switch sent",
        Command.APPROVE: f"{name}: approved",
        Command.MODIFY: f"{name}: approved in your words",
        Command.REJECT: f"{name}: rejected",
        Command.ACCEPT: f"{name}: result accepted",
        Command.REFUSE: f"{name}: result rejected; a lesson follows",
        Command.ACKNOWLEDGE: f"{name}: alerts acknowledged",
        Command.SILENCE: f"{name}: alerts silenced for this attempt",
    }[command]
