"""The numbers of the seed, at their boundaries."""

from collections.abc import Iterable, Sequence

import pytest

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    LowConfidence,
    MissedCheckpoint,
    MultipleBlockers,
    StalledProgress,
)
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    CheckpointDecision,
    Event,
    Finding,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.detector import Clear, Detector, RuleAnswer, Seen
from midwatch_monitor.rules.reports import (
    DecliningConfidenceDetector,
    LowConfidenceDetector,
    MissedCheckpointDetector,
    MultipleBlockersDetector,
    StalledProgressDetector,
)


def confident(*values: int) -> list[Checkpoint]:
    return [Checkpoint(progress_percent=10 * n, confidence=each) for n, each in enumerate(values)]


def progressing(*values: int) -> list[Checkpoint]:
    return [Checkpoint(progress_percent=each, confidence=80) for each in values]


def feed(detector: Detector, checkpoints: Iterable[Checkpoint]) -> list[Sequence[RuleAnswer]]:
    return [
        detector.observe(
            Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=each),
            Seen(Act(number, work=False)),
        )
        for number, each in enumerate(checkpoints, start=1)
    ]


def last_value(detector: Detector, checkpoints: Iterable[Checkpoint]) -> float | None:
    """The value of the last finding, `None` where the last checkpoint gave none."""
    answers = feed(detector, checkpoints)[-1]
    return answers[0].value if answers and isinstance(answers[0], Finding) else None


def test_a_finding_says_what_where_and_how_much() -> None:
    [[answer]] = feed(LowConfidenceDetector(LowConfidence(below=30)), confident(12))
    assert answer == Finding(
        key=AlertKey(rule="low_confidence"),
        severity=Severity.WARNING,
        value=12,
        summary="stated confidence is 12 %, below 30 %",
        evidence=(1,),
    )


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ((80, 70, 60), 20),
        ((80, 70, 61), None),
        ((80, 90, 60), 20),
        ((80, 60, 60), 20),
        ((80, 28, 60), None),
        ((80, 50, 51), None),
        ((80, 50), None),
        ((90, 80, 70, 61), None),
        ((60, 80, 70, 60), 20),
    ],
)
def test_confidence_declines_from_the_first_to_the_last_of_a_full_window(
    values: tuple[int, ...], value: float | None
) -> None:
    detector = DecliningConfidenceDetector(DecliningConfidence(window=3, drop=20))
    assert last_value(detector, confident(*values)) == value


def test_a_window_that_is_not_full_says_nothing_of_confidence() -> None:
    detector = DecliningConfidenceDetector(DecliningConfidence(window=3, drop=20))
    assert feed(detector, confident(80, 20, 70)) == [
        (),
        (),
        (Clear(key=AlertKey(rule="declining_confidence")),),
    ]


def test_blockers_of_different_checkpoints_are_not_added_up() -> None:
    two = Checkpoint(progress_percent=50, confidence=50, blockers=("a", "b"))
    assert last_value(MultipleBlockersDetector(MultipleBlockers(count=3)), [two, two]) is None


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ((60, 60, 60), 0),
        ((0, 0, 0), 0),
        ((60, 70, 50), -10),
        ((60, 60, 61), None),
        ((60, 60), None),
        ((100, 100, 100), None),
        ((99, 99, 100), None),
    ],
)
def test_progress_stalls_over_a_full_window_and_never_at_100(
    values: tuple[int, ...], value: float | None
) -> None:
    detector = StalledProgressDetector(StalledProgress(window=3, min_gain=1))
    assert last_value(detector, progressing(*values)) == value


def test_a_gain_of_less_than_the_threshold_is_a_stall() -> None:
    settings = StalledProgress(window=3, min_gain=5)
    assert last_value(StalledProgressDetector(settings), progressing(50, 52, 54)) == 4
    assert last_value(StalledProgressDetector(settings), progressing(50, 52, 55)) is None


