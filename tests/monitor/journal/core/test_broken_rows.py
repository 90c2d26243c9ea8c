"""A row of the journal that cannot be read: it is named, and everything else is read."""

import asyncio
import json
import logging
import resource
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing

import pytest

from midwatch_monitor.errors import JournalCorruptError, JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.tables import MOST_BYTES, unpack
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import Attempt, Commit, Ending, Fault, Lesson, Message, Result, Step
from midwatch_tests.command import midwatch
from midwatch_tests.factories import message
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import records_of

Capture = pytest.CaptureFixture[str]
Claim = Callable[..., Awaitable[Recorder]]
PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
MOST_MIB = 400
"""A process that reads any journal has no more memory than this for it."""
HALF = "CAST(x'7b22ff' AS TEXT)"
ENTRIES = {
    "no JSON": ("UPDATE entry SET body = '{' WHERE id = :id", "broken 'step': Invalid JSON"),
    "an empty object": ("UPDATE entry SET body = '{}' WHERE id = :id", "number: Field required"),
    "a wrong type": (
        "UPDATE entry SET body = json_set(body, '$.number', 'x') WHERE id = :id",
        "number: Input should be a valid integer",
    ),
    "a number without an end": (
        "UPDATE entry SET body = replace(body, '\"number\":', '\"number\":1e400') WHERE id = :id",
        "number: Input should be",
    ),
    "a time that is none in it": (
        "UPDATE entry SET body = json_set(body, '$.at', 'never') WHERE id = :id",
        "at: Input should be a valid datetime",
    ),
    "half a character": (f"UPDATE entry SET body = {HALF} WHERE id = :id", "not UTF-8"),
    "no time": ("UPDATE entry SET at = 'never' WHERE id = :id", "at: not a time"),
    "a number as its time": ("UPDATE entry SET at = 5 WHERE id = :id", "at: not a time"),
    "the last time": (
        "UPDATE entry SET at = '9999-12-31 23:59:59.999999' WHERE id = :id",
        "at: not a time",
    ),
}


