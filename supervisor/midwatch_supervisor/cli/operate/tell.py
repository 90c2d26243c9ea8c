"""`midwatch tell`, `grant` and `switch`: what a person has to say to an attempt at work."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action, BudgetRequest, Grant, Terms
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.operate.attempt import Hearer, hearer
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.operator.actions import GRANTED, OperatorActions
from midwatch_supervisor.present.lookup import models_of
from midwatch_supervisor.present.numbers import grant_text

FromOption = Annotated[
    str | None, Parameter(name="--from", help="Who says it. Default: the user's name.")
]
MessageOption = Annotated[str, Parameter(help="What the worker hears with it.")]


async def tell(
    attempt: TaskOrAttempt,
    text: Annotated[
        str, Parameter(name="TEXT", help="What to say; needed unless an option acts.")
    ] = "",
    *,
    pause: Annotated[bool, Parameter(negative="", help="Hold it until it is resumed.")] = False,
    resume: Annotated[bool, Parameter(negative="", help="Let it go on after a pause.")] = False,
    stop: Annotated[bool, Parameter(negative="", help="End the attempt at once.")] = False,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Say something to a worker, or pause, resume or stop its attempt."""
    chosen = {Action.PAUSE: pause, Action.RESUME: resume, Action.STOP: stop}
    actions = [action for action, wanted in chosen.items() if wanted] or [Action.NUDGE]
    if len(actions) > 1:
        raise UsageError("choose one of --pause, --resume and --stop")
    (action,) = actions
    if action is Action.NUDGE and not text.strip():
        raise UsageError("say something, or use --pause, --resume or --stop")
    async with await journal_to_write(journal) as opened:
        hearing = await hearer(opened, attempt)
        _require_change(hearing, action)
        what = "guidance" if action is Action.NUDGE else action.value
        if _is_rehearsed(hearing, what, dry_run=dry_run):
            return
        async with desk_at(opened, author) as desk:
            answers = action is Action.NUDGE
            await _send(desk, hearing, what, action, text, answers_alerts=answers)


async def grant(
    attempt: TaskOrAttempt,
    *,
    requests: Annotated[int, Parameter(help="So many more model requests.")] = 0,
    tokens: Annotated[int, Parameter(help="So many more tokens.")] = 0,
    cost_usd: Annotated[float, Parameter(help="So many more US dollars.")] = 0.0,
    minutes: Annotated[float, Parameter(help="So many more minutes.")] = 0.0,
    message: MessageOption = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Give an attempt more budget; without an amount, what it asked for."""
    amounts = Grant(requests=requests, tokens=tokens, cost_usd=cost_usd, minutes=minutes)
    if min(requests, tokens, cost_usd, minutes) < 0:
        raise UsageError("a grant can only add: no amount may be below 0")
    async with await journal_to_write(journal) as opened:
        hearing = await hearer(opened, attempt)
        request, wanted = _wanted(hearing.account)
        given = amounts or wanted
        if not given:
            raise UsageError(
                f"{hearing.name} asked for nothing: say how much, with --requests, --tokens, "
                "--cost-usd or --minutes"
            )
        what, terms = f"grant of {grant_text(given)}", Terms(grant=given)
        if _is_rehearsed(hearing, what, dry_run=dry_run):
            return
        async with desk_at(opened, author) as desk:
            action, text = Action.GRANT_BUDGET, message or GRANTED
            await _send(desk, hearing, what, action, text, terms=terms, request=request)


async def switch(
    attempt: TaskOrAttempt,
    model: Annotated[
        str, Parameter(name="MODEL", help="The model that goes on, as a task file names it.")
    ],
    *,
    message: MessageOption = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Let another model go on with an attempt, with all that was said in it so far."""
    name = model.strip()
    if not name:
        raise UsageError("name the model that shall go on")
    async with await journal_to_write(journal) as opened:
        hearing = await hearer(opened, attempt)
        if hearing.account.model == name:
            raise UsageError(f"{hearing.name} works with {name} already")
        known = models_of(hearing.task, hearing.account.attempt.worker)
        if known and name not in known:
            there = ", ".join(known)
            raise UsageError(f"the worker of {hearing.name} has no model `{name}`; it has: {there}")
        what, terms = f"switch to {name}", Terms(model=name)
        if _is_rehearsed(hearing, what, dry_run=dry_run):
            return
        async with desk_at(opened, author) as desk:
            await _send(desk, hearing, what, Action.SWITCH_MODEL, message, terms=terms)


def _is_rehearsed(hearing: Hearer, what: str, *, dry_run: bool) -> bool:
    if dry_run:
        write_line(f"{hearing.name}: {what} would be sent")
    return dry_run


async def _send(
    desk: OperatorActions,
    hearing: Hearer,
    what: str,
    action: Action,
    message: str,
    *,
    terms: Terms | None = None,
    request: int | None = None,
    answers_alerts: bool = True,
) -> None:
    number = await desk.act(
        hearing.account.attempt,
        action,
        message,
        about=[alert.key for alert in hearing.account.firing] if answers_alerts else (),
        terms=terms or Terms(),
        petition=request,
    )
    write_line(f"{hearing.name}: {what} sent ({number})")


def _require_change(hearing: Hearer, action: Action) -> None:
    """Raise UsageError if the act could change nothing."""
    account, name = hearing.account, hearing.name
    pausing = any(each.action is Action.PAUSE for each in account.interventions.under_way)
    if action is Action.RESUME and not (account.parked or pausing):
        raise UsageError(f"{name} does not wait for a person; it is {account.status}")
    if action is Action.PAUSE and (account.parked or pausing):
        raise UsageError(f"{name} is paused already, or waits for a person")


def _wanted(account: AttemptState) -> tuple[int | None, Grant]:
    """The oldest request for budget that waits for an answer, with what it asks for."""
    for id, request in account.open_requests.items():
        if isinstance(request, BudgetRequest):
            return id, request.wanted
    return None, Grant()
