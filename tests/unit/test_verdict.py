"""Whether a result was accepted, by whatever says so."""

import pytest

from midwatch_monitor.verdict import teaches, verdict_of, weight
from midwatch_monitor.words import (
    AttemptState,
    Ending,
    Fault,
    Feedback,
    Lifecycle,
    Origin,
    Sign,
)


def ended(ending: Ending | None) -> AttemptState:
    lifecycle = Lifecycle.COMPLETED if ending is Ending.DONE else Lifecycle.FAILED
    return AttemptState(lifecycle=lifecycle, ending=ending, reason="because")


@pytest.mark.parametrize(
    ("ending", "accepted"),
    [
        (Ending.DONE, True),
        (Ending.UNACCEPTED, False),
        (Ending.STUCK, False),
        (Ending.RESTARTED, False),
        (Ending.OUT_OF_BUDGET, False),
    ],
)
def test_r2_an_ending_that_says_something_of_the_work_is_a_verdict(
    ending: Ending, accepted: bool
) -> None:
    assert verdict_of(ended(ending)) == Feedback(
        accepted=accepted,
        comment="because",
        origin=Origin.AUTOMATIC,
        author="midwatch",
        sign=Sign.ENDED,
    )


@pytest.mark.parametrize("ending", [Ending.ERROR, Ending.CANCELED, Ending.SPLIT, None])
def test_other_endings_are_none(ending: Ending | None) -> None:
    assert verdict_of(ended(ending)) is None


def test_a_verdict_is_itself_and_anything_else_is_none() -> None:
    feedback = Feedback(accepted=False)
    assert verdict_of(feedback) is feedback
    assert verdict_of(Fault(part="x", error="y")) is None


def test_r18_a_persons_word_weighs_more_than_a_sign_and_that_more_than_the_checks() -> None:
    assert sorted(Origin, key=weight) == [Origin.AUTOMATIC, Origin.IMPLIED, Origin.EXPLICIT]


@pytest.mark.parametrize(
    ("record", "lesson"),
    [
        (Feedback(accepted=False), True),
        (Feedback(accepted=False, origin=Origin.IMPLIED, sign=Sign.EDITED), True),
        (Feedback(accepted=False, origin=Origin.AUTOMATIC, sign=Sign.REVIEWED), False),
        (Feedback(accepted=True), False),
        (ended(Ending.UNACCEPTED), True),
        (ended(Ending.DONE), False),
        (ended(Ending.ERROR), False),
    ],
)
def test_r6_a_rejection_teaches(record: Feedback | AttemptState, lesson: bool) -> None:
    assert teaches(record) is lesson
