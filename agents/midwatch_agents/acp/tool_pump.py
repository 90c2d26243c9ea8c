"""Connects the agent that starts it with Midwatch's tools. A program, not a module.

It copies bytes between its standard streams and a socket. It must start fast: some agents ask their
model before a slow tool server is up.
"""

import os
import socket
import sys
import threading

_CHUNK = 65_536


def main(place: str) -> None:
    """Copy until either side closes."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while data := connection.recv(_CHUNK):
        os.write(1, data)


def _send(connection: socket.socket) -> None:
    while data := os.read(0, _CHUNK):
        connection.sendall(data)
    os._exit(0)  # the agent has closed it


if __name__ == "__main__":
    main(sys.argv[1])
