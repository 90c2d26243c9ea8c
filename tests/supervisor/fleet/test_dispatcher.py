"""The dispatcher over a journal: what it hands out, rescues, and tells people."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Commit,
    Fault,
    Intervention,
    Lifecycle,
    NodeState,
    PermissionRequest,
    Record,
    Run,
    Snapshot,
    SupervisedBy,
    TaskTransition,
)
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.nodes.task_failures import UNABLE, TaskFailures
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.fleet.queue.dispatch import Dispatcher
from midwatch_supervisor.fleet.queue.queue import QueuedTurn, TurnUnderWay
from midwatch_supervisor.fleet.queue.submission import submit
from midwatch_supervisor.present.assignment import assignments
from midwatch_tests.factories import AT, WHOSE, draft, task_transition, transition
from midwatch_tests.reading import records_of
from midwatch_tests.turns import QueueInMemory


class Fleet:
    """A dispatcher, and the run that it looks after."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.queue = QueueInMemory()
        self.nodes = Nodes(journal)
        self.dispatcher = self.other_dispatcher()

    def other_dispatcher(self) -> Dispatcher:
        """A dispatcher of another process."""
        return Dispatcher(
            self.journal, self.queue, self.nodes, settings=FleetSettings(), clock=lambda: AT
        )

    async def submit(self, *tasks: dict[str, object], fleet: str = "night") -> Run:
        raw = [{"goal": "g", "acceptance": ["true"], **task} for task in tasks]
        wanted = assignments(TaskFile.model_validate({"tasks": raw}), Path("/"))
        run, _ = await submit(
            *(self.journal, wanted),
            source="t.yaml",
            settings=Settings(fleet=FleetSettings(name=fleet)),
            clock=lambda: AT,
        )
        return run

    async def say(self, record: Record, *, attempt: int | None = None) -> None:
        await self.journal.commit(Commit(drafts=(draft(record, attempt=attempt),)))

    async def enter(self, name: str, *labels: str) -> None:
        """Let a node with one slot begin."""
        status = status_of(Identity(name=name, boot="1"), slots=1, labels=labels)
        await self.nodes.enter(status, alive_seconds=1)

    async def begin_attempt(self, holder: str) -> None:
        """Let a process have the first task's turn, and an attempt at work."""
        self.queue.turns = [
            TurnUnderWay(ticket=each.ticket, holder=holder if each.ticket.task == 1 else "")
            for each in self.queue.turns
        ]
        await self.journal.add_attempt(task=1, number=1, at=AT, **WHOSE)
        await self.say(transition(Lifecycle.WORKING), attempt=1)

    async def begin_at_node_a(self) -> None:
        """Let a node work on the only task."""
        await self.submit({"id": "a"})
        await self.dispatcher.look()
        await self.enter("node-a")
        await self.begin_attempt("node-a:1")

    def failures(self, node: str, *, after: timedelta = timedelta()) -> TaskFailures:
        return TaskFailures(self.journal, node=node, fleet="midwatch", clock=lambda: AT + after)

    async def break_turn(self, failures: TaskFailures, *, live: int | None) -> bool:
        """Let a turn of the first task break; whether that ends the task."""
        return await failures.broke(await self.journal.task(1), KeyError("x"), live=live)


@pytest.fixture
def fleet(journal: Journal) -> Fleet:
    return Fleet(journal)


async def test_a_run_is_stored_whole_for_a_monitor_to_keep(fleet: Fleet) -> None:
    run = await fleet.submit({"id": "a"}, {"id": "b", "depends_on": ["a"]})
    assert (await fleet.journal.runs()) == [run]
    assert (run.supervised_by, run.source) == (SupervisedBy.MONITOR, "t.yaml")
    assert [task.name for task in await fleet.journal.tasks(run.id)] == ["a", "b"]
    states = await records_of(fleet.journal, TaskTransition)
    assert states == 2 * [task_transition(Lifecycle.SUBMITTED)]


async def test_what_can_begin_is_handed_out_once_and_the_rest_in_its_time(fleet: Fleet) -> None:
    await fleet.submit({"id": "a", "labels": ["gpu"]}, {"id": "b", "depends_on": ["a"]})
    await fleet.submit({"id": "a"}, fleet="day")  # of another fleet on the same journal
    await fleet.dispatcher.look()
    await fleet.dispatcher.look()
    first = ("night:1-20261121T200000:1:1", ("gpu",))
    assert fleet.queue.queued == [first]
    assert fleet.queue.forgotten == AT - timedelta(days=7)
    await fleet.say(task_transition(Lifecycle.COMPLETED))
    await fleet.dispatcher.look()
    assert fleet.queue.queued == [first, ("night:1-20261121T200000:2:1", ())]


