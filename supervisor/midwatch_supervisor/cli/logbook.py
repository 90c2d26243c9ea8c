"""What a process of a fleet writes on stderr of what it does, for whoever reads its log later."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from secrets import token_bytes

from midwatch_monitor.secrets.masking import Masker, Secrets

_OURS = ("midwatch_monitor", "midwatch_tools", "midwatch_agents", "midwatch_supervisor")


class _Masked(logging.Formatter):
    """Lines without secrets: an error may quote what a worker or a provider said."""

    def __init__(self, form: str, secrets: Secrets) -> None:
        super().__init__(form)
        self._masker = Masker(secrets, token_bytes())

    def format(self, record: logging.LogRecord) -> str:
        return self._masker.text(super().format(record))


@contextmanager
def logbook(
    secrets: Secrets,
    *,
    level: int = logging.INFO,
    form: str = "%(asctime)s %(levelname)s %(message)s",
) -> Generator[None]:
    """Write what Midwatch logs, from a level on, a line each with its time; secrets are masked."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Masked(form, secrets))
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
