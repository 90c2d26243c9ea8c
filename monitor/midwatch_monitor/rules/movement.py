"""What counts as movement: observed evidence, never a worker's word."""

from midwatch_monitor.rules.detector import Moved, remember
from midwatch_monitor.rules.identity import NO_WORK, act, failed, result
from midwatch_monitor.words import Change, Event, Movement, Step, StepKind, Writer

_COMMANDS = 512
_FAILURES = 512
_CONTENTS = 4096
"""How much is remembered of each; the oldest goes first."""


class Movements:
    """Remembers what one attempt has seen, and answers what each event adds to it."""

    def __init__(self) -> None:
        self._failing: dict[str, bool] = {}
        self._failures: dict[str, None] = {}
        self._contents: dict[tuple[str, str], None] = {}
        self._failed_before = False
        self._plan_step = 1

    @property
    def size(self) -> int:
        """How many things are remembered; bounded, whatever the length of the run."""
        return len(self._failing) + len(self._failures) + len(self._contents)

    def observe(self, event: Event) -> Moved:
        """What moves at this event. Checkpoints and the plan tools move nothing."""
        if isinstance(event, Change):
            return self._plan(event)
        if event.kind is StepKind.CHECKPOINT or event.tool in NO_WORK:
            return Moved()
        kinds = self._check(event) if event.kind is StepKind.TOOL else set[Movement]()
        paths = self._new_contents(event)
        if paths:
            kinds.add(Movement.NEW_CONTENT)
        return Moved(kinds=frozenset(kinds), paths=paths)

    def _plan(self, change: Change) -> Moved:
        if change.plan_step is None or change.plan_step <= self._plan_step:
            return Moved()
        self._plan_step = change.plan_step
        return Moved(kinds=frozenset({Movement.PLAN_STEP}))

    def _check(self, step: Step) -> set[Movement]:
        fails = failed(step)
        if fails is None:
            return set()
        command = act(step)
        failed_last = self._failing.get(command)
        remember(self._failing, command, fails, _COMMANDS)
        kinds = self._failure(step) if fails else set[Movement]()
        if failed_last is not None and failed_last != fails:
            kinds.add(Movement.CHECK_BROKEN if fails else Movement.CHECK_PASSED)
        return kinds

    def _failure(self, step: Step) -> set[Movement]:
        """The first failure of an attempt is where it starts from, not movement."""
        first, self._failed_before = not self._failed_before, True
        digest = result(step)
        if not digest:
            return set()
        new = digest not in self._failures
        remember(self._failures, digest, None, _FAILURES)
        return {Movement.NEW_FAILURE} if new and not first else set()

    def _new_contents(self, step: Step) -> tuple[str, ...]:
        paths: dict[str, None] = {}
        for edit in step.edits:
            if edit.deleted or not edit.digest:
                continue
            content = (edit.path, edit.digest)
            if edit.writer is Writer.WORKER and content not in self._contents:
                paths[edit.path] = None
            remember(self._contents, content, None, _CONTENTS)
        return tuple(paths)
