"""`midwatch switch`: another model goes on with an attempt."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action, Terms
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.operate.attempt import hearer
from midwatch_supervisor.cli.operate.grant import MessageOption
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.operate.tell import FromOption
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.present.lookup import models_of


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
        what = f"switch to {name} for {hearing.name}"
        if dry_run:
            write_line(f"would issue {what}")
            return
        async with desk_at(opened, author) as desk:
            number = await desk.act(
                hearing.account.attempt,
                Action.SWITCH_MODEL,
                message,
                about=[alert.key for alert in hearing.account.firing],
                terms=Terms(model=name),
            )
        write_line(f"issued {what} ({number})")
