"""Where a person comes in: questions, approvals, and what happens until one speaks."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.settings import Mode, PolicySettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    AttemptTransition,
    Decision,
    Delivery,
    DeliveryState,
    Ending,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    TaskTransition,
)
from midwatch_stage.harness import RunHarness
from midwatch_stage.watched import uncoded


async def wait_for(ctx: RunContext[object], kind: str) -> str:
    """Wait until the journal holds a record of a kind, or a closed escalation."""
    folder = Path(await ctx.workspace.working_dir()).parents[3]
    async with await Journal.open_to_read(folder / ".midwatch/journal.db") as journal:
        while True:
            for entry in await journal.entries(attempt=1):
                record = entry.record
                closed = isinstance(record, Escalation) and record.state is EscalationState.CLOSED
                if type(record).__name__ == kind or (closed and kind == "closed"):
                    return "there it is"


def waiting(kind: str) -> Call:
    return Call(tool="wait_for", args=f'{{"kind": "{kind}"}}')


HELP = Call(
    tool="reflect", args='{"progress_percent": 10, "confidence": 80, "decision": "escalate"}'
)
DONE = Turn(say="Done.")
SCRIPTS = {
    "ask": (Turn(calls=(HELP, waiting("Intervention"))), DONE),
    "approved": (Turn(calls=(HELP, waiting("Delivery"))), DONE),
    "rejected": (Turn(calls=(HELP, waiting("closed"))), DONE),
    "quiet": (DONE,),
    "alone": (Turn(calls=(HELP,)), DONE),
}


def script_for(role: Role, key: str) -> Script:
    return Script(phases=(Phase(turns=SCRIPTS[key]),))


def task(name: str, *, beside: str = "") -> str:
    return f"""
        models: {{worker: "scripted:{__name__}@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: ["{__name__}:wait_for"]}}}}
        tasks:
          - {{id: {name}, goal: Do it., acceptance: ["true"]}}
          {beside}
    """


@pytest.fixture
def asking(harness: RunHarness) -> RunHarness:
    """Where a worker that asks for help is sent to a person."""
    policy = PolicySettings(rules={"explicit_escalation": (Action.ASK_OPERATOR,)})
    harness.settings = harness.settings.model_copy(update={"policy": policy})
    return harness


@pytest.fixture
def advising(harness: RunHarness) -> RunHarness:
    """Where nothing is delivered before a person has approved."""
    harness.settings = harness.settings.model_copy(update={"mode": Mode.ADVISE})
    return harness


async def history(harness: RunHarness) -> str:
    return "".join(uncoded(each.body.decode()) for each in await harness.journal.messages(1))


NUDGE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Use the other file.")


async def test_a_worker_that_needs_a_person_is_parked_and_goes_on_after_the_answer(
    asking: RunHarness,
) -> None:
    assert await asking.run(task("ask")) == 3
    assert (await asking.told(AttemptTransition))[-1].lifecycle is Lifecycle.INPUT_REQUIRED
    assert (await asking.told(TaskTransition))[-1].lifecycle is Lifecycle.WORKING
    assert await asking.resume() == 3
    await asking.say(NUDGE)
    assert await asking.resume() == 0
    assert (await history(asking)).count("from your operator] Use the other file.") == 1
    states = [each.lifecycle for each in await asking.told(AttemptTransition)]
    assert states.count(Lifecycle.INPUT_REQUIRED) == 1
    assert len(await asking.journal.attempts(1)) == 1


async def test_a_parked_worker_does_not_keep_others_from_their_turn(asking: RunHarness) -> None:
    limited = asking.settings.run.model_copy(update={"concurrency": 1})
    asking.settings = asking.settings.model_copy(update={"run": limited})
    second = '- {id: quiet, goal: Do it., acceptance: ["true"]}'
    assert await asking.run(task("ask", beside=second)) == 3
    (quiet,) = await asking.journal.attempts(2)
    assert (await asking.told(AttemptTransition, attempt=quiet.id))[-1].ending is Ending.DONE


async def test_without_a_model_the_policy_decides(harness: RunHarness) -> None:
    assert await harness.run(task("ask")) == 0
    (decision,) = await harness.told(Decision)
    assert (decision.by, decision.action) == (Actor.POLICY, Action.NUDGE)
    assert (await history(harness)).count("from your policy]") == 1


async def test_advice_is_stored_and_not_delivered(advising: RunHarness) -> None:
    assert await advising.run(task("ask")) == 0
    (issued,) = await advising.told(Intervention)
    assert issued.needs_approval
    assert len(await advising.told(Decision)) == 1
    assert [each.state for each in await advising.told(Delivery)] == [DeliveryState.EXPIRED]
    assert "[midwatch #" not in await history(advising)


async def answered(harness: RunHarness, state: DeliveryState, script: str) -> list[DeliveryState]:
    """Answer the first advice of a run; all that became of it."""
    run = asyncio.create_task(harness.run(task(script)))
    await harness.until(lambda: advised(harness))
    (entry,) = await harness.journal.entries(kinds=(Intervention,))
    await harness.say(Delivery(intervention=entry.id, state=state, author="ann"))
    assert await run == 0
    return [each.state for each in await harness.told(Delivery)]


async def advised(harness: RunHarness) -> bool:
    return len(await harness.told(Intervention)) == 1


async def test_approved_advice_is_delivered(advising: RunHarness) -> None:
    states = await answered(advising, DeliveryState.APPROVED, "approved")
    assert states == [DeliveryState.APPROVED, DeliveryState.DELIVERED]
    assert (await history(advising)).count("from your policy]") == 1


async def test_rejected_advice_closes_its_escalation(advising: RunHarness) -> None:
    states = await answered(advising, DeliveryState.REJECTED, "rejected")
    assert states == [DeliveryState.REJECTED]
    closed = (await advising.told(Escalation))[-1]
    assert (closed.state, closed.reason) == (
        EscalationState.CLOSED,
        "its intervention was refused",
    )
    assert "[midwatch #" not in await history(advising)


class Deaf(Journal):
    """A journal in which no escalation can be stored."""

    asked = 0

    async def open_escalation(
        self,
        *,
        attempt: int,
        task: int,
        alerts: tuple[AlertKey, ...],
        reason: str,
        silent: bool = False,
        at: datetime,
        guard: int | None = None,
    ) -> Escalation | None:
        self.asked += 1
        raise JournalError("no room for questions")


async def test_a_monitor_that_fails_does_not_break_the_work(
    harness: RunHarness, journal_file: Path
) -> None:
    async with await Deaf.open(journal_file) as deaf:
        harness.journal = deaf
        assert await harness.run(task("alone")) == 0
        assert deaf.asked > 0
