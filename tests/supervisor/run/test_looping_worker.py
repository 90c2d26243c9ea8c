"""A worker that edits, tests and fails the same way for ever, with no model to supervise it."""

from pathlib import Path

import pytest

from midwatch_agents.scripted import Phase, Script
from midwatch_monitor.config.policy import PersonSettings, PolicySettings
from midwatch_monitor.config.settings import Mode
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Action,
    AttemptTransition,
    Change,
    Delivery,
    DeliveryState,
    Intervention,
    Lifecycle,
)
from midwatch_stage.factories import call, delivery, turn
from midwatch_stage.harness import RunHarness
from midwatch_stage.repository import new_repository

CHECK = "sh check.sh"
FAILS = "echo 'FAIL: test_width (test_app.T.test_width)'; echo 'AssertionError: 3 != 4'; exit 1\n"
STANDS = "a proposal is waiting for approval"


def script_for(role: Role, key: str) -> Script:
    edit = turn(call("write_file", path="app.py", content="# try {n}\n"))
    return Script(phases=(Phase(turns=(edit, turn(call("run_command", command=CHECK))), repeat=2),))


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


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project", {"check.sh": FAILS, "app.py": "# begin\n"})


async def used(harness: RunHarness) -> float:
    budgets = [each.budget for each in await harness.told(Change) if each.budget is not None]
    return budgets[-1].requests.used


async def test_it_is_told_its_failure_begun_anew_and_asked_about(harness: RunHarness) -> None:
    assert await harness.run(task(1_000)) == 3
    first, *later = await harness.told(Intervention)
    assert first.action is Action.NUDGE
    assert first.message.startswith(f"`{CHECK}` fails the same way again and again (steps ")
    assert "`app.py`" in first.message
    assert "test_width: AssertionError: 3 != 4." in first.message
    actions = [each.action for each in later]
    assert actions.index(Action.RESTART) < actions.index(Action.ASK_OPERATOR)


async def test_where_nobody_answers_it_stands_still_and_keeps_budget(harness: RunHarness) -> None:
    harness.set(mode=Mode.ADVISE)
    assert await harness.run(task(1_000)) == 3
    last = await harness.last(AttemptTransition)
    assert (last.lifecycle, last.reason) == (Lifecycle.INPUT_REQUIRED, STANDS)
    assert await used(harness) < 500
    (held, *_) = await harness.journal.entries(kinds=(Intervention,))
    before = await used(harness)
    await harness.say(delivery(held.id, DeliveryState.APPROVED, author="ann"))
    assert await harness.resume() == 3
    assert await used(harness) > before


async def test_who_stands_still_goes_on_once_the_time_is_over(harness: RunHarness) -> None:
    person = PersonSettings(timeout_minutes=0.03, hold_after=1)
    harness.set(mode=Mode.ADVISE, policy=PolicySettings(person=person))
    assert await harness.run(task(60)) in {1, 4}
    reasons = [each.reason for each in await harness.told(AttemptTransition)]
    assert STANDS in reasons
    late = [each for each in await harness.told(Delivery) if each.author == "timeout"]
    assert {each.state for each in late} == {DeliveryState.REJECTED}
