"""`midwatch show` over a real journal: what `texts.txt` does not tell, and how one names it."""

from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_tests import factories as make
from midwatch_tests.command import ask, new_attempt, new_task, read, refused, write

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]


@pytest.mark.parametrize(
    ("records", "lines"),
    [
        ((r.Change(model="big"),), ["  coder with big (before: m) on here, in /w"]),
        (
            (make.transition(r.Lifecycle.FAILED, reason="in two", ending=r.Ending.SPLIT),),
            [
                "waits for: the tasks that it was split into",
                "attempt 1, fix#1: split: in two",
                "  health ok, last step 0",
            ],
        ),
    ],
)
async def test_an_attempt_that_was_switched_or_split_says_so(
    write: Write, capsys: Capture, records: tuple[r.Record, ...], lines: list[str]
) -> None:
    await write(r.Plan(steps=(r.PlanStep(title="fix it"),)), *records)
    shown = await read(capsys, "show", "fix")
    assert [each for each in lines if each not in shown] == []
    assert "  plan:" not in shown  # the task alone is none


async def test_an_attempt_without_a_folder_and_one_that_shows_the_use_of_its_task(
    journal: Journal, capsys: Capture
) -> None:
    task = await new_task(journal, "totals")
    for number in (1, 2):
        await new_attempt(journal, task, number, workspace="")
    lines = await read(capsys, "show", "totals")
    used = [line.partition(":")[0] for line in lines if line.startswith("  used")]
    assert used == ["  used", "  used of the task's budget"]
    assert "  coder with m on here" in lines


async def test_the_outcome_of_a_restart_stands_with_the_restart(
    journal: Journal, capsys: Capture
) -> None:
    task = await new_task(journal, "totals")
    first, second = [await new_attempt(journal, task, number) for number in (1, 2)]
    id = await write(journal, first, make.AT, make.intervention(r.Action.RESTART))
    await write(journal, second, make.AT, make.outcome(id, r.Outcome.NO_EFFECT, reason=""))
    lines = await read(capsys, "show", "totals#1")
    assert f"    {id} restart by policy: issued, no effect" in lines


@pytest.mark.parametrize(
    ("state", "author", "comment", "said"),
    [
        (r.DeliveryState.REJECTED, "Ann", "Keep it", "rejected by Ann: Keep it"),
        (
            *(r.DeliveryState.APPROVED, "policy", "nobody answered within 5 minutes"),
            "approved by policy: nobody answered within 5 minutes; delivered",
        ),
    ],
)
async def test_who_approved_or_rejected_an_intervention_and_why_stands_with_it(
    write: Write, capsys: Capture, state: r.DeliveryState, author: str, comment: str, said: str
) -> None:
    id = await write(make.intervention(r.Action.RESTART, needs_approval=True))
    await write(make.delivery(id, state, author=author, comment=comment))
    if state is r.DeliveryState.APPROVED:
        await write(make.delivery(id))
    assert f"    {id} restart by policy: {said}" in await read(capsys, "show", "fix")
    *_, shown = [line for line in await ask(capsys, "show", "fix") if "outcome" in line]
    assert (shown["settled_by"], shown["comment"]) == (author, comment)


@pytest.fixture
async def two_runs(journal: Journal) -> None:
    """Tasks of like names: `totals` in both runs, `labels` in the first only."""
    first = await new_task(journal, "totals")
    labels = await new_task(journal, "labels", run=first.run)
    second = await new_task(journal, "totals")
    for name in ("total", "1"):
        await new_task(journal, name, run=second.run)
    for task, number in ((first, 1), (first, 2), (labels, 1), (second, 1), (second, 2)):
        await new_attempt(journal, task, number)
    nudges = [make.intervention()] * 9
    asked = make.escalation(70, attempt=2)
    await write(journal, await journal.attempt(2), make.AT, *nudges, asked)


@pytest.mark.parametrize(
    ("id", "task", "attempts"),
    [
        ("totals", "task totals (run 2)", ["attempt 4, totals#1", "attempt 5, totals#2"]),
        ("lab", "task labels (run 1)", ["attempt 3, labels#1"]),
        ("total", "task total (run 2)", []),
        ("1", "task 1 (run 2)", []),  # a name wins over an attempt
        ("2", "task totals (run 1)", ["attempt 2, totals#2"]),
        ("totals#2", "task totals (run 2)", ["attempt 5, totals#2"]),
        ("lab#1", "task labels (run 1)", ["attempt 3, labels#1"]),
        ("15", "task totals (run 1)", ["attempt 2, totals#2"]),  # an intervention
        ("70", "task totals (run 1)", ["attempt 2, totals#2"]),  # an escalation
    ],
)
@pytest.mark.usefixtures("two_runs")
async def test_a_task_an_attempt_and_what_is_about_it_are_named_by_id_name_or_beginning(
    capsys: Capture, id: str, task: str, attempts: list[str]
) -> None:
    head, *lines = await read(capsys, "show", id)
    shown = [line.partition(":")[0] for line in lines if line.startswith("attempt ")]
    assert (head, shown) == (task, attempts)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("x", "there is no task or attempt `x`; the tasks are: totals, total, 1, labels\n"),
        ("71", "there is no task or attempt `71`; the tasks are: totals, total, 1, labels\n"),
        ("tot", "`tot` could mean any of totals, total\n"),
        ("totals#7", "there is no attempt totals#7; known: totals#1, totals#2\n"),
        ("total#1", "there is no attempt total#1; known: none yet\n"),
    ],
)
@pytest.mark.usefixtures("two_runs")
async def test_what_is_not_there_is_bad_usage(capsys: Capture, id: str, said: str) -> None:
    assert await refused(capsys, "show", id) == said
