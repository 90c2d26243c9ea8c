"""How a run through chaos is judged by what was seen of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_tests.aftermath import Counts


class Verdict(StrEnum):
    """What a run came to."""

    RIGHT = "right"
    """Every task was completed, and nothing is wrong."""
    WRONG = "wrong"
    TOO_SLOW = "too slow"
    """Nothing is wrong, but work was still getting on when the time was up."""

    @property
    def exit_code(self) -> int:
        """2 is for bad usage."""
        return _EXIT_CODES[self]


_EXIT_CODES = {Verdict.RIGHT: 0, Verdict.WRONG: 1, Verdict.TOO_SLOW: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """An end of a process that did not end as it was told to."""

    code: int
    began: float
    """When it was started, in seconds, by the clock of the outages."""
    ended: float
    ready: bool
    """Whether it had said that it is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which the database was away."""

    began: float
    ended: float
    process: str = ""
    """For whom; empty is for all."""


def unexpected_exits(name: str, exits: Sequence[Exit], outages: Sequence[Outage]) -> list[int]:
    """The codes of a process that no outage explains.

    One that does not reach its database as it begins ends with 1, and is started again. Once it is
    at work it has to wait for the database.
    """
    away = [each for each in outages if each.process in ("", name)]
    return [
        each.code
        for each in exits
        if each.code != 1
        or each.ready
        or not any(one.began <= each.ended and each.began <= one.ended for one in away)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was seen of a run: in its journal, and of its processes."""

    counts: Counts
    exits: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """By process, the codes with which it ended otherwise than it was told to."""
    ended: Sequence[str] = ()
    """Processes that did not end when they were told to, and had to be killed."""
    left: int = 0
    """Processes that were left by others, and had to be killed."""
    failure: str = ""
    """Why the run itself did not get to its end."""

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong."""
        return (*self.counts.faults, *self._process_faults())

    @property
    def verdict(self) -> Verdict:
        """Wrong comes before too slow."""
        if self.faults:
            return Verdict.WRONG
        if self.counts.unfinished:
            return Verdict.TOO_SLOW
        return Verdict.RIGHT

    def _process_faults(self) -> Iterator[str]:
        for name, codes in self.exits.items():
            for code in codes:
                yield f"{name} ended by itself, {_code_words(code)}"
        for name in self.ended:
            yield f"{name} did not end when it was told to, and was killed"
        if self.left:
            yield f"{self.left} processes were left behind, and were killed"
        if self.failure:
            yield f"the run did not come to its end: {self.failure}"


def _code_words(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {-code}"
