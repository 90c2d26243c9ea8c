"""What every detector is: events in, answers out, with state of its own and no clock."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import AlertKey, Change, Event, Finding, Movement, Resolution
from midwatch_monitor.rules.act import Act, CheckKind
from midwatch_monitor.rules.identity import handles
from midwatch_monitor.rules.memory import Contents, Memory, Touch

_PAIRS = 128
_PLACE = 0xFFFF
_STAMP = 0x1FFF
_TIMES = 0x7
"""How often a pair came before it was last remembered, as far as that is counted."""
_A_WHILE = 5
"""Steps of work after which a second look is one that a worker may want."""
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

    So is a look at work of others, what fails again at its first retry after a wait, and what is
    done again after a look that showed another state than before. Tests that pass again are none at
    all: that the change broke nothing is news.
    """
    ALIKE = 5
    """Another act than the one before, aimed at nothing else, gave the same: half a repeat."""
    LOOKED = 6
    """What was looked at a while ago is looked at for the second time: half a repeat.

    Whoever comes to an end looks again at what was done.
    """
    ELSEWHERE = 7
    """The step before gave the same, aimed at something else: no repeat, but of a search."""


HALF = frozenset({Repeat.VERIFIED, Repeat.ALIKE, Repeat.LOOKED})
"""What may have told something, and did not."""
FULL = frozenset({Repeat.UNCHANGED, Repeat.REDONE, Repeat.FAILED_AGAIN})
"""What could tell nothing new."""


class Echo(NamedTuple):
    """A step as a repetition of an earlier one."""

    repeat: Repeat = Repeat.NONE
    distance: int = 0
    """How many steps of work ago it was last done."""
    before: int = 0
    """The number of the step of work before this one."""
    times: int = 0
    """How often it was done before with this result, as far as that is counted."""


NO_ECHO = Echo()
_ALIKE = Echo(Repeat.ALIKE)
_ELSEWHERE = Echo(Repeat.ELSEWHERE)


_TARGET = re.compile(r"[^\s\"'`,;:(){}\[\]|&<>=\\]*[\d/.@][^\s\"'`,;:(){}\[\]|&<>=\\]*")
"""A word that names a file, a number, an address: what an act is aimed at."""
_POINTS = 'coordinate": ['
"""What is in all arguments that have one of these, and sooner looked for."""
_COORDINATE = re.compile(r'"\w*coordinate": \[[^\]]*\]')
"""A place on the screen: a little beside it is the same target."""
_AIMED_IN = 300
"""Characters of arguments that are looked at for it."""
_MAX_AIMS = 32
_NOTHING = 1
"""The result of an act that answers nothing."""


class EqualResults:
    """Follows results that are the same in a row, whatever was done for them."""

    __slots__ = ("_aims", "_args", "_result")

    def __init__(self) -> None:
        self._result = 0
        """Of the step before; 0 where that changed files, or passed tests."""
        self._args = ""
        self._aims: frozenset[str] = frozenset()

    def goes_on(self, act: Act, args: str, tool: str) -> Echo:
        """What a step is to the row: a repeat if it aims at nothing new, with the same result.

        To lint one file after another is no repetition, however often all is well, nor is to sort
        one letter after another.
        """
        quiet = act.changes or (act.check is not CheckKind.NONE and not act.failed)
        result = 0 if quiet else act.result or _NOTHING
        before, self._result = self._result, result
        said, self._args = self._args, args[:_AIMED_IN]
        if not result or result != before:
            self._aims = frozenset()
            return NO_ECHO
        known, aims = self._aims or _aims(said), _aims(self._args)
        self._aims = known | aims if len(known) < _MAX_AIMS else known
        return _ALIKE if aims <= known and not handles(tool) else _ELSEWHERE


def _aims(args: str) -> frozenset[str]:
    """What a call with these arguments is aimed at."""
    return frozenset(_TARGET.findall(_COORDINATE.sub("", args) if _POINTS in args else args))


class Repeats:
    """Remembers what one attempt did with what came of it."""

    __slots__ = (
        "_last",
        "_news",
        "_pairs",
        "_row",
        "_states",
        "_swapped",
        "_waited",
        "changes",
        "place",
    )

    def __init__(self) -> None:
        self._pairs = Memory(_PAIRS)
        self.place = 0
        """How many steps of work there were."""
        self.changes = 0
        """How many of them changed files; to go to another commit is no change."""
        self._states = 0
        """How many states the files were in before the present one."""
        self._last = 0
        self._row = EqualResults()
        self._waited = False
        self._news = 0
        """When an act that was done before last gave something else, and did not fail."""
        self._swapped = 0

    def wait(self) -> None:
        """Time passes in which others work: to look again after it is no idle repetition."""
        self._waited = True

    def observe(self, act: Act, args: str = "", tool: str = "") -> Echo:
        """What a step of work with these arguments repeats.

        A result that says nothing shows a repetition only where nothing was changed since.
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
        repeat = _kind(act, stamp == before & _STAMP)
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
    """Whether a check that passed fails, or the other way round: without a change that is news."""
    before = act.failed_before
    return act.check is not CheckKind.NONE and before is not None and act.failed is not before


def _kind(act: Act, unchanged: bool) -> Repeat:
    if unchanged:
        return Repeat.UNCHANGED
    if act.changes:
        return Repeat.VERIFIED if act.shell else Repeat.REDONE
    if act.check is CheckKind.TESTS and not act.failed:
        return Repeat.NONE
    return Repeat.FAILED_AGAIN if act.failed else Repeat.VERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """The condition was looked at and does not hold, or can no longer be looked at."""

    key: AlertKey
    resolution: Resolution = Resolution.CLEARED
    """`RESTARTED` if the detector had to forget the subject; that is no recovery."""


RuleAnswer = Finding | Clear
"""What a detector says of one subject. A finding stands until it is cleared or restarted."""


class Moved(NamedTuple):
    """What moved at one event, and the files that took a content they never had."""

    kinds: frozenset[Movement] = frozenset()
    paths: tuple[str, ...] = ()
    touches: tuple[Touch, ...] = ()
    """What the worker's edits did to each file."""

    @property
    def back(self) -> bool:
        """Whether one of them put a file back to a content that it had before."""
        return bool(self.touches) and any(touch.back for touch in self.touches)


