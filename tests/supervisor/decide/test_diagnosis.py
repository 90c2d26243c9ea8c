"""Which cause the context point to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.records import (
    Action,
    Activity,
    Alert,
    AnalysisAuthor,
    Budget,
    Cause,
    CheckpointDecision,
    Diagnosis,
    Meter,
    Step,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_supervisor.decide.context import (
    ConcurrentEdit,
    DecisionContext,
    DiagnosedCause,
    NotedAnalysis,
    ObservedProgress,
)
from midwatch_supervisor.decide.diagnosis import TABLE, diagnose
from midwatch_tests.deciding import failed
from midwatch_tests.factories import alert as firing
from midwatch_tests.factories import analysis, plan, reflecting, step


def alert(rule: str, *evidence: int, step: int = 5) -> Alert:
    return firing(rule, evidence=evidence, step=step)


def make_check(number: int, output: str = "1 failed", *, ok: bool = False) -> Step:
    args = '{"command": "pytest"}'
    return step(number, "shell", args=args, ok=ok, exit_code=0 if ok else 1, output=output)


def checkpoint_step(
    number: int, confidence: int = 80, *blockers: str, escalate: bool = False
) -> Step:
    course = CheckpointDecision.ESCALATE if escalate else CheckpointDecision.CONTINUE
    return reflecting(number, 10, confidence, blockers=blockers, decision=course)


def noted_analysis(
    step: int, cause: Cause = Cause.PERMANENT, by: AnalysisAuthor = AnalysisAuthor.WORKER
) -> NotedAnalysis:
    return NotedAnalysis(analysis=analysis(step, cause, by=by), step=step)


WATCH = noted_analysis(5, Cause.TRANSIENT, AnalysisAuthor.WATCH)
FAILED = tuple(make_check(n) for n in range(1, 6))
CYCLE = alert("cycle", 3, 4)
EARLY = alert("cycle", 3, step=4)
MISSED = alert("missed_checkpoint")
UNMISSED = make_check(4, "No module named 'n'")
UNTOOLED = "Unknown tool name: 'browse'. Available tools: 'shell'"
LACKS = checkpoint_step(4, 80, "I have no access to the registry")
CANNOT = checkpoint_step(5, 80, "the two tests contradict each other", escalate=True)
IMPOSSIBLE = checkpoint_step(5, 80, "this is impossible", escalate=True)
VAIN = failed(Action.REPLAN, Action.RESTART)
HALF = plan("one", "two", "three", done=1)
LONG = tuple(checkpoint_step(number, 40) for number in range(1, 6))
SURE = (*LONG[:4], checkpoint_step(5, 50))
ELDER = (ConcurrentEdit(path="a", task="b", elder=True),)
BETTER = ObservedProgress(better_at=5)
BROKEN = ObservedProgress(better_at=5, broken_at=6)
PASSING = ObservedProgress(passing_at=4)
GONE = Budget(requests=Meter(used=9, limit=10))


def make_context(*alerts: Alert, **fields: Any) -> DecisionContext:
    """What fires, a cycle if nothing is named, after five runs of a check that failed."""
    given: dict[str, Any] = {"steps": FAILED, **fields}
    return DecisionContext(policy=PolicySettings(), alerts=alerts or (CYCLE,), **given)


CASES: dict[str, tuple[DecisionContext, str]] = {
    "the watch asked the provider again": (make_context(analyses=(WATCH,)), "provider: 5"),
    "silent while the provider lets it wait": (
        make_context(alert("silence"), activity=Activity.RATE_LIMITED),
        "provider: 5",
    ),
    "the worker analysed, not the watch": (
        make_context(analyses=(noted_analysis(5),)),
        "wrong_approach: 3, 4",
    ),
    "neither a module nor a program is there": (
        make_context(steps=(make_check(1), UNMISSED, make_check(5, "x: not found"))),
        "missing_dependency: 4, 5",
    ),
    "two failures for want of one module": (
        make_context(steps=(make_check(1), UNMISSED, make_check(5, "No module named n"))),
        "missing_dependency: 4, 5",
    ),
    "nothing more is missing": (
        make_context(steps=(UNMISSED, make_check(5))),
        "wrong_approach: 3, 4",
    ),
    "a call that Midwatch refused tells nothing of the work": (
        make_context(
            steps=(UNMISSED, replace(make_check(5, f"{HELD_BACK}analyse it"), exit_code=None))
        ),
        "missing_dependency: 4",
    ),
    "what was missing is history once a check passes again": (
        make_context(steps=(UNMISSED,), track=BETTER),
        "wrong_approach: 3, 4",
    ),
    "the rule on the surroundings fires": (
        make_context(alert("blocked_environment", 2, 4)),
        "environment: 2, 4",
    ),
    "another attempt keeps the file": (
        make_context(alert("workspace_conflict", 2), concurrent=ELDER),
        "environment: 2",
    ),
    "the budget burns": (make_context(alert("budget_burn", 5)), "budget: 5"),
    "the budget burns in a loop": (
        make_context(alert("budget_burn", 5), alert("cycle", 3)),
        "wrong_approach: 3",
    ),
    "the budget is as good as gone": (make_context(MISSED, budget=GONE), "budget: 5"),
    "it calls a tool that it does not have": (
        make_context(steps=(make_check(5, UNTOOLED),)),
        "wrong_worker: 5",
    ),
    "it says which permission it lacks": (make_context(checkpoints=(LACKS,)), "wrong_worker: 4"),
    "it says that it cannot be done": (
        make_context(checkpoints=(CANNOT,), analyses=(noted_analysis(3),)),
        "infeasible: 3, 5",
    ),
    "it says so without an analysis": (
        make_context(checkpoints=(IMPOSSIBLE,)),
        "wrong_approach: 3, 4",
    ),
    "neither another plan nor a restart helped": (make_context(before=VAIN), "infeasible: 3, 4"),
    "one plan step takes too long": (
        make_context(alert("steps_on_plan_step", 5)),
        "needs_split: 5",
    ),
    "many reports and little done": (
        make_context(MISSED, checkpoints=LONG, plan=HALF),
        "needs_split: 1, 2, 3, 4, 5",
    ),
    "many reports, most of them before the plan was written anew": (
        make_context(MISSED, checkpoints=LONG, plan=HALF, revised_at=1),
        "unknown: 5",
    ),
    "many reports while it goes round": (
        make_context(checkpoints=LONG, plan=HALF),
        "wrong_approach: 3, 4",
    ),
    "many reports in good confidence": (
        make_context(MISSED, checkpoints=SURE, plan=HALF),
        "unknown: 5",
    ),
    "a check passed since": (make_context(EARLY, track=BETTER), "false_alarm: 5"),
    "a check passed and broke again since": (
        make_context(EARLY, track=BROKEN),
        "wrong_approach: 3",
    ),
    "it doubts while its checks pass": (
        make_context(alert("low_confidence"), track=PASSING),
        "false_alarm: 4",
    ),
    "it doubts while its checks fail": (make_context(alert("low_confidence")), "unknown: 5"),
    "who asks for help is heard though a check passed": (
        make_context(alert("explicit_escalation", step=4), track=BETTER),
        "unknown: 4",
    ),
    "it goes round": (make_context(), "wrong_approach: 3, 4"),
    "only steps that exist are named": (
        make_context(alert("cycle", 0, 3, 99, 3)),
        "wrong_approach: 3",
    ),
    "it only does not report": (make_context(MISSED), "unknown: 5"),
    "before the first step there is none to name": (
        make_context(alert("silence"), steps=()),
        "unknown: ",
    ),
}


@pytest.mark.parametrize(("context", "found"), CASES.values(), ids=list(CASES))
def test_the_first_cause_that_shows_is_named(context: DecisionContext, found: str) -> None:
    made = diagnose(context)
    assert f"{made.cause}: {', '.join(map(str, made.steps))}" == found


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("missing_dependency", "ModuleNotFoundError: No module named 'yaml'"),
        ("missing_dependency", "bash: line 1: cargo: command not found"),
        ("missing_dependency", "/bin/sh: 1: make: not found"),
        ("missing_dependency", "Error: Cannot find module 'express'"),
        ("missing_dependency", 'cannot find package "x" in any of'),
        ("missing_dependency", "ERROR: No matching distribution found for libx"),
        ("missing_dependency", "E: Unable to locate package libx-dev"),
        ("missing_dependency", "pkg-config: libpq is not installed"),
        ("environment", "touch: cannot touch 'a': Permission denied"),
        ("environment", "OSError: [Errno 30] Read-only file system: 'a'"),
        ("environment", "write error: No space left on device"),
        ("environment", "connect: Network is unreachable"),
        ("environment", "connect: Connection refused"),
        ("environment", "curl: (6) Could not resolve host: example.org"),
    ],
)
def test_what_is_missing_or_stands_in_the_way_is_known_by_its_words(cause: str, words: str) -> None:
    found = diagnose(make_context(steps=(make_check(5, words),)))
    assert found == DiagnosedCause(cause=Diagnosis(cause), steps=(5,))


def test_every_cause_but_unknown_has_a_row() -> None:
    looks: list[Callable[[DecisionContext], object]] = [look for _, look in TABLE]
    assert len(set(looks)) == len(looks)
    assert {cause for cause, _ in TABLE} == set(Diagnosis) - {Diagnosis.UNKNOWN}


def test_a_track_knows_when_the_work_got_better() -> None:
    track = ObservedProgress()
    for each in (make_check(1), make_check(2, "1 passed", ok=True), make_check(3, "2 failed")):
        track.take(each)
    assert (track.better_at, track.broken_at, track.passing_at) == (2, 3, 0)
    assert not track.improved_since(1)
