"""What counts as movement: observed evidence, never a worker's word."""

from midwatch_monitor.records import Change, Movement
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.contents import Contents
from midwatch_monitor.rules.detector import UNMOVED, Moved
from midwatch_monitor.rules.memory import Memory

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
