"""How long trouble lasted before it was noticed, in model requests."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from midwatch_monitor.metrics.statistics import Distribution, distribution
from midwatch_monitor.records import Alert, AlertKey, Entry, Step

REMEMBERED = 5_000
"""Steps of an attempt whose request is remembered; older trouble counts as if it began there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDetection:
    """How fast one rule was."""

    rule: str
    requests: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionFigures:
    """Model requests from the onset of trouble to its alarm, both included: 1 is at once.

    The *onset* is the earliest step that the alarm rests on: the first of its evidence, or the
    step at which its condition began to hold, whichever is earlier. It is where the rule counts
    from, and not what a person would call the first mistake. An alarm is an alert that fires as a
    warning or critical; a notice that rises later counts from its own onset to the rise.
    """

    requests: Distribution = field(default_factory=Distribution)
    rules: tuple[RuleDetection, ...] = ()
    """Of those that alarmed, by name."""
    unknown: int = 0
    """Alarms without an onset: their rule names no step, as it watches a meter, the time or other
    attempts, or the steps do not say which request they came from."""


@dataclass(slots=True)
class _AttemptSteps:
    """The requests of an attempt's newest steps, and what alarms now."""

    requests: deque[int] = field(default_factory=lambda: deque[int](maxlen=REMEMBERED))
    last_step: int = 0
    alarming: set[AlertKey] = field(default_factory=set[AlertKey])
    alarmed: bool = False

    def take(self, step: Step) -> None:
        """The attempt's next step."""
        self.requests.append(step.request)
        self.last_step = step.number

    def request(self, step: int) -> int:
        """The request that a step came from, or the nearest that is remembered; 0 is unknown."""
        if not self.requests:
            return 0
        place = len(self.requests) - 1 - (self.last_step - step)
        return self.requests[min(max(place, 0), len(self.requests) - 1)]


class Detection:
    """Follows steps and alerts."""

    def __init__(self) -> None:
        self._attempts: dict[int, _AttemptSteps] = defaultdict(_AttemptSteps)
        self._rules: dict[str, Counter[int]] = defaultdict(Counter[int])
        self._unknown = 0

    def observe(self, entry: Entry) -> None:
        if entry.attempt is None:
            return
        match entry.record:
            case Step() as step:
                self._attempts[entry.attempt].take(step)
            case Alert() as alert:
                self._see(self._attempts[entry.attempt], alert)
            case _:
                pass

    def _see(self, trail: _AttemptSteps, alert: Alert) -> None:
        if not (alert.firing and alert.severity.alarm):
            trail.alarming.discard(alert.key)
            return
        if alert.key in trail.alarming:
            return
        trail.alarming.add(alert.key)
        trail.alarmed = True
        onset = trail.request(min(alert.since_step, *alert.evidence)) if alert.evidence else 0
        noticed = trail.request(alert.step)
        if onset and noticed:
            self._rules[alert.key.rule][max(0, noticed - onset) + 1] += 1
        else:
            self._unknown += 1

    def alarmed(self, attempt: int) -> bool:
        """Whether an attempt was ever alarmed."""
        return attempt in self._attempts and self._attempts[attempt].alarmed

    def figures(self) -> DetectionFigures:
        every = Counter[int]()
        for counts in self._rules.values():
            every.update(counts)
        return DetectionFigures(
            requests=distribution(every),
            rules=tuple(
                RuleDetection(rule=rule, requests=distribution(self._rules[rule]))
                for rule in sorted(self._rules)
            ),
            unknown=self._unknown,
        )
