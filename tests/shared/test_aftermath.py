"""What went wrong in a run through chaos is seen; a count that sees nothing would prove nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_tests import factories
from midwatch_tests.aftermath import Evidence, Mark, counted
from midwatch_tests.factories import AT, attempt, delivery, entry, intervention, message, task

CHECK = factories.acceptance(check="true")
END = factories.ended()
OVER = factories.task_transition(r.Lifecycle.COMPLETED)
ASKED = factories.escalation()
ANSWERED = replace(ASKED, state=r.EscalationState.ANSWERED)
DECISION = factories.decision(diagnosis=r.Diagnosis.UNKNOWN)
NUDGE = intervention(escalation=1)
NUDGE_ID = 6
GIVEN = delivery(NUDGE_ID, step=2)
JUDGED = factories.outcome(NUDGE_ID)
SAID = f"[midwatch #{NUDGE_ID} from your policy] Look again."
STEPS = tuple(message(number) for number in range(3, 7))
STORY: tuple[r.Record, ...] = (
    *(message(1), message(2)),
    *(ASKED, ANSWERED, DECISION, NUDGE, GIVEN),
    *(*STEPS, JUDGED, CHECK, END, OVER),
)


def log(*records: r.Record) -> Sequence[r.Entry]:
    """Entries of one attempt; steps carry their number as `seq` too."""
    return [
        entry(
            id,
            record,
            at=AT,
            attempt=None if isinstance(record, r.TaskTransition) else 1,
            seq=record.number if isinstance(record, r.Step) else None,
        )
        for id, record in enumerate(records, start=1)
    ]


def evidence(
    *records: r.Record,
    incarnations: int = 1,
    told: Sequence[str] = (SAID,),
    marks: Sequence[str] = ("1 a", "2 a"),
    **more: Any,
) -> Evidence:
    lines = [Mark(label=line.split()[0], process=line.split()[1]) for line in marks]
    return Evidence(
        tasks=[task()],
        attempts=[attempt()],
        entries=log(*records),
        incarnations={1: incarnations},
        prompts={1: told},
        marks={1: lines},
        **more,
    )


def without(*left_out: r.Record) -> tuple[r.Record, ...]:
    return tuple(each for each in STORY if each not in left_out)


def instead(new: r.Record, of: r.Record, *left_out: r.Record) -> tuple[r.Record, ...]:
    return tuple(new if each is of else each for each in without(*left_out))


def test_nothing_is_wrong_with_a_run_in_which_nothing_went_wrong() -> None:
    counts = counted(evidence(*STORY))
    assert counts.faults == ()
    assert (counts.attempts, counts.ended_once, counts.completed) == (1, 1, 1)
    assert (counts.interventions, counts.delivered, counts.alerted) == (1, 1, 1)


HELD = instead(replace(NUDGE, needs_approval=True), NUDGE, GIVEN, JUDGED)
AGAIN = delivery(len(STORY) + 1, r.DeliveryState.EXPIRED)
WRONG: dict[str, tuple[Evidence, str, str]] = {
    "no end": (evidence(*without(END)), "lost", "attempt 1 never ended"),
    "no end of the task": (evidence(*without(OVER)), "lost", "task fix never ended"),
    "no answer": (
        evidence(*instead(ASKED, ANSWERED)),
        "lost",
        "escalation 1 of attempt 1 was never answered",
    ),
    "it failed": (
        evidence(*without(OVER), factories.task_transition(r.Lifecycle.FAILED)),
        "failed",
        "task fix is failed",
    ),
    "two ends": (evidence(*STORY, END), "doubled", "attempt 1 ended 2 times"),
    "two ends of the task": (evidence(*STORY, OVER), "doubled", "task 1 ended 2 times"),
    "two checks": (evidence(*STORY, CHECK), "doubled", "attempt 1: 'true' was recorded 2 times"),
    "no check": (
        evidence(*without(CHECK)),
        "doubled",
        "attempt 1 is done and no acceptance check is recorded",
    ),
    "two processes at once": (
        evidence(*STORY, incarnations=2, marks=("1 a", "2 b", "3 a", "4 b")),
        "doubled",
        "attempt 1, incarnation 2, was worked on in turn by a, b, a, b",
    ),
    "a call that ran twice": (
        evidence(*STORY, marks=("1 a", "1 a")),
        "doubled",
        "attempt 1, incarnation 1, did 1 2 times",
    ),
    "never given": (
        evidence(*without(GIVEN, JUDGED), told=()),
        "lost_interventions",
        "nudge (6) for attempt 1 was not delivered in 4 steps",
    ),
    "approved, never given": (
        evidence(*HELD, delivery(NUDGE_ID, r.DeliveryState.APPROVED), told=()),
        "lost_interventions",
        "nudge (6) for attempt 1 was not delivered in 4 steps",
    ),
    "a stamp without the words": (
        evidence(*STORY, told=("[midwatch #66 from your policy] …",)),
        "lost_interventions",
        "nudge (6) for attempt 1 is stamped as delivered, and its worker was not told",
    ),
    "delivered twice": (
        evidence(*STORY, GIVEN),
        "doubled_interventions",
        "intervention 6 was delivered 2 times",
    ),
    "judged twice": (
        evidence(*STORY, JUDGED),
        "doubled_interventions",
        "intervention 6 was judged 2 times",
    ),
    "decided twice": (
        evidence(*STORY, DECISION),
        "doubled_interventions",
        "escalation 1 was decided 2 times",
    ),
    "answered twice": (
        evidence(*STORY, NUDGE, AGAIN),
        "doubled_interventions",
        "escalation 1 was answered by 2 interventions",
    ),
    "told twice": (
        evidence(*STORY, told=(SAID, f"Go on.\n{SAID}")),
        "doubled_interventions",
        "attempt 1 was told intervention 6 2 times",
    ),
}


@pytest.mark.parametrize(("left", "kind", "fault"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_seen(left: Evidence, kind: str, fault: str) -> None:
    counts = counted(left)
    assert counts.faults == getattr(counts, kind) == (fault,)


@pytest.mark.parametrize("gone", [1, 3])
def test_a_missing_step_is_seen(gone: int) -> None:
    assert counted(evidence(*without(message(gone)))).sequence_gaps == (
        f"attempt 1: after seq {gone - 1} comes {gone + 1}",
        f"attempt 1: after step {gone - 1} comes {gone + 1}",
    )
    assert len(counted(evidence(*STORY, message(6))).sequence_gaps) == 2


RIGHT: dict[str, Evidence] = {
    "the attempt ended before": evidence(*without(GIVEN, JUDGED, *STEPS), told=()),
    "it expired": evidence(
        *instead(delivery(NUDGE_ID, r.DeliveryState.EXPIRED), GIVEN, JUDGED), told=()
    ),
    "it was rejected": evidence(
        *instead(delivery(NUDGE_ID, r.DeliveryState.REJECTED), GIVEN, JUDGED), told=()
    ),
    "it waits for approval": evidence(*HELD, told=()),
    "a refused decision": evidence(*STORY, replace(DECISION, refused="the attempt is over")),
    "taken back": evidence(*STORY, incarnations=3, marks=("1 a", "1 b", "2 a")),
}


@pytest.mark.parametrize("left", RIGHT.values(), ids=RIGHT)
def test_what_may_be_so_is_no_fault(left: Evidence) -> None:
    assert counted(left).faults == ()


UNDER_WAY = without(CHECK, END, OVER)
OPEN = ("task fix never ended", "attempt 1 never ended")
UNANSWERED = ("escalation 1 of attempt 1 was never answered",)


@pytest.mark.parametrize(
    ("story", "late", "unfinished", "lost"),
    [
        (UNDER_WAY, True, OPEN, ()),
        (UNDER_WAY, False, (), OPEN),
        (without(END), True, (), OPEN[1:]),
        (instead(ASKED, ANSWERED), True, UNANSWERED, ()),
        (instead(ASKED, ANSWERED), False, (), UNANSWERED),
    ],
)
def test_what_is_not_over_is_lost_unless_work_still_got_on(
    story: Sequence[r.Record], late: bool, unfinished: tuple[str, ...], lost: tuple[str, ...]
) -> None:
    counts = counted(evidence(*story, late=late))
    assert (counts.unfinished, counts.lost, counts.faults) == (unfinished, lost, lost)
