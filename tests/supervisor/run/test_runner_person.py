"""Where a person comes in: questions, approvals, and what happens until one speaks.

Last, a worker that edits, tests and fails the same way for ever, with no model to supervise it.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Phase, Script
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.config.settings import Mode
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Change,
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
from midwatch_tests.acting import DONE, script, task_file
from midwatch_tests.factories import call, delivery, intervention, turn
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository
from midwatch_tests.watched import uncoded


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


ASKED = {"progress_percent": 10, "confidence": 80, "decision": "escalate"}
HELP = call("reflect", **ASKED)
KEY = call("reflect", **ASKED, blockers=["no key"])
CALM = call("reflect", progress_percent=50, confidence=80)
SCRIPTS = {
    "ask": script(turn(HELP, call("wait_for", kind="Intervention")), DONE),
    "approved": script(turn(HELP, call("wait_for", kind="Delivery")), DONE),
    "rejected": script(turn(HELP, call("wait_for", kind="closed")), DONE),
    "quiet": script(DONE),
    "alone": script(turn(HELP), DONE),
    "key": script(turn(KEY, call("wait_for", kind="Intervention")), turn(CALM), DONE),
}


EDIT = turn(call("write_file", path="app.py", content="# try {n}\n"))
TEST = turn(call("run_command", command="sh check.sh"))
LOOPING = Script(phases=(Phase(turns=(EDIT, TEST), repeat=2),))


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS.get(key, LOOPING)


def tasks(*names: str) -> str:
    items = (f'id: {name}, goal: Do it., acceptance: ["true"]' for name in names)
    return task_file(__name__, *items, tools=(wait_for,))


@pytest.fixture
def asking_harness(harness: RunHarness) -> RunHarness:
    """Where a worker that asks for help is sent to a person."""
    harness.set(policy=PolicySettings(rules={"explicit_escalation": (Action.ASK_OPERATOR,)}))
    return harness


@pytest.fixture
def advising_harness(harness: RunHarness) -> RunHarness:
    """Where nothing is delivered before a person has approved."""
    harness.set(mode=Mode.ADVISE)
    return harness


async def history(harness: RunHarness) -> str:
    return "".join(uncoded(each.body.decode()) for each in await harness.journal.messages(1))


async def test_who_needs_a_person_is_parked_until_the_answer(asking_harness: RunHarness) -> None:
    assert await asking_harness.run(tasks("ask")) == 3
    assert (await asking_harness.last(AttemptTransition)).lifecycle is Lifecycle.INPUT_REQUIRED
    assert (await asking_harness.last(TaskTransition)).lifecycle is Lifecycle.WORKING
    assert await asking_harness.resume() == 3
    await asking_harness.say(intervention(by=Actor.OPERATOR, message="Use the other file."))
    assert await asking_harness.resume() == 0
    assert (await history(asking_harness)).count("from your operator] Use the other file.") == 1
    states = [each.lifecycle for each in await asking_harness.told(AttemptTransition)]
    assert states.count(Lifecycle.INPUT_REQUIRED) == 1
    assert len(await asking_harness.journal.attempts(1)) == 1
    assert (await asking_harness.last(TaskTransition)).reason == "every acceptance check passed"


async def test_a_parked_worker_does_not_keep_others_from_their_turn(
    asking_harness: RunHarness,
) -> None:
    asking_harness.set(run={"concurrency": 1})
    assert await asking_harness.run(tasks("ask", "quiet")) == 3
    (quiet,) = await asking_harness.journal.attempts(2)
    assert (await asking_harness.last(AttemptTransition, attempt=quiet.id)).ending is Ending.DONE


async def test_help_that_no_person_heard_of_leaves_a_reservation(harness: RunHarness) -> None:
    assert await harness.run(tasks("key")) == 0
    first, *_ = await harness.told(Decision)
    assert (first.by, first.action) == (Actor.POLICY, Action.NUDGE)
    assert "from your policy]" in await history(harness)
    assert (await harness.last(TaskTransition)).reason == (
        "every acceptance check passed, with reservations: no person heard that it asked for help: "
        "no key"
    )


async def test_advice_is_stored_and_not_delivered(advising_harness: RunHarness) -> None:
    assert await advising_harness.run(tasks("ask")) == 0
    (issued,) = await advising_harness.told(Intervention)
    assert issued.needs_approval
    assert len(await advising_harness.told(Decision)) == 1
    assert [each.state for each in await advising_harness.told(Delivery)] == [DeliveryState.EXPIRED]
    assert "[midwatch #" not in await history(advising_harness)


async def answer_advice(
    harness: RunHarness, state: DeliveryState, name: str
) -> list[DeliveryState]:
    """Answer the first advice of a run; all that became of it."""
    run = asyncio.create_task(harness.run(tasks(name)))
    await harness.until(lambda: has_advice(harness))
    (entry,) = await harness.journal.entries(kinds=(Intervention,))
    await harness.say(delivery(entry.id, state, author="ann"))
    assert await run == 0
    return [each.state for each in await harness.told(Delivery)]


async def has_advice(harness: RunHarness) -> bool:
    return len(await harness.told(Intervention)) == 1


async def test_approved_advice_is_delivered(advising_harness: RunHarness) -> None:
    states = await answer_advice(advising_harness, DeliveryState.APPROVED, "approved")
    assert states == [DeliveryState.APPROVED, DeliveryState.DELIVERED]
    assert (await history(advising_harness)).count("from your policy]") == 1


async def test_rejected_advice_closes_its_escalation(advising_harness: RunHarness) -> None:
    states = await answer_advice(advising_harness, DeliveryState.REJECTED, "rejected")
    assert states == [DeliveryState.REJECTED]
    closed = await advising_harness.last(Escalation)
    assert closed.state is EscalationState.CLOSED
    assert closed.reason == "its intervention was refused"
    assert "[midwatch #" not in await history(advising_harness)


class JournalWithoutEscalations(Journal):
    """A journal in which no escalation can be stored."""

    asked = 0

    async def open_escalation(self, **said: Any) -> Escalation | None:
        self.asked += 1
        raise JournalError("no room for questions")


async def test_a_broken_monitor_breaks_no_work(harness: RunHarness, journal_file: Path) -> None:
    async with await JournalWithoutEscalations.open(journal_file) as journal:
        harness.journal = journal
        assert await harness.run(tasks("alone")) == 0
        assert journal.asked > 0


CHECK = "sh check.sh"
FAILS = "echo 'FAIL: test_width (test_app.T.test_width)'; echo 'AssertionError: 3 != 4'; exit 1\n"
STANDS = "a proposal is waiting for approval"


def task(requests: int) -> str:
    return f"""
        models: {{worker: "scripted:{__name__}@0.02", supervisor: none}}
        tasks:
          - id: width
            goal: Make the tests pass.
            workspace: project
            acceptance: ["{CHECK}"]
            max_attempts: 2
            budget: {{requests: {requests}}}
    """


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"check.sh": FAILS, "app.py": "# begin\n"})


async def used_requests(harness: RunHarness) -> float:
    budgets = [each.budget for each in await harness.told(Change) if each.budget is not None]
    return budgets[-1].requests.used


@pytest.mark.usefixtures("project")
async def test_it_is_told_its_failure_begun_anew_and_asked_about(harness: RunHarness) -> None:
    assert await harness.run(task(1_000)) == 3
    first, *later = await harness.told(Intervention)
    assert first.action is Action.NUDGE
    assert first.message.startswith(f"`{CHECK}` fails the same way again and again (steps ")
    assert "`app.py`" in first.message
    assert "test_width: AssertionError: 3 != 4." in first.message
    actions = [each.action for each in later]
    assert actions.index(Action.RESTART) < actions.index(Action.ASK_OPERATOR)


@pytest.mark.usefixtures("project")
async def test_where_nobody_answers_it_stands_still_and_keeps_budget(harness: RunHarness) -> None:
    harness.set(mode=Mode.ADVISE)
    assert await harness.run(task(1_000)) == 3
    last = await harness.last(AttemptTransition)
    assert (last.lifecycle, last.reason) == (Lifecycle.INPUT_REQUIRED, STANDS)
    assert await used_requests(harness) < 500
    (held, *_) = await harness.journal.entries(kinds=(Intervention,))
    before = await used_requests(harness)
    await harness.say(delivery(held.id, DeliveryState.APPROVED, author="ann"))
    assert await harness.resume() == 3
    assert await used_requests(harness) > before


@pytest.mark.usefixtures("project")
async def test_who_stands_still_goes_on_once_the_time_is_over(harness: RunHarness) -> None:
    person = PersonSettings(timeout_minutes=0.03, hold_after=1)
    harness.set(mode=Mode.ADVISE, policy=PolicySettings(person=person))
    assert await harness.run(task(60)) in {1, 4}
    reasons = [each.reason for each in await harness.told(AttemptTransition)]
    assert STANDS in reasons
    late = [each for each in await harness.told(Delivery) if each.author == "timeout"]
    assert {each.state for each in late} == {DeliveryState.REJECTED}
