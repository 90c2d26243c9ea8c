"""A worker that has `reflect` and does not use it is found; a parked one is not."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import MissedCheckpoint
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    Event,
    Finding,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.detector import Answer, Clear, Seen
from midwatch_monitor.rules.reports import MissedCheckpointDetector

KEY = AlertKey(rule="missed_checkpoint")


class Run:
    """Feeds events and numbers the steps."""

    def __init__(self, *changes: Change) -> None:
        self.detector = MissedCheckpointDetector(MissedCheckpoint(warn_after=3, critical_after=6))
        self.step = 0
        for change in changes:
            self.feed(change)

    def feed(self, event: Event) -> Sequence[Answer]:
        return self.detector.observe(event, Seen(Act(self.step, work=False)))

    def work(self, steps: int, *, request: int = 0) -> Sequence[Answer]:
        answers: Sequence[Answer] = ()
        for _ in range(steps):
            self.step += 1
            of = request or 1000 + self.step
            answers = self.feed(Step(number=self.step, kind=StepKind.TOOL, request=of))
        return answers

    def reflect(self, *, request: int = 0) -> Sequence[Answer]:
        self.step += 1
        checkpoint = Checkpoint(progress_percent=10, confidence=50)
        return self.feed(
            Step(
                number=self.step,
                kind=StepKind.CHECKPOINT,
                checkpoint=checkpoint,
                request=request,
            )
        )


def missed(answers: Sequence[Answer]) -> tuple[Severity, float] | None:
    found = [each for each in answers if isinstance(each, Finding)]
    return (found[0].severity, found[0].value) if found else None


OFFERED = Change(reflect=True)


def test_three_missed_intervals_of_three_requests_warn() -> None:
    run = Run(OFFERED)
    assert missed(run.work(8)) is None
    assert missed(run.work(1)) == (Severity.WARNING, 3)
    assert missed(run.work(9)) == (Severity.CRITICAL, 6)


def test_as_long_as_nothing_is_missed_nothing_is_said() -> None:
    run = Run(OFFERED)
    assert (run.work(8), run.reflect(), run.work(8)) == ((), (), ())


def test_a_step_of_no_known_request_counts_half() -> None:
    run = Run(OFFERED)
    steps = [Step(number=number, kind=StepKind.TOOL) for number in range(1, 19)]
    answers = [missed(run.feed(step)) for step in steps]
    assert answers == [*[None] * 17, (Severity.WARNING, 3)]


def test_a_run_that_never_had_the_tool_is_not_judged() -> None:
    assert Run().work(100) == ()


def test_a_checkpoint_shows_that_the_tool_is_there() -> None:
    run = Run()
    run.work(20)
    run.reflect()
    assert missed(run.work(8)) is None
    assert missed(run.work(1)) == (Severity.WARNING, 3)


def test_a_checkpoint_clears_and_starts_the_count_anew() -> None:
    run = Run(OFFERED)
    run.work(9)
    assert run.reflect() == (Clear(key=KEY),)
    assert missed(run.work(8)) is None


def test_the_steps_of_one_request_count_once() -> None:
    run = Run(OFFERED)
    for request in range(1, 9):
        assert missed(run.work(4, request=request)) is None
    assert missed(run.work(1, request=9)) == (Severity.WARNING, 3)


def test_the_rest_of_the_request_that_reflected_is_not_counted() -> None:
    run = Run(OFFERED, Change(reflect_every=1))
    run.reflect(request=1)
    run.work(5, request=1)
    run.work(5, request=2)
    assert missed(run.work(5, request=3)) is None
    assert missed(run.work(5, request=4)) == (Severity.WARNING, 3)


def test_the_interval_in_force_is_the_one_that_counts() -> None:
    run = Run(OFFERED, Change(reflect_every=6))
    assert missed(run.work(17)) is None
    assert missed(run.work(1)) == (Severity.WARNING, 3)


def test_without_reminders_nothing_is_missed() -> None:
    run = Run(OFFERED)
    run.work(9)
    assert run.feed(Change(reflect_every=0)) == (Clear(key=KEY),)
    assert missed(run.work(50)) is None


def test_a_parked_worker_is_not_flagged() -> None:
    run = Run(OFFERED, Change(lifecycle=Lifecycle.INPUT_REQUIRED))
    assert run.work(50) == ()
    run.feed(Change(lifecycle=Lifecycle.WORKING))
    assert missed(run.work(8)) is None
    assert missed(run.work(1)) == (Severity.WARNING, 3)


def test_a_tool_that_is_taken_away_cannot_be_missed() -> None:
    run = Run(OFFERED)
    run.work(9)
    assert run.feed(Change(reflect=False)) == (Clear(key=KEY),)
    assert run.work(9) == ()


def test_evidence_runs_from_the_last_checkpoint_to_now() -> None:
    run = Run(OFFERED)
    run.reflect()
    [answer] = run.work(9)
    assert isinstance(answer, Finding)
    assert answer.evidence == (1, 10)


def test_a_report_that_was_refused_is_none_that_is_missing() -> None:
    run = Run(OFFERED)
    run.work(9)
    run.step += 1
    refused = Step(number=run.step, kind=StepKind.TOOL, tool="reflect", ok=False, request=7)
    assert run.feed(refused) == (Clear(key=KEY),)
    assert missed(run.work(8)) is None
