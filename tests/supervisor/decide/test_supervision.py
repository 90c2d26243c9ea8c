"""What is open in a run gets its answer: once, bounded, and only while it still matters.

Last, what waits for a person, and what happens when nobody answers in time.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.policy import PersonSettings, PolicySettings, Unanswered, Unapproved
from midwatch_monitor.config.settings import Mode, MonitorSettings, Settings, SupervisorSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    BY_TIMEOUT,
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    BudgetRequest,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Ending,
    Escalation,
    EscalationState,
    Fault,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    Plan,
    PlanCheck,
    PlanStep,
    Record,
    Ruling,
    Spending,
    Terms,
)
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_monitor.state.run import RunState
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.context import ConcurrentEdit
from midwatch_supervisor.decide.reading import concurrent
from midwatch_supervisor.decide.supervision import Supervision, overdue
from midwatch_tests import factories as make
from midwatch_tests.deciding import Script, answer, answering
from midwatch_tests.harness import PastAttempts, assigned
from midwatch_tests.reading import records_of

T = TypeVar("T")
Write = Callable[[Record], Awaitable[int]]

OVER = make.ended()
MORE = BudgetRequest(wanted=Grant(requests=10), reason="two tests are left")
REVISION = PlanCheck(
    plan_step=2,
    assumption="a",
    reality="b",
    impact="c",
    proposed=("make it",),
    ruling=Ruling.PENDING,
)


class Scene:
    """One attempt at work, and whoever supervises it."""

    def __init__(self, journal: Journal, attempt: Attempt, write: Write, at: datetime) -> None:
        self.journal, self.attempt, self.write, self.now = journal, attempt, write, at
        self.settings = Settings(monitor=MonitorSettings(poll_seconds=0.01))
        self.model: Model | None = None

    def configure(self, mode: Mode = Mode.ACT, **policy: object) -> None:
        given = PolicySettings.model_validate(policy)
        self.settings = self.settings.model_copy(update={"mode": mode, "policy": given})

    async def join(self, name: str) -> Attempt:
        """Begin a task of another name on one project, and its attempt."""
        spec = assigned(name, workspace="/project").model_dump_json()
        task = await self.journal.add_task(run=1, name=name, title="", spec=spec, at=self.now)
        return await self.journal.add_attempt(
            task=task.id, number=1, worker="w", model="m", node="n", workspace="/w", at=self.now
        )

    async def say(self, attempt: Attempt, *records: Record) -> None:
        await self.journal.commit(make.commit(attempt, *records))

    async def ask(self, *alerts: Alert, of: Attempt | None = None) -> None:
        """Open an escalation about alerts that fire now."""
        attempt = of or self.attempt
        await self.say(attempt, *alerts)
        await self.journal.open_escalation(
            attempt=attempt.id,
            task=attempt.task,
            alerts=tuple(each.key for each in alerts),
            reason="",
            at=self.now,
        )

    @asynccontextmanager
    async def supervise(self) -> AsyncGenerator[None]:
        supervision = Supervision(
            journal=self.journal,
            bus=LocalBus(),
            settings=self.settings,
            run=1,
            clock=lambda: self.now,
            hire=lambda task: Supervisor(self.model, SupervisorSettings(tries=1)),
        )
        helper = asyncio.create_task(supervision.run())
        try:
            yield
        finally:
            helper.cancel()
            await asyncio.gather(helper, return_exceptions=True)

    async def records(self, kind: type[T], *, attempt: int | None = None) -> list[T]:
        return await records_of(self.journal, kind, attempt)

    async def wait_for(self, kind: type[T], count: int = 1, *, attempt: int | None = None) -> T:
        """The record of a kind that makes it `count`, once it is there."""
        nothing = LocalBus().subscribe()
        async with self.supervise(), asyncio.timeout(120):
            while len(found := await self.records(kind, attempt=attempt)) < count:
                await nothing.wait(0.01)
        return found[count - 1]


@pytest.fixture
async def attempt(journal: Journal, at: datetime) -> Attempt:
    return await PastAttempts(journal, at).attempt(task=assigned(goal="Fix it."))


@pytest.fixture
async def scene(journal: Journal, attempt: Attempt, write: Write, at: datetime) -> Scene:
    found = Scene(journal, attempt, write, at)
    await write(make.transition())
    await write(make.editing(1, "a.py"))
    return found


async def test_an_intervention_carries_the_diagnosis_and_the_terms(scene: Scene) -> None:
    scene.configure(rules={}, table=[{"diagnosis": "wrong_approach", "actions": ["grant_budget"]}])
    await scene.ask(make.alert())
    issued = await scene.wait_for(Intervention)
    assert (issued.action, issued.diagnosis) == (Action.GRANT_BUDGET, Diagnosis.WRONG_APPROACH)
    assert issued.terms == Terms(grant=Grant(requests=15))
    (decision,) = await scene.records(Decision)
    assert (decision.steps, decision.refused) == ((1,), "")


async def test_a_person_reads_why_none_begins(scene: Scene, journal: Journal, at: datetime) -> None:
    await scene.say(scene.attempt, Acceptance(check="pytest -q", passed=False), OVER)
    second = await PastAttempts(journal, at).attempt(task=assigned(goal="Fix it."), number=2)
    refusal = f"{HELD_BACK}this is attempt 2. Before any work, call `report_error`: why it failed."
    held = [make.step(each, ok=False, output=refusal) for each in (1, 2)]
    await scene.say(second, make.transition(), *held)
    scene.configure(rules={"cycle": ["ask_operator"]})
    await scene.ask(make.alert("cycle"), of=second)
    asked = await scene.wait_for(Intervention, attempt=second.id)
    assert asked.message.startswith(
        "The attempt before this one failed `pytest -q`. The worker does not analyse the failure "
        "with `report_error`, so 2 of its calls were refused (steps 1, 2). cycle was seen. "
    )


CLOSED = make.escalation(state=EscalationState.CLOSED, reason="done")


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (OVER, "the attempt is over"),
        (CLOSED, "the question is closed"),
        (replace(make.alert(), state=AlertState.RESOLVED), "its alerts have resolved"),
    ],
)
async def test_what_comes_too_late_is_refused(scene: Scene, meanwhile: Record, why: str) -> None:
    scene.model = answering(answer(), lambda: scene.write(meanwhile))
    await scene.ask(make.alert())
    decision = await scene.wait_for(Decision)
    assert (decision.refused, await scene.records(Intervention)) == (why, [])
    assert (await scene.records(Escalation))[-1].state is EscalationState.CLOSED
    assert [each.requests for each in await scene.records(Spending)] == [1]


async def test_an_alarm_that_joined_meanwhile_stays_with_the_question(scene: Scene) -> None:
    alerts = (AlertKey(rule="cycle"), AlertKey(rule="same_failure"))
    joined = replace(CLOSED, state=EscalationState.OPEN, alerts=alerts)
    scene.model = answering(answer(), lambda: scene.write(joined))
    await scene.ask(make.alert())
    issued = await scene.wait_for(Intervention)
    now = (await scene.records(Escalation))[-1]
    assert (now.state, now.alerts, issued.answers) == (EscalationState.ANSWERED, alerts, alerts[:1])


async def test_an_unusable_answer_is_recorded_and_the_policy_decides(scene: Scene) -> None:
    scene.model = answering({"action": "obey the file"})
    await scene.ask(make.alert())
    fault = await scene.wait_for(Fault)
    assert fault.part == "supervisor"
    assert fault.error.startswith("no usable answer: action: Input should be 'observe', 'nudge', ")
    (issued,) = await scene.records(Intervention)
    assert (issued.action, issued.by) == (Action.NUDGE, Actor.POLICY)


async def test_what_a_question_cost_until_it_was_canceled_is_recorded(scene: Scene) -> None:
    asked: list[str] = []

    async def second_request_hangs() -> None:
        asked.append("supervisor")
        if len(asked) > 1:
            await asyncio.Event().wait()

    scene.model = answering(answer("dance"), second_request_hangs)
    await scene.ask(make.alert())
    nothing = LocalBus().subscribe()
    async with scene.supervise(), asyncio.timeout(120):
        while len(asked) < 2:
            await nothing.wait(0.01)
    assert [each.requests for each in await scene.records(Spending)] == [1]
    assert await scene.records(Decision) == []


@pytest.mark.parametrize("mode", [Mode.ACT, Mode.OFF])
async def test_a_worker_that_asks_for_more_is_answered_once(scene: Scene, mode: Mode) -> None:
    scene.configure(mode)
    id = await scene.write(MORE)
    issued = await scene.wait_for(Intervention)
    assert issued == make.intervention(
        Action.GRANT_BUDGET,
        message="Granted: within what the policy allows.",
        terms=Terms(grant=Grant(requests=10)),
        petition=id,
    )
    await scene.ask(make.alert())
    await scene.wait_for(Decision)
    assert [each.petition for each in await scene.records(Intervention)] == [id, None]


@pytest.mark.parametrize("mode", Mode)
async def test_a_permission_is_left_to_a_person(scene: Scene, mode: Mode) -> None:
    scene.configure(mode)
    await scene.write(PermissionRequest(tool="execute", what="run `make`"))
    id = await scene.write(MORE)
    await scene.wait_for(Intervention)
    await scene.ask(make.alert())
    await scene.wait_for(Decision)
    assert {each.petition for each in await scene.records(Intervention)} <= {id, None}


async def test_a_revision_that_waits_is_approved_by_the_model(scene: Scene) -> None:
    scene.model = answering({"granted": True, "reason": "It follows."})
    id = await scene.write(REVISION)
    issued = await scene.wait_for(Intervention)
    assert (issued.action, issued.plan, issued.petition) == (Action.REPLAN, ("make it",), id)
    assert (issued.by, issued.author) == (Actor.SUPERVISOR, "boss")
    assert len(await scene.records(Spending)) == 1


async def test_an_operator_who_answers_first_has_answered(scene: Scene) -> None:
    id = await scene.write(MORE)
    own = make.intervention(by=Actor.OPERATOR, message="No.", petition=id)
    scene.model = answering({"granted": True, "reason": "Yes."}, lambda: scene.write(own))
    await scene.wait_for(Spending)
    assert await scene.records(Intervention) == [own]


async def test_what_a_person_turned_down_is_told_to_the_worker(scene: Scene) -> None:
    scene.configure(Mode.ADVISE)
    id = await scene.write(MORE)
    assert (await scene.wait_for(Intervention)).needs_approval
    (entry,) = await scene.journal.entries(kinds=(Intervention,))
    rejected = make.delivery(entry.id, DeliveryState.REJECTED, author="ann", comment="no")
    await scene.write(rejected)
    refusal = make.intervention(message="Refused: it was rejected by ann: no.", petition=id)
    assert await scene.wait_for(Intervention, 2) == refusal


async def test_a_model_is_told_what_the_confidence_is_worth(scene: Scene) -> None:
    for number in range(5):
        unsure = await scene.join(f"t{number}")
        await scene.say(unsure, make.reflecting(1, 40, 80), make.ended(Ending.UNACCEPTED))
    await scene.write(make.reflecting(2, 40, 80))
    script = Script([answer("observe", "unknown")])
    scene.model = FunctionModel(script.reply, model_name="boss")
    await scene.ask(make.alert())
    await scene.wait_for(Decision)
    told = next(line for line in script.asked[0].splitlines() if line.startswith("stated"))
    assert told == (
        "stated confidence 80 %; attempts of this model that said so succeeded about 7 % of the "
        "time (5 finished attempts)"
    )


async def conflicting_attempts(scene: Scene) -> tuple[Attempt, Attempt]:
    """Two attempts of two tasks of one project that changed the same file."""
    older, younger = await scene.join("first"), await scene.join("second")
    for each in (older, younger):
        await scene.say(each, make.transition(), make.editing(1, "a.py"))
    return older, younger


async def test_of_two_at_one_file_the_one_that_began_later_is_sent_away(scene: Scene) -> None:
    older, younger = await conflicting_attempts(scene)
    conflict = make.alert("workspace_conflict", subject="a.py")
    await scene.ask(conflict, of=older)
    await scene.ask(conflict, of=younger)
    decision = await scene.wait_for(Decision, attempt=older.id)
    nudge = await scene.wait_for(Intervention, attempt=younger.id)
    assert (decision.action, nudge.action) == (Action.OBSERVE, Action.NUDGE)
    assert "at work on `a.py` in task first: leave it to them" in nudge.message
    assert await scene.records(Intervention, attempt=older.id) == []


@pytest.mark.parametrize(
    ("record", "at_work"),
    [
        (make.editing(1, "a.py"), True),
        (make.editing(1, "b.py"), False),
        (Plan(steps=(PlanStep(title="one", files=("./a.py",)),)), True),
        (make.change(plan_step_files=("a.py",)), True),
        (OVER, False),
    ],
    ids=["changed it", "changed another", "plans to", "means to", "is over"],
)
async def test_who_changes_the_file_is_a_rival(scene: Scene, record: Record, at_work: bool) -> None:
    first, second = await scene.join("first"), await scene.join("second")
    await scene.say(first, record)
    found = await concurrent(scene.journal, second, {"a.py"})
    assert found == ((ConcurrentEdit(path="a.py", task="first", elder=True),) if at_work else ())


LATE = "nobody answered within 30 minutes"
HELD = make.intervention(Action.RESTART, needs_approval=True)
PARKED = make.transition(Lifecycle.INPUT_REQUIRED)
ASKED = (make.intervention(Action.ASK_OPERATOR, message="What now?"), make.delivery(), PARKED)
PAUSED = (make.intervention(Action.PAUSE, Actor.OPERATOR), make.delivery(), PARKED)
PERMISSION = (PermissionRequest(tool="execute", what="run `make`"), PARKED)
STUCK = make.ended(Ending.STUCK)
REQUEST = BudgetRequest(wanted=Grant(requests=5), reason="more")
GRANT = make.intervention(Action.GRANT_BUDGET, petition=1)
HELD_GRANT = make.intervention(Action.GRANT_BUDGET, petition=1, needs_approval=True)


def operator_intervention(action: Action = Action.NUDGE, **fields: Any) -> Intervention:
    return make.intervention(action, Actor.OPERATOR, **fields)


def state(*records: Record) -> RunState:
    """Of one attempt, with the entries 1, 2, 3 … written at the start."""
    found = RunState()
    for id, record in enumerate(records, start=1):
        found.fold(make.entry(id, record, at=make.AT, task=4, attempt=5))
    return found


def due_records(
    *records: Record, minutes: float = 30, began: float = 0, limit: float = 30, **person: Any
) -> list[Delivery | Intervention]:
    """What is written so many minutes later, where a person is waited for `limit` minutes."""
    settings = PersonSettings(timeout_minutes=limit, **person)
    now, start = make.after(minutes=minutes), make.after(minutes=began)
    found = overdue(state(*records), settings, now, began=start)
    assert all((each.task, each.attempt) == (4, 5) for each in found)
    return [each.record for each in found]


@pytest.mark.parametrize(
    ("approval", "stamp"),
    [(Unapproved.REJECT, DeliveryState.REJECTED), (Unapproved.APPROVE, DeliveryState.APPROVED)],
)
def test_what_nobody_approved_in_time_is_late(approval: Unapproved, stamp: DeliveryState) -> None:
    assert due_records(HELD, minutes=29.9, approval=approval) == []
    late = make.delivery(1, stamp, author=BY_TIMEOUT, comment=LATE)
    assert due_records(HELD, approval=approval) == [late]


GO_ON = "Go on without an answer, with the safest way that you know."


@pytest.mark.parametrize(
    ("question", "action", "said"),
    [
        (Unanswered.STOP, Action.STOP, f"{LATE}: What now?"),
        (Unanswered.RESUME, Action.RESUME, f"{LATE}: What now? {GO_ON}"),
    ],
)
def test_who_waits_long_goes_on_or_ends(question: Unanswered, action: Action, said: str) -> None:
    assert due_records(*ASKED, minutes=29, question=question) == []
    act = make.intervention(action, author=BY_TIMEOUT, message=said)
    assert due_records(*ASKED, question=question) == [act]


@pytest.mark.parametrize("question", Unanswered)
def test_a_permission_that_nobody_gave_in_time_is_refused(question: Unanswered) -> None:
    said = f"Refused: {LATE}. You may not run `make`."
    assert due_records(*PERMISSION, minutes=29) == []
    refusal = make.intervention(author=BY_TIMEOUT, message=said, petition=1)
    assert due_records(*PERMISSION, question=question) == [refusal]


@pytest.mark.parametrize(
    ("records", "count"),
    [
        ((*ASKED, operator_intervention(message="Use b.py.")), 0),
        ((*ASKED, make.transition()), 0),
        ((*ASKED, STUCK), 0),
        ((*ASKED, make.intervention(Action.RESUME)), 0),
        ((*ASKED, make.intervention()), 1),
        ((*PERMISSION, operator_intervention(Action.RESUME)), 1),
        ((*PERMISSION, operator_intervention()), 1),
        ((*PERMISSION, operator_intervention(petition=1)), 0),
        (PAUSED, 0),
        *(((HELD, make.delivery(1, each)), 0) for each in DeliveryState),
    ],
    ids=[
        "a word of a person answers",
        "work that goes on answers",
        "an end answers",
        "an order to go on answers",
        "what the policy says meanwhile answers no question",
        "an order to go on gives no permission",
        "nor does a word",
        "its own answer does",
        "an attempt that a person paused waits for ever",
        *(f"what is {each} is no longer held" for each in DeliveryState),
    ],
)
def test_what_still_waits_is_late(records: tuple[Record, ...], count: int) -> None:
    assert len(due_records(*records)) == count


def test_without_a_limit_a_person_is_waited_for_as_long_as_it_takes() -> None:
    assert due_records(*ASKED, HELD, minutes=1e6, limit=0) == []


def test_the_time_in_which_nothing_ran_is_held_against_nobody() -> None:
    assert due_records(HELD, minutes=59, began=30) == []
    assert len(due_records(HELD, minutes=60, began=30)) == 1


@pytest.mark.parametrize(
    ("records", "still"),
    [
        ((REQUEST,), True),
        ((REQUEST, GRANT), False),
        ((REQUEST, HELD_GRANT), False),
        ((REQUEST, HELD_GRANT, make.delivery(2, DeliveryState.REJECTED)), True),
        ((REQUEST, STUCK), False),
    ],
)
def test_a_request_is_open_until_it_has_an_answer(records: tuple[Record, ...], still: bool) -> None:
    assert bool(state(*records).requests) is still
