"""Several monitors on one journal share the attempts that no process of their own looks after."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import Concatenate, ParamSpec, TypeVar

import pytest
from pydantic_ai.models import Model
from sqlalchemy import Connection

from midwatch_monitor.bus import NodeGone
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.tasks import ModelSpec, Role, WorkerSpec
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.monitor_leases import MonitorLeases
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertState,
    Change,
    Decision,
    Escalation,
    EscalationState,
    Hint,
    Intervention,
    Lifecycle,
    OutcomeReport,
    SupervisedBy,
    Task,
)
from midwatch_supervisor.fleet.monitors.fleet_monitor import ALONE, LeaseChange
from midwatch_supervisor.fleet.monitors.leases import LEARNER, RoleChange
from midwatch_tests.command import assignment
from midwatch_tests.deciding import answer, answering
from midwatch_tests.factories import delivery, ended, reflecting, step, task_transition
from midwatch_tests.nodes import node
from midwatch_tests.watched import SETTINGS, Brokered, Fleet

T = TypeVar("T")
UNSURE = reflecting(0, 10, 80, blockers=("a", "b", "c"), notes="stuck")
OVER = (ended(), task_transition(Lifecycle.COMPLETED))
SILENT = '{"rules": {"silence": {"command": "1s", "model": "1s", "idle": "1s"}}}'


def model_for(role: Role, key: str) -> Model:
    """The supervisor of a fleet's task, by the name `scripted:` and this module's."""
    return answering(answer())


@pytest.fixture
def fleet(journal: Journal, location: str) -> Fleet:
    return Fleet(journal, location)


async def test_every_attempt_has_one_monitor_and_who_leaves_hands_over(fleet: Fleet) -> None:
    before = [(await fleet.begin()).attempt.id for _ in range(3)]
    async with fleet.monitor("b"):
        async with fleet.monitor("a"):
            await fleet.until(lambda: len(fleet.held("a") + fleet.held("b")) == 3)
            later = [(await fleet.begin()).attempt.id for _ in range(3)]
            await fleet.until(lambda: len(fleet.held("a") + fleet.held("b")) == 6)
            assert sorted(fleet.held("a") + fleet.held("b")) == [*before, *later]
        await fleet.until(lambda: fleet.held("b") == [*before, *later])


async def test_a_broker_shares_out_what_begins(fleet: Fleet) -> None:
    long = SETTINGS.model_copy(update={"fleet": FleetSettings(lease_seconds=3600)})
    mine, others = Brokered(), Brokered()
    first = (await fleet.begin()).attempt.id  # whoever begins takes what is there
    async with fleet.monitor("a", mine, long) as a, fleet.monitor("b", others, long) as b:
        await fleet.until(lambda: len(a.runs) == len(b.runs) == 1)
        ids = [(await fleet.begin()).attempt.id for _ in range(4)]
        await fleet.until(lambda: len(a.runs) == len(b.runs) == 5)
        for id in ids:
            bus = mine if id % 2 else others
            bus.given.offer([Hint(entry=1, kind="attempt_state", attempt=id)])
        await fleet.until(lambda: len(fleet.held("a") + fleet.held("b")) == 5)
        held = [{*fleet.held(name)} - {first} for name in "ab"]
        assert (first, held) == (1, [{3, 5}, {2, 4}])


async def test_a_node_that_the_broker_misses_is_doubted(fleet: Fleet) -> None:
    nodes = Nodes(fleet.journal)
    await nodes.enter(node("n", began=fleet.now), alive_seconds=1)
    bus = Brokered()

    async def is_doubted() -> bool:
        return (await nodes.all())[0].doubted_at is not None

    async with fleet.monitor("a", bus):
        bus.gone.offer([NodeGone(name="n", boot="0")])  # an earlier start of it
        bus.gone.offer([NodeGone(name="nobody", boot="1")])
        bus.gone.offer([NodeGone(name="n", boot="1")])
        await fleet.until(is_doubted)


async def test_an_agent_that_came_by_itself_is_escalated_and_nudged_and_judged(
    fleet: Fleet,
) -> None:
    recorder = await fleet.begin()
    async with fleet.monitor("a") as keeping:
        await recorder.record(UNSURE)
        await fleet.until_told(Intervention)
        (nudge,) = await fleet.journal.entries(kinds=(Intervention,))
        assert isinstance(nudge.record, Intervention)
        assert (nudge.record.action, nudge.record.by) == (Action.NUDGE, Actor.POLICY)
        await recorder.record(delivery(nudge.id, step=1), step(0, "run"))
        await fleet.until_told(OutcomeReport)
        await recorder.end(*OVER)
        await fleet.until(lambda: not keeping.runs)
    said = [each.state for each in await fleet.records(Escalation) if each.id == 1]
    assert said == [EscalationState.OPEN, EscalationState.ANSWERED, EscalationState.CLOSED]


async def test_what_has_a_process_of_its_own_is_never_touched(fleet: Fleet) -> None:
    recorder = await fleet.begin(supervised_by=SupervisedBy.PROCESS)
    await recorder.record(UNSURE)
    other = await fleet.begin()
    async with fleet.monitor("a") as keeping:
        await other.record(UNSURE)
        await fleet.until_told(Decision)
        assert keeping.runs == {2}
    assert {each.attempt for each in await fleet.records(Escalation)} == {other.attempt.id}
    assert {each.attempt for each in fleet.told["a"] if isinstance(each, LeaseChange)} == {2}


async def test_a_task_of_a_fleet_is_decided_by_the_model_that_its_file_named(fleet: Fleet) -> None:
    tools = WorkerSpec(tools=("no.such:tool",))  # of no concern here
    for name in (f"scripted:{__name__}", "scripted:no_such_module"):
        wanted = assignment(spec=tools, models={Role.SUPERVISOR: ModelSpec(name=name)})
        await (await fleet.begin(wanted.model_dump_json())).record(UNSURE)
    async with fleet.monitor("a"):
        await fleet.until_told(Decision, 2)
    assert {each.by for each in await fleet.records(Decision)} == {Actor.SUPERVISOR, Actor.POLICY}


async def test_who_was_silent_for_a_day_is_left_alone_until_something_is_heard(
    fleet: Fleet,
) -> None:
    recorder = await fleet.begin()
    fleet.ahead = ALONE + timedelta(minutes=1)
    await fleet.begin()
    async with fleet.monitor("a") as keeping:
        await fleet.until(lambda: fleet.held("a") == [2])
        assert keeping.runs == {2}
        await recorder.record(UNSURE)
        await fleet.until(lambda: 1 in keeping.runs)


async def test_silence_is_seen_without_any_entry(fleet: Fleet) -> None:
    await (await fleet.begin(settings=SILENT)).record(Change(activity=Activity.COMMAND))
    async with fleet.monitor("a"):
        await fleet.until_told(Escalation)
    alerts = [each for each in await fleet.records(Alert) if each.state is AlertState.FIRING]
    assert [each.key.rule for each in alerts] == ["silence"]


async def test_one_of_all_learns(fleet: Fleet) -> None:
    taken = RoleChange(name=LEARNER, held=True)
    async with fleet.monitor("b"):
        async with fleet.monitor("a"):
            await fleet.until(lambda: taken in fleet.told["a"] + fleet.told["b"])
            assert (fleet.told["a"] + fleet.told["b"]).count(taken) == 1
        await fleet.until(lambda: taken in fleet.told["b"])


async def test_a_look_once_answers_what_is_open_and_a_run_of_another_version_keeps_nobody(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    await fleet.begin(settings='{"no_such_setting": 1}')
    await (await fleet.begin()).record(UNSURE)
    await (await fleet.begin()).end(*OVER)
    await fleet.keeping("a").once()
    assert caplog.messages == ["run 1 cannot be monitored here: cannot read the settings of run 1"]
    await fleet.keeping("b").once()
    assert len(await fleet.records(Decision)) == 1
    assert [fleet.held(name) for name in "ab"] == [[2], [2]]


P = ParamSpec("P")
SELDOM = SETTINGS.model_copy(update={"fleet": FleetSettings(lease_seconds=3600)})
"""Nothing is found by looking at everything once more."""


class Gate:
    """Where somebody waits, once, until a test lets him through or turns him away."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


