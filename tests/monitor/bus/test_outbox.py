"""The hints that wait to be sent are bounded, and what was not sent waits again."""

from midwatch_monitor.bus.mqtt import Outbox
from midwatch_monitor.records import Hint


def hint(entry: int, attempt: int | None = None) -> Hint:
    return Hint(entry=entry, kind="step", attempt=attempt)


def filled(capacity: int, *entries: int) -> Outbox:
    outbox = Outbox(capacity)
    outbox.offer([hint(entry) for entry in entries])
    return outbox


async def entries(outbox: Outbox) -> list[int]:
    return [each.entry for each in await outbox.wait()]


async def test_the_oldest_make_room_and_are_counted() -> None:
    outbox = filled(3, 1, 2, 3, 4, 5)
    assert (len(outbox), outbox.dropped, await entries(outbox)) == (3, 2, [3, 4, 5])
    assert len(outbox) == 0


async def test_what_was_not_sent_waits_again_before_all_others() -> None:
    outbox = filled(4, 3, 4)
    outbox.put_back([hint(1), hint(2)])
    assert (outbox.dropped, await entries(outbox)) == (0, [1, 2, 3, 4])


async def test_of_what_was_not_sent_the_oldest_are_dropped_where_there_is_no_room() -> None:
    outbox = filled(3, 4, 5)
    outbox.put_back([hint(1), hint(2), hint(3)])
    assert (outbox.dropped, await entries(outbox)) == (2, [3, 4, 5])
    full = filled(2, 4, 5)
    full.put_back([hint(3)])
    assert (full.dropped, await entries(full)) == (1, [4, 5])


async def test_who_waits_is_woken_by_a_hint_and_by_a_ring() -> None:
    outbox = filled(3, 1)
    assert await entries(outbox) == [1]
    outbox.ring()
    assert await entries(outbox) == []
