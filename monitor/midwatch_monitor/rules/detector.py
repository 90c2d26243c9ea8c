"""The detector interface: events in, answers out. A detector has its own state and no clock."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import AlertKey, Change, Event, Finding, Movement, Resolution
from midwatch_monitor.rules.act import Act, CheckKind, Facet
from midwatch_monitor.rules.identity import tool_traits
from midwatch_monitor.rules.memory import Contents, EditEffect, Memory

_PAIRS = 128
_PLACE = 0xFFFF
_STAMP = 0x1FFF
_TIMES = 0x7
"""Mask of the stored number of earlier occurrences, which saturates."""
_A_WHILE = 5
"""Steps of work after which a second look is justified."""
_BITS = (1 << 64) - 1


class Repeat(Enum):
    """What kind of repetition a step is: the same act with the same result."""

    NONE = 0
    UNCHANGED = 1
    """Nothing has changed since, so it could not show anything new."""
    REDONE = 2
    """An edit that was made or refused before, with the same result."""
    FAILED_AGAIN = 3
    """It fails in the same way as before, although something has changed since."""
    VERIFIED = 4
    """It succeeded before and succeeds again after a change: half a repeat.

    So is a look at other agents' work, the first retry after a wait, and an act repeated after a
    look showed a changed state. Tests that pass again are not a repeat: it is news that the change
    broke nothing.
    """
    ALIKE = 5
    """A different act with no new target gave the same result as the one before: half a repeat."""
    LOOKED = 6
    """A second look at something seen a while ago: half a repeat.

    Agents review their work before they finish.
    """
    ELSEWHERE = 7
    """The previous step gave the same result for another target: a repeat only for a search."""


HALF = frozenset({Repeat.VERIFIED, Repeat.ALIKE, Repeat.LOOKED})
"""Repeats that could have shown something new, but did not."""
FULL = frozenset({Repeat.UNCHANGED, Repeat.REDONE, Repeat.FAILED_AGAIN})
"""Repeats that could not show anything new."""


class Echo(NamedTuple):
    """How a step repeats an earlier one."""

    repeat: Repeat = Repeat.NONE
    distance: int = 0
    """How many steps of work ago it was last done."""
    before: int = 0
    """The number of the previous step of work."""
    times: int = 0
    """How often it was done before with this result; saturates."""


NO_ECHO = Echo()
_ALIKE = Echo(Repeat.ALIKE)
_ELSEWHERE = Echo(Repeat.ELSEWHERE)


_TARGET = re.compile(r"[^\s\"'`,;:(){}\[\]|&<>=\\]*[\d/.@][^\s\"'`,;:(){}\[\]|&<>=\\]*")
"""A file, a number or an address: the target of an act."""
_POINTS = 'coordinate": ['
"""Contained in all arguments that match the pattern below, and faster to search for."""
_COORDINATE = re.compile(r'"\w*coordinate": \[[^\]]*\]')
"""A position on the screen; a slightly different one is the same target."""
_AIMED_IN = 300
"""Characters of arguments that are searched for targets."""
_MAX_AIMS = 32
_NOTHING = 1
"""The result of an act without output."""


class EqualResults:
    """Tracks consecutive equal results, regardless of the acts that produced them."""

    __slots__ = ("_aims", "_args", "_result")

    def __init__(self) -> None:
        self._result = 0
        """Result of the previous step; 0 if unknown, or if that changed files or passed tests."""
        self._args = ""
        self._aims: frozenset[str] = frozenset()

    def goes_on(self, act: Act, args: str, tool: str) -> Echo:
        """Return how a step continues the row: a repeat if it has the same result and no new
        target.

        Linting one file after another is not repetition, even if all are clean; neither is sorting
        one letter after another.
        """
        quiet = act.changes or (act.check is not CheckKind.NONE and not act.failed)
        quiet = quiet or act.facets & Facet.UNREPORTED
        result = 0 if quiet else act.result or _NOTHING
        before, self._result = self._result, result
        said, self._args = self._args, args[:_AIMED_IN]
        if not result or result != before:
            self._aims = frozenset()
            return NO_ECHO
        known, aims = self._aims or _call_targets(said), _call_targets(self._args)
        self._aims = known | aims if len(known) < _MAX_AIMS else known
        return _ALIKE if aims <= known and not tool_traits(tool).handles_one_item else _ELSEWHERE


def _call_targets(args: str) -> frozenset[str]:
    """Return the targets of a call with these arguments."""
    return frozenset(_TARGET.findall(_COORDINATE.sub("", args) if _POINTS in args else args))


class Repeats:
    """Remembers the acts of one attempt and their results."""

    def __init__(self) -> None:
        self._pairs = Memory(_PAIRS)
        self.place = 0
        """Number of steps of work so far."""
        self.changes = 0
        """How many of them changed files; switching to another commit does not count."""
        self._states = 0
        """Number of states of the files before the current one."""
        self._last = 0
        self._row = EqualResults()
        self._waited = False
        self._news = 0
        """When a repeated act last gave a different result without failing."""
        self._swapped = 0

    def wait(self) -> None:
        """Note that others had time to work, so another look is not idle repetition."""
        self._waited = True

    def observe(self, act: Act, args: str = "", tool: str = "") -> Echo:
        """Return how a step of work with these arguments repeats an earlier one.

        An empty result counts as a repetition only if nothing has changed since.
        """
        self.place = place = self.place + 1
        last, self._last = self._last, act.number
        alike = self._row.goes_on(act, args, tool)
        waited, self._waited = self._waited or act.waits, False
        before = self._states
        if act.changes or act.installs:
            self.changes += 1
        if act.changes or act.swaps:
            self._states = before + 1
        if act.swaps:
            self._swapped = before + 1
        key = hash((act.action, act.result)) & _BITS
        known = self._pairs.get(key)
        times = 0 if known is None else (known >> 16 & _TIMES) + 1
        now = (self._states & _STAMP) << 19 | min(times, _TIMES) << 16 | place & _PLACE
        self._pairs.put(key, now)
        if known is None:
            if act.again and not act.failed:
                self._news = place
            return alike
        stamp, distance = known >> 19, place - known & _PLACE
        repeat = _repeat_kind(act, stamp == before & _STAMP)
        if repeat is Repeat.NONE or (repeat is not Repeat.UNCHANGED and not act.result):
            return NO_ECHO
        news = self._news > place - distance and not act.failed
        news = news or (times == 1 and _is_shaky(act))
        if news or stamp < self._swapped or (waited and not (act.failed and times > 1)):
            repeat = Repeat.VERIFIED
        elif repeat is Repeat.UNCHANGED and distance > _A_WHILE and times == 1:
            repeat = repeat if act.failed or act.changes else Repeat.LOOKED
        return Echo(repeat, distance, last, times)


def _is_shaky(act: Act) -> bool:
    """Whether a check switched between passing and failing: without a change, that is news."""
    before = act.failed_before
    return act.check is not CheckKind.NONE and before is not None and act.failed is not before


def _repeat_kind(act: Act, unchanged: bool) -> Repeat:
    if unchanged:
        return Repeat.UNCHANGED
    if act.changes:
        return Repeat.VERIFIED if act.shell else Repeat.REDONE
    if act.check is CheckKind.TESTS and not act.failed:
        return Repeat.NONE
    return Repeat.FAILED_AGAIN if act.failed else Repeat.VERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """The condition was checked and does not hold, or can no longer be checked."""

    key: AlertKey
    resolution: Resolution = Resolution.CLEARED
    """`RESTARTED` if the detector had to forget the subject, which is not a recovery."""


RuleAnswer = Finding | Clear
"""A detector's answer about one subject. A finding stands until it is cleared or restarted."""


