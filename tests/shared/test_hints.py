"""The proxy that loses, repeats and reorders hints keeps to MQTT."""

import random

import pytest

from midwatch_tests.hints import Mangler, Tally

TOPIC = b"midwatch/v1/f/attempts/7/events"
STATUS = b"midwatch/v1/f/nodes/a/status"
CONNACK = bytes([0x20, 2, 0, 0])


def publish(payload: bytes, *, topic: bytes = TOPIC, number: int | None = 1) -> bytes:
    """A publication under MQTT v5, to be acknowledged where it has a number."""
    head = 0x30 if number is None else 0x32
    packet = b"" if number is None else number.to_bytes(2)
    body = len(topic).to_bytes(2) + topic + packet + b"\0" + payload
    size = (
        bytes([len(body)]) if len(body) < 128 else bytes([len(body) % 128 | 128, len(body) // 128])
    )
    return bytes([head]) + size + body


def mangler(*, drop: float = 0, repeat: float = 0, swap: float = 0) -> Mangler:
    return Mangler(random.Random(1), Tally(), drop=drop, repeat=repeat, swap=swap)


OTHER = CONNACK + publish(b"up", topic=STATUS)
SECOND = publish(b"x", number=None)


@pytest.mark.parametrize(
    ("said", "edited", "onward", "back"),
    [
        (OTHER, mangler(drop=1), OTHER, b""),
        (publish(b"x", number=258), mangler(drop=1), b"", bytes([0x40, 2, 1, 2])),
        (SECOND, mangler(drop=1), b"", b""),
        (publish(b"x"), mangler(repeat=1), publish(b"x") + SECOND, b""),
    ],
    ids=[
        "what is no hint passes as it is",
        "a dropped one is acknowledged in the place of the client",
        "one that nobody acknowledges is just gone",
        "one is repeated as one that nobody acknowledges",
    ],
)
def test_a_hint_is_dropped_or_repeated(
    said: bytes, edited: Mangler, onward: bytes, back: bytes
) -> None:
    assert edited.edit(said) == (onward, back)


def test_a_hint_changes_places_with_the_next_one() -> None:
    both = mangler(swap=1)
    assert both.edit(publish(b"x")) == (b"", b"")
    assert both.edit(publish(b"y", number=2)) == (publish(b"y", number=2) + publish(b"x"), b"")


def test_packets_may_come_in_any_pieces() -> None:
    said = CONNACK + publish(b"x" * 200) + publish(b"y", topic=STATUS)
    edited = mangler()
    pieces = [edited.edit(said[at : at + 1]) for at in range(len(said))]
    assert b"".join(onward for onward, _ in pieces) == said


def test_half_is_dropped_and_a_fifth_repeated() -> None:
    tally = Tally()
    edited = Mangler(random.Random(7), tally, drop=0.5, repeat=0.2, swap=0)
    for number in range(1, 2001):
        edited.edit(publish(b"x", number=number))
    assert tally.seen == 2000
    assert 930 < tally.dropped < 1070
    assert 340 < tally.repeated < 460
