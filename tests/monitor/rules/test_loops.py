"""Work that only repeats itself or fails: in a row, in a circle, or the same after each change.

Thresholds, and the cycles of each length, are in `timelines`.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Event, Severity
from midwatch_monitor.rules import rule_settings
from midwatch_tests.factories import change, edit, step


def event(word: str, number: int) -> Event:
    """`+1` writes a.py, `!a` fails, `>` begins a plan step, `a` looks; `|` precedes the output."""
    if word == ">":
        return change(plan_step=number)
    if word.startswith("+"):
        return step(number, "edit", args=word, edits=(edit(digest=word),))
    line, _, output = word.removeprefix("!").partition("|")
    code = int(word.startswith("!"))
    return step(number, args=line, output=output or line, exit_code=code, ok=not code)


def make_judge(rule: str, **settings: Any) -> Judge:
    off: dict[str, Any] = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = {rule: {"hold": 0, "cooldown": 0, **settings}}
    return Judge(Rules.model_validate({"agreement": False, **off, **own}))


def values_after_each(judge: Judge, words: Sequence[str]) -> list[str]:
    """The value that stands after each word; `-` for none."""
    values: list[str] = []
    for number, word in enumerate(words, start=1):
        judge.observe(event(word, number))
        values.append(f"{judge.firing[0].value:g}" if judge.firing else "-")
    return values


FAIL, JAVA = "!pytest|ValueError: a", "!javac {}|bash: javac: command not found"
OUTLIVED = [FAIL, "+1", FAIL, "+2", FAIL, "+3", FAIL]
MISSING = ["!x|a: command not found"] * 3


@pytest.mark.parametrize(
    ("rule", "words", "told"),
    [
        ("repeated_call", "baaa", (Severity.NOTICE, 3, "bash", (2, 4))),
        ("repeated_call", "aaabbb", (Severity.NOTICE, 3, "bash", (4, 6))),
        ("repeated_call", "aa>aaaa", (Severity.WARNING, 4, "bash", (4, 7))),
        ("cycle", "zababab", (Severity.WARNING, 3, "", (2, 7))),
        (
            "redundant_steps",
            ["t", "u", "+1", "t", "!f", "!f", "u"],
            (Severity.NOTICE, 2, "", (4, 6, 7)),
        ),
        (
            "error_streak",
            ["!a", "b", *(f"!{n}" for n in range(6))],
            (Severity.WARNING, 7, "", (1, 3, 4, 5, 6, 7, 8)),
        ),
        (
            "same_failure",
            [
                *("!pytest|ValueError: line 3", "+1", "!pytest|ValueError: line 3", "+2"),
                *("!pytest -x|ValueError: line 4", "+3", "!pytest|ValueError: line 4"),
            ],
            (Severity.NOTICE, 3, "ValueError: <line>", (3, 5, 7)),
        ),
        (
            "blocked_environment",
            [JAVA.format(n) for n in range(4)],
            (Severity.WARNING, 4, "missing program javac", (1, 2, 3, 4)),
        ),
    ],
)
def test_a_finding_names_its_subject_and_its_steps(
    rule: str, words: Sequence[str], told: tuple[object, ...]
) -> None:
    judge = make_judge(rule)
    values_after_each(judge, words)
    [alert] = judge.firing
    assert (alert.severity, alert.value, alert.key.subject, alert.evidence) == told
    assert alert.summary == SUMMARIES[rule].format(value=alert.value)


SUMMARIES = {
    "repeated_call": "bash gave the same result {value} times in a row",
    "cycle": "the same 2 steps ran 3 times with the same results",
    "redundant_steps": "repeated steps, nothing new learned (3 of the last 10)",
    "error_streak": "7 of the last 8 steps failed",
    "same_failure": "the same failure after 3 more changes: ValueError: <line>",
    "blocked_environment": "missing program javac: blocked 4 steps",
}


@pytest.mark.parametrize(
    ("rule", "settings", "words", "values"),
    [
        ("cycle", {"max_period": 4}, "abcdef" * 5, "-" * 30),
        ("cycle", {}, "a" * 20, "-" * 20),
        ("cycle", {}, "ababab>ab", "---223--2"),
        # Half a step where it passes again after a change, a whole one where it fails again.
        ("redundant_steps", {}, ["t", "+1", "t", "+2", "t", "+3", "t", "+4", "t"], "--------2"),
        (
            "redundant_steps",
            {},
            ["pytest", "+1", "pytest", "+2", "pytest", "+3", "pytest", "+4", "pytest"],
            "-" * 9,
        ),
        ("redundant_steps", {}, ["!t", "+1", "!t", "+2", "!t"], "----2"),
        ("redundant_steps", {"window": 4}, "aaaxyz", "--222-"),
        ("redundant_steps", {}, "aaa>aa", "--2--2"),
        ("error_streak", {}, [*["!a"] * 7, ">", *["!b"] * 6], "-----67------6"),
    ],
)
def test_what_repeats_is_counted_in_its_window(
    rule: str, settings: dict[str, int], words: Sequence[str], values: str
) -> None:
    assert values_after_each(make_judge(rule, **settings), words) == list(values)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        pytest.param([FAIL] * 10, "-" * 10, id="nothing changed"),
        pytest.param([FAIL, "+1", "+2", "+3", "+4", FAIL], "-" * 6, id="many changes count once"),
        pytest.param([FAIL, "git checkout -- a.py"] * 3 + [FAIL], "------3", id="a revert changes"),
        pytest.param([*OUTLIVED, "pytest|ok", "+4", FAIL], "------3---", id="it passes"),
        pytest.param([*OUTLIVED, "ls", "+4", FAIL], "------3334", id="another passes"),
        pytest.param(
            [*OUTLIVED, "!ls b|ls: b: No such file or directory", "ls b|b", "+4", FAIL],
            "------33334",
            id="another fails and passes",
        ),
        pytest.param([*OUTLIVED, "!pytest|KeyError: b"], "------3-", id="it fails otherwise"),
        pytest.param([*OUTLIVED, ">", "+4", FAIL], "------3---", id="a new plan step"),
    ],
)
def test_a_failure_outlives_changes_until_its_command_passes_or_fails_otherwise(
    words: Sequence[str], values: str
) -> None:
    assert values_after_each(make_judge("same_failure"), words) == list(values)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        pytest.param([*MISSING, "!y|Permission denied", MISSING[0]], "--334", id="once another"),
        pytest.param(
            [*MISSING, *(f"{n}" for n in range(20))], "--3" + 19 * "3" + "-", id="all well"
        ),
        pytest.param(
            [*MISSING, *(f"!{n}|well" for n in range(20)), MISSING[0]],
            "--3" + 19 * "3" + "--",
            id="failures",
        ),
        pytest.param([*MISSING, ">", MISSING[0]], "--3--", id="a new plan step"),
    ],
)
def test_an_obstacle_stands_until_it_is_not_met_for_twenty_steps(
    words: Sequence[str], values: str
) -> None:
    assert values_after_each(make_judge("blocked_environment"), words) == list(values)