async def test_what_a_lost_node_had_goes_to_another_and_people_are_told(fleet: Fleet) -> None:
    await fleet.begin_at_node_a()
    await fleet.dispatcher.look()
    assert len(fleet.queue.queued) == 1
    await fleet.nodes.beat("node-a", "1", busy=0, state=NodeState.LOST)
    await fleet.dispatcher.look()
    ticket = "night:1-20261121T200000:1:1"
    assert fleet.queue.queued == [(ticket, ()), (ticket, ())]
    told = Fault(part="node", error="node-a is gone: another node continues it")
    assert await records_of(fleet.journal, Fault) == [told]


async def test_a_task_goes_on_once_the_permission_that_its_worker_waits_for_is_given(
    fleet: Fleet,
) -> None:
    await fleet.begin_at_node_a()
    await fleet.say(PermissionRequest(tool="execute", what="run `make`"), attempt=1)
    asked = await fleet.journal.last_id()
    await fleet.say(transition(Lifecycle.INPUT_REQUIRED), attempt=1)
    fleet.queue.turns = []
    said = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, message="Mind the tests.")
    await fleet.say(said, attempt=1)
    await fleet.dispatcher.look()
    assert len(fleet.queue.queued) == 1  # nothing but the answer ends the wait
    given = replace(said, action=Action.RESUME, message="Approved.", petition=asked)
    await fleet.say(given, attempt=1)
    await fleet.dispatcher.look()
    assert len(fleet.queue.queued) == 2


async def test_a_lost_node_that_takes_its_turn_again_is_told_of_once(fleet: Fleet) -> None:
    await fleet.begin_at_node_a()
    taken = fleet.queue.turns
    await fleet.nodes.beat("node-a", "1", busy=0, state=NodeState.LOST)
    for dispatcher in (fleet.dispatcher, fleet.dispatcher, fleet.other_dispatcher()):
        fleet.queue.turns = taken
        await dispatcher.look()
    assert len(fleet.queue.queued) == 3  # handed out, and each dispatcher takes it away once
    assert len(await records_of(fleet.journal, Fault)) == 1


async def test_a_turn_that_another_hands_out_meanwhile_is_not_followed_by_a_second_one(
    fleet: Fleet,
) -> None:
    class SlowQueue(QueueInMemory):
        async def last_numbers(self, run: Run) -> dict[int, int]:
            if not self.turns:
                ticket = QueuedTurn.of(self.fleet, run, 1, 1)
                await self.hand_out(ticket)
            return await super().last_numbers(run)

    fleet.queue = SlowQueue()
    await fleet.submit({"id": "a"}, {"id": "b"})
    await fleet.other_dispatcher().look()
    assert [str(each.ticket) for each in fleet.queue.turns] == [
        "night:1-20261121T200000:1:1",
        "night:1-20261121T200000:2:1",
    ]


async def test_a_turn_that_another_rescued_meanwhile_stays_with_the_node_that_took_it(
    fleet: Fleet,
) -> None:
    class SlowQueue(QueueInMemory):
        async def under_way(self) -> list[TurnUnderWay]:
            found = await super().under_way()
            self.turns = [TurnUnderWay(ticket=each.ticket, holder="node-b:1") for each in found]
            return found

    await fleet.submit({"id": "a"})
    await fleet.dispatcher.look()
    await fleet.begin_attempt("node-a:1")
    left, fleet.queue = fleet.queue.turns, SlowQueue()
    fleet.queue.turns = left
    await fleet.enter("node-b")
    await fleet.other_dispatcher().look()
    assert [each.holder for each in fleet.queue.turns] == ["node-b:1"]


async def test_a_turn_whose_end_was_not_noted_any_more_goes_with_who_had_it(fleet: Fleet) -> None:
    await fleet.begin_at_node_a()
    await fleet.say(task_transition(Lifecycle.COMPLETED))
    await fleet.dispatcher.look()
    assert fleet.queue.ended == []
    await fleet.nodes.beat("node-a", "1", busy=0, state=NodeState.DOWN)
    await fleet.dispatcher.look()
    assert fleet.queue.ended == ["night:1-20261121T200000:1:1"]


