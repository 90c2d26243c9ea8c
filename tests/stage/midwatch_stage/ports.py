"""Ports of the loopback that nobody listens on."""

import random
import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that was free a moment ago; whoever needs it should take it at once.

    It is below those that the system gives out: whoever connects again and again to a port of those
    while nobody listens there is at some time connected to itself.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port
