"""Ports of the loopback that nobody listens on."""

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

LOOPBACK = "127.0.0.1"
_LOWEST, _HIGHEST, _SHARE = 20_000, 30_000, 100


def free_port() -> int:
    """A port that nobody listens on; no other process of these tests is given it.

    It is below those that the system gives out: whoever connects again and again to a port of those
    while nobody listens there is at some time connected to itself.
    """
    lowest, _ = _share()
    while True:
        port = random.randrange(lowest, lowest + _SHARE)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port


@cache
def _share() -> tuple[int, IO[str]]:
    """The lowest of this process's ports, and the lock that keeps them until it ends."""
    folder = Path(tempfile.gettempdir()) / f"midwatch-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    shares = list(range(_LOWEST, _HIGHEST, _SHARE))
    random.shuffle(shares)
    for lowest in shares:
        lock = (folder / str(lowest)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            return lowest, lock
    raise RuntimeError(f"{len(shares)} processes test at the same time")
