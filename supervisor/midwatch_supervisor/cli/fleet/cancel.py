"""`midwatch cancel`: withdraw tasks, whether they have begun or not."""

from collections.abc import Sequence
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import MidwatchError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.records import Run, SupervisedBy, Task, TaskTransition
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    journal_place,
    journal_to_write,
)
from midwatch_supervisor.cli.operate.tell import bus_of, fleet_here
from midwatch_supervisor.cli.output import write_either, write_error
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import operator_name
from midwatch_supervisor.operator.tasks import (
    Withdrawal,
    WithdrawalResult,
    Withdrawer,
    dependents_first,
    reached_after,
    wholes,
)
from midwatch_supervisor.present.json_lines import pick_fields
from midwatch_supervisor.present.lookup import chosen_runs, find, run_option, task_state


async def cancel(
    *tasks: Annotated[
        str,
        Parameter(
            name="TASK",
            help="A task's id or a unique prefix of it, in the latest run that has it; if it is "
            "open in several runs, name one with --run.",
        ),
    ],
    run: Annotated[
        int | None, Parameter(help="Number of the run; without TASK all its tasks.")
    ] = None,
    comment: Annotated[str, Parameter(help="The reason, for `show`.")] = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> int:
    """Cancel tasks of a run or a fleet, whether they have begun or not.

    A running attempt is stopped at once. Tasks that depend on a canceled one fail. A task that is
    over stays as it is.
    """
    if not tasks and run is None:
        raise UsageError("name tasks, or a whole run with --run")
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        wanted = await _find_tasks(opened, tasks, run)
        done: list[tuple[Run, Withdrawal]] = []
        async with bus_of(fleet_here()) as bus:
            withdrawing = Withdrawer(
                opened, bus=bus, author=operator_name(author), why=comment, dry_run=dry_run
            )
            for of, task in wanted:
                for each in await withdrawing.withdraw(of, task):
                    done.append((of, each))
                    fields = _withdrawal_fields(of, each, dry_run=dry_run)
                    text = _withdrawal_text(of, each, dry_run=dry_run)
                    stopping = each.course is WithdrawalResult.STOPPING and not of.of_session
                    if stopping and await is_interrupted(opened, of.id):
                        # Embedded ones are canceled.
                        text += f"; {reached_after(of, embedded=False)}"
                    write_either(fields, text, json=json)
        if not dry_run:
            await _take_back(journal_place(journal), done)
    return 1 if any(each.refused for _, each in done) else 0


async def _find_tasks(
    journal: Journal, names: Sequence[str], run: int | None
) -> list[tuple[Run, Task]]:
    """Return the named tasks with their runs, each task before those it depends on."""
    if names:
        found = [await _find_task(journal, name, run) for name in dict.fromkeys(names)]
    else:
        (only,) = await chosen_runs(journal, run)
        found = wholes(await journal.tasks(only.id))
    runs = {id: await journal.run(id) for id in dict.fromkeys(task.run for task in found)}
    unique = {task.id: task for task in found}
    return [
        (of, task)
        for id, of in runs.items()
        for task in dependents_first([each for each in unique.values() if each.run == id])
    ]


async def _find_task(journal: Journal, name: str, run: int | None) -> Task:
    found = await find(journal, name, run=run)
    if found.attempt is not None:
        of = await run_option(journal, found.task.run)
        cancel = command(f"cancel {quote(found.task.name)}{of}")
        raise UsageError(
            f"`{name}` is an attempt: `{command(f'tell {name}{of} --stop')}` stops it, and "
            f"`{cancel}` withdraws its task"
        )
    if run is None and len(runs := await _open_in(journal, found.task.name)) > 1:
        there = ", ".join(map(str, runs))
        raise UsageError(f"{found.task.name} is open in runs {there}: name one with --run")
    return found.task


async def _open_in(journal: Journal, name: str) -> list[int]:
    """Return the runs with an open task of that name, newest first."""
    tasks = [
        task
        for run in await chosen_runs(journal, None)
        for task in await journal.tasks(run.id)
        if task.name == name
    ]
    states = [await task_state(journal, each, kinds=(TaskTransition,)) for each in tasks]
    return [each.task.run for each in states if not each.over]


async def _take_back(location: str, done: Sequence[tuple[Run, Withdrawal]]) -> None:
    """Remove canceled tasks from the queues; a node that still receives one drops it."""
    from midwatch_supervisor.fleet.queue.dispatch import no_dispatch, take_back

    canceled: dict[int, set[int]] = {}
    for of, each in done:
        if each.course is WithdrawalResult.CANCELED and of.supervised_by is SupervisedBy.MONITOR:
            canceled.setdefault(of.id, set()).add(each.task.id)
    runs = {of.id: of for of, _ in done}
    try:
        for id, tasks in canceled.items():
            if not no_dispatch(location):
                await take_back(location, runs[id], tasks)
    except MidwatchError as error:
        write_error(f"canceled, but still in the queues, from which nodes will drop it: {error}")


def _withdrawal_fields(run: Run, done: Withdrawal, *, dry_run: bool) -> dict[str, object]:
    attempt = done.attempt.id if done.attempt else None
    return {
        "type": "cancel",
        "run": run.id,
        "task": done.task.name,
        "attempt": attempt,
        **pick_fields(done, "course lifecycle stands intervention already"),
        "dry_run": dry_run,
    }


def _withdrawal_text(run: Run, done: Withdrawal, *, dry_run: bool) -> str:
    name = done.task.name
    match done.course:
        case WithdrawalResult.CANCELED:
            deaf = "; nothing is watching it, so its agent is not told"
            said = f"would cancel {name}" if dry_run else f"canceled {name}"
            return f"{said}{deaf if run.of_session else ''}"
        case WithdrawalResult.STOPPING if done.attempt is not None:
            of = f"{name}#{done.attempt.attempt.number}"
            if done.already:
                return f"{of} is already being stopped ({done.intervention})"
            sent = "stop would be sent" if dry_run else f"stop sent ({done.intervention})"
            then = f"{name} ends with it"
            if run.of_session:
                then = "the agent is told at its next step"
            return f"{of}: {sent}; {then}"
        case WithdrawalResult.SPLIT:
            return f"{name} was split: it ends with its parts"
        case WithdrawalResult.SPLITTING:
            return f"{name} is being split; try again in a moment"
        case WithdrawalResult.KEPT:
            if run.of_session:
                return f"{name} is only watched: end it where it was started"
            return (
                f"{name} is waiting in the program that works on run {run.id}: end that program, "
                "or leave it alone"
            )
        case _:
            return f"{name} is over: {done.stands}"
