"""The rules about repeated and fruitless work."""

import re
from collections.abc import Sequence
from zlib import crc32

from midwatch_monitor.config.rules import Cycle, FruitlessSteps, RedundantSteps, RepeatedCall
from midwatch_monitor.records import Event, Movement, Step, StepKind
from midwatch_monitor.rules.act import CheckKind, Facet
from midwatch_monitor.rules.detector import (
    FULL,
    HALF,
    EvidenceKind,
    GradedDetector,
    Recent,
    Repeat,
    RuleAnswer,
    Seen,
)
from midwatch_monitor.rules.failure_text import tells_state
from midwatch_monitor.rules.speech import (
    RecentWords,
    declines,
    hands_over,
    is_question,
    plans,
    puts_off,
    said_before,
    searches,
)

_HALF = frozenset({Repeat.VERIFIED, Repeat.LOOKED})


class RedundantStepsDetector(GradedDetector):
    """How many of the last steps of work could not show anything new.

    A step that repeats a result counts as one, a repeated success after a change as half. This
    covers long cycles, and going over the same files again with other steps in between.
    """

    __slots__ = ("_full", "_half", "_window")
    rule = "redundant_steps"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT | Facet.MOVED
    windowed = True

    def __init__(self, settings: RedundantSteps) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._full = Recent(settings.window)
        self._half = Recent(settings.window)

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while enough of the window repeats; improvement restarts the count."""
        if seen.act.better:
            self._clear_memories()
            return self.clear()
        repeat = seen.echo.repeat
        if repeat in _HALF or repeat in FULL:
            counted = self._half if repeat in _HALF else self._full
            counted.add(seen.place, seen.act.number)
        value = self._full.count(seen.place) + self._half.count(seen.place) / 2
        if self.rests(value):
            return ()
        steps = tuple(sorted((*self._full.steps, *self._half.steps)))
        counts = f"{len(steps)} of the last {self._window}"
        return self.find(value, f"repeated steps, nothing new learned ({counts})", steps)

    def _clear_memories(self) -> None:
        self._full.clear()
        self._half.clear()

    def restart(self) -> None:
        super().restart()
        self._clear_memories()


class RepeatedCallDetector(GradedDetector):
    """The same call gives the same result several times in a row."""

    __slots__ = ("_count", "_first", "_place")
    rule = "repeated_call"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT
    windowed = True

    def __init__(self, settings: RepeatedCall) -> None:
        super().__init__(settings)
        self._count = 1
        self._first = 0
        self._place = 0
        """Index among the steps of work of the last call in the row."""

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while there are enough calls in a row; any other call clears it."""
        if not seen.act.work or not isinstance(event, Step):
            return ()
        again = seen.echo.distance == 1 and seen.echo.repeat in FULL
        goes_on = self._place == seen.place - 1
        self._place = seen.place
        if not again or not self._count:
            self._count, self._first = 1, event.number
        elif goes_on:
            self._count += 1
        else:
            self._count, self._first = 2, seen.echo.before
        if self.rests(self._count):
            return ()
        summary = f"{event.tool} gave the same result {self._count} times in a row"
        return self.find(self._count, summary, (self._first, event.number), subject=event.tool)

    @property
    def awake(self) -> bool:
        """While a finding stands, any other call ends it. After a restart, counting begins with the
        next call.
        """
        return super().awake or not self._count

    def restart(self) -> None:
        super().restart()
        self._count = 0


