"""A plan by the planner before the work, a verdict by the reviewer after it."""

import pytest

from midwatch_agents.scripted import Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    Acceptance,
    AttemptTransition,
    Change,
    Completion,
    Ending,
    Fault,
    Feedback,
    Origin,
    Plan,
    PlanStep,
    Spending,
    VerdictBasis,
)
from midwatch_stage.acting import DONE, put, script
from midwatch_stage.factories import call, plan, turn
from midwatch_stage.harness import RunHarness


def answer(**args: object) -> Turn:
    return turn(call("", **args))


PLAN = answer(
    steps=[
        {"title": "read", "files": ["a.md"], "confidence": 80},
        {"title": "write", "acceptance": ["true"], "confidence": 40},
    ]
)
NO_PLAN = (turn(say="I would rather not."),) * 9
GOOD = answer(approved=True, score=90, comment="It does what was wanted.")
BAD = answer(approved=False, score=20, comment="Half of it.", missing=["the tests"])
SCRIPTS = {
    (Role.PLANNER, "fix"): (PLAN,),
    (Role.REVIEWER, "fix"): (GOOD,),
    (Role.PLANNER, "poor"): NO_PLAN,
    (Role.REVIEWER, "poor"): (BAD,),
    (Role.REVIEWER, "odd"): NO_PLAN,
}


def script_for(role: Role, key: str) -> Script:
    return script(*SCRIPTS.get((role, key), (turn(call("put", path="out.txt")), DONE)))


def tasks(name: str, more: str, *, planner: str = "") -> str:
    scripted = f"scripted:{__name__}@0"
    return f"""
        models: {{worker: "{scripted}", supervisor: none{planner and f', planner: "{scripted}"'}}}
        workers: {{clerk: {{kind: task, tools: ["{put.__module__}:put"]}}}}
        tasks:
          - {{id: {name}, goal: Do it., acceptance: [file: out.txt], max_attempts: 1, {more}}}
    """


PLANNED = (
    PlanStep(title="read", files=("a.md",), confidence=80, requests=21),
    PlanStep(title="write", acceptance=("true",), confidence=40, requests=39),
)


@pytest.mark.parametrize(("more", "planner"), [("plan: auto", ""), ("title: Fix", "named")])
async def test_the_planner_writes_the_plan_and_unsure_plan_steps_get_more_requests(
    more: str, planner: str, harness: RunHarness
) -> None:
    assert await harness.run(tasks("fix", more, planner=planner)) == 0
    (written, *_) = await harness.told(Plan)
    assert written == Plan(steps=PLANNED)
    assert 21 in [each.plan_step_requests for each in await harness.told(Change)]
    (spent,) = await harness.told(Spending)
    assert (spent.role, spent.requests) == (Role.PLANNER, 1)


async def test_without_a_usable_plan_the_task_is_its_plan_step(harness: RunHarness) -> None:
    assert await harness.run(tasks("poor", "plan: auto")) == 0
    assert (await harness.told(Plan))[0] == plan("poor")
    assert [each.part for each in await harness.told(Fault)] == ["planner"]
    assert [(each.role, each.requests) for each in await harness.told(Spending)] == [("planner", 3)]


async def test_a_planner_that_is_none_is_not_missed(harness: RunHarness) -> None:
    more = tasks("fix", "title: Fix").replace("supervisor: none", "supervisor: none, planner: none")
    assert await harness.run(more) == 0
    assert await harness.told(Fault) == []
    assert (await harness.told(Plan))[0] == plan("Fix")


async def test_a_written_plan_keeps_its_files_checks_and_confidence(harness: RunHarness) -> None:
    steps = (
        "plan: [{title: read, files: [a.md], confidence: 80}, "
        "{title: write, acceptance: ['true'], confidence: 40}]"
    )
    assert await harness.run(tasks("fix", steps, planner="named")) == 0
    assert (await harness.told(Plan))[0].steps == PLANNED
    assert await harness.told(Spending) == []


async def test_a_reviewer_agrees(harness: RunHarness) -> None:
    assert await harness.run(tasks("fix", "review: true")) == 0
    assert await harness.told(Feedback) == [
        Feedback(
            accepted=True,
            comment="It does what was wanted.",
            origin=Origin.AUTOMATIC,
            author=f"scripted:{__name__}",
            sign=VerdictBasis.REVIEWED,
        )
    ]


async def test_what_the_reviewer_refuses_is_not_accepted(harness: RunHarness) -> None:
    assert await harness.run(tasks("poor", "review: true")) == 1
    state = await harness.last(AttemptTransition)
    reason = "the reviewer refused: Half of it.; missing: the tests"
    assert (state.ending, state.reason) == (Ending.UNACCEPTED, reason)
    (done,) = await harness.told(Completion)
    assert (done.accepted, done.doubts) == (False, (reason,))
    assert [each.passed for each in await harness.told(Acceptance)] == [True]


async def test_where_the_reviewer_fails_the_checks_decide(harness: RunHarness) -> None:
    assert await harness.run(tasks("odd", "review: true")) == 0
    (done,) = await harness.told(Completion)
    assert (done.accepted, done.flag) == (True, "not reviewed")
    state = await harness.last(AttemptTransition)
    assert state.reason == "every acceptance check passed, with reservations: not reviewed"
    assert [each.part for each in await harness.told(Fault)] == ["reviewer"]
    (spent,) = await harness.told(Spending)
    assert (spent.role, spent.requests) == ("reviewer", 3)
