"""Captures the watch's own log messages, so that a person sees them in the console."""

import logging
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
    """The newest warning or error of the watch, and of the bus. Any thread may log."""

    def __init__(self, masked: Callable[[str], str] = str) -> None:
        super().__init__(logging.WARNING)
        self._masked = masked
        self._said = ""
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
        self._said = self._masked(said)

    def take(self) -> str:
        """Return the last message since the previous call; empty for none."""
        said, self._said = self._said, ""
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
