"""`midwatch monitor` as processes: what one leaves undone, another does; and what they log."""

import asyncio
import json
import logging
import re
import signal
import socket
import struct
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, UserPromptPart
from sqlalchemy import select

from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.fleet.monitor_leases import NOBODY
from midwatch_monitor.records import (
    Action,
    Attempt,
    AttemptTransition,
    Decision,
    Ending,
    Escalation,
    EscalationState,
    Intervention,
    Lifecycle,
    Record,
    Step,
    StepKind,
    SupervisedBy,
)
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.fleet.log import log_to_stderr
from midwatch_supervisor.fleet.process import identity
from midwatch_tests.command import new_attempt, new_task, objects, write
from midwatch_tests.factories import alert
from midwatch_tests.harness import RunHarness
from midwatch_tests.made_up import SECRETS
from midwatch_tests.matrix import DATABASES
from midwatch_tests.ports import LOOPBACK
from midwatch_tools import Watch

BOTH = pytest.mark.parametrize("location", DATABASES, indirect=True)
T = TypeVar("T")
LEASE_SECONDS = 2
CONFIG = f"""\
monitor: {{poll_seconds: 0.05, tick_seconds: 1}}
fleet: {{lease_seconds: {LEASE_SECONDS}}}
"""
CYCLE = alert(evidence=(1,))
BEGUN = (
    AttemptTransition(lifecycle=Lifecycle.WORKING),
    Step(number=1, kind=StepKind.TOOL, tool="edit"),
    CYCLE,
)


class Fleet:
    """A journal, and monitors over it that may be killed."""

    def __init__(self, harness: RunHarness, location: str) -> None:
        self.harness, self.journal, self.location = harness, harness.journal, location
        self.config = harness.folder / "midwatch.yaml"
        self.config.write_text(CONFIG)
        self.first_line = ""
        """The first line of the monitor that began last."""

    @asynccontextmanager
    async def run_monitor(self, *words: str) -> AsyncGenerator[Process]:
        """A monitor at work; it is gone at the end, however it went."""
        where = ("--journal", self.location, "--config", str(self.config))
        process = await self.harness.start("monitor", *where, *words)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(120):  # others start processes too
                self.first_line = (await process.stdout.readline()).decode()
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def start_attempt(self) -> Attempt:
        """An attempt at work of an agent that came by itself, and an alert that fires."""
        at = datetime.now(UTC)
        task = await new_task(self.journal, "a", supervised_by=SupervisedBy.MONITOR, at=at)
        return await new_attempt(self.journal, task, at=at)

    async def record(self, of: Attempt, *records: Record) -> None:
        await write(self.journal, of, datetime.now(UTC), *records)

    async def holder(self, attempt: int) -> str:
        """The name of the monitor that holds an attempt."""
        query = select(tables.guard.c.holder).where(tables.guard.c.attempt == attempt)
        found = await self.journal.read(lambda connection: connection.execute(query).scalar())
        return (found or "").partition(":")[0]

    async def wait_for_holder(self, attempt: int) -> str:
        """Wait for a monitor to take an attempt; its name."""

        async def is_held() -> bool:
            return await self.holder(attempt) != NOBODY

        await self.harness.until(is_held)
        return await self.holder(attempt)

    async def wait_for_record(self, kind: type[object]) -> None:
        async def has_record() -> bool:
            return bool(await self.harness.told(kind))

        await self.harness.until(has_record)


@pytest.fixture
def fleet(harness: RunHarness, location: str) -> Fleet:
    return Fleet(harness, location)


@pytest.mark.long
@BOTH
async def test_what_a_killed_monitor_left_open_another_answers_once(fleet: Fleet) -> None:
    attempt = await fleet.start_attempt()
    async with fleet.run_monitor("--name", "one") as one, fleet.run_monitor("--name", "two") as two:
        first = await fleet.wait_for_holder(attempt.id)
        killed, second = (one, "two") if first == "one" else (two, "one")
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        await fleet.record(attempt, *BEGUN)
        # As if it had asked with its last breath: its lease has not run out yet.
        await fleet.journal.open_escalation(
            attempt=attempt.id,
            task=attempt.task,
            alerts=(CYCLE.key,),
            reason="cycle",
            at=datetime.now(UTC),
            guard=1,
        )
        began = asyncio.get_running_loop().time()
        await fleet.wait_for_record(Intervention)
        took = asyncio.get_running_loop().time() - began
        assert (await fleet.holder(attempt.id), took < 3 * LEASE_SECONDS) == (second, True)
        await fleet.record(
            attempt, AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.ERROR)
        )

        async def is_released() -> bool:
            return await fleet.holder(attempt.id) == NOBODY

        await fleet.harness.until(is_released)
    assert len(await fleet.harness.told(Decision)) == 1
    states = [each.state for each in await fleet.harness.told(Escalation)]
    assert states == [EscalationState.OPEN, EscalationState.ANSWERED, EscalationState.CLOSED]


