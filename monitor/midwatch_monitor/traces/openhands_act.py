"""What either kind of OpenHands events says: what the agent does, and what comes of it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the shell."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A change of the file that the act names."""

    content: str | None = None
    """All of it afterwards, where the act says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An action of the agent; without a tool it is a message."""

    key: str
    """By which its result names it."""
    at: datetime | None = None
    tool: str = ""
    args: str = ""
    path: str = ""
    text: str = ""
    call: str = ""
    response: str = ""
    """The answer of the model that it came with; empty where it is not known."""
    tokens: int = 0
    """Of the whole answer."""
    spent_usd: float = 0.0
    """Of the whole run until then."""
    doing: Command | Writing | None = None
    waits: bool = True
    """Whether a result is to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back for an action."""

    keys: tuple[str, ...]
    """Names of the action, the best first."""
    at: datetime | None = None
    ok: bool | None = None
    exit_code: int | None = None
    output: str = ""
    content: str | None = None
    """All of the file that was changed."""
    cwd: str = ""
    """Where the shell stands afterwards."""


CHANGES = frozenset({"create", "str_replace", "insert", "undo_edit"})
"""The commands of the file editor that write."""


def exit_code(code: int | None) -> int | None:
    """The exit code of a command; -1 says there that it still runs."""
    return None if code == -1 else code
