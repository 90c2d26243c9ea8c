"""Which cause the context point to."""

from collections.abc import Callable
from dataclasses import replace

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
from midwatch_stage.deciding import failed
from midwatch_stage.factories import alert as firing
from midwatch_stage.factories import analysis, plan, reflecting, step
from midwatch_supervisor.decide.context import (
    ConcurrentEdit,
    DecisionContext,
    DiagnosedCause,
    NotedAnalysis,
    ObservedProgress,
)
from midwatch_supervisor.decide.diagnosis import TABLE, diagnose


def alert(rule: str, *evidence: int, step: int = 5) -> Alert:
    return firing(rule, evidence=evidence, step=step)


def ran(number: int, output: str = "1 failed", *, ok: bool = False) -> Step:
    args = '{"command": "pytest"}'
    return step(number, "shell", args=args, ok=ok, exit_code=0 if ok else 1, output=output)


def says(number: int, confidence: int = 80, *blockers: str, escalate: bool = False) -> Step:
    course = CheckpointDecision.ESCALATE if escalate else CheckpointDecision.CONTINUE
    return reflecting(number, 10, confidence, blockers=blockers, decision=course)


def noted(
    step: int, cause: Cause = Cause.PERMANENT, by: AnalysisAuthor = AnalysisAuthor.WORKER
) -> NotedAnalysis:
    return NotedAnalysis(analysis=analysis(step, cause, by=by), step=step)


WATCH = noted(5, Cause.TRANSIENT, AnalysisAuthor.WATCH)
CYCLE = DecisionContext(
    policy=PolicySettings(),
    alerts=(alert("cycle", 3, 4),),
    steps=tuple(ran(n) for n in range(1, 6)),
)
VAIN = failed(Action.REPLAN, Action.RESTART)
HALF = plan("one", "two", "three", done=1)
LONG = tuple(says(number, 40) for number in range(1, 6))
BETTER = ObservedProgress(better_at=5)

CASES: dict[str, tuple[DecisionContext, str, tuple[int, ...]]] = {
    "the watch asked the provider again": (replace(CYCLE, analyses=(WATCH,)), "provider", (5,)),
    "silent while the provider lets it wait": (
        replace(CYCLE, alerts=(alert("silence"),), activity=Activity.RATE_LIMITED),
        "provider",
        (5,),
    ),
    "the worker analysed, not the watch": (
        replace(CYCLE, analyses=(noted(5),)),
        "wrong_approach",
        (3, 4),
    ),
    "neither a module nor a program is there": (
        replace(CYCLE, steps=(ran(1), ran(4, "No module named 'numpy'"), ran(5, "x: not found"))),
        "missing_dependency",
        (4, 5),
    ),
    "two failures for want of one module": (
        replace(CYCLE, steps=(ran(1), ran(4, "No module named 'n'"), ran(5, "No module named n"))),
        "missing_dependency",
        (4, 5),
    ),
    "nothing more is missing": (
        replace(CYCLE, steps=(ran(2, "No module named 'n'"), ran(5, "1 failed"))),
        "wrong_approach",
        (3, 4),
    ),
    "the network does not answer": (
        replace(CYCLE, steps=(ran(5, "connect: Connection refused"),)),
        "environment",
        (5,),
    ),
    "the rule on the surroundings fires": (
        replace(CYCLE, alerts=(alert("blocked_environment", 2, 4),)),
        "environment",
        (2, 4),
    ),
    "another attempt keeps the file": (
        replace(
            CYCLE,
            alerts=(alert("workspace_conflict", 2),),
            concurrent=(ConcurrentEdit(path="a", task="b", elder=True),),
        ),
        "environment",
        (2,),
    ),
    "the budget burns": (replace(CYCLE, alerts=(alert("budget_burn", 5),)), "budget", (5,)),
    "the budget burns in a loop": (
        replace(CYCLE, alerts=(alert("budget_burn", 5), alert("cycle", 3))),
        "wrong_approach",
        (3,),
    ),
    "the budget is as good as gone": (
        replace(
            CYCLE,
            alerts=(alert("missed_checkpoint"),),
            budget=Budget(requests=Meter(used=9, limit=10)),
        ),
        "budget",
        (5,),
    ),
    "it calls a tool that it does not have": (
        replace(CYCLE, steps=(ran(5, "Unknown tool name: 'browse'. Available tools: 'shell'"),)),
        "wrong_worker",
        (5,),
    ),
    "it says which permission it lacks": (
        replace(CYCLE, checkpoints=(says(4, 80, "I have no access to the registry"),)),
        "wrong_worker",
        (4,),
    ),
    "it says that it cannot be done": (
        replace(
            CYCLE,
            checkpoints=(says(5, 80, "the two tests contradict each other", escalate=True),),
            analyses=(noted(3),),
        ),
        "infeasible",
        (3, 5),
    ),
    "it says so without an analysis": (
        replace(CYCLE, checkpoints=(says(5, 80, "this is impossible", escalate=True),)),
        "wrong_approach",
        (3, 4),
    ),
    "neither another plan nor a restart helped": (
        replace(CYCLE, before=VAIN),
        "infeasible",
        (3, 4),
    ),
    "one plan step takes too long": (
        replace(CYCLE, alerts=(alert("steps_on_plan_step", 5),)),
        "needs_split",
        (5,),
    ),
    "many reports and little done": (
        replace(CYCLE, alerts=(alert("missed_checkpoint", 5),), checkpoints=LONG, plan=HALF),
        "needs_split",
        (1, 2, 3, 4, 5),
    ),
    "many reports, most of them before the plan was written anew": (
        replace(
            CYCLE,
            alerts=(alert("missed_checkpoint", 5),),
            checkpoints=LONG,
            plan=HALF,
            revised_at=1,
        ),
        "unknown",
        (5,),
    ),
    "many reports while it goes round": (
        replace(CYCLE, checkpoints=LONG, plan=HALF),
        "wrong_approach",
        (3, 4),
    ),
    "many reports in good confidence": (
        replace(CYCLE, checkpoints=(*LONG[:4], says(5, 50)), plan=HALF),
        "wrong_approach",
        (3, 4),
    ),
    "a check passed since": (
        replace(CYCLE, alerts=(alert("cycle", 3, step=4),), track=BETTER),
        "false_alarm",
        (5,),
    ),
    "a check passed and broke again since": (
        replace(
            CYCLE,
            alerts=(alert("cycle", 3, step=4),),
            track=ObservedProgress(better_at=5, broken_at=6),
        ),
        "wrong_approach",
        (3,),
    ),
    "it doubts while its checks pass": (
        replace(CYCLE, alerts=(alert("low_confidence"),), track=ObservedProgress(passing_at=4)),
        "false_alarm",
        (4,),
    ),
    "it doubts while its checks fail": (
        replace(CYCLE, alerts=(alert("low_confidence"),)),
        "unknown",
        (5,),
    ),
    "who asks for help is heard though a check passed": (
        replace(CYCLE, alerts=(alert("explicit_escalation", step=4),), track=BETTER),
        "unknown",
        (4,),
    ),
    "it goes round": (CYCLE, "wrong_approach", (3, 4)),
    "it only does not report": (
        replace(CYCLE, alerts=(alert("missed_checkpoint"),)),
        "unknown",
        (5,),
    ),
}


