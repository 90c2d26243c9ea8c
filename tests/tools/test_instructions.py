"""What Midwatch says to a worker, and how it knows its own words again."""

import pytest

from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import (
    Action,
    Actor,
    Checkpoint,
    CheckpointDecision,
    Grant,
    Intervention,
    Plan,
    PlanStep,
    PlanStepState,
    Terms,
)
from midwatch_tools.instructions import (
    answer,
    intervention_id,
    intervention_text,
    next_interval,
    outline,
    protocol,
    reminder,
    reminder_due,
    steady,
)

SETTINGS = ReflectSettings()

CODE = "0badcafe"


def said(
    confidence: int = 80,
    decision: CheckpointDecision = CheckpointDecision.CONTINUE,
    *,
    blockers: tuple[str, ...] = (),
    alone: bool = False,
) -> str:
    checkpoint = Checkpoint(
        progress_percent=10, confidence=confidence, decision=decision, blockers=blockers
    )
    return answer(checkpoint, SETTINGS, alone=alone)


@pytest.mark.parametrize(
    ("confidence", "band"),
    [(100, "high"), (70, "high"), (69, "middling"), (40, "middling"), (39, "low"), (0, "low")],
)
def test_the_answer_depends_on_the_band_of_confidence(confidence: int, band: str) -> None:
    assert said(confidence).startswith(f"Recorded. Confidence is {band}:")


def test_a_pivot_is_told_to_plan_anew() -> None:
    assert said(decision=CheckpointDecision.PIVOT).removeprefix(said()).startswith(" You pivot:")
    assert "`set_plan`" in said(decision=CheckpointDecision.PIVOT)


def test_a_call_for_help_is_told_what_to_do_until_it_comes() -> None:
    assert "go on with what does not depend on it" in said(decision=CheckpointDecision.ESCALATE)


def test_blockers_and_a_turn_of_its_own_are_spoken_to() -> None:
    assert "blocker" in said(blockers=("no network",))
    assert (
        said(alone=True) == f"{said()} Next time call `reflect` together with your next work call."
    )


@pytest.mark.parametrize(("every", "told"), [(3, 3), (0, 5)])
def test_the_protocol_names_the_interval(every: int, told: int) -> None:
    assert f"about every {told} requests" in protocol(
        ReflectSettings(remind_every=every), CODE, (), gated=False
    )


def test_an_intervention_names_its_number_and_who_speaks() -> None:
    nudge = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Read the log.")
    assert (
        intervention_text(CODE, 7, nudge)
        == "[midwatch 0badcafe #7 from your operator] Read the log."
    )
    assert intervention_id(intervention_text(CODE, 7, nudge)) == 7


def test_a_replan_lists_the_plan_steps_or_asks_for_them() -> None:
    given = Intervention(action=Action.REPLAN, by=Actor.POLICY, message="m", plan=("a", "b"))
    asked = Intervention(action=Action.REPLAN, by=Actor.POLICY, message="m")
    assert intervention_text(CODE, 1, given).endswith(
        "\nThe remaining plan steps are now:\n1. a\n2. b"
    )
    assert "`set_plan`" in intervention_text(CODE, 1, asked)


def test_a_grant_says_how_much_and_another_model_that_it_is_one() -> None:
    terms = Terms(grant=Grant(requests=20, minutes=2.5), model="other")
    more = Intervention(action=Action.GRANT_BUDGET, by=Actor.POLICY, message="m", terms=terms)
    other = Intervention(action=Action.SWITCH_MODEL, by=Actor.POLICY, message="m", terms=terms)
    assert intervention_text(CODE, 1, more).endswith(
        "m\nYou are granted 20 more requests, 2.5 more minutes."
    )
    assert "another model goes on" in intervention_text(CODE, 1, other)


def test_the_protocol_names_every_tool_that_something_is_refused_for() -> None:
    tools = ("reflect", "report_error", "complete_step", "check_plan")
    text = protocol(SETTINGS, CODE, tools, gated=True)
    assert all(f"`{tool}`" in text for tool in tools)
    assert "[midwatch] refused" in text
    assert len(text) < 2_000


