"""`midwatch tell`, `grant` and `switch`: a person acts on an attempt that is running."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import ConfigError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.records import Action, BudgetRequest, Grant, Task, TaskTransition, Terms
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    RunOption,
    journal_to_write,
    masked_note,
)
from midwatch_supervisor.cli.output import write_error, write_line
from midwatch_supervisor.cli.settings import settings_in_force
from midwatch_supervisor.operator.actions import GRANTED, OperatorActions, operator_name
from midwatch_supervisor.operator.tasks import (
    act_refusal,
    alerts_answered,
    find_reopening,
    is_held,
    reached_after,
)
from midwatch_supervisor.present.lookup import (
    assignment_of,
    chosen_runs,
    find,
    models_of,
    task_state,
)
from midwatch_supervisor.present.numbers import grant_problem, grant_text

if TYPE_CHECKING:
    from midwatch_monitor.bus import FleetBus
    from midwatch_monitor.config.fleet import FleetSettings
    from midwatch_monitor.journal import Journal


def bus_of(settings: "FleetSettings", *, name: str | None = None) -> "FleetBus":
    """Return the bus for a console or a single command; no messages are kept for it while offline.

    It logs in under `name`, by default the host's name, unless `fleet.broker.username` is set.
    Without a broker in the settings, it reaches only this process.
    """
    from midwatch_monitor.bus import bus_for
    from midwatch_supervisor.fleet.process import identity

    return bus_for(settings, name=identity(name).name, environ=os.environ, session=False)


@asynccontextmanager
async def operator_in(journal: "Journal", author: str | None) -> AsyncGenerator[OperatorActions]:
    """Yield a person's actions on a journal; messages about them are sent before this ends.

    The journal alone is enough: without a broker, others learn of the actions later.
    """
    async with bus_of(fleet_here()) as bus:
        yield OperatorActions(journal, author=operator_name(author), bus=bus)


def fleet_here() -> "FleetSettings":
    """Return this folder's fleet settings, for sending hints; the defaults if a file is invalid."""
    try:
        return settings_in_force(None).fleet
    except ConfigError as error:
        from midwatch_monitor.config.fleet import FleetSettings

        # A mistake in a file must not keep a person from stopping an attempt.
        write_error(f"warning: no hint is sent: {error}")
        return FleetSettings()