class CycleDetector(GradedDetector):
    """A sequence of steps is repeated with the same results.

    Each step of a cycle repeats an earlier one at the same distance, so a single number covers
    cycles of any period. One other step may interrupt each round.
    """

    __slots__ = ("_longest", "_period", "_place", "_run", "_since_miss")
    rule = "cycle"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT
    windowed = True

    def __init__(self, settings: Cycle) -> None:
        super().__init__(settings)
        self._longest = settings.max_period
        self._place = 0
        """Index among the steps of work of the last one that fitted the cycle."""
        self._reset_counts()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while the cycle continues; the value is the number of rounds."""
        if not seen.act.work:
            return ()
        if not self._continues_cycle(seen):
            return self.clear() if not self._period else ()
        value = 1 + self._run // self._period
        if self.rests(value):
            return ()
        summary = f"the same {self._period} steps ran {value} times with the same results"
        first = max(1, seen.act.number - self._run - self._period + 1)
        return self.find(value, summary, (first, seen.act.number))

    def _continues_cycle(self, seen: Seen) -> bool:
        """Take in one step; return whether it continues a cycle, or may begin one."""
        missed = seen.place - self._place - 1
        if self._period and missed and not self._forgives_gap(missed):
            self._reset_counts()
        distance = seen.echo.distance
        if not 2 <= distance <= self._longest + 1:
            self._period = self._period if self._forgives_gap(missed + 1) else 0
            return False
        self._place = seen.place
        if self._period and abs(distance - self._period) <= 1:
            self._run += 1
            self._since_miss = 1 if missed else self._since_miss + 1
        else:
            self._period, self._run, self._since_miss = distance, 1, 1
        return True

    def _forgives_gap(self, missed: int) -> bool:
        """Whether a gap is forgiven: one step, if a full round has passed since the last gap."""
        return missed == 1 and 0 < self._period <= self._since_miss

    def _reset_counts(self) -> None:
        self._period = self._run = self._since_miss = 0

    def restart(self) -> None:
        super().restart()
        self._reset_counts()


_MAX_STEPS = 12
_TALK = 3
"""Consecutive turns without an act after which a further turn subtracts no points."""
_RECEIPT = 12
"""Longest answer that only confirms that something was received or done, in characters."""
_ANSWER = 300
"""Longest output that is a reply rather than a requested text, in characters."""
_PAGE = 40
"""Shortest answer that is a page rather than a receipt, in characters."""
_OFTEN = 3
"""Number of equal results after which one more is a repetition despite changes."""
_POLLS = 4
"""The same for looks at other agents' work."""
_SHOWS = re.compile(
    r"(?i)(?:^|[_.])(?:read|view|open|list|fetch|get|load|visit|browse|navigate|goto|click)"
)
"""Tools that show a page of something."""
_ASKS_RETRY = re.compile(
    r"(?i)try again|retry|temporar|timed? ?-?out|too many requests|rate limit|\b50[234]\b|busy"
)
_ASKS_SERVER = re.compile(r"\b(?:curl|wget)\s")
"""Commands that query a server."""
_NUMBER = re.compile(r"\d+")
_MISSED = 6
"""After this many searches without results since the last change, each further one counts more."""
_WORDS = Facet.MESSAGE | Facet.SPEECH
_RECORDS = re.compile(r"\bgit (?:-\S+ )*(?:commit|push)\b")
"""Commands that save work, expected after each change."""


class Misses:
    """Counts searches without results since files last changed.

    Searches that differ only in numbers count once.
    """

    __slots__ = ("_changes", "_count", "_words")

    def __init__(self) -> None:
        self._changes = -1
        self._words = self._count = 0

    def add(self, step: Step, changes: int) -> bool:
        """Count a search; return whether there are many now."""
        before, self._changes = self._changes, changes
        words = crc32(_NUMBER.sub("", step.args).encode(errors="surrogatepass"))
        other, self._words = words != self._words, words
        self._count = self._count + other if before == changes else 1
        return self.many(changes)

    def many(self, changes: int) -> bool:
        """Whether there have been many since the last change."""
        return self._count > _MISSED and self._changes == changes


