"""What stated confidence is worth: levels, the pull of the prior, the error before and after."""

from dataclasses import replace

import pytest

from midwatch_monitor.metrics.calibration import (
    MIN_ATTEMPTS,
    Calibration,
    Level,
    Prediction,
    Sample,
    Separation,
    TrackRecord,
    calibrate,
    expected_error,
    separation,
    success,
    track_records,
)
from midwatch_monitor.records import Ending


def sample(number: int, *said: int, ok: bool, task: str | None = None, model: str = "m") -> Sample:
    return Sample(
        attempt=number, task=task or f"task-{number}", model=model, confidences=said, succeeded=ok
    )


def alike_samples(count: int, succeeded: int, *said: int, first: int = 1) -> list[Sample]:
    """Attempts that said the same, of which the first ones succeeded."""
    return [sample(first + each, *said, ok=each < succeeded) for each in range(count)]


def level(low: int, high: int, rate: float) -> Level:
    return Level(low=low, high=high, rate=rate, weight=10)


def curve(*samples: Sample) -> Calibration:
    found = calibrate(samples)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ending", "accepted", "succeeded"),
    [
        (Ending.DONE, None, True),
        (Ending.UNACCEPTED, None, False),
        (Ending.STUCK, None, False),
        (Ending.OUT_OF_BUDGET, None, False),
        (Ending.ERROR, None, False),
        (Ending.RESTARTED, None, False),
        (Ending.CANCELED, None, None),
        (None, None, None),
        (Ending.DONE, False, False),
        (Ending.UNACCEPTED, True, True),
        (Ending.CANCELED, True, True),
    ],
)
def test_a_persons_verdict_wins_over_how_it_ended(
    ending: Ending | None, accepted: bool | None, succeeded: bool | None
) -> None:
    assert success(ending, accepted=accepted) is succeeded


def test_four_attempts_are_too_few_to_claim_anything() -> None:
    assert MIN_ATTEMPTS == 5
    assert calibrate(alike_samples(4, 2, 80)) is None
    assert calibrate(alike_samples(5, 2, 80)) is not None


def test_a_level_is_drawn_to_the_usual_rate_by_five_attempts() -> None:
    # The usual rate is (10 + 1) / (20 + 2); ten attempts weigh twice as much as the five.
    found = curve(*alike_samples(10, 2, 60), *alike_samples(10, 8, 90, first=11))
    assert [(each.low, each.high) for each in found.levels] == [(60, 60), (90, 90)]
    assert [each.rate for each in found.levels] == pytest.approx([0.3, 0.7])
    assert (found.percent(60), found.percent(90)) == (30, 70)


def test_five_successes_of_five_are_no_certainty() -> None:
    assert curve(*alike_samples(5, 5, 100)).rate(100) == pytest.approx((5 + 5 * 6 / 7) / 10)


def test_a_rate_never_falls_with_the_confidence() -> None:
    found = curve(*alike_samples(10, 9, 40), *alike_samples(10, 1, 95, first=11))
    assert [(each.low, each.high, each.rate) for each in found.levels] == [(40, 95, 0.5)]


def test_a_thin_level_does_not_fall_below_its_neighbour() -> None:
    # By itself the one attempt at 90 is drawn further down than the many at 60.
    found = curve(
        *alike_samples(5, 0, 20), *alike_samples(40, 36, 60, first=6), sample(90, 90, ok=True)
    )
    rates = [each.rate for each in found.levels]
    assert rates == sorted(rates)
    assert [(each.low, each.high) for each in found.levels] == [(20, 20), (60, 90)]


@pytest.mark.parametrize(
    ("confidence", "percent"),
    [(0, 20), (20, 20), (40, 20), (50, 40), (60, 60), (80, 60), (100, 60)],
)
def test_between_levels_stands_a_line_outside_the_nearest(confidence: int, percent: int) -> None:
    found = Calibration(attempts=20, levels=(level(20, 40, 0.2), level(60, 80, 0.6)))
    assert found.percent(confidence) == percent


def test_an_attempt_is_spread_over_what_it_said_and_counts_once_however_often() -> None:
    samples = [*alike_samples(5, 0, 20, 40), *alike_samples(5, 5, *[80] * 9, first=6)]
    found = curve(*samples)
    assert found == curve(*samples[::-1])
    assert [(each.low, each.high) for each in found.levels] == [(20, 40), (80, 80)]
    assert [each.weight for each in found.levels] == pytest.approx([10, 10])


def make_prediction(stated: int, rate: float, ok: bool, weight: float = 1) -> Prediction:
    return Prediction(stated=stated, rate=rate, succeeded=ok, weight=weight)


