"""`midwatch calibration`, and what `midwatch show` says of it, over a real journal."""

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Change, Ending
from midwatch_tests.command import ask, new_attempt, new_task, printed, read, write
from midwatch_tests.factories import AT, ended, reflecting

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
