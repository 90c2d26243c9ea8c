"""Every error that Midwatch raises on purpose.

MidwatchError
├── ConfigError            a file that a person wrote is wrong: file, line, key, nearest key
├── UsageError             a command that cannot be done as asked
│   ├── MissingExtraError  an optional dependency is not installed: names the extra
│   └── ProviderRefusedError   a model's provider cannot serve even the first request
├── JournalError           the journal cannot be read or written
│   ├── JournalTooNewError     written by a newer Midwatch
│   ├── JournalCorruptError    not a journal, or damaged
│   ├── JournalFullError       no space left
│   └── JournalAccessError     another URL, password or right is needed: says which
│       ├── JournalReadOnlyError   no permission to write
│       └── JournalEmptyError      a database without tables: no journal yet
├── StaleIncarnationError  a process that lost the attempt still speaks; it is refused
├── ElsewhereError         a task waits for others, which run elsewhere
├── ReplacedError          another process goes by the name of this node
├── LinkError              there is no connection to the broker
├── NotifyError            a message to people was not taken
├── TraceError             a trace in no known format
├── WorkspaceError         a workspace could not be made or used
│   ├── SandboxError       a sandbox is required and there is none
│   └── UnreachableError   this machine cannot reach what it is made from
└── AttemptError           ends an attempt
    ├── BudgetSpentError   a limit of the budget is reached
    └── WorkerError        the worker or its model failed beyond retry
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class MidwatchError(Exception):
    """The root: whoever catches this catches all that Midwatch raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """Where in a file something stands; lines from 1."""

    file: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)


class ConfigError(MidwatchError):
    """A file that a person wrote is wrong: the first thing, and what else is wrong with it."""

    def __init__(
        self,
        place: FilePosition,
        key: str,
        problem: str,
        *,
        nearest: str = "",
        others: tuple["ConfigError", ...] = (),
    ) -> None:
        self.place = place
        self.key = key
        self.problem = problem
        self.nearest = nearest
        hint = f" (did you mean `{nearest}`?)" if nearest else ""
        at = f"{place}: {key}: " if key else f"{place}: "
        self.line = f"{at}{problem}{hint}"
        self.others = others
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(f"{self.line}{more}")

    @classmethod
    def of(cls, problems: Sequence["ConfigError"]) -> "ConfigError":
        """The first of several, which carries the others."""
        first, *others = problems
        return cls(
            first.place, first.key, first.problem, nearest=first.nearest, others=tuple(others)
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything that is wrong, one line each."""
        return (self.line, *(line for other in self.others for line in other.lines))


class UsageError(MidwatchError):
    """A command that cannot be done as asked; the text says what to do instead."""


def pip_install(extra: str) -> str:
    """What installs an optional dependency."""
    return f"pip install 'midwatch[{extra}]'"


class MissingExtraError(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs the `{extra}` extra: {pip_install(extra)}")


class ProviderRefusedError(UsageError):
    """A provider cannot be reached or refuses, and has never answered: its run ends, resumable."""

    def __init__(self, text: str, *, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(text)


class JournalError(MidwatchError):
    """The journal cannot be read or written."""


class JournalTooNewError(JournalError):
    """The journal was written by a newer Midwatch."""


class JournalCorruptError(JournalError):
    """The file is no journal, or it is damaged."""


class JournalFullError(JournalError):
    """There is no space left for the journal."""


class JournalAccessError(JournalError):
    """It is not let in, or there is none: only another URL, password or right helps."""


class JournalReadOnlyError(JournalAccessError):
    """There is no permission to write the journal."""


class JournalEmptyError(JournalAccessError):
    """A file or a database that is no journal yet, and could become one."""


class StaleIncarnationError(MidwatchError):
    """A process that lost its attempt to another still speaks; what it says is refused."""


class ElsewhereError(MidwatchError):
    """A task waits for others that run elsewhere; it is gone on with once they are over."""


class ReplacedError(MidwatchError):
    """Another process goes by the name of this node."""


class LinkFault(StrEnum):
    """Why there is no connection."""

    AWAY = "away"
    """Nobody answers there, or not in time, or no longer."""
    REFUSED = "refused"
    """The broker does not let us in."""
    TAKEN_OVER = "taken over"
    """Another process is connected under the same client id."""
    ENDED = "ended"
    """A connection that stood was ended from the other side, which said no reason."""


class LinkError(MidwatchError):
    """There is no connection to the broker, or no longer."""

    def __init__(self, fault: LinkFault, why: str) -> None:
        self.fault = fault
        super().__init__(why)


class NotifyError(MidwatchError):
    """A message to people was not taken; the text says why, without a secret."""


class TraceError(MidwatchError):
    """A trace in no known format."""


class WorkspaceError(MidwatchError):
    """A workspace could not be made or used."""


class SandboxError(WorkspaceError):
    """A sandbox is required and there is none."""


class UnreachableError(WorkspaceError):
    """This machine cannot reach what a workspace is made from; in a fleet another may."""


class AttemptError(MidwatchError):
    """Ends an attempt; the text is the reason that is stored."""


class BudgetSpentError(AttemptError):
    """A limit of the budget is reached."""


class WorkerError(AttemptError):
    """The worker, or its model, failed beyond retry."""
