"""What the first screen says of the chosen row, and in a few words of every row."""

from dataclasses import replace
from datetime import timedelta

import pytest
from rich.cells import cell_len

from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    AlertState,
    BudgetRequest,
    Change,
    Ending,
    Grant,
    Lifecycle,
    Record,
    Resolution,
    Severity,
)
from midwatch_supervisor.present.text_line import Tone
from midwatch_supervisor.present.waiting import Wait
from midwatch_supervisor.tui.screens.preview import Preview, why
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.factories import (
    AT,
    alert,
    away,
    delivery,
    ended,
    feedback,
    intervention,
    reflecting,
    task,
    transition,
)
from midwatch_tests.rows import row

KEYS = {"approve": "a", "modify": "m", "reject": "r", "guide": "i", "pause": "p"}
WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED, reason="Which paper size is used?")
STUCK = alert(
    "declining_confidence",
    Severity.CRITICAL,
    summary="confidence 50 to 24 %",
    evidence=(55, 58, 66),
    at=AT + timedelta(minutes=1),
)
HELD = intervention(
    Action.RESTART, Actor.SUPERVISOR, message="Go forward one day at a time.", needs_approval=True
)
AGAIN = reflecting(7, 12, 24, notes="No way out of this.")


def preview(made: Row, width: int = 70, **more: str) -> list[str]:
    """The lines of the preview, two minutes after the beginning."""
    now = AT + timedelta(minutes=2)
    drawn = Preview(row=made, width=width, now=now, keys=KEYS, **more).lines()
    return ["".join(text for text, _ in line).rstrip() for line in drawn]


def text(made: Row, width: int = 70, **more: str) -> str:
    return "\n".join(preview(made, width, **more))


@pytest.mark.parametrize("width", [38, 70, 120, 200])
def test_no_line_is_wider_than_the_preview(width: int) -> None:
    wide = reflecting(9, 50, 30, notes="日本" * 60, blockers=("y" * 300,))
    made = row(WORKING, STUCK, AGAIN, wide, HELD)
    assert max(cell_len(line) for line in preview(made, width)) <= width


ACK, SILENCE = (
    (intervention(action, Actor.OPERATOR, answers=(STUCK.key,)), delivery(3))
    for action in (Action.ACKNOWLEDGE, Action.SILENCE)
)


@pytest.mark.parametrize(
    ("acts", "word", "tone"),
    [((), "", Tone.BAD), (ACK, "acknowledged", Tone.PLAIN), (SILENCE, "silenced", Tone.PLAIN)],
    ids=["fires", "acknowledged", "silenced"],
)
def test_an_alert_is_told_with_its_state(acts: tuple[Record, ...], word: str, tone: Tone) -> None:
    made = row(WORKING, STUCK, *acts)
    (line,) = [line for line in preview(made) if "confidence 50" in line]
    assert line.startswith(" ■ confidence 50 to 24 %")
    assert line.endswith(", ".join([*filter(None, [word]), "steps 55, 58, 66, for 1 min"]))
    said = ": ".join([*filter(None, [word]), "confidence 50 to 24 %"])
    assert (why(made, None), made.called) == ((said, tone), not acts)


def test_an_alert_that_has_ended_says_so_with_its_last_value() -> None:
    last = replace(STUCK, state=AlertState.RESOLVED, resolution=Resolution.ENDED, summary="at 12 %")
    shown = text(row(WORKING, STUCK, ended(Ending.UNCHECKED), last))
    assert "■ at 12 %" in shown
    assert "steps 55, 58, 66, ended" in shown


WAITING: dict[str, tuple[Record, str, str]] = {
    "a decision": (
        intervention(
            Action.REPLAN,
            Actor.SUPERVISOR,
            message="Do it in two parts. " * 9,
            plan=("Count the days.", "Skip the holidays."),
            needs_approval=True,
        ),
        f"PROPOSED: REPLAN by supervisor, waiting 1 min\n{' '.join(['Do it in two parts.'] * 9)}"
        "\n1. Count the days.\n2. Skip the holidays.",
        "a Approve   m Modify   r Reject   i Guide",
    ),
    "a question": (ASKS, "Which paper size is used?", "i Guide   p Resume"),
    "a request": (
        BudgetRequest(wanted=Grant(requests=20), reason="many tests"),
        "asks for budget: 20 requests (many tests)",
        "a Approve   r Reject   i Guide",
    ),
}


@pytest.mark.parametrize(("record", "what", "keys"), WAITING.values(), ids=WAITING)
def test_what_waits_is_told_in_full_with_its_keys(record: Record, what: str, keys: str) -> None:
    said = text(row(WORKING, STUCK, record), 50)
    assert all(each in " ".join(said.split()) for each in what.splitlines())
    assert keys in said


def test_equal_checkpoints_are_one_line_with_a_count_the_newest_on_top() -> None:
    blocked = reflecting(3, 10, 50, blockers=("no key for the sandbox", "the port is taken"))
    said = preview(row(WORKING, blocked, *[AGAIN] * 8))
    newest = next(line for line in said if "24%" in line)
    assert "24% ↓ continue" in newest
    assert newest.endswith("\N{MULTIPLICATION SIGN}8, 7 s")
    assert said[-2:] == ["  ✗ no key for the sandbox", "  ✗ the port is taken"]


def test_a_task_that_has_not_begun_says_what_it_waits_for() -> None:
    made = Row.of(task(name="labels", title="Labels for parcels"))
    waits = text(made, waits="the task totals")
    assert "Labels for parcels" in waits
    assert "queued; waits for the task totals" in waits
    assert why(made, Wait(what="the task totals", short="after totals")).text == "after totals"


def test_a_wide_preview_has_the_checkpoints_beside_the_rest() -> None:
    head, first, *_ = preview(row(WORKING, STUCK, AGAIN), 120)
    assert "fix#1 ─ WHY" in head
    assert "CHECKPOINTS" in head
    assert "confidence 50" in first.partition("│")[0]
    assert "24%" in first.partition("│")[2]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((WORKING,), "-"),
        ((WORKING, Change(activity=Activity.COMMAND, doing="pytest -q")), "pytest -q"),
        ((WORKING, AGAIN), '"No way out of this."'),
        ((WORKING, AGAIN, AGAIN), '"No way out of this." \N{MULTIPLICATION SIGN}2, 1 s'),
        ((WORKING, reflecting(3, 10, 50, blockers=("no key",))), "blocked: no key"),
        ((WORKING, AGAIN, STUCK), "confidence 50 to 24 %"),
        ((WORKING, STUCK, ASKS), "Which paper size is used?"),
        ((WORKING, away()), "waits for the provider: HTTP 503 from http://far.test/v1"),
        ((WORKING, STUCK, ended(reason="every check passed")), "every check passed"),
        (
            (WORKING, ended(reason="done"), feedback(accepted=False, comment="too slow")),
            "not accepted: too slow",
        ),
    ],
)
def test_a_line_says_what_is_most_urgent(records: tuple[Record, ...], said: str) -> None:
    assert why(row(*records), None).text == said
