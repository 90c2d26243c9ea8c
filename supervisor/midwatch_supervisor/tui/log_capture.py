"""Captures the watch's own log messages, so that a person sees them in the console."""

import logging
from collections import deque
from collections.abc import Callable

LOGGERS = (
    "midwatch_monitor",
    "midwatch_tools",
    "midwatch_supervisor.decide.supervision",
    "midwatch_supervisor.learning",
)
"""Loggers of watching, deciding and learning; what workers and runs report is in the journal."""
_BUS = "midwatch_monitor.bus"
"""The logger of the bus: a lost broker loses nothing, so a mark and one banner suffice."""


class LogCapture(logging.Handler):
    """Warnings and errors of the watch since the last call. Any thread may log."""

    def __init__(self, masked: Callable[[str], str] = str) -> None:
        super().__init__(logging.WARNING)
        self._masked = masked
        self._said: deque[str] = deque(maxlen=20)
        self._bus = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, with its error if there is one."""
        if record.name.startswith(_BUS):
            self._bus = self._masked(record.getMessage())
            return
        said = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            said = f"{said} ({type(error).__name__}: {error})"
        self._said.append(self._masked(said))

    def take(self) -> str | None:
        """Return the last message since the previous call, if there is one."""
        said = None
        while self._said:  # one by one: another thread may be adding some
            said = self._said.popleft()
        return said

    def take_bus(self) -> str:
        """Return the bus's last message since the previous call; empty for none."""
        said, self._bus = self._bus, ""
        return said

    def attach(self) -> None:
        """Capture the loggers' messages until `close`."""
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def close(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)
        super().close()
