"""Movement is observed: checks that pass, failures not seen before, contents never had."""

import pytest

from midwatch_monitor.rules.identity import act, failed, mask, result
from midwatch_monitor.rules.movement import Movements
from midwatch_monitor.words import Change, Edit, Movement, Step, StepKind, Writer


class Run:
    """A run of commands and edits, numbered."""

    def __init__(self) -> None:
        self.movements = Movements()
        self.step = 0

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
        return set(self.movements.observe(step).kinds)

    def edit(self, *edits: Edit) -> tuple[str, ...]:
        self.step += 1
        return self.movements.observe(
            Step(number=self.step, kind=StepKind.TOOL, tool="write", edits=edits)
        ).paths


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
    assert run.command("pytest", 1, "2 failed") == {Movement.NEW_FAILURE}
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


def test_an_act_of_unknown_result_is_no_check() -> None:
    run = Run()
    run.command("pytest", 1, "failed")
    assert run.command("pytest", None, "ok") == set()


def test_reporting_and_planning_are_no_work() -> None:
    movements = Movements()
    for number, ok in enumerate((False, True), start=1):
        step = Step(number=number, kind=StepKind.TOOL, tool="set_plan", ok=ok)
        assert movements.observe(step).kinds == frozenset()


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
    found = [bool(movements.observe(Change(plan_step=each)).kinds) for each in (1, 2, 1, 2, 3)]
    assert found == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 failed in 0.31s", "2 failed in 12.4s"),
        ("took 3 ms", "took 14 ms"),
        ("done in 1m 02s", "done in 59s"),
        ("at 2026-11-21T20:00:00Z x", "at 2026-11-21 20:00:01.5+01:00 x"),
        ("[12:00:01] x", "[12:00:02.113] x"),
        ("<A object at 0x7f3e10a2>", "<A object at 0x7f3e99ff>"),
        ("/tmp/pytest-of-me/pytest-3/x.py", "/tmp/pytest-of-me/pytest-4/x.py"),
        ("/tmp/abc123/x.py", "/tmp/def456/x.py"),
        ("open('/var/folders/b1/x_y/T/q1/a')", "open('/var/folders/b1/x_z/T/q2/a')"),
        ("build in tmpa1b2c3d4", "build in tmpzz_2c3d4"),
    ],
)
def test_what_differs_between_two_runs_of_the_same_is_masked(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed", "2 failed"),
        ("line 12", "line 13"),
        ("a.py:10: error", "a.py:11: error"),
        ("0x1 is wrong", "0x2 is wrong"),
        ("test_tmp.py", "test_tmq.py"),
        ("/tmp/abc/x.py", "/tmp/abc/y.py"),
        ("src/tmp/a", "src/tmp/b"),
    ],
)
def test_what_makes_a_result_another_is_not_masked(one: str, other: str) -> None:
    assert mask(one) != mask(other)


def test_a_long_output_is_compared_by_its_head_and_tail() -> None:
    assert mask("a" + "x" * 50_000 + "b") == mask("a" + "x" * 60_000 + "b")
    assert mask("a" + "x" * 50_000 + "b") != mask("a" + "x" * 50_000 + "c")


@pytest.mark.parametrize(
    ("ok", "exit_code", "fails"),
    [
        (None, None, None),
        (True, None, False),
        (False, None, True),
        (None, 0, False),
        (None, 2, True),
        (True, 2, True),
        (False, 0, True),
    ],
)
def test_an_act_fails_by_its_exit_code_or_by_its_own_word(
    ok: bool | None, exit_code: int | None, fails: bool | None
) -> None:
    assert failed(Step(number=1, kind=StepKind.TOOL, ok=ok, exit_code=exit_code)) is fails


def test_an_act_is_its_tool_with_its_arguments() -> None:
    steps = [
        Step(number=number, kind=StepKind.TOOL, tool=tool, args=args)
        for number, (tool, args) in enumerate([("a", "b"), ("a", "b"), ("a", "c"), ("ab", "")])
    ]
    assert act(steps[0]) == act(steps[1])
    assert len({act(step) for step in steps}) == 3


def test_a_result_without_text_is_known_by_the_digest_of_the_whole() -> None:
    step = Step(number=1, kind=StepKind.TOOL, output_digest="d")
    assert result(step) == "whole:d"