class FruitlessStepsDetector(GradedDetector):
    """Adds points for each step that yields nothing, and subtracts points for other steps.

    A sequential test (CUSUM): the points say how much more often such a step occurs in runs that
    exhaust their budget than in healthy ones; the sum never falls below zero. So a bad stretch
    counts, and so does a long run of little progress, but not an occasional failure.
    """

    rule = "fruitless_steps"
    evidence = EvidenceKind.REPETITION
    hears = Facet.REPEAT | Facet.FAILURE | Facet.NOTHING | Facet.NOTHING_NEW | _WORDS
    windowed = True

    def __init__(self, settings: FruitlessSteps) -> None:
        super().__init__(settings)
        self._use = settings
        self._heard = RecentWords()
        self._place = -1
        """Index among the steps of work where words last came."""
        self._said = 0
        """Number of further turns of words in a row."""
        self._idle = -1
        """Index of the last step that yielded or found nothing."""
        self._changes = -1
        """Number of file-changing steps up to the last failure."""
        self._asked = False
        """Whether the last words were a question."""
        self._misses = Misses()
        self._reset_counts()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while there are enough points; an improvement restarts the count."""
        act = seen.act
        if not isinstance(event, Step) or not (act.work or act.facets & _WORDS):
            return ()
        if act.better:
            self._reset_counts()
            return self.clear()
        worth = self._step_points(event, seen)
        if worth > 0:
            self._idle = seen.place
        points = self._points + worth
        if points <= 0:
            self._reset_counts()
            return self.clear()
        self._points = min(points, self._use.critical_after or points)
        if self.rests(self._points):
            return ()
        return self.find(self._points, self._summary(act.number), self._steps)

    def _summary(self, step: int) -> str:
        """Say what came of the steps up to this one. One that fails as before shows nothing new."""
        counts = f"{self._repeated} showed nothing new" if self._repeated else ""
        failed = f"{self._failed} more failed" if counts else f"{self._failed} failed"
        told = ", ".join(filter(None, (counts, failed if self._failed else "")))
        return f"the last {step - self._first + 1} steps achieved little: {told}"

    def _step_points(self, step: Step, seen: Seen) -> int:
        """Return the points of a step: positive if it yields nothing."""
        use, repeat, act = self._use, seen.echo.repeat, seen.act
        if act.facets & _WORDS:
            return self._worth_said(step, seen)
        if repeat in FULL:
            first_retry = seen.echo.times == 1 and act.failed and _may_succeed_later(step)
            return self._told_nothing(step, use.failed if first_retry else use.repeated)
        tries = act.facets & Facet.CHECK and not act.again  # another seed, another test
        moves = act.error and not act.shell and Movement.NEW_FAILURE in seen.moved.kinds
        moves = moves or (act.again and tells_state(step))
        if act.facets & Facet.NOTHING_NEW and repeat is Repeat.NONE and not (tries or moves):
            return self._told_nothing(step, use.repeated // 2)
        if act.error or declines(step):
            return self._failure_points(step, seen)
        if seen.echo.times >= (_POLLS if act.waits else _OFTEN) and _shows_all_the_same(step, seen):
            return self._told_nothing(step, use.repeated)
        kept = act.failed is False or _RECORDS.search(step.args) is not None
        if repeat in HALF and (act.waits or not (repeat is Repeat.VERIFIED and kept)):
            return self._told_nothing(step, use.failed if act.waits else use.repeated // 2)
        return self._worth_look(step, seen)

    def _worth_look(self, step: Step, seen: Seen) -> int:
        """Return the points of a step that did not fail and, unless a search, repeats no other."""
        use, repeat, act = self._use, seen.echo.repeat, seen.act
        nothing = act.facets & Facet.NOTHING
        if nothing and self._misses.add(step, seen.changes):
            return self._told_nothing(step, use.failed)
        if repeat is Repeat.ELSEWHERE and (nothing or searches(step)):
            return self._told_nothing(step, use.failed // 2)
        if repeat is Repeat.ELSEWHERE and act.facets & Facet.NOTHING_NEW and _shows_page(step):
            return self._told_nothing(step, use.repeated // 2)
        if nothing:
            in_a_row, self._idle = self._idle == seen.place - 1, seen.place
            return self._told_nothing(step, use.repeated // 2) if in_a_row else -use.other
        return -self._taken_off(step, seen)

    def _taken_off(self, step: Step, seen: Seen) -> int:
        """Return the points to subtract for a step that may have yielded something."""
        act = seen.act
        if act.waits:
            return 0  # the others are not done yet
        if self._misses.many(seen.changes) and searches(step):
            return 0
        if act.again and not act.changes and act.check is CheckKind.NONE:
            return 0
        receipt = not act.shell and len(step.output) <= _RECEIPT
        small = act.changes or receipt
        return self._use.edited if small else self._use.other

    def _worth_said(self, step: Step, seen: Seen) -> int:
        """Return the points of a turn, or of a tool for words together with its answer."""
        use, repeat = self._use, seen.echo.repeat
        stale, goes_on = self._heard.stale(step), self._goes_on(seen)
        asked, self._asked = self._asked, is_question(step)
        if not goes_on and plans(step):
            return 0  # a plan that is kept up to date during the work
        if repeat in FULL:
            return self._told_nothing(step, use.repeated)
        declined = declines(step)
        if declined and seen.act.facets & Facet.NOTHING_NEW:
            return self._told_nothing(step, use.repeated // 2)
        if seen.act.error or declined or (step.kind is StepKind.MESSAGE and step.output):
            return self._failure_points(step, seen)
        if stale or repeat in HALF or said_before(step):
            return self._told_nothing(step, use.repeated // 2)
        if goes_on and (
            puts_off(step) or hands_over(step) or plans(step) or (asked and self._asked)
        ):
            return self._told_nothing(step, use.failed)
        return -use.edited if self._said < _TALK else 0

    def _goes_on(self, seen: Seen) -> bool:
        """Whether words follow words without an act in between."""
        before, self._place = self._place, seen.place
        goes_on = seen.place - seen.act.work == before
        self._said = self._said + 1 if goes_on else 0
        return goes_on

    def _failure_points(self, step: Step, seen: Seen) -> int:
        """Return the points of a failure: a new one after a change is progress, a known one is half
        a repeat.
        """
        first = self._changes < 0
        changed, self._changes = seen.changes != self._changes, seen.changes
        new = first or not seen.act.failure or Movement.NEW_FAILURE in seen.moved.kinds
        if not new:
            return self._told_nothing(step, self._use.repeated // 2)
        self._add_evidence(step.number)
        self._failed += 1
        return self._use.failed // 2 if changed and not first else self._use.failed

    def _told_nothing(self, step: Step, points: int) -> int:
        self._add_evidence(step.number)
        self._repeated += 1
        return points

    def _add_evidence(self, number: int) -> None:
        self._first = self._first or number
        self._steps = (*self._steps, number)[-_MAX_STEPS:]

    @property
    def awake(self) -> bool:
        """While there are points, any step may subtract some."""
        return self._points > 0

    def _reset_counts(self) -> None:
        self._points = self._first = self._repeated = self._failed = 0
        self._steps: tuple[int, ...] = ()

    def restart(self) -> None:
        super().restart()
        self._reset_counts()


def _may_succeed_later(step: Step) -> bool:
    """Whether a failure suggests a retry."""
    return len(step.output) <= _ANSWER and _ASKS_RETRY.search(step.output) is not None


def _shows_page(step: Step) -> bool:
    """Whether a step shows a page; the same page under another name is not news."""
    return len(step.output) >= _PAGE and _SHOWS.search(step.tool) is not None


def _shows_all_the_same(step: Step, seen: Seen) -> bool:
    """Whether a tool or a server repeated an answer after other things changed."""
    told = seen.echo.repeat is Repeat.VERIFIED and len(step.output) >= _PAGE // 2
    asks = not seen.act.shell or _ASKS_SERVER.search(step.args) is not None
    return told and seen.act.check is CheckKind.NONE and asks
