"""A journal that the version before wrote opens, reads alike, and gives the same alerts again."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.tables import REVISION
from midwatch_supervisor.cli import main

BEFORE = Path(__file__).parent / "journals" / "before.sql"
STATUS = {  # as that version printed it: attempt, number, confidence, steps, requests
    "discount": (1, 1, 95, 12, 8),
    "totals": (2, 1, 95, 26, 17),
    "delivery": (7, 2, 94, 13, 22),
    "shipping": (4, 1, 95, 17, 11),
    "labels": (5, 1, 94, 21, 17),
    "report": (6, 1, 95, 6, 4),
}


@pytest.fixture(scope="module")
def untouched_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal as that version left it."""
    journal_file = tmp_path_factory.mktemp("before") / "journal.db"
    with sqlite3.connect(journal_file) as connection:
        connection.executescript(f"BEGIN;{BEFORE.read_text('utf-8')};COMMIT")
    connection.close()
    return journal_file


@pytest.fixture(params=["as it is", "brought up to date"], scope="module")
def old_journal(
    request: pytest.FixtureRequest,
    untouched_journal: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The journal: as that version left it, and after this one opened it to write. Only read."""
    if request.param == "as it is":
        return untouched_journal
    journal_file = Path(shutil.copy(untouched_journal, tmp_path_factory.mktemp("upgraded")))
    schema.open_store(journal_file, Access.WRITE).close()
    with sqlite3.connect(journal_file) as connection:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    assert found == (REVISION,)
    return journal_file


async def test_every_record_is_read(old_journal: Path) -> None:
    async with await Journal.open_to_read(old_journal) as journal:
        read = [entry async for entry in journal.all_entries()]
    with sqlite3.connect(old_journal) as connection:
        stored = connection.execute("SELECT id, kind FROM entry ORDER BY id").fetchall()
    connection.close()
    assert [(entry.id, kind_of(type(entry.record))) for entry in read] == stored
    assert len(stored) == 459


def printed_json(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """What a command prints as JSON."""
    assert main(words) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_is_in_use_unread_is_said_after_an_upgrade(
    untouched_journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shutil.copy(untouched_journal, tmp_path)
    assert main(("db", "upgrade", "--journal", str(before))) == 0
    lists = f"`midwatch lessons list --journal {before}`"
    assert capsys.readouterr().out.endswith(
        f"\nin use, though nobody had to approve it before: 2 lessons ({lists})\n"
    )


def test_status_and_show_say_what_it_said(
    old_journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed_json(capsys, "status", "--json", "--journal", str(old_journal))
    found = {line["task"]: line for line in lines if line["type"] == "status"}
    figures = ("attempt", "number", "confidence", "steps", "requests_used")
    assert {task: tuple(line[name] for name in figures) for task, line in found.items()} == STATUS
    for line in found.values():
        assert (line["status"], line["progress_percent"], line["alerts"]) == ("completed", 100, 0)
    for task in STATUS:
        lines = printed_json(capsys, "show", task, "--json", "--journal", str(old_journal))
        assert [line["step"] for line in lines if line["type"] == "step"]
        assert {line["task"] for line in lines if "task" in line} == {task}


def test_the_rules_give_again_the_alerts_that_stand_in_it(
    old_journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again: list[tuple[object, ...]] = []
    for attempt in range(1, 8):
        trace = tmp_path / f"{attempt}.jsonl"
        assert (
            main(["export", str(attempt), "--journal", str(old_journal), "--output", str(trace)])
            == 0
        )
        capsys.readouterr()
        lines = printed_json(capsys, "replay", str(trace), "--json")
        again += [(attempt, *without_wording(line)) for line in lines if line["type"] == "alert"]
    with sqlite3.connect(old_journal) as connection:
        query = "SELECT attempt, body FROM entry WHERE kind = 'alert' ORDER BY attempt, id"
        stored = [(attempt, json.loads(body)) for attempt, body in connection.execute(query)]
    connection.close()
    fired = [
        (at, *without_wording({**a, **a["key"]})) for at, a in stored if a["state"] == "firing"
    ]
    assert again == fired
    assert len(again) == 9


def without_wording(alert: dict[str, Any]) -> tuple[object, ...]:
    """What an alert is about, without its wording."""
    exact = (alert[name] for name in ("rule", "subject", "severity", "step"))
    return (*exact, float(alert["value"]), tuple(alert["evidence"]))
