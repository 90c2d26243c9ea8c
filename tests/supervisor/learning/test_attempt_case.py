"""An ended attempt as a case, read from the journal."""

from dataclasses import replace

from midwatch_agents.learning.case import Alarm, PastIntervention
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Analysis,
    Attempt,
    Cause,
    Checkpoint,
    Delivery,
    DeliveryState,
    Edit,
    Ending,
    Feedback,
    Intervention,
    Lesson,
    Origin,
    Outcome,
    OutcomeReport,
    Severity,
    Step,
    StepKind,
    Teller,
    Writer,
)
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.attempt_case import case_of

REJECTION = Feedback(accepted=False, comment="Refunds are wrong.")
TOLD = Analysis(what="it broke", cause=Cause.PERMANENT, root="a sign", remedy="turn it")
CYCLE = Alert(
    key=AlertKey(rule="cycle"),
    severity=Severity.WARNING,
    state=AlertState.FIRING,
    value=3,
    summary="round and round",
    evidence=(1, 2),
    since_step=1,
    step=2,
)
LESSON = Lesson(text="Try refunds.", origin=Origin.AUTOMATIC)


def step(number: int, *, edit: str = "", writer: Writer = Writer.WORKER, notes: str = "") -> Step:
    told = Checkpoint(progress_percent=50, confidence=60, notes=notes) if notes else None
    return Step(
        number=number,
        kind=StepKind.CHECKPOINT if told else StepKind.TOOL,
        request=number,
        tool="run",
        output=f"output {number}",
        edits=(Edit(path=edit, writer=writer),) if edit else (),
        checkpoint=told,
    )


async def nudged(past: PastAttempts, attempt: Attempt) -> None:
    """A nudge that reached an attempt and helped, and one that came too late."""
    nudge = Intervention(action=Action.NUDGE, by=Actor.SUPERVISOR, message="Look up.")
    for state in (DeliveryState.DELIVERED, DeliveryState.EXPIRED):
        id = await past.say(attempt, nudge)
        await past.say(attempt, Delivery(intervention=id, state=state))
        if state is DeliveryState.DELIVERED:
            outcome = OutcomeReport(
                intervention=id, outcome=Outcome.RECOVERED, step=3, reason="it moved"
            )
            await past.say(attempt, outcome)


async def test_r5_a_case_holds_the_attempt_with_what_was_said_and_done_in_it(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt(task="totals")
    await past.say(attempt, step(1, edit="a.py"), step(2, notes="Refunds?"), CYCLE, TOLD)
    await past.say(attempt, Acceptance(check="pytest", passed=False, detail="1 failed"))
    await nudged(past, attempt)
    end = await past.end(attempt, Ending.UNACCEPTED)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt, about=end)
    assert (case.project, case.task) == ("shop", "totals")
    assert (case.ending, case.turns, case.steps, case.notes) == ("unaccepted", 2, 2, "Refunds?")
    assert (case.files, case.analyses, case.shown) == (("a.py",), (TOLD,), (1, 2))
    assert case.alarms == (Alarm(rule="cycle", summary="round and round", steps=(1, 2)),)
    assert case.interventions == (
        PastIntervention(
            action=Action.NUDGE,
            by=Actor.SUPERVISOR,
            message="Look up.",
            outcome=Outcome.RECOVERED,
            reason="it moved",
        ),
    )
    assert (case.verdict_id, case.sources) == (end, (attempt.id,))
    assert "step 1: run" in case.transcript


async def test_a_case_of_a_verdict_holds_that_verdict_and_one_of_nothing_holds_none(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    said = await past.say(attempt, REJECTION)
    task = await past.journal.task(attempt.task)
    assert (await case_of(past.journal, task, attempt, about=said)).verdict == REJECTION
    assert (await case_of(past.journal, task, attempt)).verdict is None
    assert (await case_of(past.journal, task, attempt, about=1)).verdict is None


async def test_a_person_s_edit_a_notice_and_the_watch_s_own_words_are_not_the_worker_s(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    notice = replace(CYCLE, severity=Severity.NOTICE)
    outage = replace(TOLD, by=Teller.WATCH)
    await past.say(attempt, step(1, edit="a.py", writer=Writer.PERSON), notice, outage)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.files, case.alarms, case.analyses) == ((), (), ())


async def test_however_long_an_attempt_was_its_case_shows_the_last_steps_only(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    endless = [replace(step(n, edit=f"{n}.py"), output="x" * 5000) for n in range(1, 101)]
    await past.say(attempt, *endless)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.steps, case.shown) == (100, tuple(range(71, 101)))
    assert (len(case.files), len(case.transcript) <= 20_000) == (50, True)


async def test_the_lessons_of_the_same_task_are_known_also_those_out_of_date(
    past: PastAttempts,
) -> None:
    first, second = await past.attempt(), await past.attempt()
    await past.say(first, LESSON)
    await past.say(second, replace(LESSON, text="Try them twice.", sources=(second.id,)))
    await past.say(await past.attempt(task="other"), replace(LESSON, text="Another task."))
    end = await past.end(second, Ending.UNACCEPTED)
    task = await past.journal.task(second.task)
    case = await case_of(past.journal, task, second, about=end)
    assert set(case.known) == {"Try refunds.", "Try them twice."}


async def test_what_the_checks_taught_is_not_held_against_a_person_s_word(
    past: PastAttempts,
) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.UNACCEPTED)
    await past.say(attempt, LESSON)
    said = await past.say(attempt, REJECTION)
    task = await past.journal.task(attempt.task)
    assert (await case_of(past.journal, task, attempt, about=said)).known == ()
