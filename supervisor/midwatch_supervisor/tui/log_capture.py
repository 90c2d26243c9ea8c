"""What the watch says of itself in its log, so that a person hears of it and not only a file."""

import logging
from collections import deque
from collections.abc import Callable

LOGGERS = (
    "midwatch_monitor",
    "midwatch_tools",
    "midwatch_supervisor.decide.supervision",
    "midwatch_supervisor.learning",
)
"""Who watches, decides and learns; what workers and runs say is in the journal."""
_BUS = "midwatch_monitor.bus"
"""A broker that is away loses nothing: a mark on top says it, and the banner once why."""


class LogCapture(logging.Handler):
    """Warnings and errors of the watch since the last look. Any thread may complain."""

    def __init__(self, masked: Callable[[str], str] = str) -> None:
        super().__init__(logging.WARNING)
        self._masked = masked
        self._said: deque[str] = deque(maxlen=20)
        self._bus = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is complained of, with the error if there is one."""
        if record.name.startswith(_BUS):
            self._bus = self._masked(record.getMessage())
            return
        said = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said = f"{said} ({type(error).__name__}: {error})"
        self._said.append(self._masked(said))

    def take(self) -> str | None:
        """The last complaint since the last look, if there was one."""
        said = None
        while self._said:  # one by one: somebody may complain meanwhile
            said = self._said.popleft()
        return said

    def take_bus(self) -> str:
        """What the bus said last since the last look; empty for nothing."""
        said, self._bus = self._bus, ""
        return said

    def attach(self) -> None:
        """Hear the loggers until it is closed."""
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def close(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)
        super().close()
