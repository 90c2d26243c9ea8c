"""What a process of a fleet writes on stderr of what it does, for whoever reads its log later."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

_OURS = ("midwatch_monitor", "midwatch_tools", "midwatch_agents", "midwatch_supervisor")
_FORM = "%(asctime)s %(levelname)s %(message)s"


@contextmanager
def logbook() -> Generator[None]:
    """Write what Midwatch logs, from INFO on, a line each with its time."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORM))
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
