"""A call as it is known again, and failures that are the same whatever command it was. Pure."""

import re
from dataclasses import dataclass, replace

from midwatch_monitor.records import Edit, Step
from midwatch_monitor.rules.identity import command, identify
from midwatch_monitor.shell.claimed_edits import claims_edit, looks
from midwatch_tools.observation import cut_line

_KINDS = 64
"""Failures that are told apart; the oldest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureKind:
    """One way in which commands failed."""

    words: str
    """The line of the output that tells most."""
    times: int
    """Model requests with it: a turn that meets it in several places met it once."""
    request: int
    """The last of them."""
    answered: int = 0
    """How many of them came before the last analysis."""

    def before(self, request: int) -> int:
        """How often it came before that request."""
        return self.times - (self.request == request)


class Alike:
    """How often the commands of one attempt failed alike."""

    def __init__(self) -> None:
        self._kinds: dict[int, FailureKind] = {}
        self.last = 0
        """How the last command that failed did."""

    def take_failure(self, outcome: int, request: int, words: str) -> None:
        """A command failed in that way."""
        self.last = outcome
        kind = self._kinds.pop(outcome, None) or FailureKind(words=words, times=0, request=-1)
        times = kind.before(request) + 1
        self._kinds[outcome] = replace(kind, times=times, request=request)
        if len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]

    def take_success(self, outcome: int) -> None:
        """What had failed in that way succeeds."""
        self._kinds.pop(outcome, None)

    def take_analysis(self, request: int) -> None:
        """An analysis answers what came before its own request."""
        self._kinds = {
            outcome: replace(kind, answered=kind.before(request))
            for outcome, kind in self._kinds.items()
        }

    def find_unanswered(self, outcome: int, request: int, most: int) -> FailureKind | None:
        """The failure of that way, if it came so often by then, and since the last analysis too."""
        kind = self._kinds.get(outcome)
        if kind is None or kind.before(request) < most or kind.before(request) <= kind.answered:
            return None
        return kind


_JOINTS = re.compile(r"&&|\|\||[;|\n]")
_LOOKS = re.compile(
    r"\s*(?:(?:cat|cd|echo|file|find|grep|head|less|ls|nl|pwd|rg|stat|tail|tree|wc|which|type)\b"
    r"|git (?:-\S+ )*(?:status|diff|log|show|blame|grep)\b|$)"
)
"""Commands that change nothing, as long as they are not redirected into a file."""
_WORDS = 100
"""Characters of a command by which it is called."""


def action(step: Step) -> int:
    """What is done: as the rules compare it, but of an edit its very words."""
    precise = (Edit(path=step.path),) if claims_edit(step.tool, step.args) else ()
    return identify(replace(step, edits=precise), command(step))


def call_words(step: Step) -> str:
    """The call in words that the worker knows again: the command, or the tool with its file."""
    line = " ".join(command(step).split()) or f"{step.tool} {step.path}".strip()
    return f"`{cut_line(line, _WORDS)}`"


def only_looks(step: Step) -> bool:
    """Whether it changes nothing by what it is: it reads a file, or lists some."""
    line = command(step)
    if not line:
        return looks(step.tool, step.args)
    return ">" not in line and all(_LOOKS.match(part) for part in _JOINTS.split(line))