UNMOVED = Moved()


class Seen(NamedTuple):
    """What all detectors are told of an event beside the event itself, found out once."""

    act: Act
    moved: Moved = UNMOVED
    echo: Echo = NO_ECHO
    place: int = 0
    """Which step of work it is, or the last one was: from 1, without gaps."""
    changes: int = 0
    """How many steps of work changed files so far."""
    fresh: bool = False
    """Whether the windows begin anew with this event."""


class EvidenceKind(Enum):
    """What a rule looks at. Two rules that look at the same thing do not confirm each other."""

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
    """One rule over one attempt: constant work and bounded memory for each event."""

    __slots__ = ()
    rule: str
    """Its name in the configuration."""
    evidence: EvidenceKind
    hears: int = 0
    """The facets of events that it is fed."""
    windowed: bool = False
    """Whether a new plan step, a pivot or a revision empties what it counts."""

    @property
    def awake(self) -> bool:
        """Whether it must be fed the next event, whatever that is."""
        return False

    @abstractmethod
    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """The answers that this event gives; a subject without an answer stays as it was."""

    def restart(self) -> None:  # noqa: B027 - most have no window
        """Empty the window; the alerts are resolved by the caller."""


class GradedDetector(Detector):
    """Holds one count against its thresholds, and answers only where something changed."""

    __slots__ = ("_lowest", "_settings", "_standing")

    def __init__(self, settings: Graded) -> None:
        self._standing: AlertKey | None = None
        self.use(settings)

    def use(self, settings: Graded) -> None:
        """Hold the count against these thresholds from the next value on; what stands, stands."""
        self._settings = settings
        self._lowest = settings.lowest

    @property
    def stands(self) -> bool:
        """Whether a finding was answered that is not cleared yet."""
        return self._standing is not None

    @property
    def subject(self) -> str | None:
        """What the finding that stands is about; `None` where none stands."""
        return None if self._standing is None else self._standing.subject

    def rests(self, value: float, about: str | None = None) -> bool:
        """Whether there is nothing to say: the value is below every threshold, as it was.

        With a subject, that another one's finding stands does not matter.
        """
        if value >= self._lowest:
            return False
        return self._standing is None or about not in (None, self._standing.subject)

    def find(
        self, value: float, summary: str, evidence: tuple[int, ...] = (), *, subject: str = ""
    ) -> Sequence[RuleAnswer]:
        """The finding of a value, and the end of the one before if that was of another subject."""
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
        """The condition no longer holds."""
        if self._standing is None:
            return ()
        cleared, self._standing = Clear(key=self._standing), None
        return (cleared,)

    def restart(self) -> None:
        self._standing = None


_SHIFT = 32
_NUMBER = (1 << _SHIFT) - 1


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


_FAILURES = 16
"""Failures that are remembered; the oldest goes first."""
BETTER = frozenset({Movement.CHECK_PASSED, Movement.FEWER_FAILURES})
"""Movements after which what was counted against a worker is history."""
_NONE = frozenset[Movement]()
_PASSED = frozenset({Movement.CHECK_PASSED})
_BROKEN = frozenset({Movement.CHECK_BROKEN})
_FEWER = frozenset({Movement.FEWER_FAILURES})
_NEW_FAILURE = frozenset({Movement.NEW_FAILURE})
_NEW_CONTENT = frozenset({Movement.NEW_CONTENT})


class Movements:
    """Remembers what one attempt has seen, and answers what each event adds to it."""

    __slots__ = ("_contents", "_failed_before", "_failures", "_plan_step")

    def __init__(self) -> None:
        self._failures = Memory(_FAILURES)
        self._contents = Contents()
        self._failed_before = False
        self._plan_step = 1

    def plan(self, change: Change) -> Moved:
        """Whether a change finished a plan step."""
        if change.plan_step is None or change.plan_step <= self._plan_step:
            return UNMOVED
        self._plan_step = change.plan_step
        return Moved(kinds=frozenset({Movement.PLAN_STEP}))

    def observe(self, act: Act) -> Moved:
        """What moves at this step. Checkpoints and the plan tools move nothing."""
        kinds = self._check(act) if act.failed is not None else _NONE
        if not act.marks:
            return Moved(kinds=kinds) if kinds else UNMOVED
        touches = self._contents.observe(act.marks)
        paths = tuple([touch.path for touch in touches if touch.new]) if act.work else ()
        return Moved(kinds=kinds | _NEW_CONTENT if paths else kinds, paths=paths, touches=touches)

    def _check(self, act: Act) -> frozenset[Movement]:
        if act.failed:
            turned = _BROKEN if act.failed_before is False else _NONE
            return turned | self._failure(act) | (_FEWER if act.better else _NONE)
        return _PASSED if act.failed_before else _NONE

    def _failure(self, act: Act) -> frozenset[Movement]:
        """The first failure of an attempt is where it starts from, not movement."""
        first, self._failed_before = not self._failed_before, True
        failure = act.failure or act.result
        if not failure:
            return _NONE
        new = self._failures.put(failure, 1) is None
        return _NEW_FAILURE if new and not first else _NONE
