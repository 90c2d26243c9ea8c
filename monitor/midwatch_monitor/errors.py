"""Every error that Midwatch raises on purpose.

MidwatchError
├── ConfigError            a file that a person wrote is wrong: file, line, key, nearest key
├── UsageError             a command that cannot be carried out as asked
│   ├── MissingExtraError  an optional dependency is not installed: names the extra
│   └── ProviderRefusedError   a model's provider cannot serve even the first request
├── JournalError           the journal cannot be read or written
│   ├── JournalTooNewError     written by a newer Midwatch
│   ├── JournalCorruptError    not a journal, or damaged
│   ├── JournalFullError       no space left
│   └── JournalAccessError     another URL, password or permission is needed: says which
│       ├── JournalReadOnlyError   no permission to write
│       └── JournalEmptyError      a database without tables: no journal yet
├── StaleIncarnationError  a write to an attempt that another process has taken over
├── ElsewhereError         a task waits for tasks outside of its turn
├── ReplacedError          another process uses the name of this node
├── LinkError              there is no connection to the broker
├── NotifyError            a message to people could not be delivered
├── TraceError             a trace in no known format
├── WorkspaceError         a workspace could not be created or used
│   ├── SandboxError       a sandbox is required and there is none
│   └── MachineError       this machine cannot create the workspace: its disk is full
│       └── UnreachableError   this machine cannot reach the source of the workspace
└── AttemptError           ends an attempt
    ├── BudgetSpentError   a limit of the budget is reached
    └── WorkerError        the worker or its model failed beyond retry
        └── AgentDiedError     the process of a third-party agent ended in its work
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class MidwatchError(Exception):
    """Base class of every error that Midwatch raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """A position in a file: the path, and the line from 1 if it is known."""

    file: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)


class ConfigError(MidwatchError):
    """A file that a person wrote is wrong: the first problem, with the others in `others`."""

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
        """Return the first of several errors, with the others in it."""
        first, *others = problems
        return cls(
            first.place, first.key, first.problem, nearest=first.nearest, others=tuple(others)
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """All problems, one line each."""
        return (self.line, *(line for other in self.others for line in other.lines))


class UsageError(MidwatchError):
    """A command cannot be carried out as asked; the text says what to do instead."""


def pip_install(extra: str) -> str:
    """Return the command that installs an optional dependency."""
    return f"pip install 'midwatch[{extra}]'"


class MissingExtraError(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs the `{extra}` extra: {pip_install(extra)}")


class ProviderRefusedError(UsageError):
    """A provider that never answered is unreachable or refuses; the run ends and can be resumed."""

    def __init__(self, text: str, *, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(text)


class JournalError(MidwatchError):
    """The journal cannot be read or written."""


class JournalTooNewError(JournalError):
    """The journal was written by a newer Midwatch."""


class JournalCorruptError(JournalError):
    """The file is not a journal, or it is damaged."""


class JournalFullError(JournalError):
    """There is no space left for the journal."""


class JournalAccessError(JournalError):
    """The journal cannot be opened; only another URL, password or permission helps."""


class JournalReadOnlyError(JournalAccessError):
    """There is no permission to write the journal."""


class JournalEmptyError(JournalAccessError):
    """A file or database that is not a journal yet, but could become one."""


class StaleIncarnationError(MidwatchError):
    """A process wrote to an attempt that another process has taken over; the write is refused."""


class ElsewhereError(MidwatchError):
    """A task waits for tasks outside of its turn; it is continued once they are over."""


class ReplacedError(MidwatchError):
    """Another process uses the name of this node."""


class LinkFault(StrEnum):
    """Why there is no connection to the broker."""

    AWAY = "away"
    """The broker does not answer, at all or in time, or no longer does."""
    REFUSED = "refused"
    """The broker does not accept our credentials."""
    TAKEN_OVER = "taken over"
    """Another process is connected with the same client id."""
    ENDED = "ended"
    """The other side closed an established connection without a reason."""


class LinkError(MidwatchError):
    """There is no connection to the broker, or it was lost."""

    def __init__(self, fault: LinkFault, why: str) -> None:
        self.fault = fault
        super().__init__(why)


class NotifyError(MidwatchError):
    """A message to people could not be delivered; the text says why, without any secret."""


class TraceError(MidwatchError):
    """A trace in no known format."""


class WorkspaceError(MidwatchError):
    """A workspace could not be created or used."""


class SandboxError(WorkspaceError):
    """A sandbox is required and there is none."""


class MachineError(WorkspaceError):
    """This machine cannot create a workspace (a full disk, say); another node of a fleet may."""


class UnreachableError(MachineError):
    """This machine cannot reach the source of a workspace; another node of a fleet may."""


class AttemptError(MidwatchError):
    """Ends an attempt; the text is stored as the reason."""


class BudgetSpentError(AttemptError):
    """A limit of the budget is reached."""


class WorkerError(AttemptError):
    """The worker, or its model, failed beyond retry.

    Arguments after the text are what a question without a usable answer cost.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class AgentDiedError(WorkerError):
    """The process of a third-party agent ended while it worked; another one may continue."""
