"""How orders, errors and checks end an attempt, and how sure one is of a finished task."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_ai.workspaces import WorkspaceError as ShellError

from midwatch_agents.sandbox import SandboxKind, place
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import AcceptanceSpec, FileCheck, TaskSpec, WorkerSpec
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import (
    BY_TIMEOUT,
    Acceptance,
    Action,
    Actor,
    Budget,
    CheckpointDecision,
    Claim,
    ClaimState,
    Completion,
    DeliveryState,
    Ending,
    Grant,
    Intervention,
    Meter,
    Outcome,
    Part,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Terms,
)
from midwatch_monitor.state.intervention import Interventions
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.run.attempt_end import (
    Ended,
    end_asked_for,
    end_out_of_minutes,
    reject_impossible_splits,
    result,
)
from midwatch_supervisor.run.completion import (
    PROVISIONAL,
    FinishedWork,
    check_all,
    completion,
    summary,
    was_help_answered,
)
from midwatch_tests import factories as make

PART = Part(title="a", goal="A.")
SPLIT = make.intervention(
    Action.SPLIT, Actor.SUPERVISOR, message="too big", terms=Terms(parts=(PART, PART))
)
RESTART = make.intervention(Action.RESTART)
STOP = make.intervention(Action.STOP, Actor.OPERATOR)
ADA = replace(STOP, author="ada", message="Enough.")


@pytest.mark.parametrize(
    ("orders", "ending", "reason"),
    [
        ((SPLIT,), Ending.SPLIT, "split by the supervisor: too big"),
        ((SPLIT, RESTART), Ending.RESTARTED, "restarted by the policy"),
        ((STOP, SPLIT), Ending.CANCELED, "stopped by operator"),
        ((ADA,), Ending.CANCELED, "stopped by ada: Enough."),
        ((make.intervention(Action.STOP),), Ending.STUCK, "stopped by the policy"),
    ],
)
def test_the_strongest_order_ends_an_attempt_and_all_are_stamped(
    orders: tuple[Intervention, ...], ending: Ending, reason: str
) -> None:
    ended = end_asked_for(list(enumerate(orders, start=7)), 3, divisible=True)
    assert ended is not None
    assert (ended.ending, ended.reason) == (ending, reason)
    assert [stamp.intervention for stamp in ended.stamps] == list(range(7, 7 + len(orders)))


@pytest.mark.parametrize(
    ("terms", "divisible", "comment"),
    [
        (SPLIT.terms, False, "a part of a split cannot be split again"),
        (Terms(parts=(PART,)), True, "it names fewer than two parts"),
    ],
)
def test_an_impossible_split_ends_nothing(terms: Terms, divisible: bool, comment: str) -> None:
    due = [(7, make.intervention(Action.SPLIT, terms=terms))]
    assert end_asked_for(due, 3, divisible=divisible) is None
    rejected = make.delivery(7, DeliveryState.REJECTED, step=3, comment=comment)
    assert reject_impossible_splits(due, 3, divisible=divisible) == (rejected,)


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ShellError("sh: 1: printf:\nI/O error"), ": WorkspaceError: sh: 1: printf: I/O error"),
        (WorkspaceError("git commit: fatal"), ": WorkspaceError: git commit: fatal"),
        (KeyError("a"), ""),
    ],
)
async def test_an_error_that_explains_itself_is_logged_in_one_line_and_others_with_a_traceback(
    error: Exception, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> Ended:
        raise error

    work = asyncio.create_task(fail())
    await asyncio.wait({work})
    ended = result(work)
    assert (ended.ending, ended.reason) == (Ending.ERROR, f"{type(error).__name__}: {error}")
    (said,) = caplog.records
    assert (said.levelname, said.message) == ("ERROR", f"an attempt failed{logged}")
    assert (said.exc_info is None) is bool(logged)


def test_granted_minutes_count_before_they_are_delivered() -> None:
    budget = Budget(minutes=Meter(used=5, limit=5))
    grant = make.intervention(Action.GRANT_BUDGET, terms=Terms(grant=Grant(minutes=2)))
    ended = end_out_of_minutes(budget, ())
    assert ended is not None
    assert ended.reason == "out of budget: 5 of 5 minutes"
    assert end_out_of_minutes(budget, [(7, grant)]) is None


TASK = Assignment(
    task=TaskSpec(id="fix", goal="Fix it.", acceptance=("true",)),
    worker="coder",
    spec=WorkerSpec(),
    models={},
    workspace=Path("/w"),
)
GOOD = make.acceptance(check="true")
RAN = Claim(what="true", state=ClaimState.PASSED, reason="Midwatch ran it")
CHANGED = Claim(what="file a.py", state=ClaimState.PASSED, reason="it was changed")
UNDONE = Claim(what="plan step: b", state=ClaimState.UNPROVEN, reason="it was never completed")


def test_open_plan_steps_are_unproven_and_lower_the_confidence() -> None:
    done = PlanStep(title="a", state=PlanStepState.DONE, flag="look at the rounding")
    work = FinishedWork(plan=Plan(steps=(done, PlanStep(title="b"))), changed=("a.py",), stated=75)
    assert completion(TASK, work, [GOOD], accepted=True) == Completion(
        plan_step=0,
        goal="Fix it.",
        claims=(RAN, CHANGED, UNDONE),
        confidence=65,
        accepted=True,
        flag="still open: b",
        doubts=("a: look at the rounding",),
    )


def test_where_nothing_was_stated_the_checks_say_how_sure_one_is() -> None:
    bad = make.acceptance(check="false", passed=False, detail="exit code 1\nno")
    work = FinishedWork(plan=make.plan("all"))
    found = completion(TASK, work, [GOOD, bad], accepted=False, doubts=("no",))
    failed = Claim(what="false", state=ClaimState.FAILED, reason="exit code 1")
    assert (found.confidence, found.claims, found.flag) == (50, (RAN, failed), "")


def test_a_provisional_task_is_done_with_a_flag() -> None:
    part = TASK.model_copy(update={"provisional": True})
    found = completion(part, FinishedWork(plan=Plan(steps=())), [GOOD], accepted=True)
    assert found.flag == PROVISIONAL


@pytest.fixture(params=list(SandboxKind))
def sandbox_kind(request: pytest.FixtureRequest, bubblewrap: SandboxKind) -> SandboxKind:
    return SandboxKind(request.param)


async def run_checks(
    folder: Path,
    *checks: AcceptanceSpec,
    sandbox_kind: SandboxKind = SandboxKind.NONE,
    seconds: float = 30.0,
) -> tuple[Acceptance, ...]:
    return await check_all(
        checks,
        place(SandboxPaths(folder=folder), sandbox_kind, network=False, env={}),
        seconds=seconds,
    )


async def test_a_command_passes_with_code_0(sandbox_kind: SandboxKind, workspace: Path) -> None:
    checks = ("true", "echo no >&2; exit 3", "no-such-program")
    good, bad, missing = await run_checks(workspace, *checks, sandbox_kind=sandbox_kind)
    assert good == Acceptance(check="true", passed=True)
    assert bad == Acceptance(check=checks[1], passed=False, detail="exit code 3\nno")
    assert (missing.passed, missing.detail.partition("\n")[0]) == (False, "exit code 127")


async def test_a_check_that_takes_long_fails(sandbox_kind: SandboxKind, workspace: Path) -> None:
    (late,) = await run_checks(workspace, "sleep 30", sandbox_kind=sandbox_kind, seconds=0.5)
    assert late == Acceptance(check="sleep 30", passed=False, detail="not done after 0.5 s")


async def test_a_file_must_be_there_with_content(
    sandbox_kind: SandboxKind, workspace: Path
) -> None:
    (workspace / "sub folder").mkdir()
    (workspace / "empty.txt").touch()
    for folder in (workspace, workspace / "sub folder"):
        (folder / "full.txt").write_text("x")
    expected = {
        "full.txt": "",
        "sub folder/full.txt": "",
        "empty.txt": "it is empty",
        "missing.txt": "it is missing",
        "sub folder": "it is a folder",
    }
    checks = (FileCheck(file=name) for name in expected)
    assert await run_checks(workspace, *checks, sandbox_kind=sandbox_kind) == tuple(
        Acceptance(check=f"file {name}", passed=not detail, detail=detail)
        for name, detail in expected.items()
    )


async def test_of_a_long_output_the_end_is_kept(workspace: Path) -> None:
    (result,) = await run_checks(workspace, "seq 100000; exit 1")
    assert len(result.detail) < 4100
    assert result.detail.startswith("exit code 1\n")
    assert result.detail.endswith("99999\n100000")


async def test_a_workspace_that_is_gone_fails_every_check(tmp_path: Path) -> None:
    results = await run_checks(tmp_path / "gone", "true", FileCheck(file="a.txt"))
    assert [(each.passed, "does not exist" in each.detail) for each in results] == [
        (False, True),
        (False, True),
    ]


def test_the_summary_names_what_fails() -> None:
    good = Acceptance(check="b", passed=True)
    bad = Acceptance(check="a", passed=False, detail="exit code 1\nmore")
    worse = Acceptance(check="c", passed=False)
    assert summary((bad, good, worse)) == "a (exit code 1); c (failed)"
    assert summary(()) == summary((good,)) == ""


ASKED = make.reflecting(4, 50, 50, decision=CheckpointDecision.ESCALATE)
ARRIVED = make.delivery(step=5)
HELD = make.intervention(needs_approval=True)
AGREED = make.delivery(state=DeliveryState.APPROVED)


@pytest.mark.parametrize(
    ("act", "news", "answered"),
    [
        (make.intervention(), (ARRIVED,), False),
        (make.intervention(), (ARRIVED, make.outcome()), True),
        (make.intervention(), (ARRIVED, make.outcome(outcome=Outcome.NO_EFFECT)), False),
        (make.intervention(by=Actor.OPERATOR), (ARRIVED,), True),
        (make.intervention(by=Actor.OPERATOR), (), False),
        (make.intervention(by=Actor.OPERATOR), (make.delivery(step=3),), False),
        (make.intervention(Action.ASK_OPERATOR), (ARRIVED,), True),
        (make.intervention(Action.ACKNOWLEDGE, by=Actor.OPERATOR), (ARRIVED,), False),
        (HELD, (replace(AGREED, author="ada"), ARRIVED), True),
        (HELD, (replace(AGREED, author=BY_TIMEOUT), ARRIVED), False),
    ],
)
def test_help_came_if_a_person_heard_of_it_or_the_answer_helped(
    act: Intervention, news: tuple[Record, ...], answered: bool
) -> None:
    known = Interventions()
    for each in make.entries(act, *news):
        known.fold(each)
    assert was_help_answered(ASKED, known.delivered) is answered