_NO_TERMS = Terms()
MessageOption = Annotated[str, Parameter(help="Message to the worker.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """An attempt with its task, and its state now."""

    task: Task
    state: AttemptState
    older: bool = False
    """Whether a later run has a task with the same name."""

    @property
    def name(self) -> str:
        """Return its name for people, such as `fix#2`."""
        of = f" of run {self.task.run}" if self.older else ""
        return f"{self.task.name}#{self.state.attempt.number}{of}"


async def open_attempt(journal: Journal, id: str, *, run: int | None = None) -> OpenAttempt:
    """Return the attempt that `id` means. Raises UsageError if it is over."""
    target = await meant_attempt(journal, id, run=run)
    if target.state.over:
        said = f"{target.name} is over: {target.state.status}; nothing reaches it any more"
        if assignment_of(target.task) is not None:
            # Without the run, a task with that name in another run could be begun again.
            name = f"{quote(target.task.name)} --run {target.task.run}"
            again = command(f'tell {name} --restart "what to do differently"')
            said += f", but `{again}` begins the task again"
        raise UsageError(said)
    return target


async def meant_attempt(journal: Journal, id: str, *, run: int | None = None) -> OpenAttempt:
    """Return the attempt that `id` names, or a task's latest one, in the given run or in any.

    Among tasks with the same name, the newest that is not over is meant, if there is one: an
    attempt that is over would not receive anything. Raises UsageError if `id` is only a prefix, and
    fits several open tasks.
    """
    if run is None:
        await _require_one(journal, id.partition("#")[0])
    target = await begun_attempt(journal, id, run=run)
    if run is None and target.state.over and not id.isdecimal():
        number = target.state.attempt.number if "#" in id else None
        target = await _older_namesake(journal, target.task, number) or target
    return target


async def _require_one(journal: Journal, beginning: str) -> None:
    runs = await chosen_runs(journal, None)
    tasks = [each for run in runs for each in await journal.tasks(run.id)]
    if beginning.isdecimal() or any(each.name == beginning for each in tasks):
        return
    found = [each for each in tasks if beginning and each.name.startswith(beginning)]
    states = [await task_state(journal, each, kinds=(TaskTransition,)) for each in found]
    names = dict.fromkeys(each.task.name for each in states if not each.over)
    if len(names) > 1:
        raise UsageError(f"`{beginning}` could mean any of {', '.join(names)}")


async def _older_namesake(journal: Journal, task: Task, number: int | None) -> OpenAttempt | None:
    """Return the newest attempt that is not over among earlier tasks with the same name, if any.

    With a number, only the attempt with that number counts.
    """
    for run in await chosen_runs(journal, None):
        for each in await journal.tasks(run.id) if run.id < task.run else ():
            state = (await task_state(journal, each)).latest if each.name == task.name else None
            if state is None or state.over:
                continue
            if number is None or state.attempt.number == number:
                return OpenAttempt(task=each, state=state, older=True)
    return None


async def begun_attempt(journal: Journal, id: str, *, run: int | None = None) -> OpenAttempt:
    """Return the attempt that `id` names, or a task's latest one, even if it is over."""
    found = await find(journal, id, run=run)
    tasks = await task_state(journal, found.task)
    state = tasks.attempts[found.attempt.id] if found.attempt else tasks.latest
    if state is None:
        name = found.task.name
        of = f" --run {run}" if run is not None else ""
        cancel = command(f"cancel {name}{of}")
        raise UsageError(f"{name} has no attempt yet; `{cancel}` cancels it")
    return OpenAttempt(task=found.task, state=state)


async def tell(
    attempt: TaskOrAttempt,
    text: Annotated[
        str, Parameter(name="TEXT", help="The message; needed unless an option is given.")
    ] = "",
    /,
    *,
    pause: Annotated[bool, Parameter(help="Pause the attempt until it is resumed.")] = False,
    resume: Annotated[bool, Parameter(help="Continue the attempt after a pause.")] = False,
    stop: Annotated[bool, Parameter(help="End the attempt at once.")] = False,
    restart: Annotated[
        bool,
        Parameter(
            help="Stop the attempt if it is not over, and start the task again; TEXT "
            "says what the next attempt should do differently."
        ),
    ] = False,
    run: RunOption = None,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Send a message to a worker, or pause, resume, stop or restart its attempt."""
    chosen = {
        Action.PAUSE: pause,
        Action.RESUME: resume,
        Action.STOP: stop,
        Action.RESTART: restart,
    }
    actions = [action for action, wanted in chosen.items() if wanted] or [Action.NUDGE]
    if len(actions) > 1:
        raise UsageError("choose one of --pause, --resume, --stop and --restart")
    (action,) = actions
    if action is Action.NUDGE and not text.strip():
        raise UsageError("give a message, or use --pause, --resume, --stop or --restart")
    if restart and not text.strip():
        raise UsageError("say what the next attempt should do differently")
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        if restart and (over := await meant_attempt(opened, attempt, run=run)).state.over:
            await _begin_again(opened, over, text, author, dry_run=dry_run)
            return
        sent = await send(opened, attempt, action, text, run=run, author=author, dry_run=dry_run)
    write_line(sent)


async def send(
    journal: Journal,
    id: str,
    action: Action,
    text: str = "",
    *,
    run: int | None = None,
    author: str | None,
    dry_run: bool = False,
) -> str:
    """Guide, pause, resume or stop the attempt that `id` names, and return a sentence that says so.

    Raises UsageError if it would reach nobody, or could change nothing.
    """
    target = await open_attempt(journal, id, run=run)
    what = "guidance" if action is Action.NUDGE else action.value
    return await _send_intervention(journal, target, author, what, action, text, dry_run=dry_run)


async def _begin_again(
    journal: Journal, target: OpenAttempt, note: str, author: str | None, *, dry_run: bool
) -> None:
    state, name = target.state, target.task.name
    if dry_run:
        found = await find_reopening(journal, state.attempt)
        would = f"would be begun again: {found.follows}"
        write_line(f"{name}: {would}{masked_note(journal, note)}")
        return
    async with operator_in(journal, author) as operator:
        about = [alert.key for alert in state.unresolved]
        begun = await operator.begin_again(state.attempt, note, about=about, step=state.last_step)
    write_line(f"{name}: begun again: {begun.follows}{masked_note(journal, note)}")


async def grant(
    attempt: TaskOrAttempt,
    /,
    *,
    requests: Annotated[int, Parameter(help="Additional model requests.")] = 0,
    tokens: Annotated[int, Parameter(help="Additional tokens.")] = 0,
    cost_usd: Annotated[float, Parameter(help="Additional US dollars.")] = 0.0,
    minutes: Annotated[float, Parameter(help="Additional minutes.")] = 0.0,
    message: MessageOption = "",
    run: RunOption = None,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Give an attempt more budget; without an amount, what its worker asked for."""
    amounts = Grant(requests=requests, tokens=tokens, cost_usd=cost_usd, minutes=minutes)
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        target = await open_attempt(opened, attempt, run=run)
        request, wanted = _oldest_request(target.state)
        given = amounts or wanted
        if not given:
            raise UsageError(
                f"{target.name} asked for nothing: say how much, with --requests, --tokens, "
                "--cost-usd or --minutes"
            )
        if problem := grant_problem(given):
            raise UsageError(problem)
        sent = await _send_intervention(
            *(opened, target, author, f"grant of {grant_text(given)}", Action.GRANT_BUDGET),
            message or GRANTED,
            terms=Terms(grant=given),
            request=request,
            dry_run=dry_run,
        )
        write_line(sent)


async def switch(
    attempt: TaskOrAttempt,
    model: Annotated[str, Parameter(name="MODEL", help="The new model, named as in a task file.")],
    /,
    *,
    message: MessageOption = "",
    run: RunOption = None,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Let another model continue an attempt, with the whole conversation so far."""
    name = model.strip()
    if not name:
        raise UsageError("name the model to switch to")
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        target = await open_attempt(opened, attempt, run=run)
        if target.state.model == name:
            raise UsageError(f"{target.name} already works with {name}")
        known = models_of(target.task, target.state.attempt.worker)
        if known and name not in known:
            there = ", ".join(known)
            raise UsageError(f"the worker of {target.name} has no model `{name}`; it has: {there}")
        sent = await _send_intervention(
            *(opened, target, author, f"switch to {name}", Action.SWITCH_MODEL, message),
            terms=Terms(model=name),
            dry_run=dry_run,
        )
        write_line(sent)


async def _send_intervention(
    journal: Journal,
    target: OpenAttempt,
    author: str | None,
    what: str,
    action: Action,
    message: str,
    *,
    terms: Terms = _NO_TERMS,
    request: int | None = None,
    dry_run: bool,
) -> str:
    """Send an action, or say what would be sent. A pause, resume or stop resolves no alert.

    `what` is its name for people, `request` the journal id of the worker's request that it answers.
    """
    if why := act_refusal(target.state, action, held=is_held(target.state)):
        raise UsageError(f"{target.name}: {why}")
    note = masked_note(journal, message)
    run = await journal.run(target.task.run)
    if await is_interrupted(journal, run.id):
        note = f"; {reached_after(run, embedded=target.task.embedded)}{note}"
    elif run.of_session:
        note = f"; the agent is told at its next step{note}"
    if dry_run:
        return f"{target.name}: {what} would be sent{note}"
    async with operator_in(journal, author) as operator:
        number = await operator.act(
            target.state.attempt,
            action,
            message,
            about=alerts_answered(target.state, action),
            terms=terms,
            petition=request,
        )
    return f"{target.name}: {what} sent ({number}){note}"


def _oldest_request(state: AttemptState) -> tuple[int | None, Grant]:
    """Return the oldest open request for budget, with what it asks for."""
    for id, request in state.open_requests.items():
        if isinstance(request, BudgetRequest):
            return id, request.wanted
    return None, Grant()