@pytest.mark.matrix
async def test_an_embedded_agent_that_loops_is_nudged_by_a_monitor_beside_it(
    fleet: Fleet, worker: Callable[..., Agent[None, str]]
) -> None:
    async def search() -> str:
        """The same result at every call, and from the third on only once somebody spoke."""
        if len(await fleet.harness.told(Step)) >= 6:
            await fleet.wait_for_record(Intervention)
        return "nothing found"

    watch = Watch(
        name="looper",
        journal=fleet.location,
        settings=Settings(monitor=MonitorSettings(poll_seconds=0.05)),
        seconds=count().__next__,  # its requests follow each other in milliseconds
    )
    async with fleet.run_monitor("--json") as monitor:
        agent = worker(*[[("search", dict[str, Any]())]] * 9, tools=(search,))
        async with asyncio.timeout(120):
            result = await agent.run("Fix it.", capabilities=[watch])
        monitor.terminate()
        out, err = await monitor.communicate()
    (nudge, *_) = await fleet.harness.told(Intervention)
    assert (nudge.action, nudge.message in _user_prompts(result.all_messages())) == (
        Action.NUDGE,
        True,
    )
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert [line["type"] for line in lines if line["type"] != "post"] == ["lease", "monitor"]
    assert (monitor.returncode, err) == (0, b"")


def _user_prompts(messages: list[Any]) -> str:
    parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
    return "\n".join(str(part.content) for part in parts if isinstance(part, UserPromptPart))


@pytest.mark.matrix
async def test_who_is_told_to_stop_lets_others_go_on_at_once(fleet: Fleet) -> None:
    attempt = await fleet.start_attempt()
    async with fleet.run_monitor("--name", "one") as one:
        await fleet.wait_for_holder(attempt.id)
        one.send_signal(signal.SIGINT)
        out, err = await one.communicate()
    assert (one.returncode, err) == (0, b"")
    assert fleet.first_line.startswith("Monitor one watches ")
    unable, stops = out.decode().splitlines()
    assert unable.startswith("It dispatches no tasks: a fleet needs a journal in PostgreSQL")
    assert stops == "Monitor one is stopping and gives up its leases"
    query = select(tables.guard.c.until)
    until = await fleet.journal.read(lambda connection: connection.execute(query).scalar_one())
    assert until <= datetime.now(UTC)


async def test_every_line_that_the_loss_of_the_broker_leaves_in_the_log_has_its_time(
    fleet: Fleet,
) -> None:
    lost = count(1)

    async def reset_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(b"\x20\x03\x00\x00\x00")  # it is let in
        await reader.read(4096)
        kernel = writer.get_extra_info("socket")
        kernel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        if next(lost) == 2:
            monitor.send_signal(signal.SIGINT)

    async with await asyncio.start_server(reset_connection, LOOPBACK, 0) as server:
        url = f"mqtt://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        fleet.config.write_text(f"fleet: {{broker: {{url: '{url}', max_wait_seconds: 0.1}}}}\n")
        async with fleet.run_monitor() as monitor:
            _, err = await monitor.communicate()
    lines = err.decode().splitlines()
    assert "no connection to the broker" in lines[0]
    assert [each for each in lines if not re.match(r"\d{4}-\d\d-\d\d ", each)] == []


def test_once_looks_at_everything_under_the_name_of_the_machine_and_ends(
    journal_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def call_with_fleet(ask: Callable[[Fleet], Awaitable[T]]) -> T:
        async with await Journal.open(journal_file) as journal:
            return await ask(Fleet(RunHarness(journal, journal_file.parent, Path()), ""))

    async def record_alert(fleet: Fleet) -> None:
        await fleet.record(await fleet.start_attempt(), *BEGUN)

    async def count_decisions(fleet: Fleet) -> int:
        return len(await fleet.harness.told(Decision))

    asyncio.run(call_with_fleet(record_alert))
    assert main(["monitor", "--journal", str(journal_file), "--once", "--json"]) == 0
    assert asyncio.run(call_with_fleet(count_decisions)) == 1
    lines = objects(capsys)
    assert [line["type"] for line in lines] == ["monitor", "lease"]
    assert lines[0]["name"] == identity(None).name


def test_the_log_stands_on_stderr_with_its_time_masked_and_a_line_for_what_others_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, secret = logging.getLogger("midwatch_monitor.loop"), SECRETS["openai key"]
    with log_to_stderr():
        log.info("one takes no more turns")
        log.debug("a detail")
        try:
            raise ValueError(f"a\nForged\x1b[2J {secret}")
        except ValueError:
            log.exception("it said %s", "a\nForged\x1b[2J")
    log.info("afterwards")
    said = capsys.readouterr().err
    info, error, *rest = said.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO one takes no more turns", info)
    assert error.endswith(r"ERROR it said a\nForged\x1b[2J")
    assert rest[-2] == "  ValueError: a"
    assert rest[-1].startswith(r"  Forged\x1b[2J [masked: openai key ")
    assert secret not in said
