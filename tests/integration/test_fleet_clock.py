"""All of a fleet go by one clock, whatever those of their machines say."""

from datetime import timedelta

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.nodes import Nodes
from midwatch_supervisor.fleet.clock import FleetClock, fleet_clock
from midwatch_tools.watch import now

NEAR = timedelta(seconds=2)


@pytest.mark.parametrize("minutes", [-2, 0, 2])
async def test_a_machine_whose_clock_is_wrong_tells_the_time_of_the_database(
    postgres_journal: str, minutes: int
) -> None:
    async with await Journal.open(postgres_journal) as journal:
        clock = FleetClock(Nodes(journal), lambda: now() + timedelta(minutes=minutes))
        await clock.tune()
        assert abs(clock() - await Nodes(journal).now()) < NEAR
        assert abs(clock.ahead + timedelta(minutes=minutes)) < NEAR


async def test_a_clock_that_is_far_off_is_told_once_at_the_start(
    postgres_journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        await Journal.open(postgres_journal) as journal,
        fleet_clock(Nodes(journal), lambda: now() + timedelta(minutes=1)),
    ):
        assert "clock is +60 s off the database's" in caplog.text


async def test_a_clock_that_is_right_is_not_told_of(
    postgres_journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with await Journal.open(postgres_journal) as journal, fleet_clock(Nodes(journal), now):
        assert not caplog.text
