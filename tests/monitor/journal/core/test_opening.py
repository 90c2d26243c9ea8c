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


async def make_journal(file: Path, at: datetime) -> Run:
    async with await Journal.open(file) as journal:
        return await journal.add_run(source="tasks.yaml", settings="{}", at=at)


async def test_the_folder_is_made_and_kept_out_of_git_unless_it_has_another_name(
    journal_file: Path, tmp_path: Path, at: datetime
) -> None:
    for file in (journal_file, tmp_path / "deep" / "journal.db"):
        await make_journal(file, at)
    assert (journal_file.parent / ".gitignore").read_text() == "*\n"
    assert not (tmp_path / "deep" / ".gitignore").exists()


@pytest.mark.parametrize("words", [b"no database, " * 40, b"short"], ids=["text", "short"])
async def test_the_file_of_another_program_is_left_as_it_is(tmp_path: Path, words: bytes) -> None:
    file = tmp_path / "theirs.db"
    file.write_bytes(words)
    file.chmod(0o644)
    before = file.read_bytes()
    for opening in (Journal.open, Journal.open_to_read):
        with pytest.raises(JournalCorruptError, match="is not a journal"):
            await opening(file)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (before, 0o644)


@pytest.mark.parametrize("how", [{"synchronous": Synchronous.FULL}, {"create": False}], ids=str)
@pytest.mark.parametrize("place", ["{}", "sqlite:///{}"], ids=["path", "URL"])
async def test_what_was_written_is_there_at_the_next_opening(
    journal_file: Path, at: datetime, how: dict[str, Any], place: str
) -> None:
    run = await make_journal(journal_file, at)
    async with await Journal.open(place.format(journal_file), **how) as journal:
        assert await journal.runs() == [run]


async def test_many_that_open_at_once_make_one_journal(journal_file: Path, at: datetime) -> None:
    one, *others = await asyncio.gather(*(Journal.open(journal_file) for _ in range(5)))
    run = await one.add_run(source="", settings="", at=at)
    for journal in (*others, one):
        assert await journal.runs() == [run]
        await journal.close()


@pytest.mark.parametrize("location", [":memory:", "sqlite://"])
async def test_two_journals_in_memory_are_two(location: str, at: datetime) -> None:
    async with await Journal.open(location) as one, await Journal.open(location) as other:
        run = await one.add_run(source="", settings="", at=at)
        assert (await one.runs(), await other.runs()) == ([run], [])


async def test_what_must_exist_is_not_made(journal_file: Path) -> None:
    for opening in (Journal.open(journal_file, create=False), Journal.open_to_read(journal_file)):
        with pytest.raises(JournalError, match="there is no journal at"):
            await opening
    assert not journal_file.parent.exists()


async def test_a_journal_opened_to_read_sees_what_others_write(
    journal: Journal, at: datetime
) -> None:
    async with await Journal.open_to_read(journal.name) as reader:
        run = await journal.add_run(source="", settings="", at=at)
        assert await reader.runs() == [run]
        with pytest.raises(JournalReadOnlyError, match="for reading only"):
            await reader.add_run(source="", settings="", at=at)


async def test_a_folder_is_no_journal_and_a_file_no_folder(tmp_path: Path) -> None:
    with pytest.raises(JournalAccessError, match=r"is a folder, .* such as .*journal\.db"):
        await Journal.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(JournalReadOnlyError, match="cannot be created"):
        await Journal.open(tmp_path / "file" / "sub" / "journal.db")


async def test_a_newer_journal_is_used_if_it_allows_that(journal_file: Path, at: datetime) -> None:
    run = await make_journal(journal_file, at)
    execute(journal_file, "UPDATE alembic_version SET version_num = '9999'")
    async with await Journal.open(journal_file) as journal:
        assert await journal.runs() == [run]
    execute(journal_file, "UPDATE compatibility SET oldest = '9999'")
    for opening in (Journal.open, Journal.open_to_read):
        with pytest.raises(JournalTooNewError, match=r"at 9999.*update Midwatch"):
            await opening(journal_file)


async def test_a_file_that_was_cut_is_damaged(journal_file: Path, at: datetime) -> None:
    await make_journal(journal_file, at)
    os.truncate(journal_file, 40_000)
    with pytest.raises(JournalCorruptError, match="damaged"):
        await Journal.open(journal_file)


async def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    made = "CREATE TABLE alembic_version (version_num VARCHAR(32))"
    for statements, said in (
        (["CREATE TABLE bookmark (id INTEGER PRIMARY KEY)"], "a table `bookmark`"),
        ([made, "INSERT INTO alembic_version VALUES ('ae1027a6acff')"], "`alembic_version`"),
    ):
        execute(file, *statements)
        before = file.read_bytes()
        for opening in (Journal.open, Journal.open_to_read):
            with pytest.raises(JournalCorruptError, match=rf"is not a journal: .* {said}"):
                await opening(file)
        assert file.read_bytes() == before


async def test_an_empty_file_becomes_one_by_who_may_make_it(tmp_path: Path, at: datetime) -> None:
    file = tmp_path / "journal.db"
    file.touch()
    with pytest.raises(JournalAccessError, match="is empty: `midwatch run FILE` creates a journal"):
        await Journal.open_to_read(file)
    assert await make_journal(file, at) == Run(
        id=1, started_at=at, source="tasks.yaml", settings="{}"
    )


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
def test_a_damaged_version_or_key_is_named(tmp_path: Path, edit: str, access: Access) -> None:
    path = tmp_path / "journal.db"
    open_store(path, Access.CREATE).close()
    execute(path, edit)
    with pytest.raises(JournalError):
        open_store(path, access)
