"""A count against its thresholds, and the last steps that were counted."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import AlertKey, Finding
from midwatch_monitor.rules.detector import Answer, Clear

_SHIFT = 32
_NUMBER = (1 << _SHIFT) - 1


class Gauge:
    """Holds one count of a rule against its thresholds. It answers only where something changed."""

    __slots__ = ("_lowest", "_settings", "_standing")

    def __init__(self, settings: Graded) -> None:
        self._settings = settings
        self._lowest = settings.lowest
        self._standing: AlertKey | None = None

    def use(self, settings: Graded) -> None:
        """Hold the count against these thresholds from the next value on; what stands, stands."""
        self._settings = settings
        self._lowest = settings.lowest

    def rests(self, value: float, about: str | None = None) -> bool:
        """Whether there is nothing to say: the value is below every threshold, as it was.

        With a subject, that another one's finding stands does not matter.
        """
        if value >= self._lowest:
            return False
        return self._standing is None or about not in (None, self._standing.subject)

    @property
    def stands(self) -> bool:
        """Whether a finding was answered that is not cleared yet."""
        return self._standing is not None

    @property
    def subject(self) -> str | None:
        """What the finding that stands is about; `None` where none stands."""
        return None if self._standing is None else self._standing.subject

    def answer(
        self, key: AlertKey, value: float, summary: str, evidence: tuple[int, ...] = ()
    ) -> Sequence[Answer]:
        """The finding of a value, and the end of the one before if that was of another subject."""
        severity = self._settings.grade(value)
        if severity is None:
            return self.clear()
        before = self._standing
        self._standing = key
        finding = Finding(
            key=key, severity=severity, value=value, summary=summary, evidence=evidence
        )
        return (finding,) if before in (None, key) else (Clear(key=before), finding)

    def clear(self) -> Sequence[Answer]:
        """The condition no longer holds."""
        if self._standing is None:
            return ()
        cleared = Clear(key=self._standing)
        self._standing = None
        return (cleared,)

    def restart(self) -> None:
        """Forget what stood; the caller resolves its alert."""
        self._standing = None


class Recent:
    """Which of the last steps were counted: their places among the steps of work, and numbers.

    It is told of the counted ones only; the others pass by with the places.
    """

    __slots__ = ("_kept", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        # Place and number in one int, for there may be thousands of attempts.
        self._kept: tuple[int, ...] = ()

    def add(self, place: int, number: int) -> int:
        """Count a step; answers how many of the last ones are."""
        self._kept = (*self._kept, place << _SHIFT | number)
        return self.count(place)

    def count(self, place: int) -> int:
        """How many of the steps up to this place are counted."""
        kept = self._kept
        if kept and kept[0] >> _SHIFT <= place - self._window:
            edge = (place - self._window + 1) << _SHIFT
            self._kept = kept = tuple(each for each in kept if each >= edge)
        return len(kept)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the counted steps, oldest first."""
        return tuple(each & _NUMBER for each in self._kept)

    def clear(self) -> None:
        """Nothing was counted."""
        self._kept = ()
