"""The journal: the append-only record of everything, and the only truth."""

from midwatch_monitor.journal.core.journal import Journal

__all__ = ["Journal"]
