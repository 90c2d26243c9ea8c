"""A person has a task begun again that is over, or takes tasks back while their run goes on."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from midwatch_agents.scripted import Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import StaleIncarnationError, UsageError
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Change,
    Commit,
    Delivery,
    DeliveryState,
    Ending,
    Entry,
    Intervention,
    Lifecycle,
    OutcomeReport,
    Part,
    Step,
    TaskTransition,
    Terms,
)
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.operator.tasks import WithdrawalResult, Withdrawer
from midwatch_supervisor.run.launch import conduct, load_jobs, load_run
from midwatch_tests.acting import DONE, REPORT, gate, put, putting, script, task_file
from midwatch_tests.command import new_attempt, new_task
from midwatch_tests.factories import (
    call,
    draft,
    ended,
    intervention,
    task_transition,
    transition,
    turn,
)
from midwatch_tests.harness import RunHarness

NOTE = "Write the word one."
STOP = intervention(Action.STOP, Actor.OPERATOR)


async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return "awake"


ONE, TWO, HANG = putting("out.txt", "one"), putting("out.txt", "two"), turn(call("hang"))


def script_with_retry(*turns: Turn) -> Script:
    """A script whose later attempts write the right word."""
    return script(*turns, again=(turn(REPORT), ONE, DONE))


SCRIPTS = {
    "learn": script_with_retry(TWO, DONE),
    "after": script(ONE, DONE),
    "hang": script_with_retry(HANG),
    "slow": script(TWO, DONE, again=(turn(REPORT), HANG)),
    "big": script_with_retry(HANG),
    "big.1": script_with_retry(TWO, DONE),
    "big.2": script_with_retry(ONE, DONE),
}


def script_for(role: Role, key: str) -> Script:
    return SCRIPTS.get(key, WAITS)


WAITS = script(turn(call("gate", leaves="out.txt")), DONE)


def tasks(*items: str) -> str:
    defaults = "max_attempts: 1, budget: {requests: 12}"
    return task_file(__name__, *items, tools=(put, hang), defaults=defaults)


def task(name: str, more: str = "") -> str:
    return f"id: {name}, goal: Do it., acceptance: [grep -qx one out.txt], {more}"


async def states(harness: RunHarness, id: int) -> list[TaskTransition]:
    entries = await harness.journal.entries(task=id, kinds=(TaskTransition,))
    return [each.record for each in entries if isinstance(each.record, TaskTransition)]


async def end_task(harness: RunHarness, id: int, lifecycle: Lifecycle) -> None:
    """Let a task be over."""
    state = draft(task_transition(lifecycle), at=datetime.now(UTC), task=id, attempt=None)
    await harness.journal.commit(Commit(drafts=(state,)))


async def lifecycle(harness: RunHarness, id: int) -> Lifecycle:
    return (await states(harness, id))[-1].lifecycle


async def begin_again(harness: RunHarness, attempt: int, note: str = NOTE) -> None:
    of = await harness.journal.attempt(attempt)
    await OperatorActions(harness.journal, author="ada").begin_again(of, note, step=0)


async def ignore_entries(entries: Sequence[Entry]) -> None:
    """Whoever follows a run hears its entries."""


async def wait_until_working(harness: RunHarness) -> None:
    """Wait until some attempt is at work."""

    async def is_working() -> bool:
        return any(each.lifecycle is Lifecycle.WORKING for each in await harness.told(Change))

    await harness.until(is_working)


async def test_a_failed_task_is_begun_again_when_its_run_goes_on(harness: RunHarness) -> None:
    assert await harness.run(tasks(task("learn"))) == 1
    used = [each.budget for each in await harness.told(Change) if each.budget][-1].requests.used
    await begin_again(harness, 1)
    (*_, waiting) = await states(harness, 1)
    reason = f"begun again by ada: {NOTE}"
    assert waiting == TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason=reason)
    assert await harness.resume() == 0
    assert await lifecycle(harness, 1) is Lifecycle.COMPLETED
    one, two = await harness.journal.attempts(1)
    assert (two.number, two.workspace != one.workspace) == (2, True)
    assert f"Advice for you: {NOTE}" in await harness.prompt(two.id)
    # What was used stays counted, and the budget is there once more.
    budget = next(each.budget for each in await harness.told(Change, attempt=2) if each.budget)
    assert (budget.requests.used, budget.requests.limit) == (used, used + 12)
    # The word of a person is one intervention, and it has arrived.
    (order,) = await harness.told(Intervention)
    assert (order.action, order.by, order.author) == (Action.RESTART, Actor.OPERATOR, "ada")
    assert [each.state for each in await harness.told(Delivery)] == [DeliveryState.DELIVERED]
    assert await harness.told(OutcomeReport) == []  # no alert fired by which it could be judged


async def test_a_process_whose_run_is_over_goes_on_with_it(harness: RunHarness) -> None:
    await harness.run(tasks(task("learn")))
    (run,) = await harness.journal.runs()
    resources, jobs = await load_run(harness.journal, run, home=harness.home, learning=RunLearning)
    assert await conduct(resources, jobs, ignore_entries, attended=True) == 1
    await begin_again(harness, 1)
    jobs = await load_jobs(resources)
    assert await conduct(resources, jobs, ignore_entries, attended=True) == 0


async def test_a_run_at_work_takes_up_what_is_begun_again(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks(task("learn"), task("hang"))))

    async def has_failed() -> bool:
        return bool(await harness.journal.tasks(1)) and (
            await lifecycle(harness, 1) is Lifecycle.FAILED
        )

    async def is_completed() -> bool:
        return await lifecycle(harness, 1) is Lifecycle.COMPLETED

    await harness.until(has_failed)
    await begin_again(harness, (await harness.journal.attempts(1))[0].id)
    await harness.until(is_completed)
    (hanging,) = await harness.journal.attempts(2)
    await harness.say(STOP, attempt=hanging.id)
    assert await run == 1
    assert len(await harness.journal.attempts(1)) == 2


async def test_a_stopped_and_a_completed_task_are_begun_again_too(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks(task("hang"), task("after"))))
    await wait_until_working(harness)
    of = {(await harness.journal.task(n)).name: n for n in (1, 2)}
    (stopped,) = await harness.journal.attempts(of["hang"])
    await harness.say(STOP, attempt=stopped.id)
    assert await run == 1
    (completed,) = await harness.journal.attempts(of["after"])
    for attempt in (stopped, completed):
        await begin_again(harness, attempt.id)
    assert await harness.resume() == 0
    for id in (1, 2):
        assert await lifecycle(harness, id) is Lifecycle.COMPLETED
        assert len(await harness.journal.attempts(id)) == 2
    later = (await harness.journal.attempts(of["after"]))[-1].id
    assert "The work of the attempt before was accepted" in await harness.prompt(later)


async def test_an_interruption_loses_nothing_of_what_was_begun_again(harness: RunHarness) -> None:
    await harness.run(tasks(task("slow")))
    await begin_again(harness, 1)

    async def has_step() -> bool:
        return bool(await harness.told(Step, attempt=2))

    interrupted = asyncio.create_task(harness.resume())
    await harness.until(has_step)
    interrupted.cancel()
    await asyncio.gather(interrupted, return_exceptions=True)
    await harness.say(STOP, attempt=2)
    assert await harness.resume() == 1
    assert [each.number for each in await harness.journal.attempts(1)] == [1, 2]
    budgets = [each.budget for each in await harness.told(Change, attempt=2) if each.budget]
    assert len({each.requests.limit for each in budgets}) == 1


async def test_what_failed_only_by_it_goes_on_and_what_began_stays(harness: RunHarness) -> None:
    after = task("after", "depends_on: [learn]")
    assert await harness.run(tasks(task("learn"), after)) == 1
    assert await harness.journal.attempts(2) == []
    await begin_again(harness, 1)
    (*_, opened) = await states(harness, 2)
    assert opened == TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason="learn is begun again")
    assert await harness.resume() == 0
    before = len(await states(harness, 2))
    await begin_again(harness, (await harness.journal.attempts(1))[-1].id)
    assert await harness.resume() == 0
    assert len(await states(harness, 2)) == before
    assert len(await harness.journal.attempts(1)) == 3


async def test_what_a_person_withdrew_stays_withdrawn(harness: RunHarness) -> None:
    await harness.run(tasks(task("learn"), task("after", "depends_on: [learn]")))
    third = await harness.journal.add_task(
        run=1,
        name="idle",
        title="",
        spec=(await harness.journal.task(2)).spec.replace('"after"', '"idle"'),
        at=datetime.now(UTC),
    )
    await end_task(harness, third.id, Lifecycle.CANCELED)
    await begin_again(harness, 1)
    assert await lifecycle(harness, third.id) is Lifecycle.CANCELED


async def test_a_part_is_begun_again_and_a_split_whole_is_not(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks(task("big"))))
    await wait_until_working(harness)
    check = ("grep -qx one out.txt",)
    both = tuple(Part(title=f"part {n}", goal="Do it.", acceptance=check) for n in (1, 2))
    await harness.say(intervention(Action.SPLIT, Actor.OPERATOR, terms=Terms(parts=both)))
    assert await run == 1
    names = {each.name: each.id for each in await harness.journal.tasks(1)}
    (part,) = await harness.journal.attempts(names["big.1"])
    with pytest.raises(UsageError, match="big: it was split: begin the failed part again"):
        await begin_again(harness, 1)
    await begin_again(harness, part.id)
    assert await harness.resume() == 0
    for id in names.values():
        assert await lifecycle(harness, id) is Lifecycle.COMPLETED


async def test_what_is_not_over_or_was_succeeded_is_not_begun_again(harness: RunHarness) -> None:
    await harness.run(tasks(task("learn")))
    await begin_again(harness, 1)
    with pytest.raises(UsageError, match="learn: it is not over: it continues by itself"):
        await begin_again(harness, 1)
    await harness.resume()
    with pytest.raises(UsageError, match="learn: a later attempt has taken over"):
        await begin_again(harness, 1)
    assert await harness.endings() == [Ending.UNACCEPTED, Ending.DONE]


async def test_who_is_only_watched_is_begun_again_by_its_program(harness: RunHarness) -> None:
    at = datetime.now(UTC)
    of = await new_task(harness.journal, "mine", at=at)
    attempt = await new_attempt(harness.journal, of, at=at)
    await harness.say(ended())
    await end_task(harness, of.id, Lifecycle.COMPLETED)
    with pytest.raises(UsageError, match="only the program that it runs in"):
        await begin_again(harness, attempt.id)


async def test_a_restart_by_a_person_is_above_the_number_of_attempts(harness: RunHarness) -> None:
    run = asyncio.create_task(harness.run(tasks(task("hang"))))
    await wait_until_working(harness)
    await harness.say(intervention(Action.RESTART, Actor.OPERATOR, message=NOTE))
    assert await run == 0
    assert len(await harness.journal.attempts(1)) == 2


CANCELED = task_transition(Lifecycle.CANCELED, reason="canceled by ada")


async def start_run(harness: RunHarness) -> "asyncio.Task[int]":
    """A run whose first task waits, `b` after it, `c` after `b`, and `d` after the first."""
    items = [
        f"id: {name}, goal: Do it., acceptance: [file: out.txt], depends_on: [{before}]"
        for name, before in (("a", ""), ("b", "a"), ("c", "b"), ("d", "a"))
    ]
    text = task_file(__name__, *items, tools=(gate,), defaults="workspace: null")
    run = asyncio.create_task(harness.run(text))
    await harness.until(harness.home.joinpath("work/r1/a-1/out.txt").exists)
    return run


async def withdraw(harness: RunHarness, name: str) -> list[WithdrawalResult]:
    journal = harness.journal
    (run,) = await journal.runs()
    task = next(each for each in await journal.tasks(run.id) if each.name == name)
    done = await Withdrawer(journal, bus=LocalBus(), author="ada").withdraw(run, task)
    return [each.course for each in done]


async def test_what_waits_in_a_run_is_canceled_and_the_others_go_on(harness: RunHarness) -> None:
    run = await start_run(harness)
    assert await withdraw(harness, "b") == [WithdrawalResult.CANCELED]
    harness.open_gate()
    assert await run == 1
    found = await harness.ends()
    assert found.pop("b") == CANCELED
    reason = "it depends on b, which is canceled"
    assert found.pop("c") == task_transition(Lifecycle.FAILED, reason=reason)
    assert [each.lifecycle for each in found.values()] == 2 * [Lifecycle.COMPLETED]


async def test_what_depends_on_what_is_canceled_at_work_fails(harness: RunHarness) -> None:
    run = await start_run(harness)
    assert await withdraw(harness, "a") == [WithdrawalResult.STOPPING]
    assert await run == 1
    found = await harness.ends()
    assert found["a"] == CANCELED
    reason = "it depends on a, which is canceled"
    assert found["b"] == found["d"] == task_transition(Lifecycle.FAILED, reason=reason)
    (ended,) = [e for e in await harness.told(AttemptTransition) if e.lifecycle.over]
    assert ended == transition(Lifecycle.CANCELED, reason="canceled by ada", ending=Ending.CANCELED)


async def test_what_was_canceled_stays_so_when_its_run_goes_on(harness: RunHarness) -> None:
    run = await start_run(harness)
    run.cancel()
    await asyncio.wait({run})
    await withdraw(harness, "b")
    harness.open_gate()
    assert await harness.resume() == 1
    found = await harness.ends()
    assert found["b"] == CANCELED
    assert found["d"].lifecycle is Lifecycle.COMPLETED


async def test_by_a_part_that_is_canceled_the_whole_fails(harness: RunHarness) -> None:
    run = await start_run(harness)
    parts = (Part(title="First", goal="Do it."), Part(title="Second", goal="Do it."))
    await harness.say(intervention(Action.SPLIT, Actor.SUPERVISOR, terms=Terms(parts=parts)))
    await harness.until(harness.home.joinpath("work/r1/a.1-1/out.txt").exists)
    assert await withdraw(harness, "a.2") == [WithdrawalResult.CANCELED]
    harness.open_gate()
    assert await run == 1
    found = await harness.ends()
    assert (found["a.1"].lifecycle, found["a.2"]) == (Lifecycle.COMPLETED, CANCELED)
    reason = "its part a.2 canceled: canceled by ada"
    assert found["a"] == task_transition(Lifecycle.FAILED, reason=reason)


async def test_no_worker_is_set_to_an_attempt_that_is_over(harness: RunHarness) -> None:
    run = await start_run(harness)
    run.cancel()
    await asyncio.wait({run})
    await harness.say(transition(Lifecycle.CANCELED))  # since the runner has looked
    harness.open_gate()
    with pytest.raises(StaleIncarnationError, match="attempt 1 is already over"):
        await harness.resume()
