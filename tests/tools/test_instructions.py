"""What Midwatch says to a worker, and how it knows its own words again."""

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_tests.factories import checkpoint, intervention
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
PIVOT, ESCALATE = r.CheckpointDecision.PIVOT, r.CheckpointDecision.ESCALATE
SURE = answer(checkpoint(10, 80), SETTINGS, alone=False)
TERMS = r.Terms(grant=r.Grant(requests=20, minutes=2.5), model="other")


@pytest.mark.parametrize(
    ("confidence", "band"),
    [(100, "high"), (70, "high"), (69, "middling"), (40, "middling"), (39, "low"), (0, "low")],
)
def test_the_answer_depends_on_the_band_of_confidence(confidence: int, band: str) -> None:
    said = answer(checkpoint(10, confidence), SETTINGS, alone=False)
    assert said.startswith(f"Recorded. Confidence is {band}:")


def test_what_a_checkpoint_says_besides_is_spoken_to() -> None:
    def added_instructions(*, alone: bool = False, **fields: object) -> str:
        said = answer(checkpoint(10, 80, **fields), SETTINGS, alone=alone)
        return said.removeprefix(SURE)

    assert added_instructions(decision=PIVOT).startswith(" You pivot:")
    assert "`set_plan`" in added_instructions(decision=PIVOT)
    assert "go on with what does not depend on it" in added_instructions(decision=ESCALATE)
    assert "blocker" in added_instructions(blockers=("no network",))
    assert (
        added_instructions(alone=True)
        == " Next time call `reflect` together with your next work call."
    )


@pytest.mark.parametrize(("every", "told"), [(3, 3), (0, 5)])
def test_the_protocol_names_the_interval_and_every_tool_that_something_is_refused_for(
    every: int, told: int
) -> None:
    tools = ("reflect", "report_error", "complete_step", "check_plan")
    text = protocol(ReflectSettings(remind_every=every), CODE, tools, gated=True)
    assert f"about every {told} requests" in text
    assert all(f"`{tool}`" in text for tool in tools)
    assert "[midwatch] refused" in text
    assert len(text) < 2_000


@pytest.mark.parametrize(
    ("said", "end"),
    [
        (
            intervention(by=r.Actor.OPERATOR, message="Go."),
            "[midwatch 0badcafe #7 from your operator] Go.",
        ),
        (
            intervention(r.Action.REPLAN, message="m", plan=("a", "b")),
            "m\nThe remaining plan steps are now:\n1. a\n2. b",
        ),
        (
            intervention(r.Action.GRANT_BUDGET, message="m", terms=TERMS),
            "m\nYou are granted 20 more requests, 2.5 more minutes.",
        ),
    ],
    ids=["number and sender", "the new plan steps", "a grant"],
)
def test_an_intervention_says_what_it_brings(said: r.Intervention, end: str) -> None:
    text = intervention_text(CODE, 7, said)
    assert text.endswith(end)
    assert intervention_id(text) == 7


def test_a_replan_without_plan_steps_asks_for_them_and_another_model_says_that_it_is_one() -> None:
    assert "`set_plan`" in intervention_text(CODE, 1, intervention(r.Action.REPLAN))
    switch = intervention(r.Action.SWITCH_MODEL, terms=TERMS)
    assert "another model goes on" in intervention_text(CODE, 1, switch)


def test_a_reminder_carries_no_number_and_shows_the_budget() -> None:
    plain = reminder(CODE, 3)
    assert intervention_id(plain) is None
    assert plain.startswith("[midwatch 0badcafe] 3 requests without a checkpoint")
    assert reminder(CODE, 3, "Budget: b.") == f"{plain}\nBudget: b."


@pytest.mark.parametrize(
    "text",
    ["see [midwatch #3 from …", " [midwatch #3", "[midwatch] 3 requests", "", "[midwatch #]"],
)
def test_a_mark_is_found_only_at_the_beginning(text: str) -> None:
    assert intervention_id(text) is None


def test_the_outline_shows_what_is_done_and_by_what_open_plan_steps_are_checked() -> None:
    steps = (
        r.PlanStep(title="read", state=r.PlanStepState.DONE, acceptance=("true",)),
        r.PlanStep(title="port", state=r.PlanStepState.DONE, flag="not on Windows"),
        r.PlanStep(title="guess", state=r.PlanStepState.SKIPPED),
        r.PlanStep(title="write", files=("a.txt", "b.txt"), acceptance=("make test",), requests=9),
        r.PlanStep(title="rest"),
    )
    assert outline(r.Plan(steps=steps)) == (
        "[x] 1. read\n"
        "[x] 2. port (flag: not on Windows)\n"
        "[-] 3. guess\n"
        "[ ] 4. write\n"
        "       leaves a.txt, b.txt; is checked by `make test`; has 9 requests\n"
        "[ ] 5. rest"
    )


CADENCE = ReflectSettings(remind_every=3, steady_doublings=2, steady_confidence=70)


@pytest.mark.parametrize(
    ("pairs", "firing", "is_steady"),
    [
        ([], False, False),
        ([(10, 90)], False, False),
        ([(10, 90), (15, 70)], False, True),
        ([(10, 90), (14, 90)], False, False),
        ([(10, 90), (20, 69)], False, False),
        ([(50, 90), (10, 90), (15, 70)], False, True),
        ([(10, 90), (20, 90)], True, False),
    ],
)
def test_steady_is_a_gain_with_confidence_while_no_alert_fires(
    pairs: list[tuple[int, int]], firing: bool, is_steady: bool
) -> None:
    reports = [checkpoint(progress, confidence) for progress, confidence in pairs]
    assert steady(reports, firing=firing, min_gain=5, settings=CADENCE) is is_steady


def test_the_interval_doubles_up_to_four_times_until_a_checkpoint_is_not_steady() -> None:
    intervals = [3]
    for is_steady in (True, True, True, False):
        intervals.append(next_interval(intervals[-1], is_steady=is_steady, settings=CADENCE))
    assert intervals == [3, 6, 12, 12, 3]
    off = ReflectSettings(remind_every=0)
    assert next_interval(0, is_steady=True, settings=off) == 0


@pytest.mark.parametrize(
    ("last", "interval", "due"),
    [(0, 3, [4, 7, 10]), (2, 3, [6, 9]), (0, 1, [*range(2, 11)]), (0, 0, [])],
)
def test_a_reminder_comes_after_each_full_interval_without_a_checkpoint(
    last: int, interval: int, due: list[int]
) -> None:
    requests = range(last + 1, 11)
    assert [request for request in requests if reminder_due(request, last, interval)] == due
