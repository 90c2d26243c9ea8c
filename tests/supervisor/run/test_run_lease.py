"""A run in a database, whose process may be on another machine: only its lease tells."""

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import Attempt, AttemptTransition, Commit, Lifecycle, TaskTransition
from midwatch_tests.command import ask, midwatch
from midwatch_tests.factories import AT, drafts
from midwatch_tests.harness import PastAttempts, assigned

pytestmark = [
    pytest.mark.usefixtures("named_by_the_environment"),
    pytest.mark.parametrize("location", ["postgresql"], indirect=True),
]

Capture = pytest.CaptureFixture[str]


@pytest.fixture
async def attempt(journal: Journal) -> Attempt:
    """One at work on a task of a task file."""
    found = await PastAttempts(journal, AT).attempt(task=assigned())
    working = Lifecycle.WORKING
    records = TaskTransition(lifecycle=working), AttemptTransition(lifecycle=working)
    await journal.commit(Commit(drafts=drafts(found, records)))
    return found


async def is_interrupted(capsys: Capture) -> object:
    """What `status --json` says of the one task."""
    return (await ask(capsys, "status"))[0]["interrupted"]


async def test_resume_waits_to_see_whether_the_process_of_a_run_in_a_database_was_killed(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    assert await MonitorLeases(journal).take_post("run 1", holder="killed", seconds=2) == 1
    assert await is_interrupted(capsys) is False, "it may live"
    assert await midwatch("resume", "--dry-run") == 0
    assert "a process was working on run 1 a moment ago: waiting up to " in capsys.readouterr().err
    assert await is_interrupted(capsys) is True


async def test_who_works_on_a_run_is_no_monitor(journal: Journal, attempt: Attempt) -> None:
    async with hold_run(journal, 1, lease_seconds=15):
        assert await Nodes(journal).monitors() == []
