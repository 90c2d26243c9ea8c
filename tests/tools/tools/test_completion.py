"""Whether a plan step is done: what was done on it, and what that proves."""

from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import CompletionSettings, Unproven
from midwatch_tests import factories
from midwatch_tests.factories import step
from midwatch_tools.tools.completion import (
    GOAL,
    FilePresence,
    PlanStepEvidence,
    PlanStepWork,
    StepClaim,
    judge_completion,
    plan_step_work,
)

SETTINGS = CompletionSettings()
SAID = StepClaim(goal="mend it", files=("a.py",), confidence=80)
TESTED = replace(SAID, functional=(r.Claim(what="all tests pass", state=r.ClaimState.PASSED),))
THERE = FilePresence(path="a.py")
DEEDS = PlanStepWork(edited={"a.py"}, passed={"pytest tests": None})
UNSHOWN = replace(DEEDS, passed={})
EVIDENCE = PlanStepEvidence(files=(THERE,), deeds=DEEDS)


def claim(what: str, state: r.ClaimState = r.ClaimState.PASSED, reason: str = "") -> r.Claim:
    return r.Claim(what=what, state=state, reason=reason)


def judge_claim(
    said: StepClaim = SAID, evidence: PlanStepEvidence = EVIDENCE, **settings: object
) -> r.Completion:
    return judge_completion(2, said, evidence, SETTINGS.model_copy(update=settings))


def states(completion: r.Completion) -> list[str]:
    """Of all claims but that of the goal, which comes first."""
    return [each.state.value for each in completion.claims[1:]]


def test_what_is_proved_is_accepted_without_a_flag() -> None:
    said = replace(TESTED, structural=(claim("one loop"),))
    assert judge_claim(said) == r.Completion(
        plan_step=2,
        goal="mend it",
        claims=(claim(GOAL), claim("file a.py"), claim("one loop"), claim("all tests pass")),
        confidence=80,
        accepted=True,
    )


SLOW = claim("speed", r.ClaimState.FAILED, "too slow")
MISSING = FilePresence(path="b.py", fault="it is missing")
FAILING = r.Acceptance(check="make test", passed=False, detail="exit code 2\n\n1 failed\nmore")


@pytest.mark.parametrize(
    ("said", "evidence", "doubt"),
    [
        (replace(SAID, functional=(SLOW,)), EVIDENCE, "speed: too slow"),
        (SAID, replace(EVIDENCE, files=(THERE, MISSING)), "file b.py: it is missing"),
        (SAID, replace(EVIDENCE, acceptance=(FAILING,)), "`make test`: exit code 2: 1 failed"),
    ],
    ids=["by the worker's own word", "a missing file", "a command that fails"],
)
def test_what_failed_is_refused_with_the_reason(
    said: StepClaim, evidence: PlanStepEvidence, doubt: str
) -> None:
    done = judge_claim(said, evidence)
    assert (done.accepted, done.doubts, done.flag) == (False, (doubt,), "")


@pytest.mark.parametrize(
    ("ran", "state"), [("make  test", "passed"), ("make test2", "unproven"), ("", "unproven")]
)
def test_a_check_that_cannot_be_run_is_proved_by_its_last_run(ran: str, state: str) -> None:
    done = replace(DEEDS, passed={ran: None})
    evidence = replace(EVIDENCE, deeds=done, unrun=("make test",))
    assert states(judge_claim(evidence=evidence)) == ["passed", state]


@pytest.mark.parametrize(
    ("what", "state"),
    [
        ("the loop is gone", "passed"),
        ("a.py has one loop", "passed"),
        ("Order.total is an int", "passed"),
        ("src/other.py has one loop", "unproven"),
        ("lib/read.py is as it was", "passed"),
        ("read.py is as it was", "passed"),
    ],
)
def test_structure_is_proved_by_files_that_were_changed_or_read(what: str, state: str) -> None:
    said = replace(SAID, structural=(claim(what),))
    evidence = replace(EVIDENCE, deeds=replace(DEEDS, seen={"lib/read.py"}))
    assert states(judge_claim(said, evidence)) == ["passed", state]


def test_requirement_16_a_claim_without_evidence_leaves_a_flag_or_is_refused() -> None:
    evidence = replace(EVIDENCE, deeds=UNSHOWN)
    done = judge_claim(TESTED, evidence)
    assert (done.accepted, done.confidence) == (True, 60)
    assert done.flag == (
        "unproven: all tests pass: no test or program that shows it was run and passed after the "
        "last edit"
    )
    done = judge_claim(TESTED, evidence, unproven=Unproven.REFUSE)
    assert (done.accepted, done.flag, len(done.doubts)) == (False, "", 1)


