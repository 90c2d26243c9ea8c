"""A run that a process works on, or none any more: what that means to other commands."""

from datetime import UTC, datetime

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Commit,
    Lifecycle,
    TaskTransition,
)
from midwatch_stage.command import ask, midwatch, new_task, read
from midwatch_stage.factories import away, drafts, intervention
from midwatch_stage.harness import PastAttempts, assigned
from midwatch_stage.matrix import DATABASES


@pytest.fixture
async def attempt(journal: Journal) -> Attempt:
    """One at a task of a task file."""
    return await PastAttempts(journal, datetime.now(UTC)).attempt(task=assigned())


@pytest.fixture
async def embedded(journal: Journal) -> Attempt:
    """One of an agent with a `Watch` in it, whose process was killed."""
    found = await PastAttempts(journal, datetime.now(UTC)).attempt(
        task="crawler", source="embedded"
    )
    await say(journal, found)
    async with hold_run(journal, 1, lease_seconds=15):
        pass
    return found


Capture = pytest.CaptureFixture[str]
LEFT = "`midwatch resume --run 1`: no process works on it"

pytestmark = [
    pytest.mark.usefixtures("named_by_the_environment"),
    pytest.mark.parametrize("location", DATABASES, indirect=True),
]


async def say(journal: Journal, attempt: Attempt, lifecycle: Lifecycle = Lifecycle.WORKING) -> None:
    records = TaskTransition(lifecycle=lifecycle), AttemptTransition(lifecycle=lifecycle)
    await journal.commit(Commit(drafts=drafts(attempt, records)))


async def waits(capsys: Capture) -> tuple[object, object]:
    """What `status --json` says of the one task."""
    line = (await ask(capsys, "status"))[0]
    return line["interrupted"], line["waits_for"]


async def test_nobody_else_goes_on_with_a_run_that_is_worked_on(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    await say(journal, attempt)
    for words in (("resume",), ("resume", "--run", "1")):
        async with hold_run(journal, 1, lease_seconds=15):
            assert await midwatch(*words, "--headless") == 2
        assert (
            "another process is working on run 1: `midwatch watch` shows" in capsys.readouterr().err
        )
    assert await midwatch("resume", "--dry-run") == 0


async def test_two_processes_cannot_hold_one_run(journal: Journal, attempt: Attempt) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        async with hold_run(journal, 2, lease_seconds=15):
            pass
        with pytest.raises(UsageError, match="another process is working on run 1"):
            async with hold_run(journal, 1, lease_seconds=15):
                pass


async def test_status_and_show_say_that_nobody_works_on_a_run(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    await say(journal, attempt)
    assert await waits(capsys) == (False, None), "nothing tells of runs of other kinds"
    async with hold_run(journal, 1, lease_seconds=15):
        assert await waits(capsys) == (False, None)
    assert await waits(capsys) == (True, LEFT)
    assert f"waits for: {LEFT}" in await read(capsys, "show", "fix")
    await say(journal, attempt, Lifecycle.COMPLETED)
    assert await waits(capsys) == (False, None), "of a run that is over nobody asks"


async def test_of_a_run_whose_provider_refused_the_command_is_not_cut_off_by_the_reason(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        await say(journal, attempt)
    outage = away(url="http://127.0.0.1:1/v1", reason=f"HTTP 401: {'Incorrect key. ' * 9}")
    await journal.commit(Commit(drafts=drafts(attempt, [outage])))
    assert (
        "`midwatch resume --run 1`, once the provider accepts requests: HTTP 401"
        in (await read(capsys, "status"))[2]
    )


async def test_of_an_earlier_run_that_nobody_works_on_that_is_told_below_the_latest(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    await say(journal, attempt)
    await new_task(journal)
    async with hold_run(journal, 1, lease_seconds=15):
        told = (await read(capsys, "status"))[-1]
        assert told == "run 1 is not over (`midwatch status --run 1`): fix (working)"
    assert (await read(capsys, "status"))[-1] == (
        "run 1 is not over, and no process works on it (`midwatch resume --run 1`): fix (working)"
    )


async def test_what_a_person_is_asked_is_said_first_and_then_that_nobody_hears_the_answer(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        await say(journal, attempt, Lifecycle.INPUT_REQUIRED)
    assert (await waits(capsys))[1] == "a person"
    await journal.commit(
        Commit(drafts=drafts(attempt, [intervention(Action.RESUME, by=Actor.OPERATOR)]))
    )
    assert (await waits(capsys))[1] == LEFT


async def test_a_task_that_waits_for_another_does_not_suggest_a_resume_that_would_do_nothing(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    wanted = assigned("after")
    wanted = wanted.model_copy(
        update={"task": wanted.task.model_copy(update={"depends_on": ("fix",)})}
    )
    await new_task(journal, "after", run=1, spec=wanted.model_dump_json())
    async with hold_run(journal, 1, lease_seconds=15):
        await say(journal, attempt, Lifecycle.INPUT_REQUIRED)
    assert (await ask(capsys, "status"))[1]["waits_for"] == "the task fix"
    assert "waits for: the task fix" in await read(capsys, "show", "after")
    await new_task(journal)
    assert (await read(capsys, "status"))[-1] == (
        "run 1 is not over (`midwatch status --run 1`): fix (waits for you), after (submitted)"
    )
    await say(journal, attempt, Lifecycle.FAILED)
    assert (await ask(capsys, "status", "--run", "1"))[1]["waits_for"] == LEFT


async def test_an_agent_whose_own_process_is_gone_can_only_be_put_away(
    journal: Journal, embedded: Attempt, capsys: Capture
) -> None:
    assert await waits(capsys) == (True, "`midwatch cancel --run 1`: its process is gone")
    await new_task(journal)
    assert (await read(capsys, "status"))[-1] == (
        "run 1 is not over, and no process works on it (`midwatch cancel --run 1`): "
        "crawler (working)"
    )
    assert await midwatch("cancel", "--run", "1") == 0
    assert "canceled crawler" in capsys.readouterr().out
    (line,) = await ask(capsys, "status", "--run", "1")
    assert (line["stands"], line["interrupted"], line["waits_for"]) == ("canceled", False, None)


async def test_a_stop_reaches_an_agent_whose_process_lives(
    journal: Journal, embedded: Attempt, capsys: Capture
) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        assert await midwatch("cancel", "crawler") == 0
    assert "stop sent" in capsys.readouterr().out


async def test_what_no_task_file_began_is_passed_over_by_resume(
    journal: Journal, embedded: Attempt, capsys: Capture
) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        assert await midwatch("resume", "--dry-run") == 2
    assert "there is no unfinished run" in capsys.readouterr().err
    for words in ((), ("--run", "1")):
        assert await midwatch("resume", "--dry-run", *words) == 2
        said = (
            "run 1 is an agent's own, and its process is gone: `midwatch cancel --run 1` closes it"
        )
        assert capsys.readouterr().err == f"{said}\n"
    later = await PastAttempts(journal, datetime.now(UTC)).attempt(task=assigned())
    await say(journal, later)
    assert await midwatch("resume", "--dry-run") == 0


async def test_a_lease_is_renewed_while_its_process_lives(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    await say(journal, attempt)
    async with hold_run(journal, 1, lease_seconds=0.6):
        for _ in range(3):
            assert await midwatch("resume", "--headless") == 2
    assert "another process is working on run 1" in capsys.readouterr().err
