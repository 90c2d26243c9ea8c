"""`midwatch calibration`, and what `midwatch show` says of it, over a real journal."""

import re

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Change, Ending
from midwatch_stage.command import ask, new_attempt, new_task, printed, read, write
from midwatch_stage.factories import AT, ended, reflecting

Capture = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


async def finish(
    journal: Journal,
    *changes: Change,
    confidence: int = 80,
    ok: bool = True,
    model: str = "m",
) -> None:
    """An attempt of a task of its own that reports once and is over."""
    name = f"task-{len(await journal.runs()) + 1}"
    attempt = await new_attempt(journal, await new_task(journal, name), model=model)
    records = (
        *changes,
        reflecting(1, 40, confidence),
        ended(Ending.DONE if ok else Ending.STUCK),
    )
    await write(journal, attempt, AT, *records)


async def overconfident(journal: Journal) -> None:
    """Ten attempts at 60 of which two succeed, ten at 90 of which eight do."""
    for number in range(10):
        await finish(journal, confidence=60, ok=number < 2)
        await finish(journal, confidence=90, ok=number < 8)


async def test_what_each_confidence_was_worth_is_a_table_and_an_object_a_model_and_told_by_show(
    journal: Journal, capsys: Capture
) -> None:
    await overconfident(journal)
    (line,) = await ask(capsys, "calibration")
    worth = {20: 30, 40: 30, 60: 30, 80: 57, 90: 70, 100: 70}
    assert line == {
        "type": "calibration",
        "model": "m",
        "attempts": 20,
        "attempts_needed": 5,
        "succeeded": 10,
        "tasks": 20,
        "checkpoints": 20,
        "error_before": 0.25,
        "error_after": 0.1122,
        "curve": [{"reported": said, "calibrated": rate} for said, rate in worth.items()],
        "separation": 0.8,
        "separation_interval": [0.6001, 0.9999],
        "worthless": False,
    }
    assert (
        "  last reported: progress 40 %, confidence 90 % (calibrated 70 %, by 20 finished attempts "
        "of the model)"
    ) in await read(capsys, "show", "task-20")
    await finish(journal, model="new")
    assert "  last reported: progress 40 %, confidence 80 %" in await read(
        capsys, "show", "task-21"
    )
    head, first, second, few, *explained = await read(capsys, "calibration")
    assert re.split("  +", head) == [
        *("model", "attempts", "tasks", "succeeded", "error before", "error after"),
        *("20 %", "40 %", "60 %", "80 %", "90 %", "100 %"),
    ]
    assert re.split("  +", first) == [
        *("m", "20", "20", "10", "0.25", "0.11"),
        *("30 %", "30 %", "30 %", "57 %", "70 %", "70 %"),
    ]
    assert re.split("  +", second) == ["new", "1", "1", "1", *("-" * 8)]
    assert few == "new: not enough attempts (1 of 5)"
    assert explained[0].startswith("Under each stated confidence")


async def unsure(journal: Journal) -> None:
    """Forty attempts of which every other one succeeds, whatever it stated."""
    for number in range(40):
        await finish(journal, confidence=60 + 10 * (number // 2 % 4), ok=number % 2 == 0)


async def test_a_confidence_worth_nothing_is_said_to_be(journal: Journal, capsys: Capture) -> None:
    for _ in range(4):
        await unsure(journal)
    (line,) = await ask(capsys, "calibration")
    assert line["worthless"] is True
    (said,) = [each for each in await read(capsys, "calibration") if "worthless" in each]
    assert said.startswith("m: its stated confidence is worthless. Of an attempt that ")
    assert "low_confidence and declining_confidence are silent" in said


async def test_where_nothing_is_over_nothing_is_told(journal: Journal, capsys: Capture) -> None:
    assert await ask(capsys, "calibration") == []
    assert (await printed(capsys, "calibration")).startswith("no attempt of a known model")


async def test_an_attempt_that_nobody_checked_counts_once_somebody_says_what_it_is_worth(
    journal: Journal, capsys: Capture
) -> None:
    attempt = await new_attempt(journal, await new_task(journal, "fix"), model="m")
    await write(journal, attempt, AT, reflecting(1, 40, 80), ended(Ending.UNCHECKED))
    (said,) = await read(capsys, "calibration")
    assert "has succeeded or failed" in said
    assert "`midwatch feedback`" in said
    await read(capsys, "feedback", "fix", "accept")
    assert "m: not enough attempts (1 of 5)" in await read(capsys, "calibration")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([Change(confidence_counts=False)], True),
        ([Change(confidence_counts=False), Change(model="other")], False),
        ([], False),
    ],
)
async def test_show_says_where_the_rules_do_not_go_by_it(
    journal: Journal, capsys: Capture, changes: list[Change], said: bool
) -> None:
    await finish(journal, *changes)
    silent = "  confidence is worthless: low_confidence and declining_confidence are silent"
    assert (silent in await read(capsys, "show", "task-1")) is said
