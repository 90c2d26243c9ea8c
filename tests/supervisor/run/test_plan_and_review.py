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
from midwatch_tests.acting import DONE, put, script
from midwatch_tests.factories import call, plan, turn
from midwatch_tests.harness import RunHarness


def answer(**args: object) -> Turn:
    return turn(call("", **args))


SCRIPTED = f"scripted:{__name__}@0"
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
    return f"""
        models: {{worker: "{SCRIPTED}", supervisor: none{planner and f', planner: "{planner}"'}}}
        workers: {{clerk: {{kind: task, tools: ["{put.__module__}:put"]}}}}
        tasks:
          - {{id: {name}, goal: Do it., acceptance: [file: out.txt], max_attempts: 1, {more}}}
    """


PLANNED = (
    PlanStep(title="read", files=("a.md",), confidence=80, requests=21),
    PlanStep(title="write", acceptance=("true",), confidence=40, requests=39),
)


WRITTEN = (
    "plan: [{title: read, files: [a.md], confidence: 80}, "
    "{title: write, acceptance: ['true'], confidence: 40}]"
)


@pytest.mark.parametrize(
    ("name", "more", "planner", "steps", "spent", "faults"),
    [
        ("fix", "plan: auto", "", PLANNED, [("planner", 1)], []),
        ("fix", "title: Fix", SCRIPTED, PLANNED, [("planner", 1)], []),
        ("fix", WRITTEN, SCRIPTED, PLANNED, [], []),
        ("fix", "title: Fix", "none", plan("Fix").steps, [], []),
        ("poor", "plan: auto", "", plan("poor").steps, [("planner", 3)], ["planner"]),
    ],
    ids=[
        "who plans writes it, and unsure steps get more requests",
        "also where a planner is named",
        "a written plan keeps its files, checks and confidence",
        "a planner that is none is not missed",
        "without a usable plan the task is its plan step, and that is seen",
    ],
)
async def test_the_plan_by_which_work_begins(
    name: str, more: str, planner: str, steps: tuple[PlanStep, ...], spent: list[tuple[str, int]],
    faults: list[str], harness: RunHarness,
) -> None:  # fmt: skip
    assert await harness.run(tasks(name, more, planner=planner)) == 0
    (written, *_) = await harness.told(Plan)
    assert written == Plan(steps=steps)
    known = {each.plan_step_requests for each in await harness.told(Change)}
    assert (21 in known) is (steps == PLANNED)
    assert [(each.role, each.requests) for each in await harness.told(Spending)] == spent
    assert [each.part for each in await harness.told(Fault)] == faults


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
