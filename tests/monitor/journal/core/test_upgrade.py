"""An older journal is brought up to date with all that is in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.admin.copy import go_on_after
from midwatch_monitor.journal.core.engine import Access, connect, transaction
from midwatch_monitor.journal.core.schema import alembic_config, upgrade
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import Chore, Ending, LearnedQuery
from midwatch_supervisor.cli import main
from midwatch_tests.made_up import SECRETS
from midwatch_tests.matrix import DATABASES

T = TypeVar("T")

AT = "2026-11-21 20:00:00.000000"


def migrate(location: str, to: str, move: Callable[[Config, str], None] = command.upgrade) -> None:
    def work(connection: Connection) -> None:
        config = alembic_config()
        config.attributes["connection"] = connection
        move(config, to)

    run_on(location, work)


def run_on(location: str, work: Callable[[Connection], T]) -> T:
    store = connect(location, Access.CREATE, Synchronous.NORMAL)
    assert store.writing is not None
    with transaction(store.writing) as connection:
        done = work(connection)
    store.close()
    return done


def upgrade_journal(location: str) -> None:
    store = connect(location, Access.WRITE, Synchronous.NORMAL)
    upgrade(store)
    store.close()


@pytest.fixture(params=DATABASES)
def old_journal(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A journal of the first tables: three tasks, the first with attempts that ended."""
    served = request.param == "postgresql"
    place = request.getfixturevalue("postgres") if served else str(tmp_path / "journal.db")
    migrate(place, "0001")
    run_on(place, _fill)
    return place


def _fill(connection: Connection) -> None:
    def insert_row(table: str, **values: object) -> None:
        names = ", ".join(values)
        words = text(
            f"INSERT INTO {table} ({names}) VALUES ({', '.join(map(':{}'.format, values))})"
        )
        connection.execute(words, values)

    insert_row("run", id=1, started_at=AT, source="tasks.yaml", settings="{}")
    for id, spec in enumerate(({"workspace": "/repo"}, {"workspace": None}, "no object"), 1):
        insert_row("task", id=id, run=1, name=f"task-{id}", title="", spec=json.dumps(spec))
    for id, task in ((1, 1), (2, 1), (3, 2)):
        named = {"worker": "w", "model": "m", "node": "n", "workspace": "/w"}
        insert_row("attempt", id=id, task=task, number=id, started_at=AT, **named)
    said: list[tuple[str, int, int, dict[str, object]]] = [
        ("attempt_state", 1, 1, {"lifecycle": "working"}),
        ("attempt_state", 1, 1, {"lifecycle": "failed", "reason": "", "ending": Ending.STUCK}),
        ("attempt_state", 1, 2, {"lifecycle": "completed", "ending": Ending.DONE}),
        ("attempt_state", 2, 3, {"lifecycle": "failed", "ending": Ending.STUCK}),
        ("feedback", 1, 2, {"accepted": False, "comment": "", "origin": "explicit"}),
        ("feedback", 1, 2, {"accepted": False, "comment": "", "origin": "automatic"}),
    ]
    for kind, task, attempt, body in said:
        insert_row("entry", at=AT, kind=kind, task=task, attempt=attempt, body=json.dumps(body))
    go_on_after(connection, {"run": 1, "task": 3, "attempt": 3})


async def test_the_tasks_of_an_older_journal_get_their_project_and_still_teach(
    old_journal: str,
) -> None:
    upgrade_journal(old_journal)
    async with await Journal.open(old_journal) as journal:
        assert [each.project for each in await journal.tasks(1)] == ["/repo", "", ""]
        assert await Learned(journal).projects() == ["/repo"]
        assert len(await journal.entries()) == 6
        learned = Learned(journal)
        chores = await learned.chores(tries=1)
        assert [(each.about, each.chore, each.attempt) for each in chores] == [
            (5, Chore.LESSON, 2),
            (3, Chore.SUMMARY, 2),
            (2, Chore.LESSON, 1),
            (2, Chore.SUMMARY, 1),
        ]
        at = (await journal.runs())[0].started_at  # it is written on
        task = await journal.add_task(
            run=1, name="new", title="", spec="{}", project="/repo", at=at
        )
        assert (task.id, task.project) == (4, "/repo")
        await learned.forget("/repo", author="", at=at)
        assert [each.name for each in await journal.tasks(1)] == ["task-2", "task-3"]
        assert await learned.candidates(LearnedQuery(project="/repo", text="anything")) == []


def test_commands_that_find_an_older_file_name_the_one_that_upgrades_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = str(tmp_path / "journal.db")
    migrate(old, "0001")
    for words in (["status", "--journal", old], ["db", "copy", old, str(tmp_path / "new.db")]):
        assert main(words) != 0
        assert f"`midwatch db upgrade --journal {old}` upgrades it" in capsys.readouterr().err
    main(["db", "check", "--journal", old])
    assert "tables at 0001\n" in capsys.readouterr().out


def revision(location: str) -> str:
    query = text("SELECT version_num FROM alembic_version")
    return run_on(location, lambda connection: connection.execute(query).scalar_one())


async def test_who_reads_leaves_an_older_journal_and_who_writes_upgrades_a_file(
    old_journal: str,
) -> None:
    with pytest.raises(JournalError, match="written by an older Midwatch"):
        await Journal.open_to_read(old_journal)
    assert revision(old_journal) == "0001"
    if "://" in old_journal:
        with pytest.raises(JournalError, match="run `midwatch db upgrade`"):
            await Journal.open(old_journal)
    else:
        async with await Journal.open(old_journal) as journal:
            assert len(await journal.entries()) == 6


async def test_back_at_the_first_tables_the_log_holds_everything(old_journal: str) -> None:
    upgrade_journal(old_journal)
    migrate(old_journal, "0001", command.downgrade)
    found = run_on(old_journal, lambda connection: set(inspect(connection).get_table_names()))
    assert not {"lesson", "lesson_text", "project", "receipt"} & found
    query = text("SELECT count(*) FROM entry")
    assert run_on(old_journal, lambda connection: connection.execute(query).scalar()) == 6


async def test_a_journal_of_the_version_before_is_read_and_once_upgraded_written(
    old_journal: str,
) -> None:
    migrate(old_journal, "0003")
    async with await Journal.open_to_read(old_journal) as journal:
        assert len(await journal.entries()) == 6
    assert revision(old_journal) == "0003"
    upgrade_journal(old_journal)
    async with await Journal.open(old_journal) as one, await Journal.open(old_journal) as other:
        secret = SECRETS["github token"]
        assert one.masker.text(secret) == other.masker.text(secret) != secret


def test_every_journal_has_a_key_of_its_own_that_stays(tmp_path: Path) -> None:
    query = text("SELECT mask_key FROM compatibility")
    keys: list[str] = []
    for name in ("one.db", "other.db", "one.db"):
        migrate(str(tmp_path / name), "head")
        keys.append(run_on(str(tmp_path / name), lambda c: str(c.execute(query).scalar_one())))
    assert keys[0] == keys[2] != keys[1]
    assert {len(key) for key in keys} == {64}
