"""What the processes of a fleet log on stderr."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from secrets import token_bytes
from types import TracebackType
from typing import TYPE_CHECKING

from midwatch_supervisor.present.text_line import visible

if TYPE_CHECKING:
    from midwatch_monitor.secrets.masking import Masker

_OURS = ("midwatch_monitor", "midwatch_tools", "midwatch_agents", "midwatch_supervisor")
ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_FORM = "%(asctime)s %(levelname)s %(message)s"


class PlainFormatter(logging.Formatter):
    """Formats a record as one line, with an indented traceback and no control characters.

    An error may quote what a worker or a provider said, so secrets in it are masked.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the record's line without its traceback."""
        return visible(_mask(super().formatMessage(record)))

    def formatException(self, ei: ExcInfo) -> str:
        lines = _mask(super().formatException(ei)).split("\n")
        return "\n".join(f"  {visible(line)}" for line in lines)


def _mask(text: str) -> str:
    return _masker().text(text)


@cache
def _masker() -> "Masker":
    # Every command has this formatter, but few log anything.
    from midwatch_monitor.secrets.masking import Masker, known_secrets

    return Masker(known_secrets(os.environ), token_bytes())


def make_stderr_plain() -> None:
    """Keep control characters out of warnings and unexpected errors on stderr."""
    plain = PlainFormatter()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(plain)

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        print(plain.formatException((kind, error, trace)), file=sys.stderr)  # noqa: T201

    sys.excepthook = show


@contextmanager
def log_to_stderr() -> Generator[None]:
    """Log Midwatch's records of level INFO and above to stderr, one line each with its time."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter(_FORM))
    loggers = [logging.getLogger(name) for name in _OURS]
    before = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.setLevel(level)
