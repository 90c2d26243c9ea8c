"""What waits to be sent is bounded, what is under way is counted, and none of it is forgotten."""

import asyncio

import pytest

from midwatch_monitor.bus.outbox import InFlight, Outbox, by_attempt
from midwatch_monitor.errors import LinkError, LinkFault
from midwatch_monitor.records import Hint


def hint(entry: int, attempt: int | None = None) -> Hint:
    return Hint(entry=entry, kind="step", attempt=attempt)


def filled(capacity: int, *entries: int) -> Outbox:
    outbox = Outbox(capacity)
    for entry in entries:
        outbox.put(hint(entry))
    return outbox


def entries(outbox: Outbox) -> list[int]:
    return [each.entry for each in outbox.take()]


async def test_the_oldest_make_room_and_are_counted() -> None:
    outbox = filled(3, 1, 2, 3, 4, 5)
    assert (len(outbox), outbox.dropped, entries(outbox)) == (3, 2, [3, 4, 5])
    assert (len(outbox), entries(outbox)) == (0, [])


async def test_what_was_not_sent_waits_again_before_all_others() -> None:
    outbox = filled(4, 3, 4)
    outbox.put_back([hint(1), hint(2)])
    assert (outbox.dropped, entries(outbox)) == (0, [1, 2, 3, 4])


async def test_of_what_was_not_sent_the_oldest_are_dropped_where_there_is_no_room() -> None:
    outbox = filled(3, 4, 5)
    outbox.put_back([hint(1), hint(2), hint(3)])
    assert (outbox.dropped, entries(outbox)) == (2, [3, 4, 5])
    full = filled(2, 4, 5)
    full.put_back([hint(3)])
    assert (full.dropped, entries(full)) == (1, [4, 5])


async def test_who_waits_is_woken_by_a_hint_and_by_a_ring() -> None:
    outbox = filled(3, 1)
    await outbox.wait()
    outbox.take()
    outbox.ring()
    await outbox.wait()


def test_hints_are_grouped_by_attempt_in_their_order() -> None:
    hints = [hint(1, 7), hint(2), hint(3, 8), hint(4, 7)]
    assert by_attempt(hints) == {7: [hints[0], hints[3]], None: [hints[1]], 8: [hints[2]]}


AWAY = LinkError(LinkFault.AWAY, "gone")


def hints(*entries: int) -> list[Hint]:
    return [Hint(entry=entry, kind="step") for entry in entries]


class Sky:
    """InFlight, and how often one failed."""

    def __init__(self) -> None:
        self.failures = 0
        self.in_flight = InFlight(failed=self._fail)

    def _fail(self) -> None:
        self.failures += 1

    def start(self, *entries: int) -> asyncio.Future[None]:
        """A message with these hints."""
        flight: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.in_flight.add(flight, hints(*entries))
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
    assert (sky.in_flight.waiting, sky.in_flight.sent, sky.failures) == (1, 2, 0)
    assert sky.in_flight.end() == hints(3)


async def test_who_waits_for_room_goes_on_when_enough_has_landed() -> None:
    sky = Sky()
    first, second = sky.start(1, 2), sky.start(3)
    waiting = asyncio.ensure_future(sky.in_flight.fewer(1))
    first.set_result(None)
    await turns()
    assert not waiting.done()
    second.set_result(None)
    await waiting


async def test_a_failure_is_told_at_once_and_raised_and_what_failed_is_not_lost() -> None:
    sky = Sky()
    first, second = sky.start(1), sky.start(2)
    waiting = asyncio.ensure_future(sky.in_flight.fewer(1))
    second.set_exception(AWAY)
    with pytest.raises(LinkError, match="gone"):
        await waiting
    assert (sky.failures, sky.in_flight.waiting, sky.in_flight.sent) == (1, 2, 0)
    assert sky.in_flight.end() == hints(1, 2)
    await turns()
    assert (first.cancelled(), sky.in_flight.waiting, sky.failures) == (True, 0, 1)


async def test_what_comes_back_keeps_its_order_and_the_next_connection_begins_anew() -> None:
    sky = Sky()
    late = [sky.start(1, 2), sky.start(3), sky.start(4)]
    assert sky.in_flight.end() == hints(1, 2, 3, 4)
    late[0].cancel()
    sky.start(5).set_result(None)
    await sky.in_flight.fewer(1)
    assert (sky.in_flight.waiting, sky.in_flight.sent) == (0, 1)


async def test_a_failure_after_the_end_changes_nothing() -> None:
    sky = Sky()
    sky.start(1).set_exception(AWAY)
    assert sky.in_flight.end() == hints(1)
    await turns()
    await sky.in_flight.fewer(1)
    assert sky.failures == 0
