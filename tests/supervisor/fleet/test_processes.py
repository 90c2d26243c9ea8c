"""A fleet of real processes: one is killed, one leaves, the database goes away."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from inspect import isawaitable
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Script
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import AttemptTransition, Lifecycle, Step, TaskTransition
from midwatch_tests.acting import DONE, script
from midwatch_tests.factories import call, turn
from midwatch_tests.harness import RunHarness

SETTINGS = """
run: {sandbox: "off", grace_seconds: 1}
fleet: {slots: 2, beat_seconds: 0.5, lost_after_seconds: 4, save_seconds: 0}
"""


async def work(ctx: RunContext[object], name: str) -> str:
    """Write down where this runs, and wait until there is a file `go` in the fleet's folder."""
    workspace = Path(await ctx.workspace.working_dir())
    home = next(each for each in workspace.parents if each.name == ".midwatch").parent
    node = workspace.relative_to(home).parts[2]
    await ctx.workspace.write_bytes("out.txt", b"here")
    (home / f"began-{name}-{node}").touch()
    nothing = LocalBus().subscribe()
    while not (home / "go").exists():
        await nothing.wait(0.05)
    return "done"


def script_for(role: Role, key: str) -> Script:
    return script(turn(call("work", name=key)), DONE)


def task_file(*items: str) -> str:
    tasks = ", ".join(f"{{goal: Do it., acceptance: [file: out.txt], {item}}}" for item in items)
    return f"""
        models: {{worker: "scripted:test_processes@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: ["test_processes:work"]}}}}
        tasks: [{tasks}]
    """


async def process_result(process: Process) -> tuple[int | None, str, str]:
    """The exit code, and what was said on both streams."""
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode, out.decode(), errors.decode()


class Fleet:
    """Processes on one journal in PostgreSQL, with a folder of their own."""

    def __init__(self, harness: RunHarness, location: str) -> None:
        self.harness = harness
        self.location = location
        self.folder = harness.folder
        self.processes: list[Process] = []
        (self.folder / "midwatch.yaml").write_text(SETTINGS)

    async def submit(self, *items: str) -> None:
        (self.folder / "tasks.yaml").write_text(task_file(*items))
        assert (await process_result(await self.start("submit", "tasks.yaml")))[0] == 0

    async def start(self, *words: str) -> Process:
        process = await self.harness.start(*words, "--journal", self.location)
        self.processes.append(process)
        return process

    async def node(self, name: str) -> Process:
        return await self.start("node", "--name", name)

    def started_tasks(self, node: str) -> list[str]:
        """The tasks that this node began to work at."""
        return sorted(each.name.split("-")[1] for each in self.folder.glob(f"began-*-{node}"))

    async def until(self, happened: Callable[[], bool | Awaitable[bool]]) -> None:
        """Wait for something to be true, no longer than no process fails by itself."""

        async def has_happened() -> bool:
            for process in self.processes:
                if process.returncode not in (None, 0, -signal.SIGKILL):
                    pytest.fail("\n".join((await process_result(process))[1:]))
            return await found if isawaitable(found := happened()) else found

        await self.harness.until(has_happened)

    async def end(self) -> None:
        """End whatever still runs."""
        for process in self.processes:
            if process.returncode is None:
                process.kill()
                sys.stderr.write("".join(map(bytes.decode, await process.communicate())))


@pytest.fixture
async def fleet(harness: RunHarness, location: str) -> AsyncGenerator[Fleet]:
    made = Fleet(harness, location)
    try:
        yield made
    finally:
        await made.end()


async def prove_each_once(fleet: Fleet, tasks: int) -> None:
    """Every attempt ended once, no step is missing or there twice, nothing was tried again."""
    attempts = [await fleet.harness.journal.attempts(task) for task in range(1, tasks + 1)]
    assert [len(each) for each in attempts] == tasks * [1]
    for (attempt,) in attempts:
        entries = await fleet.harness.journal.entries(attempt=attempt.id)
        seqs = [entry.seq for entry in entries if entry.seq is not None]
        assert seqs == list(range(1, len(seqs) + 1))
        steps = [entry.record.number for entry in entries if isinstance(entry.record, Step)]
        assert steps == [1, 2]
        states = [each.record for each in entries if isinstance(each.record, AttemptTransition)]
        assert sum(state.lifecycle.over for state in states) == 1


@pytest.mark.matrix
@pytest.mark.parametrize("location", ["postgresql"], indirect=True)
async def test_what_a_killed_node_had_ends_once_on_another(fleet: Fleet) -> None:
    await fleet.submit("id: a", "id: b", "id: c", "id: d", "id: e, depends_on: [a]", "id: f")
    one, other = await fleet.node("one"), await fleet.node("other")
    await fleet.until(lambda: len(fleet.started_tasks("one") + fleet.started_tasks("other")) == 4)
    one.kill()
    mine, left = fleet.started_tasks("other"), fleet.started_tasks("one")
    assert len(mine) == len(left) == 2
    (fleet.folder / "go").touch()

    async def are_all_over() -> bool:
        states = [state.lifecycle for state in await fleet.harness.told(TaskTransition)]
        return states.count(Lifecycle.COMPLETED) == 6

    await fleet.until(are_all_over)
    assert fleet.started_tasks("other") == ["a", "b", "c", "d", "e", "f"]
    assert fleet.started_tasks("one") == left
    await prove_each_once(fleet, 6)
    listed = await process_result(await fleet.start("nodes", "--json"))
    assert [json.loads(line)["state"] for line in listed[1].splitlines()] == ["lost", "up"]
    other.send_signal(signal.SIGTERM)
    code, _, log = await process_result(other)
    assert code == 0
    assert "WARNING node one is lost: no heartbeat came in time, last at " in log
    assert "WARNING other nodes take over the tasks of node one: " in log
    for name in left:
        assert log.count(f"INFO {name}#1 of node one continues on other, with its files as ") == 1


async def until_draining(fleet: Fleet) -> None:
    async def is_draining() -> bool:
        return [each.state for each in await Nodes(fleet.harness.journal).all()] == ["draining"]

    await fleet.until(is_draining)


@pytest.mark.matrix
@pytest.mark.parametrize("location", ["postgresql"], indirect=True)
async def test_a_node_that_leaves_says_what_it_waits_for_and_what_came_of_it(
    fleet: Fleet,
) -> None:
    await fleet.submit("id: a", "id: b", "id: c")
    one = await fleet.node("one")
    await fleet.until(lambda: len(fleet.started_tasks("one")) == 2)
    one.send_signal(signal.SIGTERM)
    await until_draining(fleet)
    (fleet.folder / "go").touch()
    code, out, errors = await process_result(one)
    assert code == 0
    assert errors.endswith(
        "INFO one takes no more turns and waits at most 300 s for those running (2)\n"
    )
    assert errors.count("\n") == 1
    waits, again, *ends, last = out.splitlines()[2:]
    assert waits == "Node one takes no more turns. It waits up to 300 s for 2 tasks: a#1, b#1"
    assert again == (
        "A second SIGTERM or Ctrl-C gives them back at once: other nodes take them over"
    )
    assert sorted(ends) == ["a#1 is completed", "b#1 is completed"]
    assert last == "Node one has left: 2 ended"
