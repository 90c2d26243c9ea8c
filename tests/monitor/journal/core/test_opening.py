"""Opening makes, updates or refuses a journal, and says why."""

import asyncio
import os
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import (
    JournalAccessError,
    JournalCorruptError,
    JournalError,
    JournalReadOnlyError,
    JournalTooNewError,
)
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.schema import open_store
from midwatch_monitor.records import Run


def execute(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


async def filled(file: Path, at: datetime) -> Run:
    async with await Journal.open(file) as journal:
        return await journal.add_run(source="tasks.yaml", settings="{}", at=at)


async def test_the_folder_is_made_and_kept_out_of_git(journal_file: Path, at: datetime) -> None:
    await filled(journal_file, at)
    assert (journal_file.parent / ".gitignore").read_text() == "*\n"


async def test_a_folder_of_another_name_is_left_to_its_owner(tmp_path: Path, at: datetime) -> None:
    await filled(tmp_path / "deep" / "journal.db", at)
    assert not (tmp_path / "deep" / ".gitignore").exists()


@pytest.mark.parametrize(
    "words", [b"no database, " * 40, b"short", b""], ids=["text", "short", "database"]
)
async def test_the_file_of_another_program_is_left_as_it_is(tmp_path: Path, words: bytes) -> None:
    file = tmp_path / "theirs.db"
    file.write_bytes(words)
    if not words:
        execute(file, "CREATE TABLE bookmark (url TEXT)")
    file.chmod(0o644)
    before = file.read_bytes()
    for opening in (Journal.open, Journal.open_to_read):
        with pytest.raises(JournalCorruptError, match="is not a journal"):
            await opening(file)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (before, 0o644)


@pytest.mark.parametrize("how", [{"synchronous": Synchronous.FULL}, {"create": False}], ids=str)
async def test_what_was_written_is_there_at_the_next_opening(
    journal_file: Path, at: datetime, how: dict[str, Any]
) -> None:
    run = await filled(journal_file, at)
    async with await Journal.open(journal_file, **how) as journal:
        assert await journal.runs() == [run]


async def test_many_that_open_at_the_same_moment_make_one_journal(
    journal_file: Path, at: datetime
) -> None:
    one, *others = await asyncio.gather(*(Journal.open(journal_file) for _ in range(5)))
    run = await one.add_run(source="", settings="", at=at)
    for journal in (*others, one):
        assert await journal.runs() == [run]
        await journal.close()


@pytest.mark.parametrize("location", [":memory:", "sqlite://"])
async def test_a_journal_in_memory_does_the_same(location: str, at: datetime) -> None:
    async with await Journal.open(location) as journal:
        run = await journal.add_run(source="", settings="", at=at)
        assert await journal.runs() == [run]


async def test_two_journals_in_memory_are_two(at: datetime) -> None:
    async with await Journal.open(":memory:") as one, await Journal.open(":memory:") as other:
        await one.add_run(source="", settings="", at=at)
        assert await other.runs() == []


async def test_a_url_names_a_file_too(journal_file: Path, at: datetime) -> None:
    run = await filled(journal_file, at)
    async with await Journal.open(f"sqlite:///{journal_file}") as journal:
        assert await journal.runs() == [run]


async def test_what_must_exist_is_not_made(journal_file: Path) -> None:
    for opening in (Journal.open(journal_file, create=False), Journal.open_to_read(journal_file)):
        with pytest.raises(JournalError, match="there is no journal at"):
            await opening
    assert not journal_file.parent.exists()


async def test_a_journal_opened_to_read_refuses_to_write(journal_file: Path, at: datetime) -> None:
    run = await filled(journal_file, at)
    async with await Journal.open_to_read(journal_file) as journal:
        assert await journal.runs() == [run]
        with pytest.raises(JournalReadOnlyError, match="for reading only"):
            await journal.add_run(source="", settings="", at=at)


async def test_a_reader_sees_what_a_writer_adds(journal: Journal, at: datetime) -> None:
    async with await Journal.open_to_read(journal.name) as reader:
        run = await journal.add_run(source="", settings="", at=at)
        assert await reader.runs() == [run]


async def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalAccessError, match=r"is a folder, .* such as .*journal\.db"):
        await Journal.open(tmp_path)


async def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalReadOnlyError, match="cannot be created"):
        await Journal.open(tmp_path / "file" / "sub" / "journal.db")


async def test_a_newer_journal_is_left_alone(journal_file: Path, at: datetime) -> None:
    await filled(journal_file, at)
    execute(journal_file, "UPDATE alembic_version SET version_num = '9999'")
    execute(journal_file, "UPDATE compatibility SET oldest = '9999'")
    with pytest.raises(JournalTooNewError, match="update Midwatch"):
        await Journal.open(journal_file)
    with pytest.raises(JournalTooNewError, match="at 9999"):
        await Journal.open_to_read(journal_file)


async def test_a_newer_journal_that_says_so_is_worked_with(
    journal_file: Path, at: datetime
) -> None:
    run = await filled(journal_file, at)
    execute(journal_file, "UPDATE alembic_version SET version_num = '9999'")
    async with await Journal.open(journal_file) as journal:
        assert await journal.runs() == [run]


async def test_a_file_that_was_cut_is_damaged(journal_file: Path, at: datetime) -> None:
    await filled(journal_file, at)
    os.truncate(journal_file, 40_000)
    with pytest.raises(JournalCorruptError, match="damaged"):
        await Journal.open(journal_file)


async def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    execute(file, "CREATE TABLE bookmark (id INTEGER PRIMARY KEY)")
    for opening in (Journal.open(file), Journal.open_to_read(file)):
        with pytest.raises(JournalCorruptError, match=r"is not a journal: .* a table `bookmark`"):
            await opening
    execute(file, "CREATE TABLE alembic_version (version_num VARCHAR(32))")
    execute(file, "INSERT INTO alembic_version VALUES ('ae1027a6acff')")
    for opening in (Journal.open(file), Journal.open_to_read(file)):
        with pytest.raises(JournalCorruptError, match=r"is not a journal: .* `alembic_version`"):
            await opening


async def test_an_empty_file_becomes_a_journal_only_by_who_may_make_one(
    tmp_path: Path, at: datetime
) -> None:
    file = tmp_path / "journal.db"
    file.touch()
    with pytest.raises(JournalAccessError, match="is empty: `midwatch run FILE` creates a journal"):
        await Journal.open_to_read(file)
    assert await filled(file, at) == Run(id=1, started_at=at, source="tasks.yaml", settings="{}")


async def test_a_closed_journal_says_so(journal_file: Path, at: datetime) -> None:
    journal = await Journal.open(journal_file)
    await journal.close()
    await journal.close()
    with pytest.raises(JournalError, match="is closed"):
        await journal.runs()
    with pytest.raises(JournalError, match="is closed"):
        await journal.add_run(source="", settings="", at=at)


@pytest.mark.parametrize("access", [Access.READ, Access.CREATE])
@pytest.mark.parametrize(
    "edit",
    [
        "update compatibility set mask_key = 'no key'",
        "update compatibility set mask_key = x'ff00'",
        "update alembic_version set version_num = x'eda0'",
    ],
)
def test_a_damaged_version_or_key_is_said_in_a_sentence(
    tmp_path: Path, edit: str, access: Access
) -> None:
    path = tmp_path / "journal.db"
    open_store(path, Access.CREATE).close()
    execute(path, edit)
    with pytest.raises(JournalError):
        open_store(path, access)