async def test_what_is_handed_out_while_a_look_reads_is_not_taken_for_a_leftover(
    fleet: Fleet,
) -> None:
    class SlowQueue(QueueInMemory):
        async def under_way(self) -> list[TurnUnderWay]:
            if not await fleet.journal.runs():
                await fleet.submit({"id": "a"})
                await fleet.other_dispatcher().look()
            return await super().under_way()

    fleet.queue = SlowQueue()
    await fleet.other_dispatcher().look()
    assert (len(fleet.queue.turns), fleet.queue.ended) == (1, [])


@pytest.mark.parametrize(
    ("lifecycle", "reason", "handed_out"),
    [
        (Lifecycle.WORKING, '"lifecycle":"failed"', 1),
        (Lifecycle.FAILED, 'no "lifecycle":"working"', 0),
    ],
)
async def test_a_reason_that_names_an_end_is_none(
    fleet: Fleet, lifecycle: Lifecycle, reason: str, handed_out: int
) -> None:
    await fleet.submit({"id": "a"})
    await fleet.say(task_transition(lifecycle, reason=reason))
    await fleet.dispatcher.look()
    assert len(fleet.queue.queued) == handed_out


async def report_unable(fleet: Fleet, node: str, *, after: timedelta) -> bool:
    task = await fleet.journal.task(1)
    failures = fleet.failures(node, after=after)
    return await failures.unable(task, "no key", labels=("gpu",), live=None)


async def test_a_task_fails_once_every_node_for_it_has_refused_it_for_long(fleet: Fleet) -> None:
    await fleet.submit({"id": "a"})
    for name, labels in (("one", ("gpu",)), ("two", ("big", "gpu")), ("three", ())):
        await fleet.enter(name, *labels)
    turns = ("one", 0.0), ("one", 1.0), ("two", 0.99), ("one", 1.0)
    came = [await report_unable(fleet, name, after=share * UNABLE) for name, share in turns]
    assert came == [False, False, False, True]
    waits, fails = Lifecycle.SUBMITTED, Lifecycle.FAILED
    assert (await records_of(fleet.journal, TaskTransition))[1:] == [
        task_transition(waits, reason="one cannot do it: no key"),
        task_transition(waits, reason="two cannot do it: no key"),
        task_transition(fails, reason="one cannot do it: no key"),
    ]


async def test_who_goes_on_says_as_of_when_the_files_are_that_could_be_saved(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await fleet.submit({"id": "a"})
    await fleet.begin_attempt("one:1")
    await fleet.journal.claim(1, holder="one:1", at=AT)
    large = Snapshot(commit="a", messages=0, step=13)
    kept = Snapshot(commit="b", messages=0, step=5, branch="midwatch/r1/a-1")
    said = "a#1 of node one continues on two, with its files as "
    for saved, told in ((large, "they were at the beginning"), (kept, "saved after step 5")):
        await fleet.say(saved, attempt=1)
        await fleet.failures("two").begin(1)
        assert caplog.messages[-1].startswith(f"{said}{told};")


async def test_a_task_whose_turns_break_again_and_again_has_failed(fleet: Fleet) -> None:
    await fleet.submit({"id": "a"})
    filler = Commit(drafts=(draft(Fault(part="x", error="e"), attempt=None),) * 600)
    for _ in range(2):  # what broke is counted beyond the first page
        await fleet.journal.commit(filler)
    await fleet.begin_attempt("one:1")
    failures = fleet.failures("one")
    over = [await fleet.break_turn(failures, live=1) for _ in range(3)]
    assert over == [False, False, True]
    states = await fleet.journal.entries(kinds=(TaskTransition, AttemptTransition))
    ends = [getattr(each.record, "lifecycle", None) for each in states[-2:]]
    assert ends == [Lifecycle.FAILED, Lifecycle.FAILED]
    records = [each.record async for each in fleet.journal.all_entries()]
    assert records.count(Fault(part="turn", error="one: KeyError: 'x'")) == 3


async def test_a_turn_that_breaks_ends_no_attempt_that_another_node_took_over_meanwhile(
    fleet: Fleet,
) -> None:
    await fleet.submit({"id": "a"})
    await fleet.begin_attempt("one:1")  # which is dead by now
    failures = fleet.failures("two")
    await failures.begin(1)
    for _ in range(2):
        await fleet.break_turn(failures, live=1)
    await fleet.journal.claim(1, holder="three:1", at=AT)
    with pytest.raises(StaleIncarnationError):
        await fleet.break_turn(failures, live=1)
    last = (await records_of(fleet.journal, AttemptTransition))[-1]
    assert last.lifecycle is Lifecycle.WORKING
