"""Movement is observed: checks that pass, failures not seen before, contents never had."""

import pytest

from midwatch_monitor.records import Change, Edit, Movement, Step, StepKind, Writer
from midwatch_monitor.rules.act import Normaliser
from midwatch_monitor.rules.detector import Moved, Movements


class Run:
    """A run of commands and edits, numbered."""

    def __init__(self) -> None:
        self.movements = Movements()
        self.normaliser = Normaliser()
        self.step = 0

    def feed(self, step: Step) -> Moved:
        return self.movements.observe(self.normaliser.act(step))

    def command(self, args: str, exit_code: int | None, output: str = "") -> set[Movement]:
        self.step += 1
        step = Step(
            number=self.step,
            kind=StepKind.TOOL,
            tool="shell",
            args=args,
            exit_code=exit_code,
            output=output,
        )
        return set(self.feed(step).kinds)

    def edit(self, *edits: Edit) -> tuple[str, ...]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="write", edits=edits)
        return self.feed(step).paths


def test_a_command_that_failed_and_now_succeeds_has_passed() -> None:
    run = Run()
    assert run.command("pytest", 1, "1 failed") == set()
    assert run.command("ls", 0) == set()
    assert run.command("pytest", 0, "1 passed") == {Movement.CHECK_PASSED}
    assert run.command("pytest", 0, "1 passed") == set()


def test_a_command_that_succeeded_and_now_fails_is_broken() -> None:
    run = Run()
    run.command("pytest", 0)
    assert run.command("pytest", 1, "1 failed") == {Movement.CHECK_BROKEN}


def test_the_first_failure_is_where_an_attempt_starts_from() -> None:
    run = Run()
    assert run.command("pytest", 1, "3 failed") == set()
    assert run.command("pytest", 1, "4 failed") == {Movement.NEW_FAILURE}
    assert run.command("pytest", 1, "3 failed") == set()


def test_the_first_failure_of_another_command_is_new() -> None:
    run = Run()
    run.command("pytest", 1, "3 failed")
    assert run.command("ruff check", 1, "E501") == {Movement.NEW_FAILURE}


def test_the_same_failure_after_another_time_is_not_new() -> None:
    run = Run()
    run.command("pytest", 1, "2 failed in 0.31s")
    assert run.command("pytest", 1, "2 failed in 1.02s") == set()


def test_a_failure_that_says_nothing_is_not_new() -> None:
    run = Run()
    run.command("test -f a", 1)
    assert run.command("test -f b", 1) == set()


@pytest.mark.parametrize(
    ("counts", "fewer"),
    [
        ((3, 2), True),
        ((3, 3), False),
        ((3, 4), False),
        ((3, 2, 3, 2), False),
        ((3, 2, 3, 1), True),
        ((2, 3, 2), False),
    ],
)
def test_fewer_failures_than_ever_of_the_same_command_move(
    counts: tuple[int, ...], *, fewer: bool
) -> None:
    run = Run()
    moved = [run.command("pytest", 1, f"{each} failed") for each in counts][-1]
    assert (Movement.FEWER_FAILURES in moved) is fewer


def test_failures_of_different_commands_are_not_compared() -> None:
    run = Run()
    run.command("pytest", 1, "9 failed")
    assert run.command("pytest a.py", 1, "1 failed") == {Movement.NEW_FAILURE}


def test_a_count_of_failures_is_kept_over_a_run_that_does_not_tell_any() -> None:
    run = Run()
    run.command("pytest", 1, "9 failed")
    run.command("pytest", 1, "ImportError: no")
    assert Movement.FEWER_FAILURES in run.command("pytest", 1, "8 failed")


def test_an_act_of_unknown_result_is_no_check() -> None:
    run = Run()
    run.command("pytest", 1, "failed")
    assert run.command("pytest", None, "ok") == set()


def test_reporting_and_planning_are_no_work() -> None:
    run = Run()
    for number, ok in enumerate((False, True), start=1):
        step = Step(number=number, kind=StepKind.TOOL, tool="set_plan", ok=ok)
        assert run.feed(step) == Moved()


def test_a_content_that_a_file_never_had_moves() -> None:
    run = Run()
    one, two = (Edit(path="a.py", digest=digest) for digest in ("1", "2"))
    assert [run.edit(each) for each in (one, two, one, two)] == [("a.py",), ("a.py",), (), ()]


def test_only_the_workers_own_known_contents_move() -> None:
    run = Run()
    person = Edit(path="a.py", digest="1", writer=Writer.PERSON)
    assert run.edit(person) == ()
    assert run.edit(Edit(path="a.py", digest="1")) == ()
    assert run.edit(Edit(path="a.py")) == ()
    assert run.edit(Edit(path="a.py", deleted=True)) == ()


def test_a_higher_plan_step_moves_and_a_lower_one_does_not() -> None:
    movements = Movements()
    found = [bool(movements.plan(Change(plan_step=each)).kinds) for each in (1, 2, 1, 2, 3)]
    assert found == [False, True, False, False, True]
