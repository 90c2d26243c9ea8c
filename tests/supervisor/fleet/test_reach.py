"""An outage of the journal is told once, however often it is asked, and its end with its length."""

import asyncio
import logging

import pytest

from midwatch_monitor.errors import JournalError
from midwatch_supervisor.fleet.process import JournalOutageLog


async def say(error: str = "") -> str:
    if error:
        raise JournalError(error)
    return "yes"


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records]


async def test_an_outage_and_its_end_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reach = JournalOutageLog("one", "the database")
    for error in ("", "refused", "refused again"):
        if error:
            with pytest.raises(JournalError):
                await reach.of(say(error))
        else:
            assert await reach.of(say()) == "yes"
    assert reach.away
    for _ in range(2):
        await reach.of(say())
    assert not reach.away
    assert told(caplog) == [
        (logging.WARNING, "one does not reach the journal and tries again: refused"),
        (logging.INFO, "one reaches the journal again after 0 s"),
    ]


async def test_an_answer_that_stays_away_is_an_outage_before_patience_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    reach = JournalOutageLog("one", "the database", slow_seconds=0.01)
    may_answer = asyncio.Event()

    def answer(record: logging.LogRecord) -> bool:
        del record
        may_answer.set()
        return True

    caplog.handler.addFilter(answer)
    assert await reach.of(may_answer.wait())
    caplog.handler.removeFilter(answer)
    first, last = told(caplog)
    assert first[1].endswith("tries again: no answer of the database for 0.01 s")
    assert last[1].startswith("one reaches the journal again after ")
