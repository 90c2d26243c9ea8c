"""A file that grows, read a line at a time as its writer appends to it."""

import os
import stat
from io import BufferedReader
from pathlib import Path

from midwatch_monitor.traces.foreign import TraceItem
from midwatch_monitor.traces.json_stream import MAX_LINE, Damage, item_of

_CHUNK = 1024 * 1024
"""Bytes that are read at a time."""


class Tail:
    """Follows one file of JSON lines from its beginning.

    A line counts once its end is there. A file that was replaced (another one under its name) is
    read to its end first; one that became shorter is read from its start. A line that is longer
    than 32 MiB is damage, and is not held in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BufferedReader | None = None
        self._rest = b""
        """The beginning of a line whose end is not there."""
        self._too_long = False
        self._line = 0

    def read(self, most: int = 4 * _CHUNK) -> list[TraceItem | Damage]:
        """What is new: at most that many bytes of it, and nothing while there is no such file.

        Raises OSError for a file that may not be read.
        """
        found = list[TraceItem | Damage]()
        while most > 0:
            chunk = self._next_chunk()
            if not chunk:
                break
            most -= len(chunk)
            found += self._lines(chunk)
        return found

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_chunk(self) -> bytes:
        if self._file is None:
            return self._next_chunk() if self._open() else b""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._begin_anew(self._file)
        if chunk := self._file.read(_CHUNK):
            return chunk
        return self._next_chunk() if self._replaced(self._file) and self._open() else b""

    def _open(self) -> bool:
        """Open what has the name now; whether there is such a file."""
        try:
            # A pipe under that name would keep whoever opens it waiting.
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            return False
        self.close()
        self._file = os.fdopen(file, "rb")
        self._begin_anew(self._file)
        return True

    def _begin_anew(self, file: BufferedReader) -> None:
        file.seek(0)
        self._rest, self._too_long, self._line = b"", False, 0

    def _replaced(self, file: BufferedReader) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(file.fileno()))
        except OSError:  # it may come back
            return False

    def _lines(self, chunk: bytes) -> list[TraceItem | Damage]:
        found = list[TraceItem | Damage]()
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            self._line += 1
            line, self._rest = self._rest + end, b""
            if self._too_long or len(line) > MAX_LINE:
                found.append(Damage(line=self._line, problem=f"longer than {MAX_LINE} bytes"))
            elif line.strip():
                found.append(item_of(line, self._line))
            self._too_long = False
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            self._rest, self._too_long = b"", True
        return found
