"""`midwatch approve`, `reject` and `tell`: what a person does about an attempt."""

from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.words import (
    Action,
    Delivery,
    DeliveryState,
    Intervention,
    Task,
)
from midwatch_supervisor.account import AttemptAccount
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.cli.show import TaskOrAttempt
from midwatch_supervisor.desk import Desk, operator_name
from midwatch_supervisor.line import InterventionState
from midwatch_supervisor.lines import Fate, fate_of
from midwatch_supervisor.lookup import account_of, entries_of, find

Held = Annotated[
    str,
    Parameter(
        name="ID",
        help="The intervention's number, as `status` and `show` say it, or the unique beginning "
        "of one that waits.",
    ),
]
FromOption = Annotated[
    str | None, Parameter(name="--from", help="Who says it. Default: the user's name.")
]


async def approve(
    id: Held,
    *,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Let an intervention that waits for approval take effect."""
    await _stamp(id, DeliveryState.APPROVED, author, journal, dry_run=dry_run)


async def reject(
    id: Held,
    *,
    comment: Annotated[str, Parameter(help="Why; `show` says it.")] = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Turn down an intervention that waits for approval."""
    await _stamp(id, DeliveryState.REJECTED, author, journal, dry_run=dry_run, comment=comment)


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
    action = _action(pause=pause, resume=resume, stop=stop)
    if action is Action.NUDGE and not text.strip():
        raise UsageError("say something, or use --pause, --resume or --stop")
    async with await journal_to_write(journal) as opened:
        found = await find(opened, attempt)
        tasks = await account_of(opened, found.task)
        account = tasks.attempts[found.attempt.id] if found.attempt else tasks.latest
        if account is None:
            raise UsageError(f"{found.task.name} has no attempt yet")
        _require_hearing(found.task, account, action)
        what = f"{action} for {_name(found.task, account)}"
        if dry_run:
            write_line(f"would issue {what}")
            return
        desk = Desk(opened, author=operator_name(author))
        about = () if action is not Action.NUDGE else [alert.key for alert in account.firing]
        number = await desk.act(account.attempt, action, text, about=about)
        write_line(f"issued {what} ({number})")


async def _stamp(
    id: str,
    state: DeliveryState,
    author: str | None,
    journal: str | None,
    *,
    dry_run: bool,
    comment: str = "",
) -> None:
    async with await journal_to_write(journal) as opened:
        issued, fates = await _interventions(opened)
        chosen = _chosen(id, fates)
        attempt = await opened.attempt(issued[chosen])
        task = await opened.task(attempt.task)
        account = (await account_of(opened, task)).attempts[attempt.id]
        what = f"{fates[chosen].intervention.action} {chosen} for {_name(task, account)}"
        _require_waiting(what, fates[chosen])
        if account.lifecycle.over:
            raise UsageError(f"{what} comes too late: the attempt is {account.lifecycle}")
        if dry_run:
            write_line(f"would make {what} {state}")
            return
        desk = Desk(opened, author=operator_name(author))
        if state is DeliveryState.APPROVED:
            await desk.approve(attempt, chosen, step=account.last_step)
        else:
            await desk.reject(attempt, chosen, comment, step=account.last_step)
        write_line(f"{state} {what}")


async def _interventions(journal: Journal) -> tuple[dict[int, int], dict[int, Fate]]:
    """All interventions by journal id: the attempt of each, and what became of it."""
    issued: dict[int, int] = {}
    fates: dict[int, Fate] = {}
    async for entry in entries_of(journal, kinds=(Intervention, Delivery)):
        match entry.record:
            case Intervention() as intervention if entry.attempt is not None:
                issued[entry.id] = entry.attempt
                fates[entry.id] = fate_of(intervention)
            case Delivery() as delivery if delivery.intervention in fates:
                fates[delivery.intervention].fold(delivery)
            case _:
                pass
    return issued, fates


def _chosen(id: str, fates: Mapping[int, Fate]) -> int:
    """The intervention that `id` names; of those that wait, its beginning is enough."""
    if id.isdecimal() and int(id) in fates:
        return int(id)
    held = [each for each, fate in fates.items() if fate.state is InterventionState.HELD]
    found = [each for each in held if id and str(each).startswith(id)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{each} ({fates[each].intervention.action})" for each in held)
    waiting = f"waiting for approval: {there}" if held else "none waits for approval"
    if found:
        raise UsageError(f"`{id}` may mean more than one; {waiting}")
    raise UsageError(f"there is no intervention `{id}`; {waiting}")


def _require_waiting(what: str, fate: Fate) -> None:
    if fate.state is InterventionState.HELD:
        return
    if fate.state is InterventionState.ISSUED:
        raise UsageError(f"{what} needs no approval: it is on its way")
    raise UsageError(f"{what} is {fate.state} already")


def _name(task: Task, account: AttemptAccount) -> str:
    return f"{task.name}#{account.attempt.number}"


def _action(*, pause: bool, resume: bool, stop: bool) -> Action:
    chosen = [
        action
        for action, wanted in (
            (Action.PAUSE, pause),
            (Action.RESUME, resume),
            (Action.STOP, stop),
        )
        if wanted
    ]
    if len(chosen) > 1:
        raise UsageError("choose one of --pause, --resume and --stop")
    return chosen[0] if chosen else Action.NUDGE


def _require_hearing(task: Task, account: AttemptAccount, action: Action) -> None:
    """Raise UsageError if the act could change nothing."""
    name = _name(task, account)
    if account.lifecycle.over:
        raise UsageError(f"{name} is over: {account.lifecycle}; nothing reaches it any more")
    pausing = any(
        fate.state.under_way and fate.intervention.action is Action.PAUSE
        for fate in account.fates.values()
    )
    if action is Action.RESUME and not (account.parked or pausing):
        raise UsageError(f"{name} does not wait for a person; it is {account.lifecycle}")
    if action is Action.PAUSE and (account.parked or pausing):
        raise UsageError(f"{name} is paused already, or waits for a person")
