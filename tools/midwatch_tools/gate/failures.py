"""Recognises repeats of a call, and the same failure of different commands. Pure."""

import re
from dataclasses import dataclass, replace

from midwatch_monitor.records import Edit, Step
from midwatch_monitor.rules.identity import command, identify
from midwatch_monitor.shell.claimed_edits import claims_edit, looks
from midwatch_tools.observation import cut_line

_KINDS = 64
"""Number of kinds of failure remembered; the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureKind:
    """One kind of failure of commands."""

    words: str
    """The most informative line of the output."""
    times: int
    """Number of model requests with this failure; several in one turn count once."""
    request: int
    """The last request with this failure."""
    answered: int = 0
    """Number of occurrences before the last analysis."""

    def before(self, request: int) -> int:
        """Return the number of occurrences before a request."""
        return self.times - (self.request == request)


class FailureCounts:
    """Counts the failures of one attempt's commands by kind."""

    def __init__(self) -> None:
        self._kinds: dict[int, FailureKind] = {}
        self.last = 0
        """The kind of the last failure."""

    def take_failure(self, outcome: int, request: int, words: str) -> None:
        """Count a command that failed in this way."""
        self.last = outcome
        kind = self._kinds.pop(outcome, None) or FailureKind(words=words, times=0, request=-1)
        times = kind.before(request) + 1
        self._kinds[outcome] = replace(kind, times=times, request=request)
        if len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]

    def take_success(self, outcome: int) -> None:
        """Forget a kind of failure whose command now succeeds."""
        self._kinds.pop(outcome, None)

    def take_analysis(self, request: int) -> None:
        """Note an analysis: it covers the failures before its own request."""
        self._kinds = {
            outcome: replace(kind, answered=kind.before(request))
            for outcome, kind in self._kinds.items()
        }

    def find_unanswered(self, outcome: int, request: int, most: int) -> FailureKind | None:
        """Return the failure if it occurred at least `most` times before the request, and at least
        once since the last analysis.
        """
        kind = self._kinds.get(outcome)
        if kind is None or kind.before(request) < most or kind.before(request) <= kind.answered:
            return None
        return kind


_JOINTS = re.compile(r"&&|\|\||[;|\n]")
_LOOKS = re.compile(
    r"\s*(?:(?:cat|cd|echo|file|find|grep|head|less|ls|nl|pwd|rg|stat|tail|tree|wc|which|type)\b"
    r"|git (?:-\S+ )*(?:status|diff|log|show|blame|grep)\b|$)"
)
"""Commands that change nothing unless their output is redirected to a file."""
_WORDS = 100
"""Characters of a command that are quoted to the worker."""


def action(step: Step) -> int:
    """Return the identity of an act as rules compare it; for an edit, including its exact text."""
    precise = (Edit(path=step.path),) if claims_edit(step.tool, step.args) else ()
    return identify(replace(step, edits=precise), command(step))


def call_words(step: Step) -> str:
    """Return the call in words the worker recognises: the command, or the tool and its file."""
    line = " ".join(command(step).split()) or f"{step.tool} {step.path}".strip()
    return f"`{cut_line(line, _WORDS)}`"


def only_looks(step: Step) -> bool:
    """Whether a call can only read or list files."""
    line = command(step)
    if not line:
        return looks(step.tool, step.args)
    return ">" not in line and all(_LOOKS.match(part) for part in _JOINTS.split(line))
