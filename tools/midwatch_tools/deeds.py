"""What was observed of the work on the plan step in hand. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from midwatch_monitor.records import Entry, Plan, Record, Step, StepKind, Writer
from midwatch_monitor.rules.act import tests
from midwatch_monitor.rules.failure import failed, telling
from midwatch_monitor.rules.identity import NO_WORK, command
from midwatch_tools.completion import FILE

WORK: tuple[type[Record], ...] = (Step, Plan)
"""The records of which deeds are made."""
_MASKING = re.compile(r"(?<!&)&(?![&>\d])|[|;\n]")
"""Where the exit code need not be that of each command: `pytest | tail`, `pytest; date`."""


@dataclass(slots=True, kw_only=True)
class Deeds:
    """The worker's deeds within one plan step, in the order in which they are taken in."""

    edited: set[str] = field(default_factory=set[str])
    """The files that it changed."""
    gone: set[str] = field(default_factory=set[str])
    """Those of them that are deleted."""
    seen: set[str] = field(default_factory=set[str])
    """The files that it named in acts that succeeded."""
    used: set[str] = field(default_factory=set[str])
    """The tools that succeeded."""
    passed: dict[str, None] = field(default_factory=dict[str, None])
    """The commands, or tools that test, which succeeded after the last edit, oldest first."""

    def take(self, step: Step) -> None:
        """Take in one step."""
        if step.kind is not StepKind.TOOL or step.tool in NO_WORK:
            return
        edits = [edit for edit in step.edits if edit.writer is Writer.WORKER]
        for edit in edits:
            self.edited.add(edit.path)
            (self.gone.add if edit.deleted else self.gone.discard)(edit.path)
        if edits:
            self.passed.clear()
        line = command(step)
        name = line or step.tool
        self.passed.pop(name, None)
        if failed(step) is not False:
            return
        self.used.add(step.tool)
        if step.path:
            self.seen.add(step.path)
        self.seen.update(FILE.findall(line))
        if ((line and step.exit_code == 0) or tests(step.tool, line)) and not _masked(step, line):
            self.passed[name] = None


def _masked(step: Step, line: str) -> bool:
    """Whether a command that exits well tells of a failure that its exit code may not be of."""
    return _MASKING.search(line) is not None and bool(telling(step.output))


def deeds(entries: Iterable[Entry]) -> Deeds:
    """The deeds on the plan step in hand; the entries are those of one attempt, in order.

    They begin anew with another plan step, also where a revision puts it in the same place.
    """
    found, in_hand = Deeds(), None
    for entry in entries:
        if isinstance(entry.record, Step):
            found.take(entry.record)
        elif isinstance(entry.record, Plan):
            step = entry.record.in_hand
            now = (entry.record.current, "" if step is None else step.title)
            if in_hand not in (None, now):
                found = Deeds()
            in_hand = now
    return found
