"""The rules about a worker's reports, missing reports, and claims that the evidence contradicts."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from midwatch_monitor.config.rules import (
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MissedCheckpoint,
    Monologue,
    MultipleBlockers,
    StalledProgress,
    UnsupportedClaim,
)
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Checkpoint,
    CheckpointDecision,
    Event,
    Finding,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.act import CheckKind, Facet
from midwatch_monitor.rules.detector import (
    Clear,
    Detector,
    EvidenceKind,
    GradedDetector,
    RuleAnswer,
    Seen,
)
from midwatch_monitor.rules.speech import (
    is_person,
    is_question,
    ran_code,
    speaker,
    to_oneself,
)

S = TypeVar(
    "S", ExplicitEscalation, LowConfidence, DecliningConfidence, MultipleBlockers, StalledProgress
)


class CheckpointDetector(Detector, Generic[S]):
    """Judges one number of the last checkpoint, or of a window of them."""

    __slots__ = ("_kept", "_settings", "_window")
    evidence = EvidenceKind.REPORT
    hears = Facet.CHECKPOINT

    def __init__(self, settings: S) -> None:
        self._settings = settings
        self._window: int = getattr(settings, "window", 1)
        self._kept: tuple[tuple[int, int], ...] = ()

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding or a clear once the window is full. A pivot ends a window and belongs to
        none.
        """
        if isinstance(event, Change) or event.checkpoint is None:
            return ()
        if self.windowed and seen.fresh and event.checkpoint.decision is CheckpointDecision.PIVOT:
            return ()
        self._kept = (*self._kept, (event.number, self._number_to_judge(event.checkpoint)))[
            -self._window :
        ]
        if len(self._kept) < self._window:
            return ()
        steps, values = zip(*self._kept, strict=True)
        shown = self._evaluate(values[0], values[-1])
        if shown is None:
            return _clear_answer(self.rule)
        return (_make_finding(self.rule, self._settings.severity, *shown, steps),)

    @abstractmethod
    def _number_to_judge(self, checkpoint: Checkpoint) -> int:
        """Return the number to judge."""

    @abstractmethod
    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        """Return value and summary of a finding, given the first and the last number of the window.

        `None` if there is none.
        """

    def restart(self) -> None:
        self._kept = ()


def _make_finding(
    rule: str, severity: Severity, value: float, summary: str, steps: tuple[int, ...]
) -> Finding:
    key = AlertKey(rule=rule)
    return Finding(key=key, severity=severity, value=value, summary=summary, evidence=steps)


@lru_cache(maxsize=64)
def _clear_answer(rule: str) -> Sequence[RuleAnswer]:
    """Return a shared clear, which answers nearly every checkpoint."""
    return (Clear(key=AlertKey(rule=rule)),)


class ExplicitEscalationDetector(CheckpointDetector[ExplicitEscalation]):
    """The worker asks for help, and no later checkpoint has withdrawn it."""

    __slots__ = ()
    rule = "explicit_escalation"

    def _number_to_judge(self, checkpoint: Checkpoint) -> int:
        return checkpoint.decision is CheckpointDecision.ESCALATE

    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        return (1.0, "the worker asks for help") if last else None


class ConfidenceDetector(CheckpointDetector[S]):
    """Judges the stated confidence, unless the model's confidence has proved meaningless."""

    __slots__ = ("_counts",)
    hears = Facet.CHECKPOINT | Facet.CHANGE

    def __init__(self, settings: S) -> None:
        super().__init__(settings)
        self._counts = True

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        if isinstance(event, Change):
            return self._apply_change(event)
        return super().observe(event, seen) if self._counts else ()

    def _apply_change(self, change: Change) -> Sequence[RuleAnswer]:
        counted = self._counts
        if change.model is not None:  # nothing is known about another model yet
            self._counts = True
        if change.confidence_counts is not None:
            self._counts = change.confidence_counts
        if self._counts or not counted:
            return ()
        self.restart()
        return _clear_answer(self.rule)

    def _number_to_judge(self, checkpoint: Checkpoint) -> int:
        return checkpoint.confidence