def test_a_reminder_shows_the_budget() -> None:
    assert reminder(CODE, 3, "Budget: b.") == f"{reminder(CODE, 3)}\nBudget: b."


def test_the_outline_shows_reservations() -> None:
    flagged = PlanStep(title="write", state=PlanStepState.DONE, flag="not on Windows")
    assert outline(Plan(steps=(flagged,))) == "[x] 1. write (flag: not on Windows)"


@pytest.mark.parametrize(
    "text",
    ["see [midwatch #3 from …", " [midwatch #3", "[midwatch] 3 requests", "", "[midwatch #]"],
)
def test_a_mark_is_found_only_at_the_beginning(text: str) -> None:
    assert intervention_id(text) is None


def test_a_reminder_carries_no_number() -> None:
    assert intervention_id(reminder(CODE, 3)) is None
    assert reminder(CODE, 3).startswith("[midwatch 0badcafe] 3 requests without a checkpoint")


def test_the_outline_shows_what_is_done_and_what_is_next() -> None:
    steps = (
        PlanStep(title="read", state=PlanStepState.DONE),
        PlanStep(title="guess", state=PlanStepState.SKIPPED),
        PlanStep(title="write"),
    )
    assert outline(Plan(steps=steps)) == "[x] 1. read\n[-] 2. guess\n[ ] 3. write"


def test_the_plan_tells_what_open_plan_steps_are_checked_by() -> None:
    asked = PlanStep(title="write", files=("a.txt", "b.txt"), acceptance=("make test",), requests=9)
    done = PlanStep(title="read", state=PlanStepState.DONE, acceptance=("true",))
    assert outline(Plan(steps=(done, asked))) == (
        "[x] 1. read\n"
        "[ ] 2. write\n"
        "       leaves a.txt, b.txt; is checked by `make test`; has 9 requests"
    )


CADENCE = ReflectSettings(remind_every=3, steady_doublings=2, steady_confidence=70)


def reports(*pairs: tuple[int, int]) -> list[Checkpoint]:
    return [Checkpoint(progress_percent=gain, confidence=sure) for gain, sure in pairs]


@pytest.mark.parametrize(
    ("pairs", "is_steady"),
    [
        ([], False),
        ([(10, 90)], False),
        ([(10, 90), (15, 70)], True),
        ([(10, 90), (14, 90)], False),
        ([(10, 90), (20, 69)], False),
        ([(50, 90), (10, 90), (15, 70)], True),
    ],
)
def test_steady_is_a_gain_with_confidence(pairs: list[tuple[int, int]], is_steady: bool) -> None:
    assert steady(reports(*pairs), firing=False, min_gain=5, settings=CADENCE) is is_steady


def test_nothing_is_steady_while_an_alert_fires() -> None:
    two = reports((10, 90), (20, 90))
    assert not steady(two, firing=True, min_gain=5, settings=CADENCE)


def test_the_interval_doubles_up_to_four_times_and_then_stays() -> None:
    intervals = [3]
    for _ in range(3):
        intervals.append(next_interval(intervals[-1], is_steady=True, settings=CADENCE))
    assert intervals == [3, 6, 12, 12]


def test_the_first_unsteady_checkpoint_resets_the_interval() -> None:
    assert next_interval(12, is_steady=False, settings=CADENCE) == 3


def test_an_interval_of_zero_stays_off() -> None:
    off = ReflectSettings(remind_every=0)
    assert next_interval(0, is_steady=True, settings=off) == 0
    assert not any(reminder_due(request, 0, 0) for request in range(50))


@pytest.mark.parametrize(
    ("last", "interval", "due"), [(0, 3, [4, 7, 10]), (2, 3, [6, 9]), (0, 1, [*range(2, 11)])]
)
def test_a_reminder_comes_after_each_full_interval_without_a_checkpoint(
    last: int, interval: int, due: list[int]
) -> None:
    requests = range(last + 1, 11)
    assert [request for request in requests if reminder_due(request, last, interval)] == due
