"""Ports of the loopback that nobody listens on."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LOWEST, _HIGHEST, _SHARE = 20_000, 30_000, 100


def free_port() -> int:
    """A port that nobody listens on; no other process of these tests is given it.

    Nor is this one given it again before all its others, so that several may be asked for before
    anybody listens on the first. It is below those that the system gives out: whoever connects
    again and again to a port of those while nobody listens there is at some time connected to
    itself.
    """
    ports, _ = _share()
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port
    raise AssertionError("a cycle ended")


@cache
def _share() -> tuple[Iterator[int], int]:
    """This process's ports, in turns, and the lock that keeps them until it ends."""
    folder = Path(tempfile.gettempdir()) / f"midwatch-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    shares = list(range(_LOWEST, _HIGHEST, _SHARE))
    random.shuffle(shares)
    for lowest in shares:
        lock = os.open(folder / str(lowest), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            return cycle(range(lowest, lowest + _SHARE)), lock
    raise RuntimeError(f"{len(shares)} processes test at the same time")
