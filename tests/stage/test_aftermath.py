"""What went wrong in a run through chaos is seen; a count that sees nothing would prove nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Step,
    StepKind,
    Task,
    TaskTransition,
)
from midwatch_stage.aftermath import (
    QUIET_SECONDS,
    Counts,
    Evidence,
    Mark,
    Standing,
    counted,
)

AT = datetime(2026, 11, 21, tzinfo=UTC)
TASK = Task(id=1, run=1, name="fix", title="Fix it", spec="{}")
ATTEMPT = Attempt(
    id=1, task=1, number=1, worker="w", model="m", node="n", workspace="/w", started_at=AT
)
CHECK = Acceptance(check="true", passed=True)
END = AttemptTransition(lifecycle=Lifecycle.COMPLETED, ending=Ending.DONE)
OVER = TaskTransition(lifecycle=Lifecycle.COMPLETED)
ASKED = Escalation(id=1, attempt=1, state=EscalationState.OPEN, alerts=())
ANSWERED = replace(ASKED, state=EscalationState.ANSWERED)
DECISION = Decision(
    escalation=1,
    action=Action.NUDGE,
    diagnosis=Diagnosis.UNKNOWN,
    message="",
    rationale="",
    by=Actor.POLICY,
)
NUDGE = Intervention(action=Action.NUDGE, by=Actor.POLICY, escalation=1)
NUDGE_ID = 6
GIVEN = Delivery(intervention=NUDGE_ID, state=DeliveryState.DELIVERED, step=2)
JUDGED = OutcomeReport(intervention=NUDGE_ID, outcome=Outcome.RECOVERED, step=5, reason="")
SAID = f"[midwatch #{NUDGE_ID} from your policy] Look again."


def step(number: int) -> Step:
    return Step(number=number, kind=StepKind.MESSAGE)


STEPS = tuple(step(number) for number in range(3, 7))
STORY: tuple[Record, ...] = (
    *(step(1), step(2)),
    *(ASKED, ANSWERED, DECISION, NUDGE, GIVEN),
    *(*STEPS, JUDGED, CHECK, END, OVER),
)


def log(*records: Record) -> Sequence[Entry]:
    """Entries of one attempt; steps carry their number as `seq` too."""
    return [
        Entry(
            id=id,
            record=record,
            at=AT,
            task=1,
            attempt=None if isinstance(record, TaskTransition) else 1,
            seq=record.number if isinstance(record, Step) else None,
        )
        for id, record in enumerate(records, start=1)
    ]


def evidence(
    *records: Record,
    incarnations: int = 1,
    told: Sequence[str] = (SAID,),
    marks: Sequence[str] = ("1 a", "2 a"),
    standing: Standing | None = None,
) -> Counts:
    lines = [Mark(label=line.split()[0], process=line.split()[1]) for line in marks]
    return counted(
        Evidence(
            tasks=[TASK],
            attempts=[ATTEMPT],
            entries=log(*records),
            incarnations={1: incarnations},
            prompts={1: told},
            marks={1: lines},
            standing=standing,
        )
    )


def without(*left_out: Record) -> tuple[Record, ...]:
    return tuple(each for each in STORY if each not in left_out)


def test_nothing_is_wrong_with_a_run_in_which_nothing_went_wrong() -> None:
    counts = evidence(*STORY)
    assert counts.faults == ()
    assert (counts.attempts, counts.ended_once, counts.completed) == (1, 1, 1)
    assert (counts.interventions, counts.delivered, counts.alerted) == (1, 1, 1)


@pytest.mark.parametrize("missing", [END, OVER])
def test_what_never_ended_is_lost(missing: Record) -> None:
    (fault,) = evidence(*without(missing)).lost
    assert fault.endswith("never ended")


def test_an_escalation_that_nobody_answered_is_lost() -> None:
    (fault,) = evidence(*without(ANSWERED)).lost
    assert fault == "escalation 1 of attempt 1 was never answered"


def test_a_task_that_failed_is_seen() -> None:
    failed = TaskTransition(lifecycle=Lifecycle.FAILED)
    counts = evidence(*without(OVER), failed)
    assert (counts.completed, counts.faults) == (0, ("task fix is failed",))


# -- slow or lost --------------------------------------------------------------------------------

SOON = Standing(at=AT + timedelta(seconds=QUIET_SECONDS - 1))
LATE = Standing(at=AT + timedelta(seconds=QUIET_SECONDS + 1))
UNDER_WAY = without(CHECK, END, OVER)
OPEN = ("task fix never ended", "attempt 1 never ended")


def test_what_moved_lately_is_unfinished() -> None:
    counts = evidence(*UNDER_WAY, standing=SOON)
    assert (counts.unfinished, counts.lost, counts.faults) == (OPEN, (), ())


@pytest.mark.parametrize(
    "standing", [LATE, replace(LATE, held=frozenset({1})), replace(LATE, full=True)]
)
def test_what_did_not_move_is_lost_where_nothing_else_moves(standing: Standing) -> None:
    counts = evidence(*UNDER_WAY, standing=standing)
    assert (counts.unfinished, counts.lost) == ((), OPEN)


def test_what_a_person_says_is_no_move() -> None:
    said = Intervention(action=Action.NUDGE, by=Actor.OPERATOR)
    lately = [replace(entry, at=LATE.at) for entry in log(*UNDER_WAY, said)[-1:]]
    counts = counted(replace(stopped(LATE), entries=[*log(*UNDER_WAY), *lately]))
    assert counts.unfinished == ()
    assert set(OPEN) < set(counts.lost)


def stopped(standing: Standing) -> Evidence:
    """A task that has stopped, and another one."""
    return Evidence(
        tasks=[TASK, replace(TASK, id=2, name="other")],
        attempts=[ATTEMPT],
        entries=log(*UNDER_WAY),
        standing=standing,
    )


def beside_another(standing: Standing) -> Counts:
    """The same while the other one gets on."""
    working = TaskTransition(lifecycle=Lifecycle.WORKING)
    moving = Entry(id=99, record=working, at=standing.at, task=2, attempt=None, seq=None)
    return counted(replace(stopped(standing), entries=[*log(*UNDER_WAY), moving]))


def test_what_stopped_while_others_move_and_nobody_has_it_is_lost() -> None:
    counts = beside_another(LATE)
    assert (counts.unfinished, counts.lost) == (("task other never ended",), OPEN)


@pytest.mark.parametrize("standing", [replace(LATE, held=frozenset({1})), replace(LATE, full=True)])
def test_what_is_held_or_waits_is_unfinished_while_others_move(standing: Standing) -> None:
    counts = beside_another(standing)
    assert (set(counts.unfinished), counts.lost) == ({*OPEN, "task other never ended"}, ())


def test_an_attempt_that_is_left_open_by_a_task_that_is_over_is_lost() -> None:
    counts = evidence(*without(END), standing=SOON)
    assert (counts.unfinished, counts.lost) == ((), ("attempt 1 never ended",))


def test_an_escalation_is_unfinished_as_long_as_its_task_moves() -> None:
    story = without(ANSWERED)
    assert len(evidence(*story, standing=SOON).unfinished) == 1
    assert len(evidence(*story, standing=LATE).lost) == 1


@pytest.mark.parametrize("twice", [END, OVER, CHECK])
def test_what_ended_twice_or_was_checked_twice_is_seen(twice: Record) -> None:
    counts = evidence(*STORY, twice)
    assert len(counts.doubled) == 1
    assert counts.ended_once == (twice is not END)


def test_an_attempt_that_is_done_without_a_check_is_seen() -> None:
    assert len(evidence(*without(CHECK)).doubled) == 1


def test_two_processes_that_work_at_once_are_seen() -> None:
    marks = ("1 a", "2 b", "3 a", "4 b")
    (fault,) = evidence(*STORY, incarnations=2, marks=marks).doubled
    assert fault == "attempt 1, incarnation 2, was worked on in turn by a, b, a, b"


def test_a_process_that_took_an_attempt_back_is_no_fault() -> None:
    counts = evidence(*STORY, incarnations=3, marks=("1 a", "1 b", "2 a"))
    assert counts.faults == ()
    assert counts.moved == 1


def test_a_call_that_one_incarnation_ran_twice_is_seen() -> None:
    (fault,) = evidence(*STORY, marks=("1 a", "1 a")).doubled
    assert fault == "attempt 1, incarnation 1, did 1 2 times"


def test_an_intervention_that_was_never_given_is_lost() -> None:
    (fault,) = evidence(*without(GIVEN, JUDGED), told=()).lost_interventions
    assert fault == "nudge (6) for attempt 1 was not delivered in 4 steps"


def test_an_intervention_for_an_attempt_that_ended_is_not_lost() -> None:
    assert evidence(*without(GIVEN, JUDGED, *STEPS), told=()).faults == ()


@pytest.mark.parametrize(
    "instead",
    [
        Delivery(intervention=NUDGE_ID, state=DeliveryState.EXPIRED),
        Delivery(intervention=NUDGE_ID, state=DeliveryState.REJECTED),
    ],
)
def test_what_expired_or_was_rejected_is_not_lost(instead: Delivery) -> None:
    story = [instead if each is GIVEN else each for each in without(JUDGED)]
    assert evidence(*story, told=()).faults == ()


def test_what_waits_for_approval_is_not_lost_before_it_is_approved() -> None:
    held = replace(NUDGE, needs_approval=True)
    story = [held if each is NUDGE else each for each in without(GIVEN, JUDGED)]
    assert evidence(*story, told=()).faults == ()
    approved = Delivery(intervention=NUDGE_ID, state=DeliveryState.APPROVED)
    assert len(evidence(*story, approved, told=()).lost_interventions) == 1


def test_a_stamp_without_the_words_in_the_history_is_a_loss() -> None:
    (fault,) = evidence(*STORY, told=("[midwatch #66 from your policy] …",)).lost_interventions
    assert "was not told" in fault


@pytest.mark.parametrize("twice", [GIVEN, JUDGED, DECISION])
def test_what_was_delivered_judged_or_decided_twice_is_seen(twice: Record) -> None:
    assert len(evidence(*STORY, twice).doubled_interventions) == 1


def test_a_second_intervention_for_one_escalation_is_seen() -> None:
    again = Delivery(intervention=len(STORY) + 1, state=DeliveryState.EXPIRED)
    assert len(evidence(*STORY, NUDGE, again).doubled_interventions) == 1


def test_a_decision_that_was_refused_is_no_second_one() -> None:
    assert evidence(*STORY, replace(DECISION, refused="the attempt is over")).faults == ()


def test_words_that_a_worker_was_given_twice_are_seen() -> None:
    (fault,) = evidence(*STORY, told=(SAID, f"Go on.\n{SAID}")).doubled_interventions
    assert fault == "attempt 1 was told intervention 6 2 times"


@pytest.mark.parametrize("gone", [1, 3])
def test_a_missing_step_is_seen(gone: int) -> None:
    gaps = evidence(*without(step(gone))).sequence_gaps
    assert gaps == (
        f"attempt 1: after seq {gone - 1} comes {gone + 1}",
        f"attempt 1: after step {gone - 1} comes {gone + 1}",
    )


def test_a_repeated_step_is_seen() -> None:
    assert len(evidence(*STORY, step(6)).sequence_gaps) == 2