class GatedJournal(Journal):
    """A journal with gates at some of what it does, by name."""

    gates: dict[str, Gate]
    denied: dict[str, int]
    """What it refuses, and how often it did."""

    async def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._pass(getattr(work, "__name__", ""))
        return await super().write(work, *args, **kwargs)

    async def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._pass(getattr(work, "__name__", ""))
        return await super().read(work, *args, **kwargs)

    async def tasks(self, run: int) -> list[Task]:
        found = await super().tasks(run)
        await self._pass("tasks of a run")  # by then there may be more
        return found

    def gate(self, name: str, error: Exception | None = None) -> Gate:
        self.gates[name] = Gate(error)
        return self.gates[name]

    async def _pass(self, name: str) -> None:
        if name in self.denied:
            self.denied[name] += 1
            raise JournalError("denied")
        gate = self.gates.pop(name, None)
        if gate is not None:
            gate.reached.set()
            await gate.open.wait()
            if gate.error is not None:
                raise gate.error


@pytest.fixture
async def gated_journal(location: str, journal: Journal) -> AsyncGenerator[GatedJournal]:
    """The same journal once more, as the monitors have it."""
    async with await GatedJournal.open(location) as opened:
        opened.gates, opened.denied = {}, {}
        yield opened


@pytest.fixture
def gated_fleet(fleet: Fleet, gated_journal: GatedJournal) -> Fleet:
    """The fleet, whose monitors have that journal."""
    fleet.watched = gated_journal
    return fleet


