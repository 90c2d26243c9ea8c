"""A plan by the planner before the work, a verdict by the reviewer after it."""

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
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
    Sign,
    Spending,
)
from midwatch_stage.harness import RunHarness


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, b"text")
    return "written"


def answer(args: str) -> Turn:
    return Turn(calls=(Call(tool="", args=args),))


DONE = Turn(say="Done.")
WORK = (Turn(calls=(Call(tool="put", args='{"path": "out.txt"}'),)), DONE)
PLAN = answer(
    '{"steps": [{"title": "read", "files": ["a.md"], "confidence": 80},'
    ' {"title": "write", "acceptance": ["true"], "confidence": 40}]}'
)
NO_PLAN = Turn(say="I would rather not.")
GOOD = answer('{"approved": true, "score": 90, "comment": "It does what was wanted."}')
BAD = answer('{"approved": false, "score": 20, "comment": "Half of it.", "missing": ["the tests"]}')
SCRIPTS = {
    (Role.WORKER, "fix"): WORK,
    (Role.PLANNER, "fix"): (PLAN,),
    (Role.REVIEWER, "fix"): (GOOD,),
    (Role.WORKER, "poor"): WORK,
    (Role.PLANNER, "poor"): (NO_PLAN,) * 9,
    (Role.REVIEWER, "poor"): (BAD,),
    (Role.WORKER, "odd"): WORK,
    (Role.REVIEWER, "odd"): (NO_PLAN,) * 9,
}


def script_for(role: Role, key: str) -> Script:
    return Script(phases=(Phase(turns=SCRIPTS[role, key]),))


def tasks(name: str, more: str, *, planner: str = "") -> str:
    scripted = f"scripted:{__name__}@0"
    return f"""
        models: {{worker: "{scripted}", supervisor: none{planner and f', planner: "{scripted}"'}}}
        workers: {{clerk: {{kind: task, tools: ["{__name__}:put"]}}}}
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
    (plan, *_) = await harness.told(Plan)
    assert plan == Plan(steps=PLANNED)
    assert 21 in [each.plan_step_requests for each in await harness.told(Change)]
    (spent,) = await harness.told(Spending)
    assert (spent.role, spent.requests) == (Role.PLANNER, 1)


async def test_without_a_usable_plan_the_task_is_its_plan_step_and_that_is_seen(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks("poor", "plan: auto")) == 0
    assert (await harness.told(Plan))[0] == Plan(steps=(PlanStep(title="poor"),))
    assert [each.part for each in await harness.told(Fault)] == ["planner"]


async def test_a_planner_that_is_none_is_not_missed(harness: RunHarness) -> None:
    more = tasks("fix", "title: Fix").replace("supervisor: none", "supervisor: none, planner: none")
    assert await harness.run(more) == 0
    assert await harness.told(Fault) == []
    assert (await harness.told(Plan))[0] == Plan(steps=(PlanStep(title="Fix"),))


async def test_a_written_plan_keeps_its_files_checks_and_confidence(harness: RunHarness) -> None:
    steps = (
        "plan: [{title: read, files: [a.md], confidence: 80}, "
        "{title: write, acceptance: ['true'], confidence: 40}]"
    )
    assert await harness.run(tasks("fix", steps, planner="named")) == 0
    assert (await harness.told(Plan))[0].steps == PLANNED
    assert await harness.told(Spending) == []


async def test_the_whole_task_is_claimed_with_its_evidence(harness: RunHarness) -> None:
    assert await harness.run(tasks("fix", "title: Fix")) == 0
    (done,) = await harness.told(Completion)
    assert [(claim.what, claim.state) for claim in done.claims] == [
        ("file out.txt", "passed"),
        ("file out.txt", "passed"),
    ]
    assert (done.plan_step, done.accepted, done.confidence, done.flag) == (0, True, 100, "")


async def test_a_reviewer_agrees(harness: RunHarness) -> None:
    assert await harness.run(tasks("fix", "review: true")) == 0
    assert await harness.told(Feedback) == [
        Feedback(
            accepted=True,
            comment="It does what was wanted.",
            origin=Origin.AUTOMATIC,
            author=f"scripted:{__name__}",
            sign=Sign.REVIEWED,
        )
    ]


async def test_a_refusal_by_the_reviewer_is_why_the_work_is_not_accepted(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks("poor", "review: true")) == 1
    state = (await harness.told(AttemptTransition))[-1]
    reason = "the reviewer refused: Half of it.; missing: the tests"
    assert (state.ending, state.reason) == (Ending.UNACCEPTED, reason)
    (done,) = await harness.told(Completion)
    assert (done.accepted, done.doubts) == (False, (reason,))
    assert [each.passed for each in await harness.told(Acceptance)] == [True]


async def test_a_reviewer_that_fails_leaves_the_verdict_to_the_checks(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks("odd", "review: true")) == 0
    (done,) = await harness.told(Completion)
    assert (done.accepted, done.flag) == (True, "not reviewed")
    state = (await harness.told(AttemptTransition))[-1]
    assert state.reason == "every acceptance check passed, with reservations: not reviewed"
    assert [each.part for each in await harness.told(Fault)] == ["reviewer"]