@pytest.mark.parametrize("unproven", Unproven)
def test_requirement_16_where_nothing_at_all_is_proved_it_is_refused(unproven: Unproven) -> None:
    said = replace(TESTED, files=(), flag="trust me")
    done = judge_claim(said, PlanStepEvidence(), unproven=unproven)
    assert (done.accepted, done.flag) == (False, "")
    assert done.doubts[0].startswith("nothing was observed that proves it")


@pytest.mark.parametrize(
    "evidence",
    [
        PlanStepEvidence(files=(THERE,), planned=frozenset({"a.py"})),
        PlanStepEvidence(deeds=PlanStepWork(seen={"a.py"})),
        PlanStepEvidence(deeds=PlanStepWork(used={"lookup"})),
        PlanStepEvidence(deeds=PlanStepWork(edited={"a.py"})),
        PlanStepEvidence(deeds=PlanStepWork(passed={"make": None})),
        PlanStepEvidence(acceptance=(r.Acceptance(check="make", passed=True),)),
    ],
)
def test_any_evidence_is_more_than_nothing(evidence: PlanStepEvidence) -> None:
    assert judge_claim(evidence=evidence).accepted


WINDOWS = claim("on Windows", r.ClaimState.UNPROVEN, "no machine")


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        (replace(SAID, functional=(WINDOWS,)), "unproven: on Windows: no machine"),
        (replace(TESTED, flag=" look at dates "), "look at dates"),
        (replace(TESTED, confidence=50), ""),
        (replace(TESTED, confidence=49), "confidence is only 49 %"),
    ],
)
def test_what_the_worker_itself_doubts_is_a_flag(said: StepClaim, flag: str) -> None:
    assert judge_claim(said).flag == flag


def test_what_nobody_can_look_at_is_unproven() -> None:
    evidence = PlanStepEvidence(
        files=(FilePresence(path="a.py", known=False),), deeds=PlanStepWork(passed={"make": None})
    )
    assert states(judge_claim(evidence=evidence)) == ["unproven"]


# -- files and the goal ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "evidence", "state"),
    [
        ("a.py", PlanStepEvidence(deeds=PlanStepWork(edited={"a.py"})), "passed"),
        ("./a.py", PlanStepEvidence(deeds=PlanStepWork(seen={"a.py"})), "passed"),
        ("lib/a.py", PlanStepEvidence(deeds=PlanStepWork(seen={"a.py"})), "passed"),
        ("a.py", PlanStepEvidence(deeds=PlanStepWork(seen={"/repo/a.py"})), "passed"),
        ("docs/*.md", PlanStepEvidence(deeds=PlanStepWork(edited={"docs/a.md"})), "passed"),
        ("a.py", PlanStepEvidence(planned=frozenset({"a.py"})), "passed"),
        ("a.py", PlanStepEvidence(deeds=PlanStepWork(edited={"lib/a.py"})), "unproven"),
        ("a.py", PlanStepEvidence(deeds=PlanStepWork(used={"lookup"})), "unproven"),
    ],
)
def test_a_file_that_is_there_proves_something_only_if_it_was_worked_on_or_is_expected(
    named: str, evidence: PlanStepEvidence, state: str
) -> None:
    there = replace(evidence, files=(FilePresence(path=named),))
    assert states(judge_claim(evidence=there)) == [state]


def test_a_file_that_is_merely_there_proves_no_structure() -> None:
    said = replace(SAID, structural=(claim("Everything is rewritten"),))
    evidence = PlanStepEvidence(files=(THERE,), deeds=PlanStepWork(used={"lookup"}))
    assert states(judge_claim(said, evidence)) == ["unproven", "unproven"]


ACCEPTED = r.Acceptance(check="make test", passed=True)
UNPROVEN = claim(GOAL, r.ClaimState.UNPROVEN, "nothing was run that shows it")
UNTESTED = claim(GOAL, r.ClaimState.UNPROVEN, "unproven: all tests pass")