def test_the_window_of_progress_may_be_longer_than_all_others() -> None:
    detector = StalledProgressDetector(StalledProgress(window=6, min_gain=1))
    answers = feed(detector, progressing(*[40] * 6))
    assert [bool(each) for each in answers] == [False] * 5 + [True]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_pivot_that_begins_a_window_is_not_judged_by_it(fresh: bool) -> None:
    pivot = Checkpoint(progress_percent=60, confidence=80, decision=CheckpointDecision.PIVOT)
    detector = StalledProgressDetector(StalledProgress(window=3, min_gain=1))
    feed(detector, progressing(60, 60))
    step = Step(number=3, kind=StepKind.CHECKPOINT, checkpoint=pivot)
    answers = detector.observe(step, Seen(Act(3, work=False), fresh=fresh))
    assert bool(answers) is not fresh


def test_a_restart_empties_the_window() -> None:
    detector = StalledProgressDetector(StalledProgress(window=3, min_gain=1))
    feed(detector, progressing(60, 60))
    detector.restart()
    assert last_value(detector, progressing(60, 60)) is None
    assert last_value(detector, progressing(60)) == 0


@pytest.mark.parametrize("event", [Change(plan_step=2), Step(number=1, kind=StepKind.MESSAGE)])
def test_what_is_no_checkpoint_gives_reports_nothing_to_say(event: Change | Step) -> None:
    for detector in (
        LowConfidenceDetector(LowConfidence()),
        StalledProgressDetector(StalledProgress()),
    ):
        assert detector.observe(event, Seen(Act(1, work=False))) == ()


def test_a_stall_is_told_as_people_say_it() -> None:
    detector = StalledProgressDetector(StalledProgress(window=3, min_gain=5))
    told = [
        each.summary
        for values in ((38, 38, 38), (50, 52, 54))
        for answers in feed(detector, progressing(*values))
        for each in answers
        if isinstance(each, Finding)
    ]
    assert told[0] == "progress stuck at 38 % for 3 checkpoints"
    assert told[-1] == "progress went from 50 % to 54 % in 3 checkpoints"


KEY = AlertKey(rule="missed_checkpoint")


class Run:
    """Feeds events and numbers the steps."""

    def __init__(self, *changes: Change) -> None:
        self.detector = MissedCheckpointDetector(MissedCheckpoint(warn_after=3, critical_after=6))
        self.step = 0
        for change in changes:
            self.feed(change)

    def feed(self, event: Event) -> Sequence[RuleAnswer]:
        return self.detector.observe(event, Seen(Act(self.step, work=False)))

    def work(self, steps: int, *, request: int = 0) -> Sequence[RuleAnswer]:
        answers: Sequence[RuleAnswer] = ()
        for _ in range(steps):
            self.step += 1
            of = request or 1000 + self.step
            answers = self.feed(Step(number=self.step, kind=StepKind.TOOL, request=of))
        return answers

    def reflect(self, *, request: int = 0) -> Sequence[RuleAnswer]:
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


def missed(answers: Sequence[RuleAnswer]) -> tuple[Severity, float] | None:
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


def test_without_reminders_nothing_is_missed() -> None:
    run = Run(OFFERED)
    run.work(9)
    assert run.feed(Change(reflect_every=0)) == (Clear(key=KEY),)
    assert missed(run.work(50)) is None


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


def _hear(detector: Detector, change: Change) -> Sequence[RuleAnswer]:
    return detector.observe(change, Seen(Act(0, work=False)))


@pytest.mark.parametrize(
    "detector",
    [
        LowConfidenceDetector(LowConfidence(below=30)),
        DecliningConfidenceDetector(DecliningConfidence(window=3, drop=20)),
    ],
)
def test_confidence_worth_nothing_is_no_alarm_until_another_model_goes_on(
    detector: Detector,
) -> None:
    falling = confident(80, 50, 10)
    assert last_value(detector, falling) is not None
    assert _hear(detector, Change(confidence_counts=False)) == (
        Clear(key=AlertKey(rule=detector.rule)),
    )
    assert last_value(detector, falling) is None
    assert _hear(detector, Change(model="another")) == ()
    assert last_value(detector, falling) is not None
