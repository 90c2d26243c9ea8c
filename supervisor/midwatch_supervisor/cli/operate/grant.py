"""`midwatch grant`: more budget for an attempt, also as the answer to what it asked for."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action, BudgetRequest, Grant, Terms
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.operate.attempt import hearer
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.operate.tell import FromOption
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.operator.actions import GRANTED
from midwatch_supervisor.present.numbers import grant_text

MessageOption = Annotated[str, Parameter(help="What the worker hears with it.")]


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
        petition, wanted = _wanted(hearing.account)
        given = amounts or wanted
        if not given:
            raise UsageError(
                f"{hearing.name} asked for nothing: say how much, with --requests, --tokens, "
                "--cost-usd or --minutes"
            )
        what = f"grant of {grant_text(given)} for {hearing.name}"
        if dry_run:
            write_line(f"would issue {what}")
            return
        async with desk_at(opened, author) as desk:
            number = await desk.act(
                hearing.account.attempt,
                Action.GRANT_BUDGET,
                message or GRANTED,
                about=[alert.key for alert in hearing.account.firing],
                terms=Terms(grant=given),
                petition=petition,
            )
        write_line(f"issued {what} ({number})")


def _wanted(account: AttemptState) -> tuple[int | None, Grant]:
    """The oldest request for budget that waits for an answer, with what it asks for."""
    for id, petition in account.open_requests.items():
        if isinstance(petition, BudgetRequest):
            return id, petition.wanted
    return None, Grant()
