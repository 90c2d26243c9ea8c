"""What becomes of a turn: in the journal, and in the pool of a node's slots."""

import asyncio
import shutil
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from midwatch_agents.model_retries import Breakers
from midwatch_agents.sandbox import find_sandbox
from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.journal.fleet.submission import NewTask, submit
from midwatch_monitor.records import AttemptTransition, Fault, Lifecycle, TaskTransition
from midwatch_supervisor.cli.inspect.status import waits_for
from midwatch_supervisor.fleet.nodes.node import status_of
from midwatch_supervisor.fleet.nodes.task_failures import UNABLE
from midwatch_supervisor.fleet.nodes.turn import (
    NodeResources,
    TurnEnded,
    TurnOutcome,
    TurnPool,
    delay,
    take_turn,
)
from midwatch_supervisor.fleet.process import Identity
from midwatch_supervisor.fleet.queue.dispatch import UnfinishedRuns
from midwatch_supervisor.fleet.queue.queue import PUT_BACK, QueuedTurn
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.present.lookup import task_state
from midwatch_supervisor.workspaces.clone import clone_of
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore
from midwatch_supervisor.workspaces.workspace import head_of
from midwatch_tests.acting import DONE, script
from midwatch_tests.factories import AT, run, task_transition
from midwatch_tests.reading import records_of
from midwatch_tests.repository import new_repository
from midwatch_tests.turns import QueueInMemory
from midwatch_tools.git import git

SETTINGS = Settings(run=RunSettings(sandbox=Sandbox.OFF))


def script_for(role: Role, key: str) -> Script:
    return script(DONE)


