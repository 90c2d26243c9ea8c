"""The third equal failure waits for its analysis, by whatever command it comes again."""

from dataclasses import replace

import pytest

from midwatch_monitor.config.settings import ErrorSettings, PlanSettings
from midwatch_monitor.records import (
    Cause,
    Edit,
    Record,
    Step,
)
from midwatch_stage.factories import analysis, entries, step
from midwatch_tools.gate.gate import ALLOWED, Gate
from midwatch_tools.tools.proof import Statements

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
    for each in entries(*records):
        made.observe(each)
    return made


def report(request: int, cause: Cause = Cause.PERMANENT) -> tuple[Record, ...]:
    return step(request, "report_error", request=request), analysis(cause=cause)


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
