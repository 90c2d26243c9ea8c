"""An older journal is brought up to date with all that is in it."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import inspect

from midwatch_monitor.config.settings import Synchronous
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal, schema
from midwatch_monitor.journal.engine import Access, connect, transaction
from midwatch_monitor.journal.learned import Learned
from midwatch_monitor.words import Chore, Ending, Wanted

AT = "2026-11-21 20:00:00.000000"


def migrate(file: Path, to: str, move: Callable[[Config, str], None] = command.upgrade) -> None:
    store = connect(file, Access.CREATE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        config = schema.alembic_config()
        config.attributes["connection"] = connection
        move(config, to)
    store.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A journal of the first tables: three tasks, the first with attempts that ended."""
    file = tmp_path / "journal.db"
    migrate(file, "0001")
    connection = sqlite3.connect(file)
    connection.execute("INSERT INTO run VALUES (1, ?, 'tasks.yaml', '{}')", (AT,))
    for id, spec in enumerate(({"workspace": "/repo"}, {"workspace": None}, "no object"), 1):
        row = (id, f"task-{id}", json.dumps(spec))
        connection.execute("INSERT INTO task VALUES (?, 1, ?, '', ?)", row)
    for id, task in ((1, 1), (2, 1), (3, 2)):
        row = (id, task, id, AT)
        connection.execute("INSERT INTO attempt VALUES (?, ?, ?, 'w', 'm', 'n', '/w', ?)", row)
    said: list[tuple[str, int, int, dict[str, object]]] = [
        ("attempt_state", 1, 1, {"lifecycle": "working"}),
        ("attempt_state", 1, 1, {"lifecycle": "failed", "reason": "", "ending": Ending.STUCK}),
        ("attempt_state", 1, 2, {"lifecycle": "completed", "ending": Ending.DONE}),
        ("attempt_state", 2, 3, {"lifecycle": "failed", "ending": Ending.STUCK}),
        ("feedback", 1, 2, {"accepted": False, "comment": "", "origin": "explicit"}),
        ("feedback", 1, 2, {"accepted": False, "comment": "", "origin": "automatic"}),
    ]
    for kind, task, attempt, body in said:
        row = (AT, kind, task, attempt, json.dumps(body))
        connection.execute(
            "INSERT INTO entry (at, kind, task, attempt, body) VALUES (?, ?, ?, ?, ?)", row
        )
    connection.commit()
    connection.close()
    return file


async def test_the_tasks_of_an_older_journal_get_the_project_of_their_workspace(
    old: Path,
) -> None:
    async with await Journal.open(old) as journal:
        assert [each.project for each in await journal.tasks(1)] == ["/repo", "", ""]
        assert await Learned(journal).projects() == ["/repo"]
        assert len(await journal.entries()) == 6


async def test_what_older_attempts_teach_is_still_to_be_drawn(old: Path) -> None:
    async with await Journal.open(old) as journal:
        chores = await Learned(journal).chores(tries=1, limit=10)
    assert [(each.about, each.chore, each.attempt) for each in chores] == [
        (5, Chore.LESSON, 2),
        (3, Chore.SUMMARY, 2),
        (2, Chore.LESSON, 1),
        (2, Chore.SUMMARY, 1),
    ]


async def test_an_older_journal_is_written_on(old: Path) -> None:
    async with await Journal.open(old) as journal:
        learned = Learned(journal)
        at = (await journal.runs())[0].started_at
        task = await journal.add_task(
            run=1, name="new", title="", spec="{}", project="/repo", at=at
        )
        assert (task.id, task.project) == (4, "/repo")
        await learned.forget("/repo", author="", at=at)
        assert [each.name for each in await journal.tasks(1)] == ["task-2", "task-3"]
        assert await learned.candidates(Wanted(project="/repo", text="anything")) == []


async def test_who_only_reads_leaves_an_older_journal_as_it_is(old: Path) -> None:
    with pytest.raises(JournalError, match="written by an older Midwatch"):
        await Journal.open_to_read(old)
    connection = sqlite3.connect(old)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    connection.close()


async def test_back_at_the_first_tables_the_log_holds_everything(old: Path) -> None:
    async with await Journal.open(old):
        pass
    migrate(old, "0001", command.downgrade)
    engine = connect(old, Access.WRITE, Synchronous.NORMAL).writing
    assert engine is not None
    with engine.connect() as connection:
        assert not {"lesson", "lesson_text", "project"} & set(inspect(connection).get_table_names())
        assert connection.exec_driver_sql("SELECT count(*) FROM entry").scalar() == 6
    engine.dispose()
