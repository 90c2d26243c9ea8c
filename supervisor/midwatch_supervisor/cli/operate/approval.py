"""`midwatch approve` and `reject`: a person decides on what is waiting for approval."""

from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Record
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import InterventionState, InterventionStatus
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS, RunState
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    journal_to_write,
)
from midwatch_supervisor.cli.operate.tell import operator_in
from midwatch_supervisor.cli.output import write_line
from midwatch_supervisor.operator.tasks import OpenQuestion, question_name, questions
from midwatch_supervisor.present.lookup import run_option, task_state
from midwatch_supervisor.present.record_text import answer_text
from midwatch_supervisor.present.waiting import answer_commands

QuestionId = Annotated[
    str,
    Parameter(
        name="ID",
        help="The number of an intervention or a worker's request, as printed by "
        "`status` and `show`, or a unique prefix of one that is waiting.",
    ),
]


async def approve(
    id: QuestionId,
    /,
    *,
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Approve a waiting intervention, or what a worker asked for."""
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        write_line(await settle(opened, id, author=author, agreed=True, dry_run=dry_run))


async def reject(
    id: QuestionId,
    /,
    *,
    comment: Annotated[str, Parameter(help="The reason, for `show` and for the worker.")] = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    journal: JournalOption = None,
) -> None:
    """Reject a waiting intervention, or what a worker asked for."""
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        said = await settle(
            opened, id, author=author, agreed=False, comment=comment, dry_run=dry_run
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
    """Approve or reject what is waiting for a person, and say what was done in a sentence.

    Raises UsageError if it is not waiting, or if nothing has that id.
    """
    number, of = find_question(await question_states(journal), id)
    attempt = await journal.attempt(of)
    what, asked, state = await _find_waiting(journal, attempt, number)
    verb = "approve" if agreed else "reject"
    if dry_run:
        return f"would {verb} {what}"
    async with operator_in(journal, author) as operator:
        try:
            await operator.settle(
                attempt, number, asked, agreed=agreed, comment=comment, step=state.last_step
            )
        except UsageError:  # an answer given meanwhile explains more
            await _find_waiting(journal, attempt, number)
            raise
    return f"{'approved' if agreed else 'rejected'} {what}"


async def _find_waiting(
    journal: Journal, attempt: Attempt, id: int
) -> tuple[str, OpenQuestion, AttemptState]:
    """Return what it is called, what it asks for, and the state of its attempt.

    Raises UsageError if it is not waiting.
    """
    task = await journal.task(attempt.task)
    whole = await task_state(journal, task)
    state = whole.attempts[attempt.id]
    asked = state.interventions.get(id) or state.asked[id][1]
    what = f"{question_name(asked)} {id} for {task.name}#{attempt.number}"
    of = await run_option(journal, task.run)
    if asked in state.waits and (commands := answer_commands(whole, of)):
        raise UsageError(f"{what} cannot be approved: `{commands[0]}` answers it")
    _require_waiting(what, id, asked, state)
    return what, asked, state


async def question_states(journal: Journal, *more: type[Record]) -> RunState:
    """Return the states of all attempts in a journal, as far as open questions and `more` kinds
    tell.
    """
    run = RunState()
    async for entry in journal.all_entries(kinds=(*OPEN_QUESTION_KINDS, *more)):
        run.fold(entry)
    return run


def find_question(run: RunState, id: str | int) -> tuple[int, int]:
    """Return the journal ids of the question that `id` names and of its attempt. Pure.

    If `id` is text, a prefix of a waiting question's id is enough. Raises UsageError.
    """
    attempts = [each for task in run.tasks.values() for each in task.attempts.values()]
    for each in attempts:
        for number in (*each.interventions.by_id, *each.asked):
            if str(number) == str(id):
                return number, each.id
    waiting = [(id, each.id, asked) for each in attempts for id, asked in questions(each).items()]
    waiting.sort(key=lambda each: each[0])
    begun = id if isinstance(id, str) else ""
    found = [each for each in waiting if begun and str(each[0]).startswith(begun)]
    if len(found) == 1:
        return found[0][:2]
    there = ", ".join(f"{number} ({question_name(asked)})" for number, _, asked in waiting)
    said = f"waiting for approval: {there}" if waiting else "nothing is waiting for approval"
    if found:
        raise UsageError(f"`{id}` could mean several; {said}")
    raise UsageError(f"there is no intervention `{id}`; {said}")


def _require_waiting(what: str, id: int, asked: OpenQuestion, state: AttemptState) -> None:
    """Raise UsageError if it was settled, needs no approval, or would reach nobody."""
    if not isinstance(asked, InterventionState):
        if (answer := state.answer(id)) is not None:
            raise UsageError(f"{what} was already answered: {answer_text(answer)}")
    elif asked.status is InterventionStatus.ISSUED:
        raise UsageError(f"{what} needs no approval: it is being delivered")
    elif not asked.needs_approval:
        raise UsageError(f"{what} is already {asked.status}")
    if state.over:
        raise UsageError(f"{what} comes too late: the attempt is {state.status}")