class LowConfidenceDetector(ConfidenceDetector[LowConfidence]):
    """The stated confidence is below the threshold."""

    __slots__ = ()
    rule = "low_confidence"

    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        below = self._settings.below
        return None if last >= below else (last, f"stated confidence is {last} %, below {below} %")


class MultipleBlockersDetector(CheckpointDetector[MultipleBlockers]):
    """One checkpoint names at least as many blockers as the threshold."""

    __slots__ = ()
    rule = "multiple_blockers"

    def _number_to_judge(self, checkpoint: Checkpoint) -> int:
        return len(checkpoint.blockers)

    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        if last < self._settings.count:
            return None
        return last, f"{last} blocker{'s' if last > 1 else ''} in one checkpoint"


class DecliningConfidenceDetector(ConfidenceDetector[DecliningConfidence]):
    """The stated confidence fell over a full window by at least the threshold, and does not rise.

    If the last checkpoint is more confident than the one before it, the fall is over: after 80 and
    28, a 60 says that the worker has found its way again.
    """

    __slots__ = ()
    rule = "declining_confidence"
    windowed = True

    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        if first - last < self._settings.drop or last > self._kept[-2][1]:
            return None
        window = self._settings.window
        summary = f"stated confidence fell from {first} % to {last} % in {window} checkpoints"
        return first - last, summary


class StalledProgressDetector(CheckpointDetector[StalledProgress]):
    """The stated progress rose too little over a full window. At 100, nothing is left to gain."""

    __slots__ = ()
    rule = "stalled_progress"
    windowed = True

    def _number_to_judge(self, checkpoint: Checkpoint) -> int:
        return checkpoint.progress_percent

    def _evaluate(self, first: int, last: int) -> tuple[float, str] | None:
        if last >= 100 or last - first >= self._settings.min_gain:
            return None
        moved = f"went from {first} % to {last} % in" if first != last else f"stuck at {last} % for"
        return last - first, f"progress {moved} {self._settings.window} checkpoints"


_TALK = 13
"""Turns of several speakers that weigh as much as five in a row by one."""
_REFLECT = "reflect"
"""The tool that workers report with."""


