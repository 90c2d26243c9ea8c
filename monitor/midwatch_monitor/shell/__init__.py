"""What shell commands write, determined from their text alone: nothing is run or looked up."""

from midwatch_monitor.shell.normal import command_line, normal
from midwatch_monitor.shell.syntax import without_documents
from midwatch_monitor.shell.walk import Shell, reverts

__all__ = ["Shell", "command_line", "normal", "reverts", "without_documents"]
