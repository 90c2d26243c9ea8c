"""Everything of one attempt as the attempt view shows it."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertState,
    BudgetRequest,
    Change,
    Chore,
    DeliveryState,
    Ending,
    Grant,
    GuidelinesState,
    KnownGuidelines,
    Lifecycle,
    Origin,
    Outcome,
    Recall,
    Record,
    Resolution,
    Severity,
    Study,
    StudyState,
    Terms,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_supervisor.present.learning_text import GivenLearning
from midwatch_supervisor.tui.state.attempt_timeline import (
    KEPT,
    KINDS,
    AttemptTimeline,
    Point,
    intervention_detail,
)
from midwatch_tests.factories import (
    AT,
    acceptance,
    after,
    alert,
    attempt,
    delivery,
    editing,
    ended,
    entry,
    feedback,
    guidelines,
    intervention,
    outcome,
    plan,
    reflecting,
    task,
    task_transition,
    transition,
)

STEP = editing(1, "a.py")
NUDGE = intervention(Action.NUDGE, Actor.OPERATOR, author="eve", message="Read it.")
RESTART = intervention(Action.RESTART, Actor.SUPERVISOR, message="Otherwise.")
FIRING = alert("repeated_edits", step=3, evidence=(1, 3))
RESOLVED = replace(FIRING, state=AlertState.RESOLVED, step=8, resolution=Resolution.CLEARED)
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
GRANT = intervention(
    Action.GRANT_BUDGET, petition=1, terms=Terms(grant=Grant(requests=5)), needs_approval=True
)


def timeline(*records: Record, of: int = 1) -> AttemptTimeline:
    """The timeline of attempt 1 or 2, after records of the first one."""
    made = AttemptTimeline(task(), attempt(of, number=of))
    for id, record in enumerate(records, start=1):
        made.fold(entry(id, record))
    return made


def test_items_stand_in_the_order_of_the_journal_each_with_its_step() -> None:
    made = timeline(transition(), STEP, reflecting(2), delivery(99))
    assert [(item.id, item.step) for item in made.items] == [(1, 0), (2, 1), (3, 2), (4, 2)]
    made.fold(entry(4, STEP))
    assert len(made.items) == 4  # an entry that comes twice counts once


def test_entries_of_other_tasks_and_attempts_are_no_items() -> None:
    made = timeline()
    made.fold(entry(1, STEP, task=2))
    made.fold(entry(2, STEP, attempt=7))
    made.fold(entry(3, task_transition(), attempt=None))
    assert (made.items, made.last_id, made.last_at) == ([], 3, None)


WAITS, ASKS = Change(lifecycle=Lifecycle.INPUT_REQUIRED), transition(Lifecycle.INPUT_REQUIRED)
DONE = Study(about=1, chore=Chore.LESSON, state=StudyState.DONE)


@pytest.mark.parametrize(
    ("records", "ids"),
    [
        ((transition(), Change(activity=Activity.COMMAND, doing="make"), WAITS, WAITS), [1, 3]),
        ((WAITS, ASKS, Change(lifecycle=Lifecycle.WORKING), transition()), [2, 4]),
        ((transition(), Change(node="south")), [1, 2]),
        ((plan("fix"), plan("a", "b")), [2]),
        ((DONE, replace(DONE, state=StudyState.FAILED)), [2]),
    ],
    ids=["a lifecycle", "told with its reason", "a node", "not the task itself", "what failed"],
)
def test_an_item_is_what_is_news(records: tuple[Record, ...], ids: list[int]) -> None:
    assert [item.id for item in timeline(*records).items] == ids


def test_a_refused_call_is_found_among_what_failed() -> None:
    refused = replace(STEP, ok=False, output=f"{HELD_BACK}call `report_error` first.")
    made = timeline(STEP, refused, FIRING)
    assert [item.id for item in made.items if KINDS["failed"](item)] == [2]


def test_checkpoints_are_points_of_the_chart() -> None:
    made = timeline(reflecting(1, 10, 50), STEP, reflecting(2, 30, 20))
    assert made.points == [
        Point(step=1, progress=10, confidence=50),
        Point(step=2, progress=30, confidence=20),
    ]


@pytest.mark.parametrize(
    ("records", "status", "since"),
    [
        ((FIRING, replace(FIRING, severity=Severity.CRITICAL)), "firing", 1),
        ((FIRING, STEP, RESOLVED), "resolved", 3),
        ((replace(FIRING, state=AlertState.PENDING), FIRING), "firing", 2),
        ((FIRING, ended(Ending.STUCK)), "ended", 1),
        ((FIRING, replace(RESOLVED, resolution=Resolution.ENDED)), "ended", 2),
        (
            (FIRING, intervention(Action.ACKNOWLEDGE, answers=(FIRING.key,)), delivery(2)),
            "acknowledged",
            1,
        ),
        ((FIRING, intervention(Action.SILENCE, answers=(FIRING.key,)), delivery(2)), "silenced", 1),
    ],
)
def test_an_alert_stands_once_with_its_state_now_and_its_changes_below(
    records: tuple[Record, ...], status: str, since: int
) -> None:
    first, *below = timeline(*records).alert_lines()
    assert (first.status, first.at, first.change) == (status, after(since), False)
    changes = [each for each in records if isinstance(each, Alert)]
    assert [each.alert for each in below] == (changes if len(changes) > 1 else [])


def test_alerts_that_fire_stand_above_those_that_are_over() -> None:
    lines = timeline(FIRING, RESOLVED, alert("cycle")).alert_lines()
    assert [line.alert.key.rule for line in lines if not line.change] == ["cycle", FIRING.key.rule]


def test_all_of_a_message_tells_its_way_and_its_outcome() -> None:
    made = timeline(STEP, NUDGE, delivery(2, step=4), outcome(2)).state.interventions.by_id[2]
    assert (made.issued_step, made.delivered_step, made.outcome) == (1, 4, Outcome.RECOVERED)
    assert intervention_detail(made) == (
        "intervention:\nnudge by eve (operator)\n\nmessage:\nRead it.\n\n"
        "delivery:\nnudge delivered\n\noutcome:\nrecovered: it moves"
    )


def test_a_restart_stands_with_its_outcome_in_the_attempt_that_it_ended_and_the_next_one() -> None:
    after = (entry(3, transition(Lifecycle.SUBMITTED), attempt=2), entry(4, outcome(1), attempt=2))
    first, second = (timeline(RESTART, delivery(1, step=23), of=of) for of in (1, 2))
    for each in after:
        first.fold(each)
        second.fold(each)
    for made in (first, second):
        (restart,) = made.state.interventions
        assert (restart.attempt, restart.outcome) == (1, Outcome.RECOVERED)
    assert [item.id for item in first.items] == [1, 2]
    nudged = timeline(NUDGE, of=2)
    nudged.fold(entry(2, transition(Lifecycle.SUBMITTED), attempt=2))
    assert not nudged.state.interventions


@pytest.mark.parametrize(
    ("stamps", "text"),
    [
        ((), "20 requests (grant_budget waits for approval): two files left"),
        ((DeliveryState.DELIVERED,), "20 requests (granted 5 requests): two files left"),
        ((DeliveryState.REJECTED,), "20 requests (pending): two files left"),
    ],
)
def test_a_request_is_told_with_its_answer(stamps: tuple[DeliveryState, ...], text: str) -> None:
    made = timeline(BUDGET, GRANT, *(delivery(2, each) for each in stamps))
    assert made.items[0].told.text == text


def test_r20_every_verdict_stands_behind_the_newest_result_of_each_check() -> None:
    verdicts = feedback(origin=Origin.IMPLIED), feedback(accepted=False)
    made = timeline(verdicts[0], acceptance(passed=False), acceptance(), verdicts[1])
    assert made.checks() == (acceptance(), *verdicts)


def test_a_step_is_found_in_a_timeline_that_keeps_its_newest_items() -> None:
    made = timeline(transition(), reflecting(1), reflecting(2))
    assert [made.index_of(step) for step in (1, 2, 3)] == [1, 2, None]
    made = timeline(*(reflecting(number) for number in range(1, 2 * KEPT + 2)))
    assert (len(made.items), made.items[-1].step) == (KEPT + 1, 2 * KEPT + 1)
    assert made.index_of(1) is None


def test_what_a_recall_was_of_is_told_once_it_was_looked_up() -> None:
    made = timeline(Recall(guidelines=4), STEP)
    version = KnownGuidelines(
        id=4, at=AT, project="p", guidelines=guidelines(2, "- Wait."), state=GuidelinesState.LIVE
    )
    assert made.items[0].told.text == "0 lessons, 0 facts, guidelines"
    made.remember(GivenLearning(guidelines=version))
    assert made.items[0].told.text == "0 lessons, 0 facts, guidelines v2"
    assert "guidelines:\n- Wait." in made.items[0].detail
