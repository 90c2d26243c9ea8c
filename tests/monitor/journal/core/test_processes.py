"""Several processes share a journal; one that is killed loses nothing that it was promised."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Entry, Fault
from midwatch_tests.matrix import DATABASES

pytestmark = pytest.mark.parametrize("location", DATABASES, indirect=True)

WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Commit, Draft, Fault

async def main(location: str, name: str, count: int) -> None:
    async with await Journal.open(location) as journal:
        for number in range(count):
            record = Fault(part=name, error=str(number))
            draft = Draft(record=record, at=datetime.now(UTC), task=1)
            (entry,) = await journal.commit(Commit(drafts=(draft,)))
            print(entry.id, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def start_process(program: str, location: str, *arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, location, *arguments, stdout=PIPE, stderr=PIPE
    )


async def wait_for_ids(process: Process) -> list[int]:
    """The ids that it printed."""
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, errors.decode()
    return [int(line) for line in out.split()]


async def faults(journal: Journal) -> dict[int, Entry]:
    return {each.id: each for each in await journal.entries(kinds=[Fault], limit=100_000)}


async def test_a_killed_process_loses_nothing_that_was_acknowledged(
    journal: Journal, attempt: Attempt, location: str
) -> None:
    process = await start_process(WRITER, location, "doomed", "1000000")
    assert process.stdout is not None
    said = [int(await asyncio.wait_for(process.stdout.readline(), 300)) for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    rest, _ = await process.communicate()
    whole = rest[: rest.rfind(b"\n") + 1]
    said += [int(line) for line in whole.split()]
    stored = await faults(journal)
    assert set(said) <= set(stored)
    assert len(stored) - len(said) <= 1
    assert [each.record for each in stored.values()] == [
        Fault(part="doomed", error=str(number)) for number in range(len(stored))
    ]


async def test_a_follower_of_several_processes_misses_nothing(
    journal: Journal, attempt: Attempt, location: str
) -> None:
    processes = [
        await start_process(WRITER, location, name, "60") for name in ("one", "two", "three")
    ]
    written = asyncio.gather(*map(wait_for_ids, processes))
    seen: list[int] = []
    last = await journal.last_id()
    while not written.done() or await journal.last_id() > last:
        for entry in await journal.entries(last):
            last = entry.id
            seen.append(entry.id)
    assert seen == sorted(id_ for ids in await written for id_ in ids)
    assert len(seen) == len(await faults(journal)) == 180
