"""What rules remember takes its room at once, and forgets from the old end."""

import sys

import pytest

from midwatch_monitor.rules.memory import Memory, remember

BIG = 0xFEDC_BA98_7654_3210
"""A key of all 64 bits."""


def same_place(count: int) -> list[int]:
    """Keys that compete for the same four places."""
    return [BIG + (number << 40) for number in range(count)]


def room_of(memory: Memory) -> int:
    return sum(sys.getsizeof(getattr(memory, each)) for each in Memory.__slots__)


def test_a_number_is_remembered_under_its_key() -> None:
    memory = Memory(64)
    memory.put(BIG, 7)
    assert (memory.get(BIG), memory.get(BIG + 1)) == (7, None)


def test_the_newest_number_of_a_key_counts() -> None:
    memory = Memory(64)
    memory.put(BIG, 7)
    memory.put(BIG, 8)
    assert memory.get(BIG) == 8


def test_four_keys_share_a_place_and_the_fifth_makes_the_oldest_forgotten() -> None:
    memory = Memory(64)
    keys = same_place(5)
    for number, key in enumerate(keys):
        memory.put(key, number)
    assert [memory.get(key) for key in keys] == [None, 1, 2, 3, 4]


def test_a_key_that_is_put_again_is_no_younger_for_it() -> None:
    memory = Memory(64)
    first, second, *rest = same_place(5)
    for key in (first, second, first, *rest):
        memory.put(key, 1)
    assert (memory.get(first), memory.get(second)) == (None, 1)


def test_putting_a_number_answers_the_one_before() -> None:
    memory = Memory(64)
    assert [memory.put(BIG, 7), memory.put(BIG, 8), memory.put(BIG + 1, 9)] == [None, 7, None]


def test_reading_makes_no_key_younger() -> None:
    memory = Memory(64)
    keys = same_place(5)
    for key in keys[:4]:
        memory.put(key, 1)
    memory.get(keys[0])
    memory.put(keys[4], 1)
    assert memory.get(keys[0]) is None


def test_keys_of_different_places_do_not_push_each_other_out() -> None:
    memory = Memory(64)
    keys = [BIG + number for number in range(16)]
    for number, key in enumerate(keys):
        memory.put(key, number)
    assert [memory.get(key) for key in keys] == list(range(16))


@pytest.mark.parametrize("number", [0, 1, 2**16, 2**32 - 1])
def test_numbers_of_thirty_two_bits_are_kept_whole(number: int) -> None:
    memory = Memory(64)
    memory.put(BIG, number)
    assert memory.get(BIG) == number


def test_a_number_of_more_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        Memory(64).put(BIG, 2**32)


def test_the_room_never_grows() -> None:
    memory = Memory(64)
    before = room_of(memory)
    for key in range(1, 10_001):
        memory.put(key * 0x9E3779B97F4A7C15 % 2**64, key)
    assert room_of(memory) == before


def test_a_dict_forgets_its_oldest_key_and_names_it() -> None:
    memory: dict[str, int] = {}
    gone = [remember(memory, key, 1, 2) for key in ("a", "b", "a", "c")]
    assert (gone, list(memory)) == ([None, None, None, "b"], ["a", "c"])
