"""Connects the agent that starts it to Midwatch's tools. A program, not a module.

It copies bytes between its standard streams and a socket. It must start fast: some agents ask their
model without waiting for a slow tool server.
"""

import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from threading import Thread


def copy(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Copy until either side closes; then the program ends."""
    while data := read(65_536):
        write(data)
    os._exit(0)


if __name__ == "__main__":
    tools = socket.socket(socket.AF_UNIX)
    tools.connect(sys.argv[1])
    Thread(target=copy, args=(partial(os.read, 0), tools.sendall), daemon=True).start()
    copy(tools.recv, partial(os.write, 1))
