"""`midwatch tell`: a person says something to a worker, or holds or ends its attempt."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.operate.attempt import Hearer, hearer
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.output import write_line

FromOption = Annotated[
    str | None, Parameter(name="--from", help="Who says it. Default: the user's name.")
]


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
        hearing = await hearer(opened, attempt)
        _require_change(hearing, action)
        what = f"{action} for {hearing.name}"
        if dry_run:
            write_line(f"would issue {what}")
            return
        firing = hearing.account.firing if action is Action.NUDGE else ()
        about = [alert.key for alert in firing]
        async with desk_at(opened, author) as desk:
            number = await desk.act(hearing.account.attempt, action, text, about=about)
        write_line(f"issued {what} ({number})")


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


def _require_change(hearing: Hearer, action: Action) -> None:
    """Raise UsageError if the act could change nothing."""
    account, name = hearing.account, hearing.name
    pausing = any(each.action is Action.PAUSE for each in account.interventions.under_way)
    if action is Action.RESUME and not (account.parked or pausing):
        raise UsageError(f"{name} does not wait for a person; it is {account.status}")
    if action is Action.PAUSE and (account.parked or pausing):
        raise UsageError(f"{name} is paused already, or waits for a person")
