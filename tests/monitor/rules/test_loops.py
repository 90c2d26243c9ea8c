"""Work that only repeats itself: in a row, in a circle, or here and there."""

from collections.abc import Iterable, Sequence

import pytest

from midwatch_monitor.config.rules import Cycle, RedundantSteps, RepeatedCall
from midwatch_monitor.records import AlertKey, Edit, Finding, Severity, Step, StepKind
from midwatch_monitor.rules.act import Act, CheckKind
from midwatch_monitor.rules.detector import Detector, Repeats, RuleAnswer, Seen
from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.loops import (
    CycleDetector,
    RedundantStepsDetector,
    RepeatedCallDetector,
)


class Run:
    """Words as steps of work: the same word is the same act with the same result."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.repeats = Repeats()
        self.step = 0

    def do(self, word: str, *, tool: str = "t") -> Sequence[RuleAnswer]:
        """`+a` edits, `!a` fails, `?a` runs tests, `a` looks."""
        self.step += 1
        act = Act(
            self.step,
            work=True,
            action=digest(f"{tool} {word}"),
            result=digest("same"),
            failed=word.startswith("!"),
            edits=(Edit(path="f", digest=word),) if word.startswith("+") else (),
            changes=word.startswith("+"),
            check=CheckKind.TESTS if word.startswith("?") else CheckKind.NONE,
        )
        step = Step(number=self.step, kind=StepKind.TOOL, tool=tool)
        echo = self.repeats.observe(act)
        return self.detector.observe(step, Seen(act, echo=echo, place=self.repeats.place))

    def values(self, words: Iterable[str]) -> list[float | None]:
        """For each word the value of the finding that stands after it."""
        values: list[float | None] = []
        standing: float | None = None
        for word in words:
            for answer in self.do(word):
                standing = answer.value if isinstance(answer, Finding) else None
            values.append(standing)
        return values


def calls() -> Run:
    return Run(RepeatedCallDetector(RepeatedCall()))


def circles(**settings: int) -> Run:
    return Run(CycleDetector(Cycle.model_validate(settings)))


def redundant(**settings: int) -> Run:
    return Run(RedundantStepsDetector(RedundantSteps.model_validate(settings)))


def fresh(count: int, mark: str = "x") -> list[str]:
    return [f"{mark}{n}" for n in range(count)]


def test_a_repeated_call_names_its_tool_and_its_first_and_last_step() -> None:
    run = calls()
    run.values("baa")
    assert run.do("a") == (
        Finding(
            key=AlertKey(rule="repeated_call", subject="t"),
            severity=Severity.NOTICE,
            value=3,
            summary="t gave the same result 3 times in a row",
            evidence=(2, 4),
        ),
    )


def test_a_row_that_follows_another_names_its_own_first_step() -> None:
    run = calls()
    run.values("aaabb")
    [answer] = run.do("b")
    assert isinstance(answer, Finding)
    assert answer.evidence == (4, 6)


def test_after_a_restart_the_row_begins_anew() -> None:
    run = calls()
    run.values("aa")
    run.detector.restart()
    assert run.values("aaa") == [None, None, 3]
    [answer] = run.do("a")
    assert isinstance(answer, Finding)
    assert answer.evidence == (3, 6)


@pytest.mark.parametrize("period", range(2, 13))
def test_a_cycle_of_any_period_is_seen_by_its_third_round(period: int) -> None:
    values = circles().values([*fresh(3, "before"), *fresh(period) * 3])
    assert values[3 + 2 * period - 2] is None
    assert values[3 + 2 * period - 1] == 2
    assert values[-1] == 3


def test_a_longer_cycle_than_the_longest_looked_for_is_none() -> None:
    assert set(circles(max_period=4).values(fresh(6) * 5)) == {None}


def test_a_cycle_warns_in_its_third_round_and_says_where() -> None:
    run = circles()
    run.values("zababa")
    assert run.do("b") == (
        Finding(
            key=AlertKey(rule="cycle"),
            severity=Severity.WARNING,
            value=3,
            summary="the same 2 steps ran 3 times with the same results",
            evidence=(2, 7),
        ),
    )


def test_two_steps_between_end_a_cycle() -> None:
    assert circles().values("abcabcxy")[-3:] == [2, 2, None]


@pytest.mark.parametrize(
    "words",
    [
        ["+1", "!t", "+2", "!t", "+3", "!t", "+4", "!t"],
        ["+1", "r", "!t", "+2", "r", "!t", "+3", "r", "!t", "+4", "r", "!t"],
        ["+1", "r", "s", "t", "+2", "r", "s", "t", "+3", "r", "s", "t", "+4", "r", "s", "t"],
    ],
)
def test_to_edit_and_to_test_with_ever_other_edits_is_no_cycle(words: list[str]) -> None:
    assert set(circles().values(words)) == {None}


def test_the_same_call_in_a_row_is_no_cycle() -> None:
    assert set(circles().values("a" * 20)) == {None}


def test_after_a_restart_a_cycle_is_counted_anew() -> None:
    run = circles()
    run.values("ababab")
    run.detector.restart()
    assert run.values("ab") == [None, 2]


def test_a_check_that_passes_again_after_a_change_counts_half() -> None:
    words = ["t", "+1", "t", "+2", "t", "+3", "t", "+4", "t"]
    assert redundant().values(words)[-3:] == [None, None, 2]


def test_tests_that_pass_again_after_a_change_tell_something() -> None:
    words = ["?t", "+1", "?t", "+2", "?t", "+3", "?t", "+4", "?t"]
    assert set(redundant().values(words)) == {None}


def test_a_check_that_fails_again_after_a_change_counts_one() -> None:
    assert redundant().values(["!t", "+1", "!t", "+2", "!t"])[-1] == 2


def test_a_step_outside_of_the_window_counts_no_longer() -> None:
    run = redundant(window=4)
    assert run.values(["a", "a", "a", *fresh(3)]) == [None, None, 2, 2, 2, None]


def test_redundant_steps_are_named() -> None:
    run = redundant()
    run.values(["t", "u", "+1", "t"])
    assert run.values(["!f", "!f"]) == [None, None]
    assert run.do("u") == (
        Finding(
            key=AlertKey(rule="redundant_steps"),
            severity=Severity.NOTICE,
            value=2,
            summary="repeated steps, nothing new learned (3 of the last 10)",
            evidence=(4, 6, 7),
        ),
    )


def test_after_a_restart_the_window_is_empty() -> None:
    run = redundant()
    run.values("aaa")
    run.detector.restart()
    assert run.values("aa") == [None, 2]
