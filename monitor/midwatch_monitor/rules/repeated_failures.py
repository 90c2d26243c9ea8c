"""The rules about failed acts."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from midwatch_monitor.config.rules import BlockedEnvironment, ErrorStreak, SameFailure
from midwatch_monitor.records import Event, Step
from midwatch_monitor.rules.act import Act, CheckKind, Facet
from midwatch_monitor.rules.detector import (
    EvidenceKind,
    GradedDetector,
    Recent,
    Repeat,
    RuleAnswer,
    Seen,
)
from midwatch_monitor.rules.failure_text import failure_line
from midwatch_monitor.rules.identity import command, digest, mask_lines
from midwatch_monitor.rules.memory import Memory, remember

_FAILURES = 16
_SUBJECTS = 8
_MAX_STEPS = 12
_BYTE = 0xFF
_STAMP = 0xFFFF
_TOLD = 2_000
"""Characters at the end of an output that are compared as a whole."""
_CHANGED = digest("changed")
_PAGE = 20
"""Shortest answer of a tool that counts as a report of a state, in characters."""
_LINE = 120
"""Characters of an answer that are shown."""
_LISTS = re.compile(
    r"(?:cd \S+\s*(?:&&|;)\s*)*(?:git|ls|pwd|find|tree|wc|date|echo|cat|head|tail|sed|nl)\b"
)
"""Commands that show files; most changes do not affect their output."""
_ALL_WELL = re.compile(
    r"(?i)\b(?:no (?:\w+ )?(?:issues?|errors?|problems?|warnings?|changes)|pass(?:ed|es)?"
    r"|0 (?:errors|problems|warnings|failures|failed)|ok|clean|finished|done|up[- ]to[- ]date"
    r"|success\w*|succeeded|valid|compiled|built|applied|updated|written|saved|replaced)\b"
)
"""Words of a one-line answer that only says that all is well or that something was done."""
_STALE = 20
"""Steps after which an obstacle is forgotten if it is not met again."""


class ErrorStreakDetector(GradedDetector):
    """How many of the last steps of work failed, in any way."""

    __slots__ = ("_recent", "_window")
    rule = "error_streak"
    evidence = EvidenceKind.FAILURE
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: ErrorStreak) -> None:
        super().__init__(settings)
        self._window = settings.window
        self._recent = Recent(settings.window)

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while enough steps in the window failed."""
        recent, act = self._recent, seen.act
        count = recent.add(seen.place, act.number) if act.error else recent.count(seen.place)
        if self.rests(count):
            return ()
        return self.find(count, f"{count} of the last {self._window} steps failed", recent.steps)

    def restart(self) -> None:
        super().restart()
        self._recent.clear()


class _Outlived(NamedTuple):
    """What one failure has outlived; fits into one number of the memory."""

    changes: int = 0
    """Number of changes."""
    idle: int = 0
    """Number of those that changed the same file as before and left the output the same."""
    stamp: int = 0
    """Number of file-changing steps up to its last occurrence."""

    @classmethod
    def read(cls, number: int) -> "_Outlived":
        return cls(number >> 24, number >> 16 & _BYTE, number & _STAMP)

    @property
    def written(self) -> int:
        return min(self.changes, _BYTE) << 24 | min(self.idle, _BYTE) << 16 | self.stamp


