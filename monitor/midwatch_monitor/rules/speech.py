"""The rules over what a worker says where it should act, or says against the evidence."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import Monologue, UnsupportedClaim
from midwatch_monitor.records import AlertKey, Event, Finding, Step, StepKind
from midwatch_monitor.rules.act import Check, Facet
from midwatch_monitor.rules.detector import Answer, Clear, Seen
from midwatch_monitor.rules.gauge import Gauge


class MonologueDetector:
    """Turn after turn without any act."""

    __slots__ = ("_count", "_first", "_gauge")
    hears = Facet.MESSAGE
    windowed = False
    _KEY = AlertKey(rule="monologue")

    def __init__(self, settings: Monologue) -> None:
        self._gauge = Gauge(settings)
        self._count = 0
        self._first = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while only words come; any call of a tool ends it, and so does an answer."""
        if not isinstance(event, Step):
            return () if event.lifecycle is None else self._end()
        number = event.number
        if event.kind is not StepKind.MESSAGE:
            return self._end()
        if not self._count:
            self._first = number
        self._count += 1
        if self._gauge.rests(self._count):
            return ()
        summary = f"{self._count} turns in a row without an act"
        return self._gauge.answer(self._KEY, self._count, summary, (self._first, number))

    def _end(self) -> Sequence[Answer]:
        self._count = 0
        return self._gauge.clear()

    @property
    def awake(self) -> bool:
        """Any act ends a monologue."""
        return self._count > 0

    def restart(self) -> None:
        """There is no window."""


class UnsupportedClaimDetector:
    """The worker says that the tests pass, and the last run of the tests failed."""

    __slots__ = ("_failed_at", "_severity", "_standing")
    hears = Facet.CHECK | Facet.CLAIM
    awake = False
    windowed = False
    _KEY = AlertKey(rule="unsupported_claim")

    def __init__(self, settings: UnsupportedClaim) -> None:
        self._severity = settings.severity
        self._failed_at = 0
        self._standing = False

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding at a claim against the last test run; a run that passes clears it."""
        act = seen.act
        failed_at = self._failed_at
        if act.check is not Check.NONE:
            self._failed_at = act.number if act.failed and act.check is Check.TESTS else 0
            if not self._failed_at:
                return self._clear()
        return self._find(failed_at, act.number) if failed_at and act.claims else ()

    def _find(self, failed_at: int, number: int) -> Sequence[Answer]:
        self._standing = True
        return (
            Finding(
                key=self._KEY,
                severity=self._severity,
                value=1,
                summary=f"says that the tests pass; they failed when last run, at step {failed_at}",
                evidence=(failed_at, number),
            ),
        )

    def _clear(self) -> Sequence[Answer]:
        standing, self._standing = self._standing, False
        return (Clear(key=self._KEY),) if standing else ()

    def restart(self) -> None:
        """There is no window."""
