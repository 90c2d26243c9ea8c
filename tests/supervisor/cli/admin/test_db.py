"""`midwatch db` over real databases."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.engine import Access, connect, transaction
from midwatch_monitor.journal.core.tables import REVISION
from midwatch_monitor.journal.fleet.run_lock import hold_run, is_interrupted
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Commit,
    Ending,
    Fact,
    FactAct,
    FactMark,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    LearnedQuery,
    Lesson,
    LessonAct,
    LessonMark,
    Message,
    Result,
)
from midwatch_tests.command import ask, midwatch, objects, printed
from midwatch_tests.harness import PastAttempts
from midwatch_tests.matrix import DATABASES
from midwatch_tests.reading import erasures

Capture = pytest.CaptureFixture[str]


def execute_sql(location: str, *statements: str) -> None:
    store = connect(location, Access.WRITE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        for statement in statements:
            connection.execute(text(statement))
    store.close()


@pytest.fixture
async def full_past(past: PastAttempts) -> PastAttempts:
    """A journal with something of everything that is numbered, refers or is searched."""
    attempt = await past.attempt()
    await past.journal.claim(attempt.id, holder="h", at=past.at)
    messages = tuple(Message(index=n, body=f'"{n}é"'.encode()) for n in range(1200))
    result = Result(call="1", body=b"2")
    await past.journal.commit(
        Commit(attempt=attempt.id, messages=messages, results=(result,), drafts=())
    )
    await past.say(attempt, Lesson(text="Rounding goes last.", tags=("money",)))
    gone = await past.say(attempt, Lesson(text="Rounding goes first."))
    await past.say(attempt, LessonMark(lesson=gone, act=LessonAct.RETIRED))
    old = await past.say(attempt, Fact(text="The port is 80."))
    new = await past.say(attempt, Fact(text="The port is 443."))
    await past.say(attempt, FactMark(fact=old, act=FactAct.REPLACED, instead=new))
    for version in (1, 2):
        id = await past.say(attempt, Guidelines(version=version, text="…"))
        await past.say(attempt, GuidelinesMark(guidelines=id, act=GuidelinesAct.APPROVED))
    await past.end(attempt, Ending.DONE)
    await past.attempt("gone", task="x")
    await past.learned.forget("gone", author="", at=past.at)
    return past


async def read_everything(journal: Journal) -> tuple[object, ...]:
    learned = Learned(journal)
    wanted = LearnedQuery(project="shop", text="rounding port")
    return (
        await journal.runs(),
        await journal.entries(),
        await journal.messages(1),
        await journal.results(1),
        [each.known for each in await learned.candidates(wanted)],
        await learned.facts_like(wanted),
        await learned.facts(),
        await learned.live_guidelines("shop"),
        await erasures(journal),
    )


async def test_a_journal_is_copied_to_postgresql_and_back_and_no_id_is_given_again(
    capsys: Capture, full_past: PastAttempts, location: str, postgres: str, tmp_path: Path
) -> None:
    database, back = postgres.replace("@", ":s3cr3t@"), str(tmp_path / "back.db")
    before = await read_everything(full_past.journal)
    said = ""
    for source, target in ((location, database), (database, back)):
        (planned,) = await ask(capsys, "db", "copy", source, target, "--dry-run")
        assert (planned["dry_run"], planned["tables"]["message"]) == (True, 1200)
        assert await midwatch("db", "check", "--journal", target) != 0
        said += await printed(capsys, "db", "copy", source, target)
        said += await printed(capsys, "db", "upgrade", "--journal", target)
        said += await printed(capsys, "db", "check", "--journal", target)
        async with await Journal.open(target) as copied:
            assert await read_everything(copied) == before
    assert await midwatch("db", "copy", database, database) == 1
    assert "midwatch:***@" in said
    assert "s3cr3t" not in said + capsys.readouterr().err
    for each in (location, postgres, back):
        async with await Journal.open(each) as journal:
            assert (await journal.add_run(source="", settings="", at=full_past.at)).id == 3


async def test_nothing_is_copied_to_where_something_stands(
    capsys: Capture, full_past: PastAttempts, location: str
) -> None:
    for more in ([], ["--dry-run"]):
        assert await midwatch("db", "copy", location, location, *more) == 1
        assert "is not empty: there are rows in its `" in capsys.readouterr().err


async def test_a_run_at_work_is_not_copied_and_an_interrupted_one_is_so_in_the_copy(
    capsys: Capture, past: PastAttempts, location: str, postgres: str, tmp_path: Path
) -> None:
    await past.attempt()
    async with hold_run(past.journal, 1, lease_seconds=15):
        for more in ([], ["--dry-run"]):
            assert await midwatch("db", "copy", location, postgres, *more) == 2
            assert "another process is working on run 1: " in capsys.readouterr().err
    for source, target in ((location, postgres), (postgres, str(tmp_path / "back.db"))):
        assert await midwatch("db", "copy", source, target) == 0
        async with await Journal.open(target) as copied:
            assert await is_interrupted(copied, 1)


async def test_a_source_that_is_damaged_is_named_and_not_the_new_file(
    capsys: Capture, full_past: PastAttempts, location: str, tmp_path: Path
) -> None:
    bad, new = tmp_path / "bad.db", tmp_path / "new.db"
    with closing(sqlite3.connect(location)) as whole:
        whole.execute("VACUUM INTO ?", (str(bad),))
    with bad.open("r+b") as damaged:
        damaged.seek(bad.stat().st_size // 2)
        damaged.write(b"\xff" * 40_000)
    assert await midwatch("db", "copy", str(bad), str(new)) == 1
    assert capsys.readouterr().err.startswith(f"{bad} is not a journal, or it is damaged")


async def test_half_a_copy_is_taken_back(
    capsys: Capture, full_past: PastAttempts, location: str, postgres: str
) -> None:
    execute_sql(location, "UPDATE message SET body = x'00' WHERE idx = 1199")
    assert await midwatch("db", "copy", location, postgres) == 1
    assert "is damaged" in capsys.readouterr().err
    assert await midwatch("db", "check", "--journal", postgres, "--json") == 1
    assert objects(capsys)[0]["problem"].startswith("it has no tables")


@pytest.mark.parametrize("location", DATABASES, indirect=True)
async def test_what_is_in_order_is_counted(
    capsys: Capture, full_past: PastAttempts, location: str
) -> None:
    (said,) = await ask(capsys, "db", "check", "--journal", location)
    last = await full_past.journal.last_id()
    assert (said["revision"], said["problems"], said["last"]) == (REVISION, 0, last)
    assert (said["tables"]["task"], said["tables"]["message"]) == (1, 1200)
    assert said["age_seconds"] > 0
    assert (await printed(capsys, "db", "check", "--journal", location)).endswith("no problems\n")


GAP = "UPDATE entry SET seq = 7 WHERE id = 2"
GAPS = "the sequence of attempt 1 has gaps: 1 entries from 7 to 7"
DEFER = "PRAGMA defer_foreign_keys = ON"
FORGET = "DELETE FROM sqlite_sequence WHERE name = 'run'"
LOOSE = "ALTER TABLE lease DROP CONSTRAINT lease_attempt_fk"
ORPHAN = "INSERT INTO lease (attempt, incarnation, holder, at) VALUES (99, 1, '', '2026-01-01')"
AGAIN = "the next id of run already exists: the last one assigned was {}, and the highest is 2"
REFERS = "1 rows in `lease` refer to a row of `attempt` that does not exist"


@pytest.mark.parametrize(
    ("location", "statements", "problem"),
    [
        ("file", [GAP], GAPS),
        ("postgresql", [GAP], GAPS),
        ("file", [DEFER, FORGET], AGAIN.format(0)),
        ("postgresql", ["SELECT setval('run_id_seq', 1)"], AGAIN.format(1)),
        ("postgresql", [LOOSE, ORPHAN], REFERS),
    ],
    indirect=["location"],
)
async def test_what_is_not_in_order_is_said_in_a_line_each(
    capsys: Capture, past: PastAttempts, location: str, statements: list[str], problem: str
) -> None:
    await past.attempt()
    await past.attempt(task="other")
    execute_sql(location, *statements)
    assert await midwatch("db", "check", "--journal", location, "--json") == 1
    found, said = objects(capsys)
    assert found == {"type": "problem", "problem": problem}
    assert said["problems"] == 1
    assert await midwatch("db", "check", "--journal", location) == 1
    assert capsys.readouterr().out.endswith(f"problem: {problem}\n")


async def test_a_database_is_set_up_and_found_up_to_date(capsys: Capture, postgres: str) -> None:
    said = list[dict[str, Any]]()
    for more in (["--dry-run"], [], []):
        said += await ask(capsys, "db", "upgrade", "--journal", postgres, *more)
    assert [each["before"] for each in said] == [None, None, REVISION]
    assert [each["dry_run"] for each in said] == [True, False, False]
    async with await Journal.open(postgres, create=False) as journal:
        assert await journal.runs() == []