async def escalated_attempts(fleet: Fleet) -> Sequence[int]:
    return [each.attempt for each in await fleet.records(Escalation)]


async def test_a_claim_that_comes_while_a_round_writes_is_heeded(
    gated_fleet: Fleet, gated_journal: GatedJournal
) -> None:
    await gated_fleet.begin()
    bus, gate = Brokered(), gated_journal.gate("_take_leases")
    async with gated_fleet.monitor("a", bus, SELDOM):
        await gate.reached.wait()
        second = (await gated_fleet.begin()).attempt.id
        bus.given.offer([Hint(entry=1, kind="attempt_state", attempt=second)])
        for _ in range(5):
            await asyncio.sleep(0)
        gate.open.set()
        await gated_fleet.until(lambda: gated_fleet.held("a") == [1, second])


async def test_what_could_not_be_taken_when_it_began_is_tried_again_at_once(
    gated_fleet: Fleet, gated_journal: GatedJournal
) -> None:
    await gated_fleet.begin()
    async with gated_fleet.monitor("a", settings=SELDOM):
        await gated_fleet.until(lambda: gated_fleet.held("a") == [1])
        gated_journal.gate("_take_leases", JournalError("away")).open.set()
        await gated_fleet.begin()
        await gated_fleet.until(lambda: gated_fleet.held("a") == [1, 2])


async def test_what_fails_all_night_while_the_rest_succeeds_is_logged_once(
    gated_fleet: Fleet, gated_journal: GatedJournal, caplog: pytest.LogCaptureFixture
) -> None:
    await gated_fleet.begin()
    async with gated_fleet.monitor("a"):
        await gated_fleet.until(lambda: gated_fleet.held("a") == [1])
        gated_journal.denied["_take_leases"] = 0
        await gated_fleet.until(lambda: gated_journal.denied["_take_leases"] > 2)
    assert caplog.messages.count("cannot monitor now: denied") == 1


async def test_a_lease_on_what_was_read_before_it_was_heard_of_is_used(
    gated_fleet: Fleet, gated_journal: GatedJournal
) -> None:
    seldom = SETTINGS.monitor.model_copy(update={"tick_seconds": 3600})
    settings = SETTINGS.model_copy(update={"monitor": seldom}).model_dump_json()
    first = await gated_fleet.begin(settings=settings)
    await MonitorLeases(gated_fleet.journal, clock=lambda: gated_fleet.now).take(
        [1], holder="b:1", seconds=1
    )
    async with gated_fleet.monitor("a") as keeping:
        await gated_fleet.until(lambda: bool(keeping.runs))
        gate = gated_journal.gate("_read_news")
        await gate.reached.wait()
        await (await gated_fleet.follow(first.attempt.task, number=2)).record(UNSURE)
        await gated_fleet.until(lambda: gated_fleet.held("a") == [1, 2])
        gate.open.set()
        await gated_fleet.until_told(Escalation)
    assert {*await escalated_attempts(gated_fleet)} == {2}


async def test_a_run_that_is_heard_of_while_it_seems_to_be_over_is_watched_on(
    gated_fleet: Fleet, gated_journal: GatedJournal
) -> None:
    first = await gated_fleet.begin(settings=SILENT)
    async with gated_fleet.monitor("a") as keeping:
        await gated_fleet.until(lambda: bool(keeping.runs))
        gate = gated_journal.gate("tasks of a run")
        await first.end(*OVER)
        await gate.reached.wait()
        later = await gated_fleet.journal.add_task(
            run=1, name="later", title="", spec="{}", at=gated_fleet.now
        )
        second = await gated_fleet.follow(later.id, number=1)
        await second.record(Change(activity=Activity.COMMAND))
        await gated_fleet.until(lambda: 2 in gated_fleet.held("a"))
        gate.open.set()
        await gated_fleet.until_told(Escalation)
    assert {*await escalated_attempts(gated_fleet)} == {2}
