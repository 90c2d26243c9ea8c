"""Topics and payloads are read as they were written, and nothing else gets through."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from midwatch_monitor.bus.payload import (
    Topics,
    decode_hints,
    decode_status,
    encode_hints,
    encode_status,
    is_topic_name,
)
from midwatch_monitor.records import Hint, NodeState, NodeStatus

OURS = Topics("night")


def test_the_topics_are_those_of_the_design_and_are_read_as_they_were_written() -> None:
    assert OURS.status("node-a") == "midwatch/v1/night/nodes/node-a/status"
    assert OURS.events_of(7) == "midwatch/v1/night/attempts/7/events"
    assert OURS.events_of(None) == "midwatch/v1/night/attempts/0/events"
    assert OURS.statuses == "midwatch/v1/night/nodes/+/status"
    assert OURS.node_of(OURS.status("node-a.example_2")) == "node-a.example_2"
    assert [OURS.attempt_of(OURS.events_of(each)) for each in (10**17, None)] == [10**17, 0]
    assert OURS.turns("monitors") == "$share/monitors/midwatch/v1/night/attempts/+/events"


NODES = ("", "a/b", "a\n", "..", "ä", "a" * 81)
NUMBERS = ("", "-1", "01", "1.0", "\u0661", "1_0", "9" * 5_000)


@pytest.mark.parametrize(
    "topic",
    [
        *("", "midwatch/v1/day/nodes/a/status", "midwatch/v2/night/nodes/a/status"),
        *("midwatch/v1/night/nodes/status", "midwatch/v1/night/nodes/a/status/"),
        "midwatch/v1/night/attempts/1/events/2",
        *(f"midwatch/v1/night/nodes/{name}/status" for name in NODES),
        *(f"midwatch/v1/night/attempts/{number}/events" for number in NUMBERS),
    ],
)
def test_other_topics_are_none_of_ours(topic: str) -> None:
    assert (OURS.node_of(topic), OURS.attempt_of(topic)) == (None, None)


@pytest.mark.parametrize("name", ["", "a/b", "+", "#", "a b", "$share", "-a", "a" * 81, "a\n"])
def test_a_name_that_could_stand_for_others_does_not_fit(name: str) -> None:
    assert not is_topic_name(name)


AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
STATUS = NodeStatus(
    name="node-a",
    boot="5f3c",
    state=NodeState.UP,
    slots=4,
    busy=1,
    labels=("gpu", "ünïcode"),
    version="0.1.0",
    revision="0003",
    started_at=AT,
    beat_at=AT,
)


def hint(entry: int = 1, note: str = "") -> Hint:
    return Hint(entry=entry, kind="step", task=None, attempt=3, step=2, note=note)


def arriving_hints(hints: list[Hint], limit: int = 65_536) -> list[Hint]:
    """What arrives of hints that are sent."""
    arrived: list[Hint] = []
    for payload, said in encode_hints(hints, limit):
        assert len(payload) <= limit
        heard = decode_hints(payload, 3) or []
        assert [each.entry for each in heard] == [each.entry for each in said]
        arrived += heard
    return arrived


@pytest.mark.parametrize("count", [0, 1, 3_000])
@pytest.mark.parametrize("note", ["", "low_confidence warning firing", '"\\' * 80, "漢字🙂" * 40])
def test_hints_arrive_as_they_were_in_their_order(count: int, note: str) -> None:
    hints = [hint(2**62 + number, note) for number in range(count)]
    assert arriving_hints(hints, 1024) == hints


@pytest.mark.parametrize(
    ("note", "arrives"),
    [
        ("x" * 500, "x" * 159 + "…"),
        ("a\x1b[31mred\nb\x00", "a [31mred b "),
        ("half a pair: \ud800", "half a pair:  "),
        ("\u202eturned\u2066round", " turned round"),
    ],
)
def test_a_note_is_made_fit_to_be_shown(note: str, arrives: str) -> None:
    assert arriving_hints([hint(note=note)]) == [hint(note=arrives)]


def test_what_cannot_be_said_is_left_out_and_the_rest_arrives() -> None:
    bad = hint(2)._replace(kind="\ud800")
    assert arriving_hints([hint(1), bad, hint(3)]) == [hint(1), hint(3)]


GOOD = [1, "step", 1, 1, ""]
NOT_IN_A_ROW: dict[int, list[object]] = {
    0: [-1, 2**63, 10**400, 1.0, True, "1", None, float("nan"), float("inf")],
    1: ["", "Step", "step\n", "s" * 41],
    2: [-1],
    3: ["1"],
    4: [None, "x" * 161, "\x1b[2J", "a\u202eb", "two\nlines", ["deep"] * 50],
}


@pytest.mark.parametrize(
    "row",
    [
        *(None, 1, "step", {}, [], GOOD[:4], [*GOOD, ""]),
        *(
            [*GOOD[:place], value, *GOOD[place + 1 :]]
            for place, values in NOT_IN_A_ROW.items()
            for value in values
        ),
    ],
)
def test_a_row_that_is_no_hint_spoils_its_message(row: object) -> None:
    assert decode_hints(json.dumps([GOOD, row]).encode(), 3) is None


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"\x00", b"\xff\xfe[]", b"nonsense", b"{}", b"null", b"1", b'"[]"', b"[", b"[]]"),
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'[[1,"step",1,1,"\xed\xa0\x80"]]',
        b'[[1,"step",1,1,"\\ud800"]]',
        b"[[" + b"9" * 60_000 + b',"step",1,1,""]]',
        b"[[NaN]]",
    ],
)
def test_a_payload_that_is_no_message_is_none(payload: bytes) -> None:
    assert decode_hints(payload, 3) is None
    assert decode_status(payload, "node-a") is None


def test_no_damage_raises_and_what_gets_through_is_well_formed() -> None:
    chance = random.Random(7)
    ((whole, _),) = encode_hints([hint(entry, "a note") for entry in range(20)], 65_536)
    status = encode_status(STATUS)
    for _ in range(2_000):
        decode_hints(damaged_payload(whole, chance), 3)
        decode_status(damaged_payload(status, chance), "node-a")


def damaged_payload(payload: bytes, chance: random.Random) -> bytes:
    """The payload with a few bytes changed, taken out or put in."""
    body = bytearray(payload)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(body))
        body[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
    return bytes(body)


def test_a_status_arrives_as_it_was_though_a_newer_version_may_say_more() -> None:
    doubted = replace(STATUS, doubted_at=AT, labels=(), state=NodeState.DRAINING)
    assert decode_status(encode_status(doubted), "node-a") == doubted
    more = {**json.loads(encode_status(STATUS)), "mood": "fine"}
    assert decode_status(json.dumps(more).encode(), "node-a") == STATUS
    assert decode_status(encode_status(STATUS), "node-b") is None  # where another node speaks


NOT_IN_A_STATUS: dict[str, list[object]] = {
    "name": ["node/a", "", None],
    "boot": ["", "x" * 81, "\x1b[2J", 5],
    "state": ["asleep"],
    "slots": [-1, 10**9, "4", 4.5],
    "busy": [-1, True],
    "labels": ["gpu", ["x" * 81], ["x"] * 65, [1]],
    "version": ["x" * 9_000],
    "revision": ["a\nb"],
    "started_at": ["2026-11-21T20:00:00", "yesterday"],
    "beat_at": [None],
    "doubted_at": ["2026-11-21T20:00:00"],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in NOT_IN_A_STATUS.items() for value in values],
)
def test_a_status_with_a_wrong_field_is_none(field: str, value: object) -> None:
    payload = json.dumps({**json.loads(encode_status(STATUS)), field: value}).encode()
    assert decode_status(payload, "node-a") is None
    assert decode_status(payload, str(value)) is None
