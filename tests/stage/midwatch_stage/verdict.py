"""How a run through chaos is judged by what was seen of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from midwatch_stage.aftermath import Counts


class Verdict(StrEnum):
    """What a run came to."""

    RIGHT = "right"
    """Every task was completed, and nothing is wrong."""
    WRONG = "wrong"
    TOO_SLOW = "too slow"
    """Nothing is wrong, but work was still getting on when the time was up."""
    INTERRUPTED = "interrupted"
    """Nothing is wrong so far."""

    @property
    def exit_code(self) -> int:
        """2 is for bad usage."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Verdict.RIGHT: 0,
    Verdict.WRONG: 1,
    Verdict.TOO_SLOW: 3,
    Verdict.INTERRUPTED: 130,
}


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
    interrupted: bool = False

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong."""
        return (*self.counts.faults, *self._process_faults())

    @property
    def verdict(self) -> Verdict:
        """A run that did not come to its end may still be found wrong."""
        if self.faults:
            return Verdict.WRONG
        if self.interrupted:
            return Verdict.INTERRUPTED
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
