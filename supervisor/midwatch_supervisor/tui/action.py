"""What an operator can do about a row, when it makes sense, and what it asks first. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.records import Action, BudgetRequest, Intervention, Lifecycle, Terms
from midwatch_monitor.state.intervention import WorkerRequest
from midwatch_supervisor.decide.worker_request import petition_words
from midwatch_supervisor.present.spelling import grant_in, grant_words, in_brackets, terms_words
from midwatch_supervisor.tui.state.row import Row


class Act(StrEnum):
    """One act of the console. `Action` is what a worker is done to; this is what a person does."""

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
        return self in {Act.APPROVE, Act.MODIFY, Act.REJECT}

    @property
    def of_result(self) -> bool:
        """Whether it is about what an attempt that is over has left."""
        return self in {Act.ACCEPT, Act.REFUSE}

    @property
    def of_alerts(self) -> bool:
        """Whether it is about the alerts that fire."""
        return self in {Act.ACKNOWLEDGE, Act.SILENCE}


ACTIONS: Mapping[Act, Action] = {
    Act.GUIDE: Action.NUDGE,
    Act.PAUSE: Action.PAUSE,
    Act.RESUME: Action.RESUME,
    Act.STOP: Action.STOP,
    Act.RESTART: Action.RESTART,
    Act.GRANT: Action.GRANT_BUDGET,
    Act.SWITCH: Action.SWITCH_MODEL,
    Act.ACKNOWLEDGE: Action.ACKNOWLEDGE,
    Act.SILENCE: Action.SILENCE,
}
"""The acts that are an intervention of their own, and the intervention."""

ABOUT_ALERTS = frozenset(
    {Act.GUIDE, Act.RESTART, Act.GRANT, Act.SWITCH, Act.ACKNOWLEDGE, Act.SILENCE}
)
"""The acts that answer the firing alerts; by those the outcome is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked before an act."""

    title: str
    send: str
    quote: str = ""
    """What the act answers, as others wrote it."""
    text: str = ""
    """What the answer begins with."""
    required: bool = True
    confirm: bool = False
    """Only yes or no; `send` is the yes."""
    check: Callable[[str], str] | None = None
    """Says what is wrong with an answer; empty if nothing is."""


def name_of(row: Row) -> str:
    """What people call an attempt: `fix#2`."""
    return f"{row.name}#{row.number}" if row.number else row.name


def waits(row: Row, *, pausing: bool) -> bool:
    """Whether a worker is held until a person speaks, or soon will be."""
    return pausing or row.lifecycle is Lifecycle.INPUT_REQUIRED


def refusal(act: Act, row: Row, *, pausing: bool = False, attempts_left: int | None = None) -> str:
    """Why an act makes no sense for a row; empty if it does.

    `pausing` tells that a pause is on its way; `attempts_left` is `None` where nobody counts.
    """
    if row.attempt is None:
        return "it has not begun yet"
    if act.of_result:
        return "" if row.lifecycle.over else f"there is no result yet; it is {row.lifecycle}"
    if row.lifecycle.over:
        return f"it is over: {row.lifecycle}; nothing reaches it any more"
    if act.of_decision:
        waiting = row.held or (row.petitions and act is not Act.MODIFY)
        return "" if waiting else "no decision waits for approval"
    if act.of_alerts:
        return "" if row.firing else "no alert fires"
    return _unheard(act, row, waiting=waits(row, pausing=pausing), attempts_left=attempts_left)


def _unheard(act: Act, row: Row, *, waiting: bool, attempts_left: int | None) -> str:
    match act:
        case Act.PAUSE if waiting:
            return "it is paused already, or waits for a person"
        case Act.RESUME if not waiting:
            return f"it does not wait for a person; it is {row.lifecycle}"
        case Act.RESTART if attempts_left is not None and attempts_left <= 0:
            return f"attempt {row.number} is the last that the task may have"
        case _:
            return ""


def sensible(
    row: Row, *, pausing: bool = False, attempts_left: int | None = None
) -> frozenset[Act]:
    """The acts that make sense for a row."""
    return frozenset(
        act for act in Act if not refusal(act, row, pausing=pausing, attempts_left=attempts_left)
    )


def held_decision(row: Row) -> tuple[int, Intervention] | None:
    """The decision that has waited longest for approval, with its journal id."""
    return min(row.held.items(), key=lambda item: item[0], default=None)


def waiting_petition(row: Row) -> tuple[int, WorkerRequest] | None:
    """What the worker has waited longest for, with its journal id."""
    return min(row.petitions.items(), key=lambda item: item[0], default=None)


def wanted_budget(row: Row) -> tuple[int, BudgetRequest] | None:
    """The oldest request for budget that waits for an answer, with its journal id."""
    for id, petition in sorted(row.petitions.items(), key=lambda item: item[0]):
        if isinstance(petition, BudgetRequest):
            return id, petition
    return None


def terms_in(act: Act, words: str) -> tuple[Terms, str]:
    """What an answer says exactly, from its first line, and the message, which is the rest."""
    first, _, rest = words.strip().partition("\n")
    if act is Act.GRANT and (grant := grant_in(first)) is not None:
        return Terms(grant=grant), rest.strip()
    if act is Act.SWITCH:
        return Terms(model=first.strip()), rest.strip()
    return Terms(), words


def question(act: Act, row: Row, *, models: Sequence[str] = ()) -> Question | None:
    """What is asked before an act; `None` if it is done at once.

    `models` are those that the worker may have, where they are known.
    """
    name = name_of(row)
    held = held_decision(row)
    words = _proposed(held[1]) if held else ""
    match act:
        case Act.GRANT | Act.SWITCH:
            return _grant_question(row) if act is Act.GRANT else _switch_question(row, models)
        case Act.GUIDE:
            return Question(title=f"Guidance for {name}", send="Send", quote=_trouble(row))
        case Act.RESTART:
            title = f"Begin {name} again: what shall the next attempt do otherwise?"
            return Question(title=title, send="Restart", quote=_trouble(row))
        case Act.STOP:
            title = f"Stop {name}?"
            detail = "It ends at once and counts as failed. What it has done is kept."
            return Question(title=title, send="Stop it", quote=detail, confirm=True)
        case Act.MODIFY if held:
            title = f"The {held[1].action} for {name}, in your words"
            return Question(title=title, send="Issue", quote=words, text=held[1].message)
        case Act.REJECT if held:
            title = f"Reject the {held[1].action} for {name}: why?"
            return Question(title=title, send="Reject", quote=words, required=False)
        case Act.REJECT if row.petitions:
            quote = "\n".join(map(petition_words, row.petitions.values()))
            title = f"Refuse {name} what it asks for: why?"
            return Question(title=title, send="Refuse", quote=quote, required=False)
        case Act.ACCEPT:
            title = f"Accept the result of {name}: a comment?"
            return Question(title=title, send="Accept", quote=row.reason, required=False)
        case Act.REFUSE:
            title = f"Reject the result of {name}. What went wrong?"
            return Question(title=title, send="Reject", quote=row.reason, required=False)
        case _:
            return None


def _switch_question(row: Row, models: Sequence[str]) -> Question:
    others = [model for model in models if model != row.model]
    quote = f"It works with {row.model}." if row.model else ""
    if others:
        quote = f"{quote} Its worker may also have: {', '.join(others)}".strip()
    return Question(
        title=f"Which model shall go on with {name_of(row)}? The lines below it are the message",
        send="Switch",
        quote=quote,
        text=others[0] if others else "",
        check=lambda words: _model_problem(words, row.model, models),
    )


def _grant_question(row: Row) -> Question:
    wanted = wanted_budget(row)
    return Question(
        title=f"How much more for {name_of(row)}? The lines below it are the message",
        send="Grant",
        quote=petition_words(wanted[1]) if wanted else "For instance: 20 requests, 15 minutes",
        text=grant_words(wanted[1].wanted) if wanted else "",
        check=_grant_problem,
    )


def _grant_problem(words: str) -> str:
    if grant_in(words.strip().partition("\n")[0]) is not None:
        return ""
    return "write amounts of requests, tokens, dollars or minutes: 20 requests, 15 minutes"


def _model_problem(words: str, model: str, models: Sequence[str]) -> str:
    name = words.strip().partition("\n")[0].strip()
    if name == model:
        return f"it works with {model} already"
    known = not models or name in models
    return "" if known else f"its worker has no model {name}"


def _proposed(held: Intervention) -> str:
    plan = "".join(f"\n{n}. {title}" for n, title in enumerate(held.plan, start=1))
    what = f"{held.action}{in_brackets(terms_words(held.terms))}"
    return f"{what} by {held.by}: {held.message or '(no message)'}{plan}"


def _trouble(row: Row) -> str:
    """What a person would answer: the question that was asked, else the alerts."""
    if row.lifecycle is Lifecycle.INPUT_REQUIRED:
        return row.reason
    return "\n".join(f"{key.rule}: {alert.summary}" for key, alert in row.firing.items())


def issued(act: Act, row: Row) -> str:
    """What a person is told once an act stands in the journal."""
    name = name_of(row)
    return {
        Act.GUIDE: f"guidance for {name} is issued; the worker hears it at its next request",
        Act.PAUSE: f"a pause of {name} is issued; it holds at its next request",
        Act.RESUME: f"{name} may go on; it is issued",
        Act.STOP: f"a stop of {name} is issued",
        Act.RESTART: f"a restart of {name} is issued",
        Act.GRANT: f"more budget for {name} is issued",
        Act.SWITCH: f"a switch of the model of {name} is issued",
        Act.APPROVE: f"approved for {name}",
        Act.MODIFY: f"issued for {name} in your words",
        Act.REJECT: f"rejected for {name}",
        Act.ACCEPT: f"the result of {name} is accepted; the verdict is stored",
        Act.REFUSE: f"the result of {name} is rejected; the verdict is stored, a lesson follows",
        Act.ACKNOWLEDGE: f"the alerts of {name} are to be acknowledged",
        Act.SILENCE: f"the alerts of {name} are to be silenced for this attempt",
    }[act]
