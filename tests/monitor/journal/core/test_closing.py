"""A journal that is closed while it is in use: whoever closes it does not wait for ever."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection

from midwatch_monitor.config.modes import Synchronous
from midwatch_monitor.journal.core.engine import Access, Store, connect
from midwatch_monitor.journal.core.outage import OutageWait
from midwatch_monitor.journal.core.threads import DatabaseReader


@pytest.fixture
def store(journal_file: Path) -> Iterator[Store]:
    store = connect(journal_file, Access.CREATE, Synchronous.NORMAL)
    yield store
    store.close()


def test_closing_a_reader_waits_for_no_answer_that_does_not_come(store: Store) -> None:
    assert store.reading is not None
    asked, cut = Event(), Event()

    def stuck(_: Connection) -> bool:
        asked.set()
        return cut.wait(60)

    reader = DatabaseReader(store.reading, name="it", patience=OutageWait(0))
    answer = reader.submit(stuck, Event())
    assert asked.wait(60)
    reader.close(cut.set)
    assert answer.result(0)
    assert cut.is_set()
