"""What a worker has to say before a call may run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.settings import ErrorSettings, PlanSettings
from midwatch_monitor.records import (
    Action,
    Actor,
    AnalysisAuthor,
    Cause,
    Change,
    Edit,
    PlanCheck,
    Record,
    Step,
    Writer,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_stage.factories import analysis, delivery, entries, intervention, step
from midwatch_tools.gate.gate import ALLOWED, Gate, LastFailure, Permission, backoff
from midwatch_tools.tools.proof import Statements


def run(
    request: int,
    command: str = "pytest -q",
    *,
    ok: bool = False,
    output: str = "E   KeyError: 'a'",
    **fields: Any,
) -> Step:
    args = f'{{"command": "{command}"}}'
    made = step(request, "run_command", request=request, args=args, output=output, **fields)
    return replace(made, ok=ok, exit_code=int(not ok))


def edit(request: int, *, writer: Writer = Writer.WORKER) -> Step:
    edits = (Edit(path="a.py", digest=f"{request}", writer=writer),)
    args = f'{{"path": "a.py", "content": "{request}"}}'
    return step(request, "write_file", request=request, args=args, path="a.py", edits=edits)


def report(
    request: int, cause: Cause = Cause.PERMANENT, *, by: AnalysisAuthor = AnalysisAuthor.WORKER
) -> tuple[Record, ...]:
    return step(request, "report_error", request=request), analysis(cause=cause, by=by)


def gate(
    *records: Record | tuple[Record, ...],
    attempt: int = 1,
    errors: ErrorSettings | None = None,
    plan: PlanSettings | None = None,
    sees_files: bool = True,
) -> Gate:
    settings = (errors or ErrorSettings(), plan or PlanSettings())
    made = Gate(*settings, attempt=attempt, sees_files=sees_files)
    flat = [each for one in records for each in (one if isinstance(one, tuple) else (one,))]
    for each in entries(*flat):
        made.observe(each)
    return made


def refused(verdict: Permission, words: str) -> bool:
    return words in verdict.refusal


NOTHING = Statements()
PERMANENT, TRANSIENT, UNKNOWN = Cause.PERMANENT, Cause.TRANSIENT, Cause.UNKNOWN


@pytest.mark.parametrize(
    ("records", "now"),
    [
        ((), run(1)),
        ((run(1, ok=True),), run(2)),
        ((run(1),), run(2, "ls")),
        ((run(1), edit(2)), run(3)),
        ((run(1), run(2, ok=True)), run(3)),
        ((run(1),), run(1)),
        ((run(1, "grep x a.py", output=""),), run(2, "grep x a.py")),
        ((run(1, "sleep 5"),), run(2, "sleep 5")),
        ((run(1, output=f"{HELD_BACK}no"),), run(2)),
    ],
    ids=[
        "never done",
        "it succeeded",
        "another act",
        "an edit between",
        "it succeeded since",
        "failed in the same turn",
        "a search that found nothing",
        "waiting",
        "a refused call never ran",
    ],
)
def test_a_call_that_repeats_no_failure_runs(records: tuple[Step, ...], now: Step) -> None:
    assert gate(*records).may(now, NOTHING) == ALLOWED


@pytest.mark.parametrize(
    "now", [run(2), run(2, "pytest  -q"), run(2, "pytest -q  # again")], ids=["as", "space", "word"]
)
def test_a_failed_act_done_again_unchanged_is_refused_until_it_is_analysed(now: Step) -> None:
    verdict = gate(run(1)).may(now, NOTHING)
    assert verdict.refusal.startswith(
        "`pytest -q` failed (E   KeyError: 'a'), and nothing was edited"
    )
    assert "report_error" in verdict.refusal


def test_a_failure_that_says_nothing_is_refused_as_well() -> None:
    def silent(request: int) -> Step:
        return replace(run(request, "./deploy", output=""), exit_code=2)

    verdict = gate(silent(1)).may(silent(2), NOTHING)
    assert verdict.refusal.startswith("`./deploy` failed, and nothing was edited")


def test_another_persons_edit_does_not_replace_the_analysis() -> None:
    other = edit(2, writer=Writer.PERSON)
    assert refused(gate(run(1), other).may(run(3), NOTHING), "report_error")


def test_what_an_act_changes_itself_lies_not_between() -> None:
    log = (Edit(path="log", digest="1"),)
    assert refused(gate(run(1, edits=log)).may(run(2), NOTHING), "nothing was edited")


def test_an_edit_in_other_words_is_another_act() -> None:
    def replace(request: int, old: str) -> Step:
        args = f'{{"old": "{old}", "path": "a.py"}}'
        said = {"args": args, "path": "a.py", "ok": False, "output": "not found"}
        return step(request, "edit_file", request=request, **said)

    state = gate(replace(1, "  x"))
    assert state.may(replace(2, "    x"), NOTHING) == ALLOWED
    assert refused(state.may(replace(2, "  x"), NOTHING), "report_error")


def test_an_analysis_from_before_the_failure_does_not_count() -> None:
    assert refused(gate(report(1, TRANSIENT), run(2)).may(run(3), NOTHING), "report_error")


def test_what_watch_says_of_the_provider_is_no_analysis_of_the_worker() -> None:
    state = gate(run(1), report(2, TRANSIENT, by=AnalysisAuthor.WATCH))
    assert refused(state.may(run(3), NOTHING), "report_error")


# -- by category -----------------------------------------------------------------------------


def transient(tries: int) -> list[Record | tuple[Record, ...]]:
    return [run(1), report(2, TRANSIENT), *(run(3 + n) for n in range(tries))]


@pytest.mark.parametrize(("tries", "wait"), [(0, 1.0), (1, 2.0), (2, 4.0)])
def test_a_transient_failure_is_tried_again_after_doubling_waits(tries: int, wait: float) -> None:
    assert gate(*transient(tries)).may(run(9), NOTHING) == Permission(wait=wait)


def test_after_its_tries_a_transient_failure_needs_another_analysis() -> None:
    records = transient(3)
    assert refused(gate(*records).may(run(9), NOTHING), "waiting did not help")
    assert gate(*records, report(8, TRANSIENT)).may(run(9), NOTHING) == Permission(wait=1.0)


def test_the_longest_wait_is_a_setting() -> None:
    errors = ErrorSettings(backoff_seconds=1.5, max_backoff_seconds=5)
    assert [backoff(n, errors) for n in (1, 2, 3, 4)] == [1.5, 3.0, 5.0, 5.0]


def operator_spoke(action: Action = Action.NUDGE, by: Actor = Actor.OPERATOR) -> tuple[Record, ...]:
    # In these timelines it is the fourth entry: a failure and an analysis come before.
    return intervention(action, by), delivery(4)


@pytest.mark.parametrize(
    "since",
    [
        (edit(4),),
        (edit(4, writer=Writer.PERSON),),
        (run(4, "pip install x", ok=True),),
        operator_spoke(),
    ],
    ids=["an edit", "a person's edit", "an install", "an operator's word"],
)
def test_a_permanent_failure_is_tried_again_after_a_change(since: tuple[Record, ...]) -> None:
    assert gate(run(1), report(2, PERMANENT), since).may(run(5), NOTHING) == ALLOWED


LOOKED = step(4, "read_file", request=4, args="{}")


@pytest.mark.parametrize(
    "since",
    [
        (),
        (LOOKED,),
        (run(4, "cd src && cat a.py | head -5; git diff", ok=True),),
        (run(4, "make", output="E  other"),),
        operator_spoke(by=Actor.POLICY),
    ],
    ids=["nothing", "a look", "a look by a command", "another failure", "the policy's word"],
)
def test_a_permanent_failure_is_not_tried_again_unchanged(since: tuple[Record, ...]) -> None:
    verdict = gate(run(1), report(2, PERMANENT), since).may(run(5), NOTHING)
    assert refused(verdict, "failed (E   KeyError: 'a'); by your analysis the cause is permanent")


def test_a_permanent_failure_that_came_again_needs_another_analysis() -> None:
    state = gate(run(1), report(2, PERMANENT), run(3, "pip install x", ok=True), run(4))
    assert refused(state.may(run(5), NOTHING), "again, after your analysis")


def test_a_worker_that_called_it_permanent_may_still_say_that_it_passes() -> None:
    state = gate(run(1), report(2, PERMANENT), report(3, TRANSIENT))
    assert state.may(run(4), NOTHING) == Permission(wait=1.0)


@pytest.mark.parametrize(
    ("unknown", "verdict"),
    [(TRANSIENT, Permission(wait=1.0)), (UNKNOWN, ALLOWED)],
)
def test_requirement_9_settings_say_what_unknown_means(unknown: Cause, verdict: Permission) -> None:
    errors = ErrorSettings(unknown=unknown)
    assert gate(run(1), report(2, UNKNOWN), errors=errors).may(run(3), NOTHING) == verdict


def test_an_unknown_cause_counts_as_permanent_by_default() -> None:
    verdict = gate(run(1), report(2, UNKNOWN)).may(run(3), NOTHING)
    assert refused(verdict, "the cause is unknown, which counts as permanent")


def test_the_one_more_try_for_an_unknown_cause_is_had_once() -> None:
    errors = ErrorSettings(unknown=UNKNOWN)
    records = [run(1), report(2, UNKNOWN), run(3)]
    assert refused(gate(*records, errors=errors).may(run(4), NOTHING), "after your analysis")
    state = gate(*records, report(4, UNKNOWN), errors=errors)
    assert refused(state.may(run(5), NOTHING), "counts as permanent")


# -- equal failures --------------------------------------------------------------------------


def outlived(edits: int, *, last: str = "E   KeyError: 'a'") -> list[Step]:
    steps: list[Step] = []
    for n in range(edits):
        steps += [run(2 * n + 1, output=last if n == edits - 1 else "E   KeyError: 'a'")]
        steps += [edit(2 * n + 2)]
    return steps


def test_the_third_equal_failure_needs_an_analysis_whatever_was_edited() -> None:
    verdict = gate(*outlived(3)).may(run(9), NOTHING)
    assert refused(verdict, "3 times in the same way")
    assert gate(*outlived(2)).may(run(9), NOTHING) == ALLOWED


def test_a_failure_that_moves_is_no_equal_failure() -> None:
    assert gate(*outlived(3, last="E   TypeError: b")).may(run(9), NOTHING) == ALLOWED


def test_after_an_analysis_the_edit_since_counts_and_the_fourth_needs_another() -> None:
    records = [*outlived(3), report(7, PERMANENT)]
    assert gate(*records).may(run(8), NOTHING) == ALLOWED
    again = gate(*records, run(8), edit(9))
    assert refused(again.may(run(10), NOTHING), "again, after your analysis")


def test_equal_failures_can_be_left_out() -> None:
    errors = ErrorSettings(equal_failures=0)
    assert gate(*outlived(5), errors=errors).may(run(20), NOTHING) == ALLOWED


# -- in the same turn ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "verdict"), [(TRANSIENT, Permission(wait=1.0)), (PERMANENT, None), (None, None)]
)
def test_an_analysis_in_the_turn_counts(cause: Cause | None, verdict: Permission | None) -> None:
    found = gate(run(1)).may(run(2), Statements(cause=cause))
    assert found == verdict if verdict else found.refusal


@pytest.mark.parametrize("order", [1, -1])
def test_it_does_not_matter_which_call_of_a_turn_ends_first(order: int) -> None:
    both = [report(2, TRANSIENT), run(2)][::order]
    assert gate(run(1), *both).may(run(3), NOTHING) == Permission(wait=2.0)


@pytest.mark.parametrize("order", [1, -1])
def test_an_analysis_is_not_of_what_first_failed_beside_it(order: int) -> None:
    both = [report(1, TRANSIENT), run(1)][::order]
    assert refused(gate(*both).may(run(2), NOTHING), "report_error")


# -- a new attempt ---------------------------------------------------------------------------


def test_a_later_attempt_begins_with_an_analysis() -> None:
    verdict = gate(attempt=2).may(LOOKED, NOTHING)
    assert refused(verdict, "this is attempt 2. Before any work, call `report_error`")


@pytest.mark.parametrize("said", [NOTHING, Statements(cause=UNKNOWN)])
def test_with_its_analysis_a_later_attempt_works(said: Statements) -> None:
    records: Sequence[tuple[Record, ...]] = () if said.cause else (report(1, UNKNOWN),)
    assert gate(*records, attempt=2).may(LOOKED, said) == ALLOWED


@pytest.mark.parametrize("tool", ["reflect", "report_error", "check_plan", "request_budget"])
def test_midwatchs_own_tools_are_never_refused(tool: str) -> None:
    assert gate(attempt=3).may(step(1, tool, request=1), NOTHING) == ALLOWED


def test_without_the_protocol_of_errors_nothing_waits_for_an_analysis() -> None:
    errors = ErrorSettings(require_analysis=False)
    assert gate(run(1), attempt=2, errors=errors).may(run(2), NOTHING) == ALLOWED


# -- for the analysis ------------------------------------------------------------------------


def test_the_last_failure_is_known_with_what_stood_in_the_way() -> None:
    blocked = run(2, "make", output="sh: gcc: command not found")
    assert gate(run(1), blocked, run(3, "ls", ok=True)).last_failure == LastFailure(
        number=2,
        act="`make`",
        blocked="missing program gcc",
        words="sh: gcc: command not found",
    )


def test_only_so_many_failing_acts_are_remembered() -> None:
    state = gate(*(run(n, f"make {n}") for n in range(1, 400)))
    assert state.may(run(500, "make 1"), NOTHING) == ALLOWED
    assert state.may(run(500, "make 399"), NOTHING) != ALLOWED


# -- the check of a plan step ------------------------------------------------------------------


BEGUN = Change(plan_step=1, plan_steps=3, revision=0)

CHECK = PlanCheck(plan_step=2, assumption="a", reality="r", impact="i")


def finished(request: int, plan_step: int = 2, *, revision: int = 0) -> tuple[Record, ...]:
    completed = step(request, "complete_step", request=request)
    return (completed, Change(plan_step=plan_step, plan_steps=3, revision=revision))


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
    assert gate(*records).may(LOOKED, NOTHING) == ALLOWED


def test_every_transition_has_its_own_check() -> None:
    state = gate(BEGUN, finished(1), CHECK, finished(2, 3))
    assert refused(state.may(LOOKED, NOTHING), "plan step 3 begins")


def test_without_the_protocol_of_plans_no_check_is_asked_for() -> None:
    plan = PlanSettings(require_check=False)
    assert gate(BEGUN, finished(1), plan=plan).may(LOOKED, NOTHING) == ALLOWED


# -- by whatever command --------------------------------------------------------------------


def fail(request: int, command: str, output: str = "AssertionError: 1 != 2") -> Step:
    args, code = f'{{"command": "{command}"}}', int(bool(output))
    made = step(request, "run_command", request=request, args=args, output=output)
    return replace(made, ok=not output, exit_code=code)


def work(request: int, tool: str) -> Step:
    args = f'{{"path": "a.py", "content": "{request}"}}'
    edits = (Edit(path="a.py", digest=f"{request}"),) if tool == "write_file" else ()
    return step(request, tool, request=request, args=args, path="a.py", edits=edits)


def varied(times: int) -> list[Record]:
    """So many runs in other words each time, an edit after each."""
    steps: list[Record] = []
    for n in range(times):
        steps += [fail(2 * n + 1, f"python3 fail.py arg{n}"), work(2 * n + 2, "write_file")]
    return steps


@pytest.mark.parametrize("command", ["python3 fail.py arg9", "python3 fail.py arg0", "pytest -q"])
def test_the_third_equal_failure_by_other_commands_waits_for_an_analysis(command: str) -> None:
    refusal = gate(*varied(3)).may(fail(9, command), NOTHING).refusal
    assert refusal.startswith("the same failure came 3 times, by whatever command: AssertionError")
    assert gate(*varied(2)).may(fail(9, command), NOTHING) == ALLOWED


@pytest.mark.parametrize(
    "step",
    [
        work(9, "read_file"),
        work(9, "write_file"),
        fail(9, "cat fail.py"),
        fail(9, "pip install x"),
        fail(9, "sed -i s/1/2/ fail.py"),
    ],
    ids=["reading", "editing", "reading by command", "installing", "editing by command"],
)
def test_reading_editing_and_installing_wait_for_nothing(step: Step) -> None:
    assert gate(*varied(4)).may(step, NOTHING) == ALLOWED


def test_the_analysis_may_stand_in_the_turn_of_the_next_try() -> None:
    assert gate(*varied(3)).may(fail(9, "pytest -q"), Statements(cause=Cause.PERMANENT)) == ALLOWED


def test_after_the_analysis_the_fourth_needs_another() -> None:
    records = [*varied(3), *report(7)]
    assert gate(*records).may(fail(8, "pytest -q"), NOTHING) == ALLOWED
    again = gate(*records, fail(8, "pytest -q"), work(9, "write_file"))
    assert "came 4 times" in again.may(fail(10, "pytest -x"), NOTHING).refusal


def test_another_failure_since_leaves_new_commands_free_but_not_those_that_failed_so() -> None:
    state = gate(*varied(3), fail(8, "make test", "TypeError: b"), work(9, "write_file"))
    assert state.may(fail(10, "pytest -q"), NOTHING) == ALLOWED
    assert "came 3 times" in state.may(fail(10, "python3 fail.py arg1"), NOTHING).refusal


def test_tries_that_a_transient_cause_allows_are_not_counted_against_it() -> None:
    tries = [fail(n, "pytest -q") for n in (8, 9)]
    state = gate(*varied(2), fail(6, "pytest -q"), *report(7, Cause.TRANSIENT), *tries)
    assert state.may(fail(10, "pytest -q"), NOTHING).wait == 4.0


def test_failures_that_say_nothing_are_not_equal() -> None:
    silent = [fail(n, f"python3 quiet.py {n}", "[exit code: 1]") for n in range(1, 5)]
    assert gate(*silent).may(fail(9, "python3 quiet.py 9"), NOTHING) == ALLOWED


@pytest.mark.parametrize(
    "since",
    [fail(2, "sed -i s/a/b/ x.py", ""), work(2, "update_document")],
    ids=["a command", "the agent's own tool"],
)
def test_where_nobody_sees_the_files_any_success_may_have_been_an_edit(since: Step) -> None:
    state = gate(fail(1, "pytest -q"), since, sees_files=False)
    assert state.may(fail(3, "pytest -q"), NOTHING) == ALLOWED
    seen = gate(fail(1, "pytest -q"), since)
    assert "nothing was edited since" in seen.may(fail(3, "pytest -q"), NOTHING).refusal


def test_where_nobody_sees_the_files_a_look_is_no_edit() -> None:
    state = gate(fail(1, "pytest -q"), fail(2, "cat x.py", ""), sees_files=False)
    refusal = state.may(fail(3, "pytest -q"), NOTHING).refusal
    assert "nothing was changed, as far as is known, since" in refusal