@pytest.mark.parametrize(
    ("predictions", "error"),
    [
        ([make_prediction(75, 0.75, ok) for ok in (True, True, True, False)], 0),
        ([make_prediction(90, 0.9, ok=False)], 0.9),
        ([make_prediction(100, 1, ok=True), make_prediction(100, 1, ok=False)], 0.5),
        # Inside a bin too high and too low make up for each other, between bins they do not.
        ([make_prediction(41, 0.41, ok=True), make_prediction(49, 0.49, ok=False)], 0.05),
        ([make_prediction(49, 0.49, ok=True), make_prediction(51, 0.51, ok=False)], 0.51),
        ([make_prediction(20, 0.3, ok=True), make_prediction(90, 0.7, ok=False)], 0.7),
        # The bins are of what was stated, whatever rate follows from it.
        ([make_prediction(80, 0.2, ok=True), make_prediction(80, 0.8, ok=False)], 0),
        ([make_prediction(100, 1, ok=True, weight=3), make_prediction(80, 0.8, ok=False)], 0.2),
    ],
)
def test_the_error_is_the_mean_gap_of_the_bins(predictions: list[Prediction], error: float) -> None:
    assert expected_error(predictions) == pytest.approx(error)


def test_an_overconfident_model_errs_less_when_calibrated() -> None:
    (record,) = track_records([*alike_samples(20, 4, 85), *alike_samples(20, 16, 98, 98, first=21)])
    assert record.error_before == pytest.approx((0.65 + 0.18) / 2)
    assert record.error_after == pytest.approx(0.06, abs=0.01)
    assert (record.attempts, record.succeeded, record.tasks, record.checkpoints) == (40, 20, 40, 60)


def test_chance_alone_does_not_make_a_calibration_look_bad() -> None:
    (record,) = track_records(alike_samples(20, 10, 50))
    assert record.error_before == 0
    assert record.error_after == pytest.approx(0, abs=1e-9)


def test_no_task_is_judged_by_a_curve_that_has_seen_it() -> None:
    # Two tasks, each with an outcome of its own: known in advance, there would be no error.
    easy = [sample(number, 90, ok=True, task="easy") for number in range(1, 11)]
    hard = [sample(number, 10, ok=False, task="hard") for number in range(11, 21)]
    (record,) = track_records([*easy, *hard])
    assert record.error_before == pytest.approx(0.1)
    # Each is predicted from the other alone: (10 * 0 + 5 / 12) / 15, and one less that.
    assert record.error_after == pytest.approx(1 - 5 / 12 / 15)


def test_of_one_task_alone_the_error_after_is_not_known() -> None:
    (record,) = track_records([sample(n, 80, ok=n > 3, task="a") for n in range(1, 7)])
    assert record.error_before == pytest.approx(0.3)
    assert record.error_after is None
    assert record.calibration is not None


def test_each_model_has_a_record_of_its_own() -> None:
    few = sample(6, 50, 60, ok=True, model="a")
    first, second = track_records([*alike_samples(5, 5, 80), few])
    assert first == TrackRecord(model="a", attempts=1, succeeded=1, tasks=1, checkpoints=2)
    assert (second.model, second.calibration) == ("m", calibrate(alike_samples(5, 5, 80)))
    assert track_records([]) == ()


def find_separation(*samples: Sample) -> Separation:
    found = separation(samples)
    assert found is not None
    return found


def mixed_samples(count: int) -> list[Sample]:
    """As many successes as failures, which said the same."""
    return [sample(each, 60 + 10 * (each // 2 % 4), ok=each % 2 == 0) for each in range(count)]


def test_separation_is_how_often_the_success_was_the_more_confident() -> None:
    won, lost = sample(1, 70, 90, ok=True), (sample(2, 80, ok=False), sample(3, 60, ok=False))
    assert find_separation(won, *lost).area == 0.75


def test_where_all_succeed_or_all_fail_nothing_is_said_of_separation() -> None:
    assert (
        separation(alike_samples(9, 9, 80))
        is separation(alike_samples(9, 0, 80))
        is separation([])
        is None
    )


def test_many_different_tasks_show_that_confidence_is_worth_nothing() -> None:
    found = find_separation(*mixed_samples(40))
    assert (found.area, found.worthless(0.7)) == (0.5, True)
    assert not find_separation(*mixed_samples(20)).worthless(0.7)
    again = [replace(each, task=f"task-{each.attempt // 4}") for each in mixed_samples(40)]
    assert not find_separation(*again).worthless(0.7)


def test_confidence_that_tells_a_little_is_worth_something() -> None:
    telling = [sample(n, 60 + 10 * (n // 2 % 4) + 15 * (n % 2), ok=n % 2 == 1) for n in range(400)]
    found = find_separation(*telling)
    assert 0.5 < found.interval.low < found.area < found.interval.high
    assert not found.worthless(1)


def test_confidence_against_the_truth_is_worth_nothing() -> None:
    assert find_separation(
        *(sample(n, 50 + 40 * (n % 2), ok=n % 2 == 0) for n in range(20))
    ).worthless(0.5)
