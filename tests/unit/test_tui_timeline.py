"""Everything of one attempt, folded from entries that are written down here."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Activity,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    Change,
    Checkpoint,
    Chore,
    Delivery,
    DeliveryState,
    Edit,
    Entry,
    Feedback,
    Guidelines,
    GuidelinesState,
    Intervention,
    KnownGuidelines,
    Lifecycle,
    Origin,
    Outcome,
    OutcomeReport,
    Plan,
    PlanStep,
    Recall,
    Record,
    Severity,
    Step,
    StepKind,
    Study,
    StudyState,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.intervention import InterventionStatus
from midwatch_supervisor.present.learning_text import Given
from midwatch_supervisor.tui.state.attempt_timeline import KEPT, AttemptTimeline, Point

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
TASK = Task(id=1, run=1, name="fix", title="Fix it", spec="{}")
STEP = Step(number=1, kind=StepKind.TOOL, tool="write_file", edits=(Edit(path="a.py"),))
NUDGE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="eve", message="Read it.")
RESTART = Intervention(action=Action.RESTART, by=Actor.SUPERVISOR, message="Otherwise.")


def attempt(id: int = 1) -> Attempt:
    return Attempt(
        id=id, task=1, number=id, worker="coder", model="m", node="n", workspace="/w", started_at=AT
    )


def entry(id: int, record: Record, of: int | None = 1, *, task: int = 1) -> Entry:
    return Entry(id=id, record=record, at=AT + timedelta(seconds=id), task=task, attempt=of)


def told(*records: Record, of: int = 1) -> AttemptTimeline:
    story = AttemptTimeline(TASK, attempt(of))
    for id, record in enumerate(records, start=1):
        story.fold(entry(id, record))
    return story


def report(number: int, *, progress: int = 10, confidence: int = 50) -> Step:
    checkpoint = Checkpoint(progress_percent=progress, confidence=confidence)
    return Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=checkpoint)


def alert(state: AlertState, *, step: int = 3) -> Alert:
    return Alert(
        key=AlertKey(rule="repeated_edits", subject="a.py"),
        severity=Severity.WARNING,
        state=state,
        value=5,
        summary="five edits",
        evidence=(1, 3),
        since_step=1,
        step=step,
    )


def delivered(intervention: int, step: int = 1) -> Delivery:
    return Delivery(intervention=intervention, state=DeliveryState.DELIVERED, step=step)


def recovered(intervention: int) -> OutcomeReport:
    return OutcomeReport(
        intervention=intervention, outcome=Outcome.RECOVERED, step=9, reason="it moves"
    )


def test_items_stand_in_the_order_of_the_journal_each_with_its_step() -> None:
    story = told(AttemptTransition(lifecycle=Lifecycle.WORKING), STEP, report(2), delivered(99))
    assert [(item.id, item.step) for item in story.items] == [(1, 0), (2, 1), (3, 2), (4, 2)]


def test_an_entry_that_comes_twice_counts_once() -> None:
    story = told(STEP)
    story.fold(entry(1, STEP))
    assert len(story.items) == 1


def test_entries_of_other_tasks_and_attempts_are_no_items() -> None:
    story = told()
    story.fold(entry(1, STEP, task=2))
    story.fold(entry(2, STEP, of=7))
    story.fold(entry(3, TaskTransition(lifecycle=Lifecycle.WORKING), of=None))
    assert (story.items, story.last_id, story.last_at) == ([], 3, None)


def test_a_change_is_an_item_only_where_the_lifecycle_changes() -> None:
    busy = Change(activity=Activity.COMMAND, doing="make")
    waits = Change(lifecycle=Lifecycle.INPUT_REQUIRED)
    story = told(AttemptTransition(lifecycle=Lifecycle.WORKING), busy, waits, waits)
    assert [item.id for item in story.items] == [1, 3]


def test_checkpoints_are_points_of_the_chart() -> None:
    story = told(report(1), STEP, report(2, progress=30, confidence=20))
    assert story.points == [
        Point(step=1, progress=10, confidence=50),
        Point(step=2, progress=30, confidence=20),
    ]


def test_every_change_of_an_alert_is_kept_and_only_firing_ones_have_fired() -> None:
    story = told(alert(AlertState.FIRING), alert(AlertState.RESOLVED, step=8))
    assert [item.step for item in story.alerts] == [3, 8]
    assert [item.id for item in story.fired()] == [1]


def test_a_message_knows_by_whom_it_is_when_it_arrived_and_what_came_of_it() -> None:
    story = told(STEP, NUDGE, delivered(2, step=4), recovered(2))
    telling = story.tellings[2]
    assert (telling.step, telling.delivered_step) == (1, 4)
    assert (telling.fate.status, telling.fate.outcome) == (
        InterventionStatus.DELIVERED,
        Outcome.RECOVERED,
    )
    assert (telling.stamped_at, telling.judged_at) == (
        AT + timedelta(seconds=3),
        AT + timedelta(seconds=4),
    )


def test_all_of_a_message_tells_its_way_and_its_outcome() -> None:
    text = told(STEP, NUDGE, delivered(2, step=4), recovered(2)).tellings[2].detail
    assert text == (
        "act:\nnudge by eve (operator)\n\nmessage:\nRead it.\n\n"
        "then:\nnudge delivered\n\noutcome:\nrecovered: it moves"
    )


def test_a_message_that_has_not_arrived_has_no_step_of_arrival() -> None:
    assert told(NUDGE).tellings[1].delivered_step is None


def test_an_attempt_begins_with_the_restart_of_the_one_before() -> None:
    story = AttemptTimeline(TASK, attempt(2))
    for id, record in enumerate((RESTART, delivered(1, step=23)), start=1):
        story.fold(entry(id, record, of=1))
    story.fold(entry(3, AttemptTransition(lifecycle=Lifecycle.SUBMITTED), of=2))
    story.fold(entry(4, recovered(1), of=2))
    telling = story.tellings[1]
    assert (telling.earlier, telling.delivered_step) == (True, 0)
    assert telling.fate.outcome is Outcome.RECOVERED


def test_the_outcome_of_a_restart_is_told_on_the_attempt_that_it_ended() -> None:
    story = told(RESTART, delivered(1))
    story.fold(entry(3, recovered(1), of=2))
    assert story.tellings[1].fate.outcome is Outcome.RECOVERED
    assert [item.id for item in story.items] == [1, 2]


def test_a_nudge_of_another_attempt_is_none_of_this_one() -> None:
    story = AttemptTimeline(TASK, attempt(2))
    story.fold(entry(1, NUDGE, of=1))
    story.fold(entry(2, AttemptTransition(lifecycle=Lifecycle.SUBMITTED), of=2))
    assert story.tellings == {}


def test_the_newest_result_of_each_check_counts() -> None:
    failed, passed = (Acceptance(check="make test", passed=each) for each in (False, True))
    assert told(failed, passed).checks() == (passed,)


def test_the_account_has_the_plan() -> None:
    plan = Plan(steps=(PlanStep(title="find it"),), revision=2)
    assert told(plan).account.plan == plan


def test_a_step_is_found_in_the_timeline() -> None:
    story = told(AttemptTransition(lifecycle=Lifecycle.WORKING), report(1), report(2))
    assert [story.index_of(step) for step in (1, 2, 3)] == [1, 2, None]


def test_the_newest_step_that_changed_a_file_is_known() -> None:
    assert told(STEP, report(2)).edited == 1


def test_a_story_without_end_keeps_its_newest_items() -> None:
    story = told(*(report(number) for number in range(1, 2 * KEPT + 2)))
    assert (len(story.items), story.items[-1].step) == (KEPT + 1, 2 * KEPT + 1)
    assert story.index_of(1) is None


@pytest.mark.parametrize("record", [STEP, report(1), alert(AlertState.FIRING), NUDGE])
def test_every_item_has_a_line_and_a_detail(record: Record) -> None:
    item = told(record).items[0]
    assert item.told.text
    assert item.detail


def test_r20_every_verdict_stands_behind_the_checks() -> None:
    check = Acceptance(check="make", passed=True)
    verdicts = Feedback(accepted=True, origin=Origin.IMPLIED), Feedback(accepted=False)
    assert told(verdicts[0], check, verdicts[1]).checks() == (check, *verdicts)


def test_a_study_that_is_done_is_no_news_and_one_that_failed_is() -> None:
    done = Study(about=1, chore=Chore.LESSON, state=StudyState.DONE)
    failed = replace(done, state=StudyState.FAILED)
    assert [item.record for item in told(done, failed).items] == [failed]


def test_what_a_recall_was_of_is_told_once_it_was_looked_up() -> None:
    story = told(Recall(guidelines=4), STEP)
    version = KnownGuidelines(
        id=4,
        at=AT,
        project="p",
        guidelines=Guidelines(version=2, text="- Wait."),
        state=GuidelinesState.LIVE,
    )
    assert story.items[0].told.text == "0 lessons, 0 facts, guidelines"
    story.remember(Given(guidelines=version))
    assert story.items[0].told.text == "0 lessons, 0 facts, guidelines v2"
    assert "guidelines:\n- Wait." in story.items[0].detail
