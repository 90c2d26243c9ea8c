"""What shell commands write, read from their text alone: nothing is run and nothing looked at."""

from midwatch_monitor.shell.following import Shell, reverts
from midwatch_monitor.shell.normal import normal

__all__ = ["Shell", "normal", "reverts"]
