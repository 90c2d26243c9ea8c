"""Whether a step only does again what was done before, and with what came of it before."""

from enum import Enum
from typing import NamedTuple

from midwatch_monitor.rules.act import Act, Check
from midwatch_monitor.rules.memory import Memory

_PAIRS = 128
_BITS = (1 << 64) - 1


class Repeat(Enum):
    """What kind of repetition a step is. Only the same act with the same result is one."""

    NONE = 0
    UNCHANGED = 1
    """Nothing was changed since: it could not tell anything new."""
    REDONE = 2
    """An edit that was made before, or refused before, with the same result."""
    FAILED_AGAIN = 3
    """What failed before fails in the same way, although something was changed since."""
    VERIFIED = 4
    """What succeeded before succeeds, after something was changed: half a repeat.

    Tests that pass again are none at all: that the change broke nothing is news.
    """


class Echo(NamedTuple):
    """A step as a repetition of an earlier one."""

    repeat: Repeat = Repeat.NONE
    distance: int = 0
    """How many steps of work ago it was last done."""
    before: int = 0
    """The number of the step of work before this one."""


NO_ECHO = Echo()


class Repeats:
    """Remembers what one attempt did with what came of it."""

    __slots__ = ("_last", "_pairs", "_swapped", "_waited", "changes", "place")

    def __init__(self) -> None:
        self._pairs = Memory(_PAIRS)
        self.place = 0
        """How many steps of work there were."""
        self.changes = 0
        """How many of them changed files."""
        self._last = 0
        self._waited = False
        self._swapped = 0

    def wait(self) -> None:
        """Time passes in which others work: to look again after it is no idle repetition."""
        self._waited = True

    def observe(self, act: Act) -> Echo:
        """What a step of work repeats.

        A result that says nothing shows a repetition only where nothing was changed since.
        """
        self.place = place = self.place + 1
        last, self._last = self._last, act.number
        waited, self._waited = self._waited or act.waits, False
        before = self.changes
        if act.changes or act.swaps:
            self.changes = before + 1
        if act.swaps:
            self._swapped = before + 1
        key = hash((act.action, act.result)) & _BITS
        known = self._pairs.put(key, (self.changes & 0xFFFF) << 16 | place & 0xFFFF)
        if known is None:
            return NO_ECHO
        stamp = known >> 16
        repeat = _kind(act, stamp == before & 0xFFFF)
        if repeat is Repeat.NONE or (repeat is not Repeat.UNCHANGED and not act.result):
            return NO_ECHO
        if stamp < self._swapped or (waited and not act.failed):
            repeat = Repeat.VERIFIED
        return Echo(repeat, place - known & 0xFFFF, last)


def _kind(act: Act, unchanged: bool) -> Repeat:
    if unchanged:
        return Repeat.UNCHANGED
    if act.changes:
        return Repeat.VERIFIED if act.shell else Repeat.REDONE
    if act.check is Check.TESTS and not act.failed:
        return Repeat.NONE
    return Repeat.FAILED_AGAIN if act.failed else Repeat.VERIFIED
