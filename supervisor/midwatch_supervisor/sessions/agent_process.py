"""Which process an agent is, as its hooks show, and whether it still runs. Known on Linux only."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

from midwatch_agents.hooks.client import peer_of
from midwatch_agents.left_processes import process_fields

_PARENT, _BEGAN = 1, 19
"""Places of these fields in `/proc/N/stat`, after the program's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine."""

    id: int
    began: str
    """When it began, since ids are used again."""

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        found = process_fields(self.id)
        return not found or found[_BEGAN] != self.began or found[0] == "Z"


def callers(connection: socket.socket) -> tuple[Process, ...]:
    """Return the ancestors of the process at the other end, nearest first; empty if unknown."""
    peer = peer_of(connection)
    return () if peer is None else tuple(_ancestors(peer[0]))


def nearest_of_both(first: tuple[Process, ...], second: tuple[Process, ...]) -> Process | None:
    """Return the nearest caller of two hooks, which is their agent, or `None`.

    A single hook does not show it, since there may be a shell in between.
    """
    return next((each for each in second if each in first), None)


def _ancestors(id: int) -> Iterator[Process]:
    while (found := process_fields(id)) and (id := int(found[_PARENT])) > 1:
        if above := process_fields(id):
            yield Process(id=id, began=above[_BEGAN])