class Fleet:
    """A journal with one task, and nodes that take turns of it."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self.folder = folder
        self.now = AT

    async def submit(
        self, *, settings: str = "", spec: str = "", script: str = __name__, versioned: bool = True
    ) -> None:
        """Store a task that works on a repository or a folder which is not there any more."""
        raw = {"id": "a", "goal": "g", "acceptance": ["true"], "workspace": "gone"}
        models = {"worker": f"scripted:{script}@0", "supervisor": "none"}
        repository = new_repository(self.folder / "gone", {"a.py": "A = 1\n"})
        file = TaskFile.model_validate({"models": models, "tasks": [raw]})
        if not versioned:
            shutil.rmtree(repository / ".git")
        (wanted,) = assignments(file, self.folder)
        base = await head_of(wanted.source, url=False)
        wanted = wanted.model_copy(update={"base": base})
        repository.rename(self.folder / "away")
        spec = spec or wanted.model_dump_json()
        task = NewTask(name="a", title="a", spec=spec)
        settings = settings or SETTINGS.model_dump_json()
        await self.journal.write(submit, [task], source="t.yaml", settings=settings, at=AT)

    async def enter_nodes(self, *names: str) -> None:
        """Let nodes be there."""
        for name in names:
            status = status_of(Identity(name=name, boot="1"), slots=1, labels=())
            await Nodes(self.journal).enter(status, alive_seconds=1)

    async def take_turn(self, name: str, *, minutes: float = 0) -> TurnOutcome:
        """What a turn comes to at a node, so long after the beginning."""
        self.now = AT + timedelta(minutes=minutes)
        home = self.folder / name
        fleet = SETTINGS.fleet
        machine = NodeResources(
            journal=self.journal,
            bus=LocalBus(),
            settings=SETTINGS,
            identity=Identity(name=name, boot="1"),
            home=home,
            sandbox_kind=await find_sandbox(Sandbox.OFF),
            breakers=Breakers(SETTINGS.provider),
            unfinished_runs=UnfinishedRuns(self.journal),
            snapshot_store=SnapshotStore(
                journal=self.journal, home=home, node=name, settings=fleet
            ),
            clock=lambda: self.now,
        )
        return await take_turn(machine, 1)

    async def reasons(self) -> list[str]:
        """Who said what about the task, without what git said."""
        said = [each for each in await records_of(self.journal, TaskTransition) if each.reason]
        return [f"{each.lifecycle}: {each.reason.partition(': ')[0]}" for each in said]


@pytest.fixture
def fleet(journal: Journal, tmp_path: Path) -> Fleet:
    return Fleet(journal, tmp_path)


async def break_home(fleet: Fleet, part: str) -> None:
    """Put a file where node-a needs a folder, so that it fails as on a full disk."""
    (fleet.folder / "away").rename(fleet.folder / "gone")
    home, source = fleet.folder / "node-a", str(fleet.folder / "gone")
    place = home / part
    if part == "branches":
        clone = clone_of(source, home)
        clone.parent.mkdir(parents=True)
        await git(Path("/"), "clone", "--quiet", "--no-checkout", source, str(clone))
        place = clone / ".git" / "refs" / "heads" / "midwatch"
    place.parent.mkdir(exist_ok=True)
    place.write_text("")


@pytest.mark.parametrize(
    ("part", "versioned"), [("branches", True), ("clones", True), ("work", False)]
)
async def test_a_workspace_that_a_node_cannot_make_is_made_on_another(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, part: str, versioned: bool
) -> None:
    await fleet.submit(versioned=versioned)
    await break_home(fleet, part)
    await fleet.enter_nodes("node-a", "node-b")
    came = [await fleet.take_turn("node-a", minutes=each) for each in (0, 1, 20)]
    assert came == 3 * [TurnOutcome.UNREACHABLE]
    assert await fleet.reasons() == ["working: node-a cannot do it"]
    state = await task_state(fleet.journal, await fleet.journal.task(1))
    assert waits_for(state, {}) == f"a node that can do it ({state.reason})"
    said = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert said == [f"task a cannot continue here: {state.reason}"]
    assert await fleet.take_turn("node-b", minutes=21) is TurnOutcome.OVER
    assert len(await fleet.journal.attempts(1)) == 1
    assert (await records_of(fleet.journal, TaskTransition))[-1].lifecycle is Lifecycle.COMPLETED


@pytest.mark.parametrize("versioned", [True, False])
async def test_why_no_node_could_begin_it_stands_until_one_works_on_it(
    fleet: Fleet, versioned: bool
) -> None:
    await fleet.submit(versioned=versioned)
    await fleet.enter_nodes("node-a", "node-b")
    for name in ("node-a", "node-b", "node-a"):
        await fleet.take_turn(name)
        state = await task_state(fleet.journal, await fleet.journal.task(1))
        last = "node-b" if "node-b" in state.reason else name
        assert waits_for(state, {}).startswith(f"a node that can do it ({last} cannot do it: ")
        assert "\n" not in state.reason
    (fleet.folder / "away").rename(fleet.folder / "gone")
    assert await fleet.take_turn("node-a") is TurnOutcome.OVER
    begun, over = (await records_of(fleet.journal, TaskTransition))[-2:]
    assert begun == TaskTransition(lifecycle=Lifecycle.WORKING)
    assert over.lifecycle is Lifecycle.COMPLETED


async def test_a_node_that_is_away_for_a_moment_may_do_what_the_others_cannot(fleet: Fleet) -> None:
    await fleet.submit(script="no_such_module")
    await fleet.enter_nodes("node-a")
    assert [await fleet.take_turn("node-a", minutes=each) for each in (0, 9)] == 2 * [
        TurnOutcome.FAILED
    ]
    assert await fleet.reasons() == ["submitted: node-a cannot do it"]
    await fleet.enter_nodes("node-b")
    assert await fleet.take_turn("node-a", minutes=11) is TurnOutcome.FAILED
    assert await fleet.take_turn("node-b", minutes=12) is TurnOutcome.OVER


async def test_what_no_node_reaches_for_long_has_failed_until_it_is_begun_again(
    fleet: Fleet,
) -> None:
    await fleet.submit()
    await fleet.enter_nodes("node-a", "node-b")
    long = UNABLE.total_seconds() / 60
    turns = [("node-a", 0.0), ("node-b", 1.0), ("node-b", long - 1), ("node-a", long)]
    came = [await fleet.take_turn(name, minutes=minutes) for name, minutes in turns]
    assert came == [*3 * [TurnOutcome.UNREACHABLE], TurnOutcome.OVER]
    assert (await fleet.reasons())[-1] == "failed: node-a cannot do it"
    last = (await records_of(fleet.journal, AttemptTransition))[-1]
    assert last.lifecycle is Lifecycle.FAILED
    (attempt,) = await fleet.journal.attempts(1)
    operator = OperatorActions(fleet.journal, author="ada", clock=lambda: fleet.now)
    await operator.begin_again(attempt, "It is back.", step=0)
    assert await fleet.take_turn("node-a", minutes=long + 1) is TurnOutcome.UNREACHABLE


@pytest.mark.parametrize(
    ("settings", "spec", "why"),
    [
        ('{"of": "a newer Midwatch"}', "", "cannot read the settings of run 1"),
        ("", '{"of": "a newer Midwatch"}', "cannot read this task"),
    ],
)
async def test_what_a_newer_midwatch_wrote_is_told_once_and_left_to_its_nodes(
    fleet: Fleet, settings: str, spec: str, why: str
) -> None:
    await fleet.submit(settings=settings, spec=spec)
    await fleet.enter_nodes("node-a")
    assert [await fleet.take_turn("node-a") for _ in range(2)] == 2 * [TurnOutcome.FAILED]
    told = Fault(part="node", error=f"node-a ({version('midwatch')}) {why}: update Midwatch")
    assert await records_of(fleet.journal, Fault) == [told]
    assert await records_of(fleet.journal, TaskTransition) == [task_transition(Lifecycle.SUBMITTED)]


async def test_a_task_that_is_begun_again_is_handed_out_to_a_node_again(
    fleet: Fleet, tmp_path: Path
) -> None:
    models = {"worker": f"scripted:{__name__}@0", "supervisor": "none"}
    raw = {"id": "a", "goal": "g", "acceptance": ["false"], "max_attempts": 1}
    file = TaskFile.model_validate({"models": models, "tasks": [raw]})
    (wanted,) = assignments(file, tmp_path)
    await fleet.submit(spec=wanted.model_dump_json())
    await fleet.enter_nodes("node-a", "node-b")
    runs = UnfinishedRuns(fleet.journal)
    assert await fleet.take_turn("node-a") is TurnOutcome.OVER
    assert await runs.open() == []
    (attempt,) = await fleet.journal.attempts(1)
    operator = OperatorActions(fleet.journal, author="ada", clock=lambda: AT)
    begun = await operator.begin_again(attempt, "Another way.", step=1)
    assert begun.follows == "attempt 2 begins on a node of the fleet"
    assert [run.id for run in await runs.open()] == [1]
    assert (await runs.of(1)).ready() == [1]
    assert await fleet.take_turn("node-b") is TurnOutcome.OVER
    assert [each.node for each in await fleet.journal.attempts(1)] == ["node-a", "node-b"]
    assert await fleet.reasons() == [
        "failed: acceptance failed",
        "submitted: begun again by ada",
        "failed: acceptance failed",
    ]


def ticket(task: int, number: int = 1) -> QueuedTurn:
    return QueuedTurn.of("night", run(7), task, number)


async def stands() -> bool:
    return True


def pool(*outcomes: TurnOutcome, slots: int = 1, **more: Any) -> tuple[TurnPool, QueueInMemory]:
    """A turn pool whose turns come to these outcomes, one after the other."""
    left, queues = list(outcomes), QueueInMemory()

    async def take(task: int) -> TurnOutcome:
        return left.pop(0)

    given: dict[str, Any] = {
        "heard": lambda: True,
        "stands": stands,
        "ended": list[TurnEnded]().append,
    }
    given = {"changed": lambda: None, **given, **more}
    return TurnPool(given.pop("take", take), queues, slots=slots, **given), queues


def test_every_failure_doubles_the_delay_up_to_a_limit() -> None:
    assert [delay(5, times, most=60) for times in (1, 2, 3, 4, 5, 2000)] == [5, 10, 20, 40, 60, 60]


async def test_what_there_is_no_slot_for_keeps_its_place_and_makes_no_new_turn() -> None:
    mine, queues = pool()
    mine.close()
    assert await mine.do(ticket(1), ()) == PUT_BACK
    assert (queues.put_back, queues.offered) == ([ticket(1)], [])


async def test_a_node_that_nobody_hears_begins_nothing() -> None:
    mine, _ = pool(heard=lambda: False)
    assert await mine.do(ticket(1), ()) == PUT_BACK


async def test_a_turn_that_came_to_nothing_is_offered_again_later_each_time() -> None:
    outcomes = [TurnOutcome.FAILED, TurnOutcome.UNREACHABLE]
    ended: list[TurnEnded] = []
    mine, queues = pool(*outcomes, slots=3, ended=ended.append)
    assert [await mine.do(ticket(1, number), ()) for number in (1, 2)] == outcomes
    assert queues.offered == [(ticket(1, 2), 5), (ticket(1, 3), 10)]
    assert ended == [TurnEnded(task=1, outcome=each) for each in outcomes]


async def test_a_node_that_reached_nothing_takes_nothing_for_a_while() -> None:
    mine, queues = pool(TurnOutcome.UNREACHABLE, TurnOutcome.UNREACHABLE)
    for task in (1, 2):  # the second waits until the slot has rested
        await mine.do(ticket(task), ())
    # It rests twice as long now: longer than anybody waits for a slot.
    assert await mine.do(ticket(3), ()) == PUT_BACK
    assert queues.put_back == [ticket(3)]


async def test_a_node_that_was_taken_for_lost_gives_nothing_back_that_others_have() -> None:
    async def stands() -> bool:
        return False

    mine, queues = pool(TurnOutcome.FAILED, stands=stands)
    assert await mine.do(ticket(1), ()) == TurnOutcome.FAILED
    mine.close()
    assert await mine.do(ticket(2), ()) == "given back: declared lost"
    assert (queues.put_back, queues.offered) == ([], [])


async def test_what_waited_for_a_slot_when_all_was_given_up_is_neither_begun_nor_put_back() -> None:
    ended: list[TurnEnded] = []

    async def take(task: int) -> TurnOutcome:
        assert task == 1
        return await asyncio.Future()

    mine, queues = pool(take=take, ended=ended.append)
    both = [asyncio.create_task(mine.do(ticket(task), ())) for task in (1, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert mine.tasks == {1}
    await mine.drop()
    assert await asyncio.gather(*both) == ["given back", "given back: declared lost"]
    assert (queues.put_back, queues.offered) == ([], [])
    assert ended == [TurnEnded(task=1, outcome=None)]


async def test_what_came_back_just_before_all_was_given_up_is_not_begun_anew() -> None:
    begun, times = asyncio.Event(), list[int]()

    async def take(task: int) -> TurnOutcome:
        times.append(task)
        begun.set()
        try:
            return await asyncio.Future()
        finally:
            await asyncio.sleep(0)  # what is cancelled saves its work first

    mine, _ = pool(take=take, slots=2)
    older = asyncio.create_task(mine.do(ticket(1), ()))
    await begun.wait()
    newer = asyncio.create_task(mine.do(ticket(1), ()))
    await asyncio.sleep(0)
    await mine.drop()
    async with asyncio.timeout(120):
        assert await asyncio.gather(older, newer) == ["given back", "given back: declared lost"]
    assert times == [1]