class SameFailureDetector(GradedDetector):
    """The same failure occurs again after changes.

    A failure is identified by what its output says about it, so one failing test less is a
    different failure. While the changes go to different files, or other parts of the output differ,
    the worker learns something: such a change counts fully for the notice and half for higher
    severities. An answer that is not a failure but is identical after each change of one file
    counts in the same way. Passing checks do not: it is news that nothing broke.
    """

    __slots__ = ("_action", "_answer", "_edited", "_known", "_steps", "_told")
    rule = "same_failure"
    evidence = EvidenceKind.FAILURE
    hears = Facet.FAILURE | Facet.MOVED | Facet.EDIT | Facet.REPEAT
    windowed = True

    def __init__(self, settings: SameFailure) -> None:
        super().__init__(settings)
        self._action = 0
        self._edited = ""
        """The file that was changed last."""
        self._reset_state()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while a failure or an answer has outlived enough changes."""
        act = seen.act
        answers: Sequence[RuleAnswer] = ()
        if act.failure and (act.shell or not act.edits) and isinstance(event, Step):
            answers = self._take_failure(event, seen)
        elif isinstance(event, Step) and self._is_answer(event, seen):
            answers = self._take_answer(event, seen)
        elif act.action == self._action and (act.failed is False or self._answer):
            self._reset_state()
            answers = self.clear()
        if act.edits:
            self._edited = act.edits[-1].path
        return answers

    def _is_answer(self, step: Step, seen: Seen) -> bool:
        """Whether a step gives an answer that may repeat an earlier one and ends no failure."""
        act = seen.act
        if act.changes:
            return act.shell and act.failed is False and not act.reverted and _says_more(step)
        if seen.echo.repeat is not Repeat.VERIFIED or not (
            _queries_work(step, act) and _says_more(step)
        ):
            return False
        return self._answer == _answer_key(act) or act.action != self._action

    def _take_answer(self, event: Step, seen: Seen) -> Sequence[RuleAnswer]:
        """Count what a repeated answer has outlived."""
        answer, stamp = _answer_key(seen.act), seen.changes & _STAMP
        new = _Outlived(stamp=stamp if seen.act.changes else _STAMP)  # else it is not the first
        known = self._note_outlived(answer, stamp, new=new)
        other = answer != self._answer
        if self.rests(known.idle, about="" if other else None):
            return ()
        self._action, self._answer = seen.act.action, answer
        self._steps = (*self._steps, seen.act.number)[-_MAX_STEPS:]
        words = _last_line(event.output)
        summary = f"the same answer after {known.changes} more changes: {words}"
        return self.find(known.idle, summary, self._steps, subject=words)

    def _note_outlived(
        self, key: int, stamp: int, *, new: _Outlived, output: str = ""
    ) -> _Outlived:
        """Return what a failure or answer has outlived, now that it occurred with this output."""
        number = self._known.get(key)
        known = new if number is None else _Outlived.read(number)
        if known.stamp != stamp:
            idle = known.idle + self._nothing_moved(key, digest(mask_lines(output[-_TOLD:])))
            known = _Outlived(known.changes + 1, idle, stamp)
        self._known.put(key, known.written)
        return known

    def _take_failure(self, event: Step, seen: Seen) -> Sequence[RuleAnswer]:
        stamp = seen.changes & _STAMP
        new = _Outlived(stamp=stamp)
        known = self._note_outlived(seen.act.failure, stamp, new=new, output=event.output)
        if known.changes:
            self._steps = (*self._steps, seen.act.number)[-_MAX_STEPS:]
        value = max(known.idle, known.changes // 2, min(known.changes, self._settings.notice_after))
        if self._changes_nothing(seen.act.action, value):
            return ()
        words = mask_lines(failure_line(event.output))
        summary = f"the same failure after {known.changes} more changes: {words}"
        return self.find(value, summary, self._steps, subject=words)

    def _nothing_moved(self, failure: int, told: int) -> bool:
        """Whether nothing moved: the same file was changed, and the output is the same."""
        edited, before = self._told.get(failure, ("", told))
        remember(self._told, failure, (self._edited, told), _SUBJECTS)
        return told == before and edited in ("", self._edited)

    def _changes_nothing(self, action: int, value: int) -> bool:
        """Whether a failure changes nothing: a new one of another command does not end the old."""
        other = action != self._action
        leaves = self.rests(value, about="" if other else None)
        if not leaves or self.subject is None:
            self._action, self._answer = action, 0
        return leaves

    @property
    def awake(self) -> bool:
        """Any other answer ends a standing one, even an answer that repeats nothing."""
        return self._answer != 0

    def _reset_state(self) -> None:
        self._known = Memory(_FAILURES)
        self._answer = 0
        """The answer that the standing finding is about; 0 if it is about a failure."""
        self._told: dict[int, tuple[str, int]] = {}
        """For each failure, the file changed before it last occurred, and a digest of its output.
        """
        self._steps: tuple[int, ...] = ()

    def restart(self) -> None:
        super().restart()
        self._reset_state()


def _queries_work(step: Step, act: Act) -> bool:
    """Whether an act that changed nothing examines the work itself, other than by tests."""
    if act.waits or act.check is CheckKind.TESTS:
        return False
    if act.check is CheckKind.RUN:
        return True
    line = command(step).lstrip()
    if not (line or step.path):
        return not act.shell and len(step.output) >= _PAGE
    well = _ALL_WELL.search(_last_line(step.output)) is not None
    return bool(line) and not well and _LISTS.match(line) is None


def _says_more(step: Step) -> bool:
    """Whether an answer says more than that something was done, or that all is well."""
    output = step.output.strip()
    return bool(output) and ("\n" in output or _ALL_WELL.search(output) is None)


def _answer_key(act: Act) -> int:
    """Return a key for an answer and its act, distinct from the keys of failures."""
    return act.result ^ (_CHANGED if act.changes else act.action)


def _last_line(output: str) -> str:
    """Return the last line of an answer, for people."""
    lines = output.strip().splitlines()
    return lines[-1].strip()[:_LINE] if lines else ""


class BlockedEnvironmentDetector(GradedDetector):
    """Something in the environment blocks the work: a program, a permission, the network."""

    __slots__ = ("_met",)
    rule = "blocked_environment"
    evidence = EvidenceKind.SURROUNDINGS
    hears = Facet.FAILURE
    windowed = True

    def __init__(self, settings: BlockedEnvironment) -> None:
        super().__init__(settings)
        self._met: dict[str, tuple[int, ...]] = {}

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while the same obstacle has been met often enough recently."""
        number, blocked = seen.act.number, seen.act.blocked
        if not blocked:
            subject = self.subject
            forgotten = subject is not None and not self._recent_steps(subject, number)
            return self.clear() if forgotten else ()
        steps = (*self._recent_steps(blocked, number), number)[-_STALE:]
        remember(self._met, blocked, steps, _SUBJECTS)
        if self.rests(len(steps), about=blocked):
            return ()
        summary = f"{blocked}: blocked {len(steps)} steps"
        return self.find(len(steps), summary, steps, subject=blocked)

    def _recent_steps(self, blocked: str, number: int) -> tuple[int, ...]:
        """Return the steps that it blocked, if the last of them is recent."""
        steps = self._met.get(blocked, ())
        return steps if steps and number - steps[-1] < _STALE else ()

    def restart(self) -> None:
        """Forget all obstacles; one that still matters will be met again."""
        super().restart()
        self._met.clear()
