"""What a process of a fleet writes on stderr of what it does, for whoever reads its log later."""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from secrets import token_bytes
from types import TracebackType

from midwatch_monitor.secrets.masking import Masker, Secrets
from midwatch_supervisor.plain import visible

_OURS = ("midwatch_monitor", "midwatch_tools", "midwatch_agents", "midwatch_supervisor")
ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class PlainFormatter(logging.Formatter):
    """Records of one line each, and tracebacks that are indented: neither steers a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The record's line, without its traceback."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: ExcInfo) -> str:
        """The traceback."""
        return "\n".join(f"  {visible(line)}" for line in super().formatException(ei).split("\n"))


class _MaskedFormatter(PlainFormatter):
    """The same without secrets: an error may quote what a worker or a provider said."""

    def __init__(self, form: str, secrets: Secrets) -> None:
        super().__init__(form)
        self._masker = Masker(secrets, token_bytes())

    def format(self, record: logging.LogRecord) -> str:
        return self._masker.text(super().format(record))


def make_stderr_plain() -> None:
    """Let neither an unformatted warning nor an unexpected error steer the terminal."""
    plain = PlainFormatter()
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(plain)

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        print(plain.formatException((kind, error, trace)), file=sys.stderr)  # noqa: T201

    sys.excepthook = show


@contextmanager
def logbook(
    secrets: Secrets,
    *,
    level: int = logging.INFO,
    form: str = "%(asctime)s %(levelname)s %(message)s",
) -> Generator[None]:
    """Write what Midwatch logs, from a level on, a line each with its time; secrets are masked."""
    handler = logging.StreamHandler()
    handler.setFormatter(_MaskedFormatter(form, secrets))
    loggers = [logging.getLogger(name) for name in _OURS]
    before = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(level)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.setLevel(level)
