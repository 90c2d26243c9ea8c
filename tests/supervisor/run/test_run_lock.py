"""A run that a process works on, or none any more: what that means to other commands."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Lifecycle,
    Record,
    TaskTransition,
)
from midwatch_tests.command import Cli, midwatch, new_task
from midwatch_tests.factories import away, commit, intervention
from midwatch_tests.harness import PastAttempts, assigned
from midwatch_tests.matrix import DATABASES

pytestmark = [
    pytest.mark.usefixtures("named_by_the_environment"),
    pytest.mark.parametrize("location", DATABASES, indirect=True),
]
LEFT = "`midwatch resume --run 1`: no process works on it"
AT_WORK = "another process is working on run 1"


class Scene:
    """An attempt, and what commands say of its run."""

    def __init__(self, journal: Journal, attempt: Attempt, capsys: pytest.CaptureFixture[str]):
        self.journal, self.attempt, self.cli = journal, attempt, Cli(capsys)
        self.hold: Callable[[], AbstractAsyncContextManager[None]] = partial(
            hold_run, journal, 1, lease_seconds=15
        )

    async def write(self, *records: Record) -> None:
        await self.journal.commit(commit(self.attempt, *records))

    async def say(self, lifecycle: Lifecycle = Lifecycle.WORKING) -> None:
        await self.write(
            TaskTransition(lifecycle=lifecycle), AttemptTransition(lifecycle=lifecycle)
        )

    async def read_status(self, task: int = 0, *more: str) -> tuple[object, object]:
        """What `status --json` says of a task."""
        line = (await self.cli.ask("status", *more))[task]
        return line["interrupted"], line["waits_for"]

    async def last_line(self) -> str:
        """What `status` says last, below a later run."""
        return (await self.cli.read("status"))[-1]


@pytest.fixture
async def scene(journal: Journal, capsys: pytest.CaptureFixture[str]) -> Scene:
    """Of a task of a task file, at work."""
    past = PastAttempts(journal, datetime.now(UTC))
    found = Scene(journal, await past.attempt(task=assigned()), capsys)
    await found.say()
    return found


@pytest.fixture
async def embedded_scene(journal: Journal, capsys: pytest.CaptureFixture[str]) -> Scene:
    """Of an agent with a `Watch` in it, whose process was killed."""
    past = PastAttempts(journal, datetime.now(UTC))
    found = Scene(journal, await past.attempt(task="crawler", source="embedded"), capsys)
    await found.say()
    async with found.hold():
        pass
    return found


async def test_nobody_else_goes_on_with_a_run_that_is_worked_on(scene: Scene) -> None:
    for words in (("resume",), ("resume", "--run", "1")):
        async with scene.hold():
            told = await scene.cli.refused(*words, "--headless")
        assert f"{AT_WORK}: `midwatch watch` shows" in told
    assert await midwatch("resume", "--dry-run") == 0


async def test_two_processes_cannot_hold_one_run(scene: Scene) -> None:
    async with scene.hold():
        async with hold_run(scene.journal, 2, lease_seconds=15):
            pass
        with pytest.raises(UsageError, match=AT_WORK):
            async with scene.hold():
                pass


async def test_a_lease_is_renewed_while_its_process_lives(scene: Scene) -> None:
    async with hold_run(scene.journal, 1, lease_seconds=0.6):
        for _ in range(3):
            assert AT_WORK in await scene.cli.refused("resume", "--headless")


async def test_status_and_show_say_that_nobody_works_on_a_run(scene: Scene) -> None:
    assert await scene.read_status() == (False, None), "nothing tells of runs of other kinds"
    async with scene.hold():
        assert await scene.read_status() == (False, None)
    assert await scene.read_status() == (True, LEFT)
    assert f"waits for: {LEFT}" in await scene.cli.read("show", "fix")
    await scene.say(Lifecycle.COMPLETED)
    assert await scene.read_status() == (False, None), "of a run that is over nobody asks"


async def test_of_a_refusing_provider_the_command_is_not_cut_off_by_the_reason(
    scene: Scene,
) -> None:
    async with scene.hold():
        reason = f"HTTP 401: {'Incorrect key. ' * 9}"
        await scene.write(away(url="http://127.0.0.1:1/v1", reason=reason))
    command = "`midwatch resume --run 1`, once the provider accepts requests: HTTP 401"
    assert command in (await scene.cli.read("status"))[2]


async def test_of_an_earlier_run_that_nobody_works_on_that_is_told(scene: Scene) -> None:
    await new_task(scene.journal)
    async with scene.hold():
        told = await scene.last_line()
    assert told == "run 1 is not over (`midwatch status --run 1`): fix (working)"
    assert await scene.last_line() == (
        "run 1 is not over, and no process works on it (`midwatch resume --run 1`): fix (working)"
    )


async def test_a_question_is_said_first_and_then_that_nobody_hears_the_answer(scene: Scene) -> None:
    async with scene.hold():
        await scene.say(Lifecycle.INPUT_REQUIRED)
    assert (await scene.read_status())[1] == "a person"
    await scene.write(intervention(Action.RESUME, by=Actor.OPERATOR))
    assert (await scene.read_status())[1] == LEFT


async def test_a_task_that_waits_for_another_suggests_no_resume_that_would_do_nothing(
    scene: Scene,
) -> None:
    wanted = assigned("after")
    after = wanted.task.model_copy(update={"depends_on": ("fix",)})
    spec = wanted.model_copy(update={"task": after}).model_dump_json()
    await new_task(scene.journal, "after", run=1, spec=spec)
    async with scene.hold():
        await scene.say(Lifecycle.INPUT_REQUIRED)
    assert (await scene.read_status(1))[1] == "the task fix"
    assert "waits for: the task fix" in await scene.cli.read("show", "after")
    await new_task(scene.journal)
    assert await scene.last_line() == (
        "run 1 is not over (`midwatch status --run 1`): fix (waits for you), after (submitted)"
    )
    await scene.say(Lifecycle.FAILED)
    assert (await scene.read_status(1, "--run", "1"))[1] == LEFT


async def test_an_agent_whose_process_is_gone_can_only_be_put_away(embedded_scene: Scene) -> None:
    assert await embedded_scene.read_status() == (
        True,
        "`midwatch cancel --run 1`: its process is gone",
    )
    await new_task(embedded_scene.journal)
    assert await embedded_scene.last_line() == (
        "run 1 is not over, and no process works on it (`midwatch cancel --run 1`): "
        "crawler (working)"
    )
    assert "canceled crawler" in await embedded_scene.cli.said("cancel", "--run", "1")
    (line,) = await embedded_scene.cli.ask("status", "--run", "1")
    assert (line["stands"], line["interrupted"], line["waits_for"]) == ("canceled", False, None)


async def test_a_stop_reaches_an_agent_whose_process_lives(embedded_scene: Scene) -> None:
    async with embedded_scene.hold():
        assert "stop sent" in await embedded_scene.cli.said("cancel", "crawler")


async def test_what_no_task_file_began_is_passed_over_by_resume(embedded_scene: Scene) -> None:
    resume = ("resume", "--dry-run")
    async with embedded_scene.hold():
        assert "there is no unfinished run" in await embedded_scene.cli.refused(*resume)
    gone = "run 1 is an agent's own, and its process is gone: `midwatch cancel --run 1` closes it"
    for words in ((), ("--run", "1")):
        assert (await embedded_scene.cli.refused(*resume, *words)).strip() == gone
    later = await PastAttempts(embedded_scene.journal, datetime.now(UTC)).attempt(task=assigned())
    await embedded_scene.journal.commit(commit(later, TaskTransition(lifecycle=Lifecycle.WORKING)))
    assert await midwatch(*resume) == 0
