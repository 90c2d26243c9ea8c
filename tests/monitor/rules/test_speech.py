"""What a worker says where it should act, or against what was observed."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import Monologue, UnsupportedClaim
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    Finding,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import Act, Normaliser, claims_success
from midwatch_monitor.rules.detector import Clear, Detector, RuleAnswer, Seen
from midwatch_monitor.rules.reports import MonologueDetector, UnsupportedClaimDetector

CLAIM = AlertKey(rule="unsupported_claim")
TURNS = AlertKey(rule="monologue")


class Run:
    """What a worker says and does, numbered."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.normaliser = Normaliser()
        self.step = 0

    def say(self, text: str = "Well.") -> Sequence[RuleAnswer]:
        return self._feed(Step(number=self.step + 1, kind=StepKind.MESSAGE, text=text))

    def report(self, notes: str) -> Sequence[RuleAnswer]:
        checkpoint = Checkpoint(progress_percent=1, confidence=1, notes=notes)
        return self._feed(
            Step(number=self.step + 1, kind=StepKind.CHECKPOINT, checkpoint=checkpoint)
        )

    def do(
        self, line: str, exit_code: int | None = 0, *, text: str = "", tool: str = "bash"
    ) -> Sequence[RuleAnswer]:
        return self._feed(
            Step(
                number=self.step + 1,
                kind=StepKind.TOOL,
                tool=tool,
                args=line,
                exit_code=exit_code,
                text=text,
            )
        )

    def _feed(self, step: Step) -> Sequence[RuleAnswer]:
        self.step = step.number
        return self.detector.observe(step, Seen(self.normaliser.act(step)))


def turns() -> Run:
    return Run(MonologueDetector(Monologue(notice_after=3, warn_after=5)))


def claims() -> Run:
    return Run(UnsupportedClaimDetector(UnsupportedClaim()))


def severities(answers: Sequence[RuleAnswer]) -> list[Severity]:
    return [each.severity for each in answers if isinstance(each, Finding)]


def test_a_monologue_names_its_first_and_its_last_turn() -> None:
    run = turns()
    run.do("ls")
    run.say()
    run.say()
    assert run.say() == (
        Finding(
            key=TURNS,
            severity=Severity.NOTICE,
            value=3,
            summary="3 turns in a row without an act",
            evidence=(2, 4),
        ),
    )


@pytest.mark.parametrize("tool", ["bash", "set_plan", "wait"])
def test_any_call_of_a_tool_ends_a_monologue(tool: str) -> None:
    run = turns()
    for _ in range(3):
        run.say()
    assert run.do("ls", tool=tool) == (Clear(key=TURNS),)
    assert [run.say(), run.say()] == [(), ()]


@pytest.mark.parametrize(
    "text",
    [
        "All tests pass.",
        "Now all tests pass!",
        "I fixed it and the tests are passing",
        "All 12 tests passed",
        "The test suite is green",
        "Every test passes",
        "All of the tests now pass",
        "Great! All checks succeeded.",
        "The unit tests all pass",
        "I should stop here. All tests pass.",
        "all tests have passed",
    ],
)
def test_a_claim_of_success_is_one(text: str) -> None:
    assert claims_success(text)


@pytest.mark.parametrize(
    "text",
    [
        "All tests should pass",
        "Let me check that all tests pass",
        "I will make sure all tests pass",
        "We go on until all tests pass",
        "If all tests pass, submit",
        "Once the tests pass I will submit",
        "Not all tests pass",
        "The tests do not pass",
        "All tests pass except one",
        "All tests pass, but one",
        "All tests passed before my change",
        "All tests pass if I set the variable",
        "the other tests pass",
        "All existing tests pass",
        "so that all the tests pass",
        "I hope the tests pass",
        "We need the tests to pass",
        "Let me run the tests.",
        "",
    ],
)
def test_a_wish_a_plan_or_a_doubt_is_no_claim(text: str) -> None:
    assert not claims_success(text)


def test_a_claim_against_the_last_test_run_is_found() -> None:
    run = claims()
    run.do("pytest -q", 1)
    assert run.say("All tests pass.") == (
        Finding(
            key=CLAIM,
            severity=Severity.WARNING,
            value=1,
            summary="says that the tests pass; they failed when last run, at step 1",
            evidence=(1, 2),
        ),
    )


def test_the_notes_of_a_checkpoint_and_words_beside_a_call_claim_too() -> None:
    run = claims()
    run.do("pytest", 1)
    assert severities(run.report("All tests pass.")) == [Severity.WARNING]
    assert severities(run.do("ls", text="All tests pass.")) == [Severity.WARNING]


@pytest.mark.parametrize("exit_code", [0, None])
def test_a_claim_that_no_failed_run_contradicts_is_none(exit_code: int | None) -> None:
    run = claims()
    assert run.say("All tests pass.") == ()
    run.do("pytest", exit_code)
    assert run.say("All tests pass.") == ()


def test_words_beside_a_run_that_passes_are_right() -> None:
    run = claims()
    run.do("pytest", 1)
    assert run.do("pytest", 0, text="All tests pass.") == ()


@pytest.mark.parametrize("line", ["python check.py", "node try.js", "./run.sh now"])
def test_after_another_program_has_run_nothing_is_known(line: str) -> None:
    run = claims()
    run.do("pytest", 1)
    run.do(line, 0)
    assert run.say("All tests pass.") == ()


def test_looking_around_does_not_make_a_claim_true() -> None:
    run = claims()
    run.do("go test ./...", 1)
    run.do("ls")
    run.do("", tool="read_file")
    assert severities(run.say("The tests pass.")) == [Severity.WARNING]


@pytest.mark.parametrize("tool", ["run_tests", "pytest", "test", "run_checks"])
def test_a_tool_may_run_the_tests(tool: str) -> None:
    run = claims()
    run.do("", 1, tool=tool)
    assert severities(run.say("All tests pass.")) == [Severity.WARNING]


def test_a_change_says_nothing() -> None:
    run = claims()
    run.do("pytest", 1)
    change = Change(doing="All tests pass.")
    assert run.detector.observe(change, Seen(Act(1, work=False))) == ()
