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
    Lifecycle,
    PermissionRequest,
    PlanCheck,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import (
    Interventions,
    InterventionStatus,
    WorkerRequest,
    worker_request,
)
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    journal_to_write,
)
from midwatch_supervisor.cli.operate.attempt import OpenAttempt
from midwatch_supervisor.cli.operate.hints import desk_at
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.intervention_text import request_name
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
        said = await settle(
            opened, id, author=author, agreed=agreed, comment=comment, dry_run=dry_run
        )
    write_line(said)


async def settle(
    journal: Journal,
    id: str | int,
    *,
    author: str | None,
    agreed: bool,
    comment: str = "",
    dry_run: bool = False,
) -> str:
    """Answer what waits for a person's word; what was done, in words.

    Raises UsageError where it does not wait, or nothing is called that.
    """
    pending = await pending_in(journal)
    chosen = pending.chosen(id)
    attempt = await journal.attempt(pending.attempts[chosen])
    task = await journal.task(attempt.task)
    account = (await account_of(journal, task)).attempts[attempt.id]
    what = f"{pending.name(chosen)} {chosen} for {OpenAttempt(task=task, account=account).name}"
    pending.require_waiting(what, chosen, account)
    if account.lifecycle.over:
        raise UsageError(f"{what} comes too late: the attempt is {account.status}")
    state = "approved" if agreed else "rejected"
    if dry_run:
        return f"would make {what} {state}"
    async with desk_at(journal, author) as desk:
        await _tell(desk, pending, chosen, account, agreed=agreed, comment=comment)
    return f"{state} {what}"


async def _tell(
    desk: OperatorActions,
    pending: "Pending",
    chosen: int,
    account: AttemptState,
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
        held = pending.interventions.by_id[chosen].intervention
        await desk.reject(attempt, chosen, comment, step=step, petition=held.petition)


@dataclass(slots=True, kw_only=True)
class Pending:
    """All interventions and petitions of a journal, and which of them wait."""

    attempts: dict[int, int] = field(default_factory=dict[int, int])
    """The attempt of each, by journal id."""
    interventions: Interventions = field(default_factory=Interventions)
    petitions: dict[int, WorkerRequest] = field(default_factory=dict[int, WorkerRequest])
    standing: dict[int, Lifecycle] = field(default_factory=dict[int, Lifecycle])
    """Where each attempt stands, by journal id."""

    def fold(self, entry: Entry) -> None:
        """Take in the journal's next entry."""
        attempt, record = entry.attempt or 0, entry.record
        self.interventions.fold(entry)
        request = worker_request(record)
        if isinstance(record, Intervention) or request is not None:
            self.attempts[entry.id] = attempt
        if request is not None:
            self.petitions[entry.id] = request
        if isinstance(record, AttemptTransition):
            self.standing[attempt] = record.lifecycle

    def waiting(self) -> Iterator[int]:
        """What waits for a person's word, the oldest first."""
        answered = {each.intervention.petition for each in self.interventions if not each.rejected}
        held = {each.id for each in self.interventions.held}
        for id, attempt in sorted(self.attempts.items()):
            over = attempt in self.standing and self.standing[attempt].over
            if id in held or (id in self.petitions and id not in answered and not over):
                yield id

    def name(self, id: int) -> str:
        """What it is, in a word or two."""
        petition = self.petitions.get(id)
        return request_name(petition) if petition else self.interventions.by_id[id].action.value

    def chosen(self, id: str | int) -> int:
        """What `id` names; of what waits, its beginning is enough where that is a text.

        Raises UsageError.
        """
        exact = next((each for each in self.attempts if str(each) == str(id)), None)
        if exact is not None:
            return exact
        waiting = list(self.waiting())
        begun = id if isinstance(id, str) else ""
        found = [each for each in waiting if begun and str(each).startswith(begun)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(f"{each} ({self.name(each)})" for each in waiting)
        said = f"waiting for approval: {there}" if waiting else "none waits for approval"
        if found:
            raise UsageError(f"`{id}` may mean more than one; {said}")
        raise UsageError(f"there is no intervention `{id}`; {said}")

    def require_waiting(self, what: str, id: int, account: AttemptState) -> None:
        """Raise UsageError if it was settled already, or never needed to be."""
        if id in self.petitions:
            answer = account.answer(id)
            if answer is not None:
                raise UsageError(f"{what} was answered already: {answer_text(answer)}")
            return
        status = self.interventions.by_id[id].status
        if status is InterventionStatus.ISSUED:
            raise UsageError(f"{what} needs no approval: it is on its way")
        if status is not InterventionStatus.HELD:
            raise UsageError(f"{what} is {status} already")


async def pending_in(journal: Journal) -> Pending:
    """All of a journal."""
    pending = Pending()
    kinds = (Intervention, Delivery, AttemptTransition, PlanCheck, BudgetRequest, PermissionRequest)
    async for entry in journal.all_entries(kinds=kinds):
        pending.fold(entry)
    return pending
