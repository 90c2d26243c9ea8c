"""Acts that fail: many of them, the same one after each change, or by what surrounds them."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import BlockedEnvironment, ErrorStreak, SameFailure
from midwatch_monitor.records import AlertKey, Edit, Finding, Severity, Step, StepKind
from midwatch_monitor.rules.act import Act, Normaliser
from midwatch_monitor.rules.detector import Clear, Detector, RuleAnswer, Seen
from midwatch_monitor.rules.repeated_failures import (
    BlockedEnvironmentDetector,
    ErrorStreakDetector,
    SameFailureDetector,
)


class Run:
    """Commands and edits, numbered."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.normaliser = Normaliser()
        self.step = 0
        self.changes = 0

    def command(self, line: str, output: str = "", exit_code: int = 1) -> Sequence[RuleAnswer]:
        return self._feed(
            Step(
                number=self.step + 1,
                kind=StepKind.TOOL,
                tool="bash",
                args=line,
                output=output,
                exit_code=exit_code,
            )
        )

    def edit(self) -> Sequence[RuleAnswer]:
        edit = Edit(path="a.py", digest=str(self.step))
        return self._feed(
            Step(number=self.step + 1, kind=StepKind.TOOL, tool="edit", edits=(edit,), ok=True)
        )

    def _feed(self, step: Step) -> Sequence[RuleAnswer]:
        self.step = step.number
        act: Act = self.normaliser.act(step)
        self.changes += act.changes
        seen = Seen(act, place=step.number, changes=self.changes)
        return self.detector.observe(step, seen)


def streak() -> Run:
    return Run(ErrorStreakDetector(ErrorStreak(window=8, notice_after=6, warn_after=7)))


def same() -> Run:
    return Run(SameFailureDetector(SameFailure(notice_after=3, warn_after=4)))


def blocked() -> Run:
    return Run(BlockedEnvironmentDetector(BlockedEnvironment(notice_after=3, warn_after=4)))


def value(answers: Sequence[RuleAnswer]) -> float | None:
    found = [each for each in answers if isinstance(each, Finding)]
    return found[0].value if found else None


def test_six_failures_among_eight_steps_are_noticed_and_seven_warn() -> None:
    run = streak()
    exits = [1, 0, 1, 1, 1, 1, 1, 2]
    answers = [run.command(f"c{n}", "no", code) for n, code in enumerate(exits)]
    assert [value(each) for each in answers] == [None] * 6 + [6, 7]
    assert answers[-1] == (
        Finding(
            key=AlertKey(rule="error_streak"),
            severity=Severity.WARNING,
            value=7,
            summary="7 of the last 8 steps failed",
            evidence=(1, 3, 4, 5, 6, 7, 8),
        ),
    )


def test_after_a_restart_no_failure_counts() -> None:
    run = streak()
    for number in range(7):
        run.command(f"c{number}", "no")
    run.detector.restart()
    assert [value(run.command(f"d{n}", "no")) for n in range(6)] == [None] * 5 + [6]


def test_the_same_failure_tells_its_words_and_its_steps() -> None:
    run = same()
    for _ in range(3):
        run.command("pytest", "ValueError: line 3")
        run.edit()
    assert run.command("pytest -x", "ValueError: line 4") == (
        Finding(
            key=AlertKey(rule="same_failure", subject="ValueError: <line>"),
            severity=Severity.NOTICE,
            value=3,
            summary="the same failure after 3 more changes: ValueError: <line>",
            evidence=(3, 5, 7),
        ),
    )


def test_a_failure_that_comes_again_with_nothing_changed_outlives_nothing() -> None:
    run = same()
    assert {value(run.command("pytest", "ValueError: a")) for _ in range(10)} == {None}


def test_several_changes_between_two_failures_count_once() -> None:
    run = same()
    run.command("pytest", "ValueError: a")
    for _ in range(5):
        run.edit()
    assert value(run.command("pytest", "ValueError: a")) is None


def test_a_revert_is_a_change_too() -> None:
    run = same()
    values: list[float | None] = []
    for _ in range(4):
        values.append(value(run.command("pytest", "ValueError: a")))
        run.command("git checkout -- a.py", "", 0)
    assert values == [None, None, None, 3]


def outlived(run: Run, changes: int) -> None:
    for _ in range(changes):
        run.command("pytest", "ValueError: a")
        run.edit()
    run.command("pytest", "ValueError: a")


def test_the_command_that_passes_ends_its_failure_and_its_count() -> None:
    run = same()
    outlived(run, 3)
    assert run.command("pytest", "ok", 0) == (
        Clear(key=AlertKey(rule="same_failure", subject="ValueError: a")),
    )
    run.edit()
    assert value(run.command("pytest", "ValueError: a")) is None


def test_another_command_that_passes_ends_nothing() -> None:
    run = same()
    outlived(run, 3)
    assert run.command("ls", "a.py", 0) == ()
    run.edit()
    assert value(run.command("pytest", "ValueError: a")) == 4


def test_another_command_that_fails_ends_nothing_even_once_it_passes() -> None:
    run = same()
    outlived(run, 3)
    assert run.command("ls b.py", "ls: b.py: No such file or directory") == ()
    assert run.command("ls b.py", "b.py", 0) == ()
    run.edit()
    assert value(run.command("pytest", "ValueError: a")) == 4


def test_another_failure_of_the_same_command_ends_the_first() -> None:
    run = same()
    outlived(run, 3)
    assert run.command("pytest", "KeyError: b") == (
        Clear(key=AlertKey(rule="same_failure", subject="ValueError: a")),
    )


def test_after_a_restart_a_failure_has_outlived_nothing() -> None:
    run = same()
    outlived(run, 3)
    run.detector.restart()
    run.edit()
    assert value(run.command("pytest", "ValueError: a")) is None


def test_an_obstacle_met_three_times_is_noticed_and_four_times_warns() -> None:
    run = blocked()
    tries = [run.command(f"javac {n}", "bash: javac: command not found") for n in range(4)]
    assert [value(each) for each in tries] == [None, None, 3, 4]
    assert tries[-1] == (
        Finding(
            key=AlertKey(rule="blocked_environment", subject="missing program javac"),
            severity=Severity.WARNING,
            value=4,
            summary="missing program javac: blocked 4 steps",
            evidence=(1, 2, 3, 4),
        ),
    )


def test_one_step_against_another_obstacle_does_not_end_the_first() -> None:
    run = blocked()
    for _ in range(3):
        run.command("x", "a: command not found")
    assert run.command("y", "Permission denied") == ()
    assert value(run.command("x", "a: command not found")) == 4


@pytest.mark.parametrize("code", [0, 1])
def test_an_obstacle_not_met_for_twenty_steps_is_forgotten(code: int) -> None:
    run = blocked()
    for _ in range(3):
        run.command("x", "a: command not found")
    answers = [run.command(f"c{n}", "well", code) for n in range(20)]
    assert answers[:19] == [()] * 19
    assert answers[19] == (
        Clear(key=AlertKey(rule="blocked_environment", subject="missing program a")),
    )
    assert value(run.command("x", "a: command not found")) is None


def test_after_a_restart_no_obstacle_was_met() -> None:
    run = blocked()
    for _ in range(3):
        run.command("x", "a: command not found")
    run.detector.restart()
    assert value(run.command("x", "a: command not found")) is None
