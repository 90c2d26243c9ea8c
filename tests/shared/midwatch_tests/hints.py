"""A proxy before an MQTT broker that loses, repeats and reorders the hints on their way to clients.

It understands no more of MQTT than where a packet ends and what is published where. What it drops
it acknowledges in the client's place, so that the broker's account of what is under way stays true.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from midwatch_tests.proxy import TcpProxy

_PUBLISH = 3
_PUBACK = bytes([0x40, 2])
HINTS = re.compile(r"(^|/)attempts/[^/]+/events$")
"""Topics of hints; whatever else is published passes as it is."""


@dataclass(slots=True)
class Tally:
    """What became of the hints, over all connections."""

    seen: int = 0
    dropped: int = 0
    repeated: int = 0
    reordered: int = 0


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet of MQTT."""

    head: int
    """Its first byte."""
    body: bytes

    @property
    def topic(self) -> str:
        """Where it is published; empty for a packet of another kind."""
        return self.body[2 : self._after_topic].decode() if self._published else ""

    @property
    def number(self) -> bytes:
        """Its packet identifier, for one that must be acknowledged; else nothing."""
        if not (self._published and self.head & 0b0110):
            return b""
        return self.body[self._after_topic : self._after_topic + 2]

    @property
    def bytes(self) -> bytes:
        """As it goes over the line."""
        return bytes([self.head]) + _length(len(self.body)) + self.body

    def unacknowledged(self) -> "Packet":
        """The same publication as one that nobody acknowledges (QoS 0)."""
        at = self._after_topic
        rest = self.body[at + len(self.number) :]
        return Packet(head=self.head & 0b1111_0001, body=self.body[:at] + rest)

    @property
    def _published(self) -> bool:
        return self.head >> 4 == _PUBLISH

    @property
    def _after_topic(self) -> int:
        return 2 + int.from_bytes(self.body[:2])


class Mangler:
    """Edits what a broker says on one connection."""

    def __init__(
        self, chance: random.Random, tally: Tally, *, drop: float, repeat: float, swap: float
    ) -> None:
        """Drop, repeat and swap with the next one with these probabilities, of 1."""
        self._chance = chance
        self._tally = tally
        self._drop, self._repeat, self._swap = drop, repeat, swap
        self._rest = b""
        self._late = b""

    def edit(self, data: bytes) -> tuple[bytes, bytes]:
        """What the client gets, and what the broker is told in its place."""
        onward, back = bytearray(), bytearray()
        for packet in self._packets(data):
            if HINTS.search(packet.topic):
                hint, acknowledged = self._mangled(packet)
                onward += hint
                back += acknowledged
            else:
                onward += packet.bytes
        return bytes(onward), bytes(back)

    def _packets(self, data: bytes) -> Iterator[Packet]:
        self._rest += data
        while (cut := _cut(self._rest)) is not None:
            packet, self._rest = cut
            yield packet

    def _mangled(self, packet: Packet) -> tuple[bytes, bytes]:
        self._tally.seen += 1
        late, self._late = self._late, b""
        fate = self._chance.random()
        if fate < self._drop:
            self._tally.dropped += 1
            self._late = late
            return b"", _PUBACK + packet.number if packet.number else b""
        onward = packet.bytes
        if fate < self._drop + self._repeat:
            self._tally.repeated += 1
            onward += packet.unacknowledged().bytes
        if not late and self._chance.random() < self._swap:
            self._tally.reordered += 1
            self._late = onward
            return b"", b""
        return onward + late, b""


class HintProxy(TcpProxy):
    """Between clients and the broker on `target`; the same seed does the same to the same hints."""

    def __init__(self, target: int, *, seed: int = 1) -> None:
        """Half of all hints are dropped and a fifth repeated; a tenth of the rest is late."""
        chance = random.Random(seed)
        self.tally = Tally()
        super().__init__(
            target, editor=lambda: Mangler(chance, self.tally, drop=0.5, repeat=0.2, swap=0.1)
        )


def _cut(data: bytes) -> tuple[Packet, bytes] | None:
    """The first packet, and what follows it; `None` while it is not all there."""
    length = 0
    for index, byte in enumerate(data[1:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            begin = index + 2
            end = begin + length
            return (Packet(data[0], data[begin:end]), data[end:]) if len(data) >= end else None
    if len(data) >= 5:
        raise ValueError("this is not MQTT: the length of a packet takes more than four bytes")
    return None


def _length(size: int) -> bytes:
    """MQTT's way to write how much follows: seven bits a byte, the lowest first."""
    out = bytearray()
    while True:
        size, low = size >> 7, size & 0x7F
        out.append(low | (0x80 if size else 0))
        if not size:
            return bytes(out)
