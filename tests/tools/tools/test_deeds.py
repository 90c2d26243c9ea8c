"""What was done on the plan step in hand is read from the journal's steps and plans."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from midwatch_monitor.records import (
    Edit,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Step,
    Writer,
)
from midwatch_stage import factories
from midwatch_stage.factories import step
from midwatch_tools.tools.completion import PlanStepWork, plan_step_work

FIRST = Plan(steps=(PlanStep(title="a"), PlanStep(title="b")))
SECOND = Plan(steps=(PlanStep(title="a", state=PlanStepState.DONE), PlanStep(title="b")))
OTHER = Plan(steps=(PlanStep(title="c"),), revision=1)
SAME = Plan(steps=(PlanStep(title="a"), PlanStep(title="c")), revision=1)


def edit(path: str = "a.py", **more: Any) -> Step:
    return step(tool="write", path=path, edits=(factories.edit(path, **more),))


def ran(command: str, code: int = 0, *edits: Edit, output: str = "") -> Step:
    args = f'{{"command": "{command}"}}'
    made = step(1, "run_command", args=args, output=output, edits=edits)
    return replace(made, ok=code == 0, exit_code=code)


def done(*records: Record) -> PlanStepWork:
    return plan_step_work(factories.entries(*records))


def passed(*records: Record) -> Sequence[str]:
    return list(done(*records).passed)


def test_edits_of_the_worker_count_and_those_of_a_person_do_not() -> None:
    found = done(edit(), edit("b.py", writer=Writer.PERSON), edit("c.py", deleted=True))
    assert (found.edited, found.gone) == ({"a.py", "c.py"}, {"c.py"})


def test_a_command_that_passed_before_the_last_edit_proves_nothing() -> None:
    assert passed(ran("make test"), edit()) == []
    assert passed(edit(), ran("make test")) == ["make test"]


def test_only_the_last_run_of_a_command_counts() -> None:
    assert passed(ran("make test"), ran("make test", 1)) == []
    assert passed(ran("make test", 1), ran("make test")) == ["make test"]


def test_a_command_that_writes_is_proved_by_its_own_run() -> None:
    assert passed(ran("make test"), ran("make docs", 0, Edit(path="d.html"))) == ["make docs"]


def test_a_tool_that_tests_counts_as_a_command() -> None:
    assert passed(step(tool="run_tests")) == ["run_tests"]


def test_an_exit_code_that_may_be_of_another_command_does_not_hide_a_failure() -> None:
    failed, fine = "3 failed, 2 passed in 0.1s", "5 passed in 0.1s"
    hidden = [ran("pytest | tail", output=failed), ran("pytest; date", output=failed)]
    assert passed(*hidden) == []
    shown = [ran("pytest | tail", output=fine), ran("cd x && pytest 2>&1", output=fine)]
    assert passed(*shown) == ["pytest | tail", "cd x && pytest 2>&1"]


def test_the_tools_that_succeeded_are_known() -> None:
    assert done(step(tool="look_up"), step(tool="ask", ok=False)).used == {"look_up"}


def test_files_that_were_read_are_seen() -> None:
    read = step(tool="read_file", path="b.py")
    lost = step(tool="read_file", path="c.py", ok=False)
    assert done(read, lost, ran("cat lib/d.py")).seen == {"b.py", "lib/d.py"}


def test_another_plan_step_begins_anew() -> None:
    assert done(FIRST, edit(), SECOND).edited == set()
    assert done(FIRST, edit(), OTHER).edited == set()


def test_a_revision_of_what_comes_later_changes_nothing() -> None:
    assert done(FIRST, edit(), SAME).edited == {"a.py"}


def test_midwatchs_own_tools_are_no_deeds() -> None:
    assert done(step(tool="complete_step", path="a.py")).seen == set()