@pytest.mark.parametrize(
    ("said", "evidence", "goal"),
    [
        (TESTED, EVIDENCE, claim(GOAL)),
        (SAID, replace(EVIDENCE, acceptance=(ACCEPTED,)), claim(GOAL)),
        (SAID, EVIDENCE, UNPROVEN),
        (TESTED, replace(EVIDENCE, deeds=UNSHOWN), UNTESTED),
        (
            replace(TESTED, structural=(claim("one loop", r.ClaimState.FAILED),)),
            EVIDENCE,
            claim(GOAL, r.ClaimState.FAILED, "failed: one loop"),
        ),
    ],
)
def test_the_goal_is_passed_failed_or_unproven_by_all_that_is_claimed_of_it(
    said: StepClaim, evidence: PlanStepEvidence, goal: r.Claim
) -> None:
    assert judge_claim(said, evidence).claims[0] == goal


@pytest.mark.parametrize("unproven", Unproven)
def test_reading_ends_a_plan_step_with_a_flag(unproven: Unproven) -> None:
    done = judge_claim(
        evidence=PlanStepEvidence(deeds=PlanStepWork(seen={"a.py"})), unproven=unproven
    )
    flag = "unproven: the goal: nothing was run that shows it"
    assert (done.accepted, done.confidence, done.flag) == (True, 80, flag)


FIRST = r.Plan(steps=(r.PlanStep(title="a"), r.PlanStep(title="b")))
SECOND = r.Plan(steps=(r.PlanStep(title="a", state=r.PlanStepState.DONE), r.PlanStep(title="b")))
OTHER = r.Plan(steps=(r.PlanStep(title="c"),), revision=1)
SAME = r.Plan(steps=(r.PlanStep(title="a"), r.PlanStep(title="c")), revision=1)


def edit(path: str = "a.py", **more: Any) -> r.Step:
    return step(tool="write", path=path, edits=(factories.edit(path, **more),))


def command(command: str, code: int = 0, *edits: r.Edit, output: str = "") -> r.Step:
    args = f'{{"command": "{command}"}}'
    made = step(1, "run_command", args=args, output=output, edits=edits)
    return replace(made, ok=code == 0, exit_code=code)


def work_of(*records: r.Record) -> PlanStepWork:
    return plan_step_work(factories.entries(*records))


def test_edits_of_the_worker_count_and_those_of_a_person_do_not() -> None:
    found = work_of(edit(), edit("b.py", writer=r.Writer.PERSON), edit("c.py", deleted=True))
    assert (found.edited, found.gone) == ({"a.py", "c.py"}, {"c.py"})


SOME_FAIL, ALL_PASS = "3 failed, 2 passed in 0.1s", "5 passed in 0.1s"


@pytest.mark.parametrize(
    ("records", "proved"),
    [
        ((command("make test"), edit()), []),
        ((edit(), command("make test")), ["make test"]),
        ((command("make test"), command("make test", 1)), []),
        ((command("make test", 1), command("make test")), ["make test"]),
        ((command("make test"), command("make docs", 0, r.Edit(path="d.html"))), ["make docs"]),
        ((step(tool="run_tests"),), ["run_tests"]),
        (
            (command("pytest | tail", output=SOME_FAIL), command("pytest; date", output=SOME_FAIL)),
            [],
        ),
        ((command("pytest | tail", output=ALL_PASS),), ["pytest | tail"]),
        ((command("cd x && pytest 2>&1", output=ALL_PASS),), ["cd x && pytest 2>&1"]),
    ],
    ids=[
        "before the last edit",
        "after it",
        "failed since",
        "passed since",
        "its own writing",
        "a tool that tests",
        "an exit code of another command hides no failure",
        "nor a success",
        "in a folder",
    ],
)
def test_a_command_that_passed_last_after_the_last_edit_proves(
    records: tuple[r.Record, ...], proved: list[str]
) -> None:
    assert list(work_of(*records).passed) == proved


def test_tools_that_succeeded_and_files_that_were_read_are_known() -> None:
    read = step(tool="read_file", path="b.py")
    lost = step(tool="read_file", path="c.py", ok=False)
    assert work_of(read, lost, command("cat lib/d.py")).seen == {"b.py", "lib/d.py"}
    assert work_of(step(tool="look_up"), step(tool="ask", ok=False)).used == {"look_up"}
    assert work_of(step(tool="complete_step", path="a.py")).seen == set(), "Midwatch's own"


@pytest.mark.parametrize(
    ("plan", "edited"), [(SECOND, set[str]()), (OTHER, set[str]()), (SAME, {"a.py"})]
)
def test_another_plan_step_begins_anew_and_a_revision_of_later_ones_does_not(
    plan: r.Plan, edited: set[str]
) -> None:
    assert work_of(FIRST, edit(), plan).edited == edited
