"""The two rows that every command reads first, edited by hand."""

import sqlite3
from pathlib import Path

import pytest

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.schema import open_store


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
    with sqlite3.connect(path) as database:
        database.execute(edit)
    database.close()
    with pytest.raises(JournalError):
        open_store(path, access)
