"""What is under way is counted until the broker has it, and none of it is forgotten."""

import asyncio

import pytest

from midwatch_monitor.bus.flights import Flights
from midwatch_monitor.errors import LinkError, LinkFault
from midwatch_monitor.records import Hint

AWAY = LinkError(LinkFault.AWAY, "gone")


def hints(*entries: int) -> list[Hint]:
    return [Hint(entry=entry, kind="step") for entry in entries]


class Sky:
    """Flights, and how often one failed."""

    def __init__(self) -> None:
        self.failures = 0
        self.flights = Flights(failed=self._fail)

    def _fail(self) -> None:
        self.failures += 1

    def start(self, *entries: int) -> asyncio.Future[None]:
        """A message with these hints."""
        flight: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.flights.add(flight, hints(*entries))
        return flight


async def turns() -> None:
    """Let what is due happen."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_what_the_broker_has_is_sent_and_no_longer_under_way() -> None:
    sky = Sky()
    first, _ = sky.start(1, 2), sky.start(3)
    first.set_result(None)
    await turns()
    assert (sky.flights.waiting, sky.flights.sent, sky.failures) == (1, 2, 0)
    assert sky.flights.end() == hints(3)


async def test_who_waits_for_room_goes_on_when_enough_has_landed() -> None:
    sky = Sky()
    first, second = sky.start(1, 2), sky.start(3)
    waiting = asyncio.ensure_future(sky.flights.fewer(1))
    first.set_result(None)
    await turns()
    assert not waiting.done()
    second.set_result(None)
    await waiting


async def test_a_failure_is_told_at_once_and_raised_and_what_failed_is_not_lost() -> None:
    sky = Sky()
    first, second = sky.start(1), sky.start(2)
    waiting = asyncio.ensure_future(sky.flights.fewer(1))
    second.set_exception(AWAY)
    with pytest.raises(LinkError, match="gone"):
        await waiting
    assert (sky.failures, sky.flights.waiting, sky.flights.sent) == (1, 2, 0)
    assert sky.flights.end() == hints(1, 2)
    await turns()
    assert (first.cancelled(), sky.flights.waiting, sky.failures) == (True, 0, 1)


async def test_what_comes_back_keeps_its_order_and_the_next_connection_begins_anew() -> None:
    sky = Sky()
    late = [sky.start(1, 2), sky.start(3), sky.start(4)]
    assert sky.flights.end() == hints(1, 2, 3, 4)
    late[0].cancel()
    sky.start(5).set_result(None)
    await sky.flights.fewer(1)
    assert (sky.flights.waiting, sky.flights.sent) == (0, 1)


async def test_a_failure_after_the_end_changes_nothing() -> None:
    sky = Sky()
    sky.start(1).set_exception(AWAY)
    assert sky.flights.end() == hints(1)
    await turns()
    await sky.flights.fewer(1)
    assert sky.failures == 0
