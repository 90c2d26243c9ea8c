"""Which process an agent is, as its hooks show, and whether it still runs. Known on Linux only."""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CREDENTIALS = "3i"
"""The layout of a peer's process, user and group."""
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
        found = _process_fields(self.id)
        return not found or found[_BEGAN] != self.began or found[0] == "Z"


def callers(connection: socket.socket) -> tuple[Process, ...]:
    """Return the ancestors of the process at the other end, nearest first; empty if unknown."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return ()
    size = struct.calcsize(_CREDENTIALS)
    peer = struct.unpack(_CREDENTIALS, connection.getsockopt(socket.SOL_SOCKET, option, size))[0]
    return tuple(_ancestors(peer))


def nearest_of_both(first: tuple[Process, ...], second: tuple[Process, ...]) -> Process | None:
    """Return the nearest caller of two hooks, which is their agent, or `None`.

    A single hook does not show it, since there may be a shell in between.
    """
    return next((each for each in second if each in first), None)


def _ancestors(id: int) -> Iterator[Process]:
    while (found := _process_fields(id)) and (id := int(found[_PARENT])) > 1:
        if above := _process_fields(id):
            yield Process(id=id, began=above[_BEGAN])


def _process_fields(id: int) -> list[str]:
    """Return what the system knows about a process, from its state on; empty for none."""
    try:
        return Path(f"/proc/{id}/stat").read_text("utf-8").rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return []