class Moved(NamedTuple):
    """What moved in one event, and the files that got new content."""

    kinds: frozenset[Movement] = frozenset()
    paths: tuple[str, ...] = ()
    touches: tuple[EditEffect, ...] = ()
    """What the worker's edits did to each file."""

    @property
    def back(self) -> bool:
        """Whether an edit restored an earlier content of a file."""
        return bool(self.touches) and any(touch.back for touch in self.touches)


UNMOVED = Moved()


class Seen(NamedTuple):
    """What every detector is given besides the event itself, computed once."""

    act: Act
    moved: Moved = UNMOVED
    echo: Echo = NO_ECHO
    place: int = 0
    """Index of this or the last step of work, from 1, without gaps."""
    changes: int = 0
    """Number of steps of work that changed files so far."""
    fresh: bool = False
    """Whether windows restart with this event."""


class EvidenceKind(Enum):
    """What a rule looks at. Two rules with the same kind of evidence do not confirm each other."""

    REPORT = "report"
    REPETITION = "repetition"
    EDITS = "edits"
    FAILURE = "failure"
    SURROUNDINGS = "surroundings"
    SPEECH = "speech"
    ALLOWANCE = "allowance"
    TIME = "time"
    CONCURRENT = "concurrent attempts"


class Detector(ABC):
    """One rule applied to one attempt: constant work and bounded memory for each event."""

    __slots__ = ()
    rule: str
    """The rule's name in the configuration."""
    evidence: EvidenceKind
    hears: int = 0
    """The facets of the events it is fed."""
    windowed: bool = False
    """Whether a new plan step, a pivot or a revision empties its window."""

    @property
    def awake(self) -> bool:
        """Whether it must be fed the next event, whatever its facets."""
        return False

    @abstractmethod
    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return the answers to this event; a subject without an answer is unchanged."""

    def restart(self) -> None:  # noqa: B027 - most have no window
        """Empty the window; the alerts are resolved by the caller."""


class GradedDetector(Detector):
    """Compares a count with thresholds, and answers only on changes."""

    __slots__ = ("_lowest", "_settings", "_standing")

    def __init__(self, settings: Graded) -> None:
        self._standing: AlertKey | None = None
        self.use(settings)

    def use(self, settings: Graded) -> None:
        """Use these thresholds from the next value on; a standing finding is kept."""
        self._settings = settings
        self._lowest = settings.lowest

    @property
    def awake(self) -> bool:
        """While a finding stands, any step may end it."""
        return self._standing is not None

    @property
    def subject(self) -> str | None:
        """The subject of the standing finding; `None` if there is none."""
        return None if self._standing is None else self._standing.subject

    def rests(self, value: float, about: str | None = None) -> bool:
        """Whether there is nothing to answer: the value is below every threshold, and no finding
        stands.

        With `about`, a finding about another subject does not count.
        """
        if value >= self._lowest:
            return False
        return self._standing is None or about not in (None, self._standing.subject)

    def find(
        self, value: float, summary: str, evidence: tuple[int, ...] = (), *, subject: str = ""
    ) -> Sequence[RuleAnswer]:
        """Return the finding for a value, after a clear if the previous one had another subject."""
        severity = self._settings.grade(value)
        if severity is None:
            return self.clear()
        key = AlertKey(rule=self.rule, subject=subject)
        before, self._standing = self._standing, key
        finding = Finding(
            key=key, severity=severity, value=value, summary=summary, evidence=evidence
        )
        return (finding,) if before in (None, key) else (Clear(key=before), finding)

    def clear(self) -> Sequence[RuleAnswer]:
        """Clear the standing finding, if there is one."""
        if self._standing is None:
            return ()
        cleared, self._standing = Clear(key=self._standing), None
        return (cleared,)

    def restart(self) -> None:
        self._standing = None


_SHIFT = 32
_NUMBER = (1 << _SHIFT) - 1


class Recent:
    """Which of the last steps were counted, with their indexes and numbers.

    Only counted steps are added; gaps in the index stand for the others.
    """

    __slots__ = ("_kept", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        # Index and number share one int, since there may be thousands of attempts.
        self._kept: tuple[int, ...] = ()

    def add(self, place: int, number: int) -> int:
        """Count a step; return how many in the window are counted."""
        self._kept = (*self._kept, place << _SHIFT | number)
        return self.count(place)

    def count(self, place: int) -> int:
        """Return how many steps in the window that ends here are counted."""
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
        """Forget all counted steps."""
        self._kept = ()


_FAILURES = 16
"""Number of failures remembered; the oldest are forgotten."""
BETTER = frozenset({Movement.CHECK_PASSED, Movement.FEWER_FAILURES})
"""Movements after which earlier counts no longer matter."""
_NONE = frozenset[Movement]()
_PASSED = frozenset({Movement.CHECK_PASSED})
_BROKEN = frozenset({Movement.CHECK_BROKEN})
_FEWER = frozenset({Movement.FEWER_FAILURES})
_NEW_FAILURE = frozenset({Movement.NEW_FAILURE})
_NEW_CONTENT = frozenset({Movement.NEW_CONTENT})


class Movements:
    """Remembers what one attempt has seen, and detects what is new in each event."""

    __slots__ = ("_contents", "_failed_before", "_failures", "_plan_step")

    def __init__(self) -> None:
        self._failures = Memory(_FAILURES)
        self._contents = Contents()
        self._failed_before = False
        self._plan_step = 1

    def plan(self, change: Change) -> Moved:
        """Return whether a change finished a plan step."""
        if change.plan_step is None or change.plan_step <= self._plan_step:
            return UNMOVED
        self._plan_step = change.plan_step
        return Moved(kinds=frozenset({Movement.PLAN_STEP}))

    def observe(self, act: Act) -> Moved:
        """Return what moves at this step. Checkpoints and the plan tools move nothing."""
        kinds = self._check_result(act) if act.failed is not None else _NONE
        if not act.marks:
            return Moved(kinds=kinds) if kinds else UNMOVED
        touches = self._contents.observe(act.marks)
        paths = tuple([touch.path for touch in touches if touch.new]) if act.work else ()
        return Moved(kinds=kinds | _NEW_CONTENT if paths else kinds, paths=paths, touches=touches)

    def _check_result(self, act: Act) -> frozenset[Movement]:
        if act.failed:
            turned = _BROKEN if act.failed_before is False else _NONE
            return turned | self._failure_movement(act) | (_FEWER if act.better else _NONE)
        return _PASSED if act.failed_before else _NONE

    def _failure_movement(self, act: Act) -> frozenset[Movement]:
        """Return whether a failure is movement; an attempt's first one is its starting point."""
        first, self._failed_before = not self._failed_before, True
        failure = act.failure or act.result
        if not failure:
            return _NONE
        new = self._failures.put(failure, 1) is None
        return _NEW_FAILURE if new and not first else _NONE