@pytest.mark.parametrize(("context", "cause", "steps"), CASES.values(), ids=list(CASES))
def test_the_first_cause_that_shows_itself_is_named_with_its_steps(
    context: DecisionContext, cause: str, steps: tuple[int, ...]
) -> None:
    assert diagnose(context) == DiagnosedCause(cause=Diagnosis(cause), steps=steps)


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
        ("environment", "curl: (6) Could not resolve host: example.org"),
    ],
)
def test_what_is_missing_or_stands_in_the_way_is_known_by_its_words(cause: str, words: str) -> None:
    found = diagnose(replace(CYCLE, steps=(ran(5, words),)))
    assert found == DiagnosedCause(cause=Diagnosis(cause), steps=(5,))


def test_a_call_that_midwatch_refused_tells_nothing_of_the_work() -> None:
    refused = replace(ran(5, "[midwatch] refused: first say why it failed"), exit_code=None)
    missing = ran(4, "No module named 'n'")
    assert diagnose(replace(CYCLE, steps=(missing, refused))).cause is (
        Diagnosis.MISSING_DEPENDENCY
    )


def test_what_was_missing_is_history_once_a_check_passes_again() -> None:
    context = replace(
        CYCLE, steps=(ran(4, "No module named 'n'"),), track=ObservedProgress(better_at=5)
    )
    assert diagnose(context).cause is Diagnosis.WRONG_APPROACH


def test_every_step_that_is_named_exists() -> None:
    context = replace(CYCLE, alerts=(alert("cycle", 0, 3, 99, 3),))
    assert diagnose(context).steps == (3,)


def test_before_the_first_step_there_is_none_to_name() -> None:
    assert (
        diagnose(DecisionContext(policy=PolicySettings(), alerts=(alert("silence"),)))
        == DiagnosedCause()
    )


def test_every_cause_but_unknown_has_a_row() -> None:
    looks: list[Callable[[DecisionContext], object]] = [look for _, look in TABLE]
    assert len(set(looks)) == len(looks)
    assert {cause for cause, _ in TABLE} == set(Diagnosis) - {Diagnosis.UNKNOWN}


def test_a_track_knows_when_the_work_got_better() -> None:
    track = ObservedProgress()
    for each in (ran(1), ran(2, "1 passed", ok=True), ran(3, "2 failed")):
        track.take(each)
    assert (track.better_at, track.broken_at, track.passing_at) == (2, 3, 0)
    assert not track.improved_since(1)
