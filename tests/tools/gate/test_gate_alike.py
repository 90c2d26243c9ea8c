"""The third equal failure waits for its analysis, by whatever command it comes again."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from midwatch_monitor.config.settings import ErrorSettings, PlanSettings
from midwatch_monitor.records import (
    Analysis,
    Cause,
    Change,
    Edit,
    Entry,
    PlanCheck,
    Record,
    Step,
    StepKind,
)
from midwatch_stage.factories import step
from midwatch_tools.gate.gate import ALLOWED, Gate, Permission
from midwatch_tools.tools.statement import Statements

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)

NOTHING = Statements()


def run(request: int, command: str, output: str = "AssertionError: 1 != 2") -> Step:
    args, code = f'{{"command": "{command}"}}', int(bool(output))
    made = step(request, "run_command", request=request, args=args, output=output)
    return replace(made, ok=not output, exit_code=code)


def work(request: int, tool: str) -> Step:
    args = f'{{"path": "a.py", "content": "{request}"}}'
    edits = (Edit(path="a.py", digest=f"{request}"),) if tool == "write_file" else ()
    return step(request, tool, request=request, args=args, path="a.py", edits=edits)


def gate(*records: Record, sees_files: bool = True, errors: ErrorSettings | None = None) -> Gate:
    made = Gate(errors or ErrorSettings(), PlanSettings(), attempt=1, sees_files=sees_files)
    for id, record in enumerate(records, start=1):
        made.observe(Entry(id=id, record=record, at=AT, task=1, attempt=1))
    return made


def report(request: int, cause: Cause = Cause.PERMANENT) -> tuple[Record, ...]:
    step = Step(number=request, kind=StepKind.TOOL, request=request, tool="report_error", ok=True)
    return (step, Analysis(what="w", cause=cause, root="r", remedy="c"))


def varied(times: int) -> list[Record]:
    """So many runs in other words each time, an edit after each."""
    steps: list[Record] = []
    for n in range(times):
        steps += [run(2 * n + 1, f"python3 fail.py arg{n}"), work(2 * n + 2, "write_file")]
    return steps


@pytest.mark.parametrize("command", ["python3 fail.py arg9", "python3 fail.py arg0", "pytest -q"])
def test_the_third_equal_failure_by_other_commands_waits_for_an_analysis(command: str) -> None:
    refusal = gate(*varied(3)).may(run(9, command), NOTHING).refusal
    assert refusal.startswith("the same failure came 3 times, by whatever command: AssertionError")
    assert gate(*varied(2)).may(run(9, command), NOTHING) == ALLOWED


@pytest.mark.parametrize(
    "step",
    [
        work(9, "read_file"),
        work(9, "write_file"),
        run(9, "cat fail.py"),
        run(9, "pip install x"),
        run(9, "sed -i s/1/2/ fail.py"),
    ],
    ids=["reading", "editing", "reading by command", "installing", "editing by command"],
)
def test_reading_editing_and_installing_wait_for_nothing(step: Step) -> None:
    assert gate(*varied(4)).may(step, NOTHING) == ALLOWED


def test_the_analysis_may_stand_in_the_turn_of_the_next_try() -> None:
    assert gate(*varied(3)).may(run(9, "pytest -q"), Statements(cause=Cause.PERMANENT)) == ALLOWED


def test_after_the_analysis_the_fourth_needs_another() -> None:
    records = [*varied(3), *report(7)]
    assert gate(*records).may(run(8, "pytest -q"), NOTHING) == ALLOWED
    again = gate(*records, run(8, "pytest -q"), work(9, "write_file"))
    assert "came 4 times" in again.may(run(10, "pytest -x"), NOTHING).refusal


def test_another_failure_since_leaves_new_commands_free_but_not_those_that_failed_so() -> None:
    state = gate(*varied(3), run(8, "make test", "TypeError: b"), work(9, "write_file"))
    assert state.may(run(10, "pytest -q"), NOTHING) == ALLOWED
    assert "came 3 times" in state.may(run(10, "python3 fail.py arg1"), NOTHING).refusal


def test_tries_that_a_transient_cause_allows_are_not_counted_against_it() -> None:
    tries = [run(n, "pytest -q") for n in (8, 9)]
    state = gate(*varied(2), run(6, "pytest -q"), *report(7, Cause.TRANSIENT), *tries)
    assert state.may(run(10, "pytest -q"), NOTHING).wait == 4.0


def test_failures_that_say_nothing_are_not_equal() -> None:
    silent = [run(n, f"python3 quiet.py {n}", "[exit code: 1]") for n in range(1, 5)]
    assert gate(*silent).may(run(9, "python3 quiet.py 9"), NOTHING) == ALLOWED


@pytest.mark.parametrize(
    "since",
    [run(2, "sed -i s/a/b/ x.py", ""), work(2, "update_document")],
    ids=["a command", "the agent's own tool"],
)
def test_where_nobody_sees_the_files_what_succeeded_since_may_have_been_an_edit(
    since: Step,
) -> None:
    state = gate(run(1, "pytest -q"), since, sees_files=False)
    assert state.may(run(3, "pytest -q"), NOTHING) == ALLOWED
    seen = gate(run(1, "pytest -q"), since)
    assert "nothing was edited since" in seen.may(run(3, "pytest -q"), NOTHING).refusal


def test_where_nobody_sees_the_files_a_look_is_no_edit() -> None:
    state = gate(run(1, "pytest -q"), run(2, "cat x.py", ""), sees_files=False)
    refusal = state.may(run(3, "pytest -q"), NOTHING).refusal
    assert "nothing was changed, as far as is known, since" in refusal


WORK = Step(number=4, kind=StepKind.TOOL, request=4, tool="read_file", args="{}", ok=True)


def planned(*records: Record | tuple[Record, ...], plan: PlanSettings | None = None) -> Gate:
    made = Gate(ErrorSettings(), plan or PlanSettings(), attempt=1)
    flat = [each for one in records for each in (one if isinstance(one, tuple) else (one,))]
    for id, record in enumerate(flat, start=1):
        made.observe(Entry(id=id, record=record, at=AT, task=1, attempt=1))
    return made


def refused(verdict: Permission, words: str) -> bool:
    return words in verdict.refusal


BEGUN = Change(plan_step=1, plan_steps=3, revision=0)

CHECK = PlanCheck(plan_step=2, assumption="a", reality="r", impact="i")


def finished(request: int, plan_step: int = 2, *, revision: int = 0) -> tuple[Record, ...]:
    step = Step(number=request, kind=StepKind.TOOL, request=request, tool="complete_step", ok=True)
    return (step, Change(plan_step=plan_step, plan_steps=3, revision=revision))


def test_the_first_work_of_a_plan_step_waits_for_its_check() -> None:
    state = planned(BEGUN, finished(1))
    assert refused(state.may(WORK, NOTHING), "plan step 2 begins. Call `check_plan` first")
    assert state.may(WORK, Statements(checked=True)) == ALLOWED


def test_work_behind_the_completion_in_its_turn_is_of_the_new_plan_step() -> None:
    state = planned(BEGUN, finished(4))
    assert refused(state.may(WORK, NOTHING), "plan step 2 begins")
    assert state.may(WORK, Statements(checked=True)) == ALLOWED


@pytest.mark.parametrize(
    "records",
    [
        (BEGUN,),
        (BEGUN, *finished(1), CHECK),
        (BEGUN, Change(plan_step=1, plan_steps=2, revision=1)),
        (BEGUN, *finished(1, revision=1)),
        (BEGUN, *finished(1, 4)),
        (Change(plan_step=1, plan_steps=1, revision=0), Change(plan_step=2, plan_steps=1)),
        (Change(plan_step=2, plan_steps=3, revision=0),),
    ],
    ids=[
        "the first plan step",
        "the check is in",
        "a revision",
        "a revision that goes on",
        "the plan is done",
        "a plan of one step",
        "an attempt that begins later",
    ],
)
def test_no_check_is_asked_for(records: tuple[Record, ...]) -> None:
    assert planned(*records).may(WORK, NOTHING) == ALLOWED


def test_every_transition_has_its_own_check() -> None:
    state = planned(BEGUN, finished(1), CHECK, finished(2, 3))
    assert refused(state.may(WORK, NOTHING), "plan step 3 begins")


def test_without_the_protocol_of_plans_no_check_is_asked_for() -> None:
    plan = PlanSettings(require_check=False)
    assert planned(BEGUN, finished(1), plan=plan).may(WORK, NOTHING) == ALLOWED
