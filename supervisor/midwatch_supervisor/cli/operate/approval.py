"""`midwatch approve` and `reject`: a person's word on what waits for it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    AttemptTransition,
    BudgetRequest,
    Delivery,
    Entry,
    Intervention,
    PlanCheck,
)
from midwatch_supervisor.cli.journals import DryRunOption, JournalOption, journal_to_write
from midwatch_supervisor.cli.operate.attempt import Hearer
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.operate.tell import FromOption
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.decide.worker_request import WorkerRequest, petition_in, petition_name
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.account import AttemptAccount
from midwatch_supervisor.present.line import InterventionState
from midwatch_supervisor.present.lines import Fate, fate_of
from midwatch_supervisor.present.lookup import account_of
from midwatch_supervisor.present.record_text import answer_text

Waiting = Annotated[
    str,
    Parameter(
        name="ID",
        help="The number of an intervention, or of what a worker asked for, as `status` and "
        "`show` say it, or the unique beginning of one that waits.",
    ),
]


async def approve(
    id: Waiting,
    *,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Let an intervention that waits take effect, or give a worker what it asked for."""
    await _settle(id, author, journal, dry_run=dry_run, agreed=True)


async def reject(
    id: Waiting,
    *,
    comment: Annotated[str, Parameter(help="Why; `show` says it, and a worker hears it.")] = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Turn down an intervention that waits, or what a worker asked for."""
    await _settle(id, author, journal, dry_run=dry_run, agreed=False, comment=comment)


async def _settle(
    id: str,
    author: str | None,
    journal: str | None,
    *,
    dry_run: bool,
    agreed: bool,
    comment: str = "",
) -> None:
    async with await journal_to_write(journal) as opened:
        pending = await _pending(opened)
        chosen = pending.chosen(id)
        attempt = await opened.attempt(pending.attempts[chosen])
        task = await opened.task(attempt.task)
        account = (await account_of(opened, task)).attempts[attempt.id]
        name = Hearer(task=task, account=account).name
        what = f"{pending.name(chosen)} {chosen} for {name}"
        pending.require_waiting(what, chosen, account)
        if account.lifecycle.over:
            raise UsageError(f"{what} comes too late: the attempt is {account.standing}")
        state = "approved" if agreed else "rejected"
        if dry_run:
            write_line(f"would make {what} {state}")
            return
        async with desk_at(opened, author) as desk:
            await _tell(desk, pending, chosen, account, agreed=agreed, comment=comment)
        write_line(f"{state} {what}")


async def _tell(
    desk: OperatorActions,
    pending: "_Pending",
    chosen: int,
    account: AttemptAccount,
    *,
    agreed: bool,
    comment: str,
) -> None:
    attempt, step = account.attempt, account.last_step
    petition = pending.petitions.get(chosen)
    if petition is not None and agreed:
        await desk.grant(attempt, chosen, petition)
    elif petition is not None:
        await desk.refuse(attempt, chosen, comment)
    elif agreed:
        await desk.approve(attempt, chosen, step=step)
    else:
        held = pending.fates[chosen].intervention
        await desk.reject(attempt, chosen, comment, step=step, petition=held.petition)


@dataclass(slots=True, kw_only=True)
class _Pending:
    """All interventions and petitions of a journal, and which of them wait."""

    attempts: dict[int, int] = field(default_factory=dict[int, int])
    """The attempt of each, by journal id."""
    fates: dict[int, Fate] = field(default_factory=dict[int, Fate])
    petitions: dict[int, WorkerRequest] = field(default_factory=dict[int, WorkerRequest])
    over: set[int] = field(default_factory=set[int])

    def fold(self, entry: Entry) -> None:
        """Take in the journal's next entry."""
        attempt = entry.attempt or 0
        match entry.record:
            case Intervention() as intervention:
                self.attempts[entry.id] = attempt
                self.fates[entry.id] = fate_of(intervention)
            case Delivery() as delivery if delivery.intervention in self.fates:
                self.fates[delivery.intervention].fold(delivery)
            case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
                self.over.add(attempt)
            case record if (petition := petition_in(record)) is not None:
                self.attempts[entry.id] = attempt
                self.petitions[entry.id] = petition
            case _:
                pass

    def waiting(self) -> Iterator[int]:
        """What waits for a person's word, the oldest first."""
        answered = {
            fate.intervention.petition
            for fate in self.fates.values()
            if fate.state is not InterventionState.REJECTED
        }
        for id, attempt in sorted(self.attempts.items()):
            asks = id in self.petitions and id not in answered and attempt not in self.over
            held = id in self.fates and self.fates[id].state is InterventionState.HELD
            if asks or held:
                yield id

    def name(self, id: int) -> str:
        """What it is, in a word or two."""
        petition = self.petitions.get(id)
        return petition_name(petition) if petition else self.fates[id].intervention.action.value

    def chosen(self, id: str) -> int:
        """What `id` names; of what waits, its beginning is enough. Raises UsageError."""
        if id.isdecimal() and int(id) in self.attempts:
            return int(id)
        waiting = list(self.waiting())
        found = [each for each in waiting if id and str(each).startswith(id)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(f"{each} ({self.name(each)})" for each in waiting)
        said = f"waiting for approval: {there}" if waiting else "none waits for approval"
        if found:
            raise UsageError(f"`{id}` may mean more than one; {said}")
        raise UsageError(f"there is no intervention `{id}`; {said}")

    def require_waiting(self, what: str, id: int, account: AttemptAccount) -> None:
        """Raise UsageError if it was settled already, or never needed to be."""
        if id in self.petitions:
            answer = account.answer(id)
            if answer is not None:
                raise UsageError(f"{what} was answered already: {answer_text(answer)}")
            return
        state = self.fates[id].state
        if state is InterventionState.ISSUED:
            raise UsageError(f"{what} needs no approval: it is on its way")
        if state is not InterventionState.HELD:
            raise UsageError(f"{what} is {state} already")


async def _pending(journal: Journal) -> _Pending:
    pending = _Pending()
    kinds = (Intervention, Delivery, AttemptTransition, PlanCheck, BudgetRequest)
    async for entry in journal.all_entries(kinds=kinds):
        pending.fold(entry)
    return pending
