"""What the journal knows of stated confidence, and that the supervisor is told of it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.metrics.calibration import Sample, calibrate
from midwatch_monitor.records import Attempt, Commit, Ending, Feedback, Origin, Record, Step
from midwatch_supervisor.decide import calibration as reading
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_tests.factories import drafts, ended, reflecting, step

AddAttempt = Callable[..., Awaitable[Attempt]]
CommitRecords = Callable[..., Awaitable[None]]

GOOD, BAD, CANCELED = ended(), ended(Ending.UNACCEPTED), ended(Ending.CANCELED)


def checkpoint_step(number: int, confidence: int) -> Step:
    return reflecting(number, confidence=confidence)


def sample(attempt: int, *said: int, ok: bool, model: str = "m") -> Sample:
    name = f"task-{attempt}"
    return Sample(attempt=attempt, task=name, model=model, confidences=said, succeeded=ok)


@pytest.fixture
def commit_records(journal: Journal) -> CommitRecords:
    """Commits records of an attempt."""

    async def commit(attempt: Attempt, *records: Record) -> None:
        await journal.commit(Commit(drafts=drafts(attempt, records)))

    return commit


@pytest.fixture
def add_attempt(journal: Journal, at: datetime, commit_records: CommitRecords) -> AddAttempt:
    """Adds an attempt of a new task, named by its number, with what it says."""

    async def add(*records: Record, model: str = "m") -> Attempt:
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
        name = f"task-{run.id}"
        task = await journal.add_task(run=run.id, name=name, title="", spec="{}", at=at)
        whose = {"worker": "coder", "model": model, "node": "here", "workspace": ""}
        attempt = await journal.add_attempt(task=task.id, number=1, at=at, **whose)
        await commit_records(attempt, *records)
        return attempt

    return add


async def test_who_is_over_is_a_sample_of_its_checkpoints(
    journal: Journal, add_attempt: AddAttempt
) -> None:
    await add_attempt(checkpoint_step(1, 80), step(2), checkpoint_step(3, 90), GOOD)
    await add_attempt(checkpoint_step(1, 70), BAD, model="other")
    assert await Calibrator(journal).samples() == (
        sample(1, 80, 90, ok=True),
        sample(2, 70, ok=False, model="other"),
    )


SAID, REFUSED, AGREED = checkpoint_step(1, 80), Feedback(accepted=False), Feedback(accepted=True)


@pytest.mark.parametrize(
    ("records", "ok"),
    [
        ((SAID,), None),
        ((GOOD,), None),
        ((SAID, CANCELED), None),
        ((SAID, AGREED), None),
        ((SAID, GOOD, REFUSED), False),
        ((SAID, GOOD, REFUSED, AGREED), True),
        ((SAID, GOOD, replace(REFUSED, origin=Origin.IMPLIED)), True),
    ],
    ids=[
        "works on",
        "never reported",
        "canceled",
        "works on, accepted",
        "a person refuses it",
        "a person's last word wins",
        "what was only implied is no word",
    ],
)
async def test_what_proves_something_is_a_sample(
    journal: Journal, add_attempt: AddAttempt, records: tuple[Record, ...], ok: bool | None
) -> None:
    await add_attempt(*records)
    expected = () if ok is None else (sample(1, 80, ok=ok),)
    assert await Calibrator(journal).samples() == expected


async def test_an_attempt_without_a_model_is_none(
    journal: Journal, add_attempt: AddAttempt
) -> None:
    await add_attempt(SAID, GOOD, model="")
    assert await Calibrator(journal).samples() == ()


async def test_what_comes_later_is_taken_in(
    journal: Journal, add_attempt: AddAttempt, commit_records: CommitRecords
) -> None:
    attempts = [await add_attempt(checkpoint_step(1, 80), GOOD) for _ in range(4)]
    late = await add_attempt(checkpoint_step(1, 80))
    calibrator = Calibrator(journal)
    assert await calibrator.calibration("m") is None
    await commit_records(late, BAD)
    before = await calibrator.calibration("m")
    assert before == calibrate([sample(n, 80, ok=n < 5) for n in range(1, 6)])
    await commit_records(attempts[0], Feedback(accepted=False))
    after = await calibrator.calibration("m")
    assert after == calibrate([sample(n, 80, ok=1 < n < 5) for n in range(1, 6)])


async def test_each_model_has_its_own_calibration(
    journal: Journal, add_attempt: AddAttempt
) -> None:
    for _ in range(5):
        await add_attempt(checkpoint_step(1, 80), GOOD)
        await add_attempt(checkpoint_step(1, 80), BAD, model="other")
    calibrator = Calibrator(journal)
    good, bad = await calibrator.calibration("m"), await calibrator.calibration("other")
    assert good is not None
    assert bad is not None
    assert (good.percent(80), bad.percent(80)) == (93, 7)
    assert await calibrator.calibration("unheard of") is None


async def test_only_the_newest_attempts_of_a_model_count(
    journal: Journal, add_attempt: AddAttempt
) -> None:
    for number in range(reading.RECENT + 2):
        await add_attempt(checkpoint_step(1, number % 100), GOOD)
    calibrator = Calibrator(journal)
    first = await calibrator.samples()
    assert [each.attempt for each in first] == list(range(3, reading.RECENT + 3))
    await add_attempt(checkpoint_step(1, 80), BAD)
    second = await calibrator.samples()
    assert second == (*first[1:], sample(reading.RECENT + 3, 80, ok=False))


async def test_a_journal_that_cannot_be_read_gives_no_calibration(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    calibrator = Calibrator(journal)
    await journal.close()
    assert await calibrator.calibration("m") is None
    assert "the confidence of m cannot be calibrated" in caplog.text
