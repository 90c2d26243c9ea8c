"""The turns that a node has in hand: what is put back, offered again, and when a slot rests."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from midwatch_monitor.records import Run
from midwatch_stage.turns import QueueInMemory
from midwatch_supervisor.fleet.nodes.turn import Take, TurnEnded, TurnOutcome, TurnPool, delay
from midwatch_supervisor.fleet.queue.queue import PUT_BACK, QueuedTurn

RUN = Run(
    id=7,
    started_at=datetime(2026, 11, 21, 20, 0, tzinfo=UTC),
    source="tasks.yaml",
    settings="{}",
)


def ticket(task: int, number: int = 1) -> QueuedTurn:
    return QueuedTurn.of("night", RUN, task, number)


async def stands() -> bool:
    return True


def pool(
    take: Take,
    queues: QueueInMemory,
    *,
    slots: int = 1,
    heard: Callable[[], bool] = lambda: True,
    stands: Callable[[], Awaitable[bool]] = stands,
    ended: Callable[[TurnEnded], None] = lambda _: None,
) -> TurnPool:
    return TurnPool(
        take, queues, slots=slots, changed=lambda: None, heard=heard, stands=stands, ended=ended
    )


def pool_of(queues: QueueInMemory, *outcomes: TurnOutcome, slots: int = 1) -> TurnPool:
    """A turn pool whose turns come to these outcomes, one after the other."""
    left = list(outcomes)

    async def take(task: int) -> TurnOutcome:
        return left.pop(0)

    return pool(take, queues, slots=slots)


def test_every_failure_doubles_the_delay_up_to_a_limit() -> None:
    assert [delay(5, times, most=60) for times in (1, 2, 3, 4, 5, 2000)] == [5, 10, 20, 40, 60, 60]


async def test_what_there_is_no_slot_for_keeps_its_place_and_makes_no_new_turn() -> None:
    queues = QueueInMemory()
    mine = pool_of(queues)
    mine.close()
    assert await mine.do(ticket(1), ()) == PUT_BACK
    assert (queues.put_back, queues.offered) == ([ticket(1)], [])


@pytest.mark.parametrize("outcome", [TurnOutcome.FAILED, TurnOutcome.UNREACHABLE])
async def test_a_turn_that_came_to_nothing_is_offered_again_later_each_time(
    outcome: TurnOutcome,
) -> None:
    queues = QueueInMemory()
    mine = pool_of(queues, outcome, outcome, slots=3)
    assert [await mine.do(ticket(1, number), ()) for number in (1, 2)] == [outcome, outcome]
    assert queues.offered == [(ticket(1, 2), 5), (ticket(1, 3), 10)]


async def test_a_node_that_reached_nothing_takes_nothing_for_a_while() -> None:
    queues = QueueInMemory()
    mine = pool_of(queues, TurnOutcome.UNREACHABLE, TurnOutcome.UNREACHABLE, TurnOutcome.OVER)
    for task in (1, 2):  # the second waits until the slot has rested
        await mine.do(ticket(task), ())
    # It rests twice as long now: longer than anybody waits for a slot.
    assert await mine.do(ticket(3), ()) == PUT_BACK
    assert queues.put_back == [ticket(3)]


async def test_a_node_that_nobody_hears_begins_nothing() -> None:
    queues = QueueInMemory()

    async def take(task: int) -> TurnOutcome:
        raise AssertionError

    mine = pool(take, queues, heard=lambda: False)
    assert await mine.do(ticket(1), ()) == PUT_BACK


async def test_a_node_that_was_taken_for_lost_gives_nothing_back_that_others_have() -> None:
    queues = QueueInMemory()

    async def stands() -> bool:
        return False

    async def take(task: int) -> TurnOutcome:
        return TurnOutcome.FAILED

    mine = pool(take, queues, stands=stands)
    assert await mine.do(ticket(1), ()) == TurnOutcome.FAILED
    mine.close()
    assert await mine.do(ticket(2), ()) == "given back: declared lost"
    assert (queues.put_back, queues.offered) == ([], [])


async def test_what_waited_for_a_slot_when_all_was_given_up_is_neither_begun_nor_put_back() -> None:
    queues, slot = QueueInMemory(), asyncio.Event()

    async def take(task: int) -> TurnOutcome:
        assert task == 1
        await slot.wait()
        return TurnOutcome.OVER

    mine = pool(take, queues)
    both = [asyncio.create_task(mine.do(ticket(task), ())) for task in (1, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await mine.drop()
    assert await asyncio.gather(*both) == ["given back", "given back: declared lost"]
    assert (queues.put_back, queues.offered) == ([], [])


async def test_what_came_back_just_before_all_was_given_up_is_not_begun_anew() -> None:
    queues, begun, times = QueueInMemory(), asyncio.Event(), list[int]()

    async def take(task: int) -> TurnOutcome:
        times.append(task)
        begun.set()
        try:
            return await asyncio.Future()
        finally:
            await asyncio.sleep(0)  # what is cancelled saves its work first

    mine = pool(take, queues, slots=2)
    older = asyncio.create_task(mine.do(ticket(1), ()))
    await begun.wait()
    newer = asyncio.create_task(mine.do(ticket(1), ()))
    await asyncio.sleep(0)
    await mine.drop()
    async with asyncio.timeout(120):
        assert await asyncio.gather(older, newer) == ["given back", "given back: declared lost"]
    assert times == [1]


async def test_what_becomes_of_each_turn_is_told() -> None:
    ended: list[TurnEnded] = []
    begun = asyncio.Event()

    async def take(task: int) -> TurnOutcome:
        if task == 2:
            begun.set()
            await asyncio.Event().wait()
        return TurnOutcome.WAITS

    mine = pool(take, QueueInMemory(), slots=2, ended=ended.append)
    await mine.do(ticket(1), ())
    second = asyncio.create_task(mine.do(ticket(2), ()))
    await begun.wait()
    assert mine.tasks == {2}
    await mine.drop()
    await second
    assert ended == [
        TurnEnded(task=1, outcome=TurnOutcome.WAITS),
        TurnEnded(task=2, outcome=None),
    ]