def tamper_with(location: str, *statements: str, **values: object) -> None:
    """Do what no program of ours does to a journal."""
    with closing(sqlite3.connect(location)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


def problems(capsys: Capture) -> list[str]:
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [each["problem"] for each in found if each["type"] == "problem"]


@pytest.fixture
async def steps(claim: Claim) -> Sequence[int]:
    """The ids of three steps of an attempt that is at work."""
    recorder = await claim()
    await recorder.record(working_transition())
    return [(await recorder.record(message(n)))[0].id for n in (1, 2, 3)]


async def test_broken_entries_are_named_by_a_check_and_stop_no_reader(
    capsys: Capture, location: str, claim: Claim, journal: Journal
) -> None:
    recorder = await claim()
    await recorder.record(working_transition())
    ids = [(await recorder.record(message(n)))[0].id for n in range(1, len(ENTRIES) + 3)]
    for id, (statement, _) in zip(ids[1:], ENTRIES.values(), strict=False):
        tamper_with(location, statement, id=id)
    capsys.readouterr()
    assert await midwatch("db", "check", "--journal", location, "--json") == 1
    said = problems(capsys)
    for id, line, (_, problem) in zip(ids[1:], said, ENTRIES.values(), strict=False):
        assert line.startswith(f"entry {id} ('step' of attempt 1) cannot be read: ")
        assert problem in line
    assert len(said) == len(ENTRIES)
    for command in (["status", "--all"], ["show", "fix"], ["report"], ["export", "1"]):
        assert await midwatch(*command, "--journal", location) == 0
    read = [each.number for each in await records_of(journal, Step)]
    assert (read[0], read[-1]) == (1, len(ids))


async def test_a_broken_entry_is_named_once_and_its_place_is_kept(
    caplog: pytest.LogCaptureFixture, location: str, steps: Sequence[int], journal: Journal
) -> None:
    tamper_with(
        location, "UPDATE entry SET body = '{' WHERE kind = 'step' AND id <= :id", id=steps[1]
    )
    after, numbers = 0, list[int]()
    while page := await journal.entries(after, limit=1):  # a page of them is not the end
        after = page[-1].id
        numbers += [each.record.number for each in page if isinstance(each.record, Step)]
    assert numbers == [3]
    with caplog.at_level(logging.WARNING):
        await journal.entries()
        await journal.entries()
        found = [each async for each in journal.all_entries(kinds=(Step,))]
    assert [each.id for each in found] == list(steps)
    assert [type(each.record) for each in found] == [Fault, Fault, Step]
    assert [line.partition(": ")[0] for line in caplog.messages] == [
        f"entry {id} cannot be read and is skipped" for id in steps[:2]
    ]


async def test_an_entry_of_a_kind_that_only_a_newer_version_knows_is_no_damage(
    capsys: Capture, location: str, steps: Sequence[int], journal: Journal, claim: Claim
) -> None:
    tamper_with(location, "UPDATE entry SET kind = 'tide' WHERE id = :id", id=steps[-1])
    capsys.readouterr()
    assert await midwatch("db", "check", "--journal", location, "--json") == 0
    (said,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (said["newer"], said["problems"]) == (1, 0)
    assert await midwatch("status", "--journal", location) == 0


@pytest.mark.parametrize("change", ["kind = 'tide'", "body = '{'"])
async def test_whoever_takes_an_attempt_over_numbers_on_behind_what_it_cannot_read(
    location: str, steps: Sequence[int], claim: Claim, journal: Journal, change: str
) -> None:
    tamper_with(location, f"UPDATE entry SET {change} WHERE id = :id", id=steps[-1])
    added = (await (await claim()).record(message(4)))[0]
    before = [each.seq for each in await journal.entries(attempt=1) if each.id < added.id]
    assert added.seq == max(seq for seq in before if seq is not None) + 1


async def test_of_many_broken_rows_some_are_named(
    capsys: Capture, location: str, claim: Claim
) -> None:
    recorder = await claim()
    await recorder.record(working_transition(), *(message(n) for n in range(1, 51)))
    tamper_with(location, "UPDATE entry SET body = 'nothing' WHERE kind = 'step'")
    capsys.readouterr()
    assert await midwatch("db", "check", "--journal", location, "--json") == 1
    said = problems(capsys)
    assert len(said) == 21
    assert said[-1] == "and 30 more rows of `entry` cannot be read"
    assert not any("nothing" in each for each in said)


OTHERS = {
    "UPDATE run SET settings = 'x'": "run 1 cannot be read: settings: not JSON",
    "UPDATE run SET keeper = 'x'": "run 1 cannot be read: keeper: none of process, monitor",
    "UPDATE run SET started_at = 'x'": "run 1 cannot be read: started_at: not a time",
    "UPDATE task SET spec = '[]'": "task 1 cannot be read: spec: not a JSON object",
    f"UPDATE task SET title = {HALF}": "task 1 cannot be read: title: not UTF-8",
    "UPDATE attempt SET started_at = 'x'": "attempt 1 cannot be read: started_at: not a time",
    f"UPDATE attempt SET workspace = {HALF}": "attempt 1 cannot be read: workspace: not UTF-8",
    "UPDATE lesson SET obsolete = 'x'": "lesson 5 cannot be read: obsolete: not a boolean",
    "UPDATE lesson SET rating = 'x'": "lesson 5 cannot be read: rating: not a whole number",
    "UPDATE entry SET body = '{' WHERE kind = 'lesson'": (
        "entry 5 ('lesson' of attempt 1) cannot be read: the journal holds a broken 'lesson': "
        "Invalid JSON: EOF while parsing an object at line 1 column 1"
    ),
    "UPDATE message SET body = x'0000'": (
        "message of attempt 1, idx 0 cannot be read: body: a history in the journal is damaged: "
        "Error -3 while decompressing data: unknown compression method"
    ),
    "UPDATE message SET body = substr(body, 1, 9)": (
        "message of attempt 1, idx 0 cannot be read: body: a history in the journal is damaged: "
        "it is truncated"
    ),
    "UPDATE result SET body = (SELECT x'789c030000000001')": (
        "result of attempt 1, call 'c' cannot be read: body: not JSON"
    ),
    "UPDATE message SET idx = 4": "the history of attempt 1 has gaps: 1 messages from 4 to 4",
}


@pytest.mark.parametrize(("statement", "problem"), OTHERS.items())
async def test_any_broken_row_is_named_by_a_check_and_the_rest_is_shown(
    capsys: Capture, past: PastAttempts, location: str, statement: str, problem: str
) -> None:
    attempt = await past.attempt()
    await past.attempt(task="other")
    history = (Message(index=0, body=b'["' + b"word " * 9 + b'"]'),)
    results = (Result(call="c", body=b"{}"),)
    await past.journal.commit(Commit(attempt=attempt.id, messages=history, results=results))
    await past.say(attempt, Lesson(text="Rounding goes last."))
    await past.end(attempt, Ending.DONE)
    first = "run" in statement or "task" in statement or "attempt" in statement
    tamper_with(location, f"{statement} WHERE id = 1" if first else statement)
    capsys.readouterr()
    assert await midwatch("db", "check", "--journal", location, "--json") == 1
    assert problems(capsys) == [problem]
    for command in (["status", "--all"], ["show", "other"], ["report"], ["lessons", "list"]):
        assert await midwatch(*command, "--journal", location) == 0
        assert command[0] != "status" or "other" in capsys.readouterr().out


async def test_a_lesson_that_is_broken_leaves_the_others(past: PastAttempts, location: str) -> None:
    attempt = await past.attempt()
    ids = [await past.say(attempt, Lesson(text=f"Lesson {n}.")) for n in range(6)]
    tamper_with(location, "UPDATE entry SET body = '{' WHERE id IN (:a, :b)", a=ids[5], b=ids[4])
    learned = Learned(past.journal)
    assert [each.id for each in await learned.lessons(limit=2)] == [ids[3], ids[2]]
    assert [each.id for each in await learned.lessons(before=ids[2], limit=9)] == ids[1::-1]


# -- going on where the history is broken --------------------------------------------------


def bomb(mib: int) -> bytes:
    """So many MiB of blanks as they are packed, about a thousandth of that."""
    packing = zlib.compressobj(9)
    parts = [packing.compress(b" " * 1024 * 1024) for _ in range(mib)]
    return b"".join([*parts, packing.flush()])


def test_no_more_is_unpacked_than_may_be() -> None:
    with pytest.raises(JournalCorruptError, match="unpacks to more than 1 MiB"):
        unpack(bomb(2), 1024 * 1024)
    assert unpack(bomb(1), 1024 * 1024) == b" " * 1024 * 1024


@pytest.mark.matrix
async def test_a_history_that_unpacks_without_an_end_is_named_in_bounded_memory(
    journal: Journal, location: str, attempt: Attempt
) -> None:
    message = Message(index=0, body=b"[]")
    await journal.commit(Commit(attempt=attempt.id, messages=(message,)))
    with closing(sqlite3.connect(location)) as connection, connection:
        connection.execute("UPDATE message SET body = ?", (bomb(1500),))
    reading = (
        "import asyncio, sys\n"
        "from midwatch_monitor.journal import Journal\n"
        "async def read():\n"
        "    async with await Journal.open_to_read(sys.argv[1]) as journal:\n"
        "        await journal.messages(1)\n"
        "asyncio.run(read())\n"
    )
    wrong = "message 0 of attempt 1 cannot be read: a history in the journal unpacks to more than"
    done = await asyncio.to_thread(run_bounded, "-c", reading, location)
    assert f"{wrong} {MOST_BYTES // 1024**2} MiB" in done.stderr
    done = await asyncio.to_thread(run_bounded, "-c", PROGRAM, "db", "check", "--journal", location)
    assert (done.returncode, done.stderr) == (1, "")
    assert "unpacks to more than" in done.stdout


def run_bounded(*words: str) -> "subprocess.CompletedProcess[str]":
    """A process of Python with little memory."""

    def limit() -> None:
        most = MOST_MIB * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, preexec_fn=limit, check=False
    )


async def test_what_cannot_be_read_again_is_not_stored(journal: Journal, attempt: Attempt) -> None:
    message = Message(index=0, body=bytes(MOST_BYTES + 1))
    with pytest.raises(JournalError, match="is too large"):
        await journal.commit(Commit(attempt=attempt.id, messages=(message,)))
    assert await journal.messages(attempt.id) == []