class MissedCheckpointDetector(GradedDetector):
    """Counts model requests since the last checkpoint in which the worker could have reported."""

    __slots__ = ("_halves", "_interval", "_offered", "_parked", "_request", "_since")
    rule = "missed_checkpoint"
    evidence = EvidenceKind.REPORT
    hears = Facet.CHECKPOINT | Facet.CHANGE

    def __init__(self, settings: MissedCheckpoint) -> None:
        super().__init__(settings)
        self._interval = ReflectSettings().remind_every
        self._offered = False
        self._parked = False
        self._halves = 0
        self._request = 0
        self._since = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while too many intervals have passed, then a clear."""
        if isinstance(event, Change):
            return self._apply_change(event)
        if event.checkpoint is not None:
            self._offered = True
        if event.checkpoint is not None or event.tool == _REFLECT:  # a refused report counts
            self._halves, self._request, self._since = 0, event.request, event.number
            return self.clear()
        request = event.request
        before, self._request = self._request, request
        if not self._offered or self._parked:
            return ()
        return self._count_request(event.number, request, new=request != before)

    @property
    def awake(self) -> bool:
        """Every request in which the worker could have reported counts."""
        return self._offered

    def _apply_change(self, change: Change) -> Sequence[RuleAnswer]:
        if change.lifecycle is not None:
            self._parked = change.lifecycle is Lifecycle.INPUT_REQUIRED
        if change.reflect is not None and change.reflect != self._offered:
            self._offered = change.reflect
            self._halves = 0
        if change.reflect_every is not None:
            self._interval = change.reflect_every
        return () if self._offered and self._interval else self.clear()

    def _count_request(self, step: int, request: int, *, new: bool) -> Sequence[RuleAnswer]:
        """Count one for each request, however many steps it has; a half for a step without a known
        request.

        The rest of the request that contained the checkpoint is not counted.
        """
        self._halves += 2 * new if request else 1
        requests = self._halves // 2
        missed = requests // self._interval if self._interval else 0
        if self.rests(missed):
            return ()
        summary = f"no checkpoint in {requests} requests ({missed} reminder intervals)"
        return self.find(missed, summary, (self._since or 1, step))


class MonologueDetector(GradedDetector):
    """Turn after turn without any act.

    Neither turns that answer others nor turns that the harness could not read, which were meant as
    acts, are a monologue. A conversation of several speakers is one only if it is much longer;
    answers to questions do not count, nor do customers, who follow instructions between turns.
    """

    __slots__ = ("_answers", "_asked", "_count", "_first", "_speaker", "_thoughts", "_turns")
    rule = "monologue"
    evidence = EvidenceKind.SPEECH
    hears = Facet.MESSAGE | Facet.SPEECH

    def __init__(self, settings: Monologue) -> None:
        super().__init__(settings)
        self._count = 0
        """Consecutive turns by one speaker."""
        self._turns = 0
        """Consecutive turns by anybody."""
        self._answers = 0
        """Turns among them directly after a question, and those of customers."""
        self._asked = False
        self._thoughts = 0
        """Calls among them that only note thoughts or plans; each counts as half a turn."""
        self._first = 0
        self._speaker = ""

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while there are only words; any other call or an answer ends it."""
        if not isinstance(event, Step):
            return () if event.lifecycle is None else self._end_monologue()
        thinks = seen.act.work and to_oneself(event.tool) and not event.edits
        words = event.kind is StepKind.MESSAGE and not event.output and not ran_code(event)
        if not (thinks or words):
            return self._end_monologue()
        self._first = self._first if self._turns else event.number
        self._turns += 1
        if thinks:
            self._thoughts += 1
        else:
            before, self._speaker = self._speaker, speaker(event.text)
            self._count = self._count + 1 if self._speaker == before else 1
        self._answers += self._asked or (not thinks and is_person(self._speaker))
        self._asked = is_question(event)
        talk = 5 * (self._turns - self._answers) // _TALK
        value = max(self._count + self._thoughts // 2, talk)
        if self.rests(value):
            return ()
        turns = self._count + self._thoughts if value > talk else self._turns
        summary = f"{turns} turns in a row without an act"
        first = max(self._first, event.number - turns + 1)
        return self.find(value, summary, (first, event.number))

    def _end_monologue(self) -> Sequence[RuleAnswer]:
        self._count = self._turns = self._answers = self._thoughts = 0
        self._asked = False
        return self.clear()

    @property
    def awake(self) -> bool:
        """Any act ends a monologue."""
        return self._turns > 0


class UnsupportedClaimDetector(Detector):
    """The worker says that the tests pass, but the last test run failed."""

    __slots__ = ("_failed_at", "_severity", "_standing")
    rule = "unsupported_claim"
    evidence = EvidenceKind.SPEECH
    hears = Facet.CHECK | Facet.CLAIM

    def __init__(self, settings: UnsupportedClaim) -> None:
        self._severity = settings.severity
        self._failed_at = 0
        self._standing = False

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding for a claim that the last test run contradicts, until a run passes."""
        act = seen.act
        failed_at = self._failed_at
        if act.check is not CheckKind.NONE:
            self._failed_at = act.number if act.failed and act.check is CheckKind.TESTS else 0
            if not self._failed_at:
                standing, self._standing = self._standing, False
                return _clear_answer(self.rule) if standing else ()
        if not (failed_at and act.claims):
            return ()
        self._standing = True
        summary = f"says that the tests pass; they failed when last run, at step {failed_at}"
        return (_make_finding(self.rule, self._severity, 1, summary, (failed_at, act.number)),)
