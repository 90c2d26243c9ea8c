"""Results of retries, with and without an analysis of the preceding failure."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from midwatch_monitor.metrics.calibration import success_of
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import Analysis, AnalysisAuthor, Cause, Entry, Step, StepKind
from midwatch_monitor.rules.failure_text import found_nothing_by_exit_code, has_failed
from midwatch_monitor.rules.identity import NO_WORK, command, identify, only_waits, was_refused
from midwatch_monitor.rules.memory import Memory
from midwatch_monitor.state.task import TaskState

_ACTS = 64
"""Failed acts remembered per attempt, as many as the rules compare."""
_NONE = Share(hits=0, of=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryComparison:
    """Shares of retries that succeeded, after an analysis and without one."""

    analysed: Share = _NONE
    unanalysed: Share = _NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFigures:
    """Figures about retries.

    A retry of an *act* is the same call, as the rules compare calls, after it failed; it succeeds
    if it does not fail again. It is analysed if the worker wrote an analysis between the failure
    and the retry, or in the retry's own turn. A retry of a *task* is a finished attempt after the
    first; it is analysed if the worker wrote an analysis before its first work. Who writes an
    analysis is not random, so a difference between the two shares need not come from it.
    """

    acts: RetryComparison = RetryComparison()
    attempts: RetryComparison = RetryComparison()
    causes: tuple[tuple[Cause, int], ...] = ()
    """Number of the workers' analyses by cause."""
    provider: int = 0
    """Number of Midwatch's own analyses, about retried requests to a model."""
    held_back: int = 0
    """Calls that were refused until the worker explained itself; they are not retries."""


@dataclass(slots=True)
class _Attempt:
    """The failures of one attempt, and its analyses."""

    failures: Memory = field(default_factory=lambda: Memory(_ACTS))
    """By act: the number of analyses at its failure plus one; 0 if it passed last time."""
    analyses: int = 0
    request: int = 0
    """The newest request; 0 while none is known."""
    tries: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Retries in this request: the number of analyses at the failure, and whether the retry passed.

    Calls in one turn end in any order, so the analysis may come after the retry.
    """
    began: int | None = None
    """The request of the first work; `None` before it."""
    prepared: bool = False
    """Whether an analysis came before the first work or in the same turn."""

    def close_request(self) -> Counter[tuple[bool, bool]]:
        """Return how many retries of this request were analysed or not, and passed or not."""
        return Counter((self.analyses > before, passed) for before, passed in self.tries)

    def explain(self) -> None:
        """Count an analysis by the worker."""
        self.analyses += 1
        same_turn = self.began is not None and 0 < self.request == self.began
        self.prepared = self.prepared or self.began is None or same_turn


class Retries:
    """Follows acts and analyses."""

    def __init__(self) -> None:
        self._attempts: dict[int, _Attempt] = defaultdict(_Attempt)
        self._retries = Counter[tuple[bool, bool]]()
        """Number of retries, by whether an analysis came before and whether the retry passed."""
        self._causes = Counter[Cause]()
        self._provider = 0
        self._held_back = 0

    def observe(self, entry: Entry) -> None:
        if entry.attempt is None:
            return
        attempt = self._attempts[entry.attempt]
        match entry.record:
            case Step() as step if was_refused(step):
                self._held_back += 1
            case Step() as step:
                self._count_step(attempt, step)
            case Analysis(by=AnalysisAuthor.WATCH):
                self._provider += 1
            case Analysis(cause=cause):
                self._causes[cause] += 1
                attempt.explain()
            case _:
                pass

    def _count_step(self, attempt: _Attempt, step: Step) -> None:
        if step.request != attempt.request or not step.request:
            self._retries.update(attempt.close_request())
            attempt.tries.clear()
            attempt.request = step.request
        if step.kind is not StepKind.TOOL or step.tool in NO_WORK or only_waits(step):
            return
        attempt.began = step.request if attempt.began is None else attempt.began
        fails = has_failed(step)
        line = command(step)
        if fails is None or (fails and found_nothing_by_exit_code(step, line)):
            return
        action = identify(step, line)
        before = attempt.failures.get(action)
        if before:
            attempt.tries.append((before - 1, not fails))
        if fails or before:
            attempt.failures.put(action, attempt.analyses + 1 if fails else 0)

    def figures(self, tasks: Iterable[TaskState]) -> RetryFigures:
        """Return the figures so far."""
        acts = sum(
            (each.close_request() for each in self._attempts.values()), Counter(self._retries)
        )
        again = Counter(
            (self._attempts[each.id].prepared, ok)
            for task in tasks
            for each in list(task.attempts.values())[1:]
            if (ok := success_of(each)) is not None
        )
        return RetryFigures(
            acts=_comparison(acts),
            attempts=_comparison(again),
            causes=tuple(sorted(self._causes.items())),
            provider=self._provider,
            held_back=self._held_back,
        )


def _comparison(retries: Counter[tuple[bool, bool]]) -> RetryComparison:
    analysed, unanalysed = (
        Share(hits=retries[said, True], of=retries[said, True] + retries[said, False])
        for said in (True, False)
    )
    return RetryComparison(analysed=analysed, unanalysed=unanalysed)
