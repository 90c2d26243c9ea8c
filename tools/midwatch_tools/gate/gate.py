"""Decides whether a call may run: the worker must first say why something failed, and whether the
plan holds.

`Gate` is pure: it is fed the records of its attempt in journal order, and answers from them.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelMessage

from midwatch_monitor.config.settings import ErrorSettings, Mode, PlanSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Actor,
    Analysis,
    AnalysisAuthor,
    AttemptTransition,
    Cause,
    Change,
    Delivery,
    DeliveryState,
    Entry,
    Intervention,
    Lifecycle,
    PlanCheck,
    Record,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.act import Normaliser
from midwatch_monitor.rules.failure_text import (
    environment_obstacle,
    failure_line,
    failure_lines,
    signature,
)
from midwatch_monitor.rules.identity import HELD_BACK, NO_WORK, answer, command, result
from midwatch_monitor.rules.plain_output import unwrap
from midwatch_tools.gate.failures import FailureCounts, action, call_words, only_looks
from midwatch_tools.observation import last_response
from midwatch_tools.tools.proof import Statements, is_check, statements_in

KINDS: tuple[type[Record], ...] = (Step, Change, Analysis, PlanCheck, Intervention, Delivery)
"""The kinds of records that the gate is fed."""

_REMEMBERED = 256
"""Number of failing acts remembered; the oldest are forgotten."""
_SILENT = "[exit code"
"""Start of a last line that says nothing about the failure."""

_ASK = (
    "Call `report_error`: what happened, whether the cause is transient, permanent or unknown, the "
    "root cause, and what you change. The next try may stand in the same turn."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Whether a call may run."""

    refusal: str = ""
    """Why it may not, and what to do; empty if it may."""
    wait: float = 0.0
    """Seconds to wait before it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    """The last act that failed, for its analysis."""

    number: int
    act: str
    """The act in words the worker knows; it never sees step numbers."""
    blocked: str
    """What blocked it in the environment; empty if nothing did."""
    words: str
    """The most informative line of the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failing:
    """An act that failed the last time."""

    words: str
    """The act, with the most informative line of its last output."""
    tick: int
    """When it last failed, as a count of records."""
    began: int
    """The model request of its first failure."""
    request: int
    """The model request of its last failure."""
    outcome: int
    equal: int = 1
    """Consecutive failures of the same kind."""
    cause: Cause | None = None
    """The cause according to the last analysis in a request after the first failure."""
    analysed: int = 0
    """The request of that analysis."""
    tries: int = 0
    """Failures since that analysis."""
    spent: bool = False
    """Whether the extra try for an unknown cause has been used."""


ALLOWED = Permission()


class Gate:
    """The state of one attempt that decides which of its calls may run.

    Calls of one turn run at the same time, so order is compared by model request: it does not
    matter which call ends first. A call that failed in the current turn is never refused: the
    worker cannot know about the failure yet.
    """

    def __init__(
        self,
        errors: ErrorSettings,
        plan: PlanSettings,
        *,
        attempt: int,
        sees_files: bool = True,
        analysed: bool = False,
    ) -> None:
        """Begin with an attempt about which nothing is known yet; `attempt` is its number.

        If file changes cannot be seen, any successful call that does more than read counts as a
        possible edit. `analysed` is true if the previous attempt did not fail.
        """
        self._errors = errors
        self._plan = plan
        self._attempt = attempt
        self._sees_files = sees_files
        self._acts = Normaliser()
        self._failing: dict[int, _Failing] = {}
        self._alike = FailureCounts()
        self._tick = 0
        self._request = 0
        self._edited = 0
        self._moved = 0
        self._analysed = analysed
        self._operators: set[int] = set()
        """Interventions of persons."""
        self._plan_step = 0
        self._plan_steps = 0
        self._revision = 0
        self._unchecked: int | None = None
        self.last_failure: LastFailure | None = None
        """The last act of the attempt that failed."""

    # -- what has happened -----------------------------------------------------------------

    def observe(self, entry: Entry) -> None:
        """Take in a record of the attempt; kinds other than `KINDS` change nothing."""
        self._tick += 1
        match entry.record:
            case Step() as step:
                self._take_step(step)
            case Change() as change:
                self._take_plan_change(change)
            case Analysis(by=AnalysisAuthor.WORKER) as analysis:
                self._take_analysis(analysis)
            case PlanCheck(plan_step=number):
                if self._unchecked is not None and number >= self._unchecked:
                    self._unchecked = None
            case Intervention(by=Actor.OPERATOR):
                self._operators.add(entry.id)
            case Delivery(state=DeliveryState.DELIVERED, intervention=id) if id in self._operators:
                self._moved = self._tick  # a person may have fixed something the worker cannot
            case _:
                pass

    def _take_step(self, step: Step) -> None:
        self._request = max(self._request, step.request)
        if step.output.startswith(HELD_BACK):
            return
        act = self._acts.act(unwrap(step))
        if act.changes:
            self._edited = self._tick
        if any(edit.writer is not Writer.WORKER for edit in step.edits):
            self._moved = self._tick
        if step.kind is not StepKind.TOOL or not act.work:
            return
        done = action(step)
        if act.error:
            self._take_failure(done, step)
        elif act.failed is False:
            if (before := self._failing.pop(done, None)) is not None:
                self._alike.take_success(before.outcome)
            if not only_looks(step):
                self._moved = self._tick

    def _take_failure(self, done: int, step: Step) -> None:
        outcome = signature(step) or result(step, answer(step))
        before = self._failing.pop(done, None)
        tells = failure_line(step.output)
        if failure_lines(step.output) and (command(step) or is_check(step.tool)):
            self._alike.take_failure(outcome, step.request, tells)
        act, silent = call_words(step), tells.startswith(_SILENT)
        now = _Failing(
            words=f"{act} failed{f' ({tells})' if tells and not silent else ''}",
            tick=self._tick,
            began=step.request,
            request=step.request,
            outcome=outcome,
        )
        if before is not None:
            tried = before.cause is not None
            now = replace(
                now,
                began=before.began,
                equal=before.equal + 1 if outcome == before.outcome else 1,
                cause=before.cause,
                analysed=before.analysed,
                tries=before.tries + tried,
                spent=before.spent or before.cause is Cause.UNKNOWN,
            )
        self._failing[done] = now
        if len(self._failing) > _REMEMBERED:
            del self._failing[next(iter(self._failing))]
        self.last_failure = LastFailure(
            number=step.number, act=act, blocked=environment_obstacle(step.output), words=tells
        )

    def _take_analysis(self, analysis: Analysis) -> None:
        """Apply an analysis to every failure in the requests before its own."""
        self._analysed = True
        self._alike.take_analysis(self._request)
        for done, failing in self._failing.items():
            if failing.began < self._request:
                tried = failing.request == self._request
                self._failing[done] = replace(
                    failing,
                    cause=analysis.cause,
                    analysed=self._request,
                    tries=int(tried),
                    spent=failing.spent or (tried and analysis.cause is Cause.UNKNOWN),
                )

    def _take_plan_change(self, change: Change) -> None:
        revised = change.revision is not None and change.revision != self._revision
        self._revision = self._revision if change.revision is None else change.revision
        self._plan_steps = change.plan_steps or self._plan_steps
        if change.plan_step is None:
            return
        before, self._plan_step = self._plan_step, change.plan_step
        if before and change.plan_step > before and not revised:
            self._unchecked = change.plan_step
        if change.plan_step > self._plan_steps or self._plan_steps == 1:
            self._unchecked = None

    # -- what may happen -------------------------------------------------------------------

    def may(self, step: Step, said: Statements) -> Permission:
        """Return whether a call may run, given as the step it would be, with its request."""
        if step.tool in NO_WORK:  # Midwatch's own tools
            return ALLOWED
        if refused := self._may_begin(said) or self._may_go_on(said):
            return refused
        verdict = self._may_repeat(step, said)
        return verdict if verdict.refusal else self._may_meet_again(step, said) or verdict

    def _may_begin(self, said: Statements) -> Permission | None:
        asked = self._errors.require_analysis and self._attempt > 1
        if not asked or self._analysed or said.cause is not None:
            return None
        return Permission(
            refusal=f"this is attempt {self._attempt}. Before any work, call `report_error`: why "
            "the attempt before this one failed, whether the cause is transient, permanent or "
            "unknown, the root cause, and what you do differently. Work may stand in the same turn."
        )

    def _may_go_on(self, said: Statements) -> Permission | None:
        """Refuse work on a new plan step, even in the turn of `complete_step`, until `check_plan`
        is called.
        """
        number = self._unchecked
        if not self._plan.require_check or number is None or said.checked:
            return None
        return Permission(
            refusal=f"plan step {number} begins. Call `check_plan` first: what the rest of the "
            "plan takes for granted, what the work so far has shown, what follows for the "
            "remaining plan steps, the options, and your choice. Work may stand in the same turn."
        )

    def _may_repeat(self, step: Step, said: Statements) -> Permission:
        failing = self._failing.get(action(step)) if self._errors.require_analysis else None
        if failing is None or failing.request >= step.request:
            return ALLOWED
        most = self._errors.equal_failures
        again = bool(most) and failing.equal >= most
        edited = self._edited if self._sees_files else max(self._edited, self._moved)
        if edited > failing.tick and not again:
            return ALLOWED
        if said.cause is not None:
            failing = replace(failing, cause=said.cause, tries=0)
        if failing.cause is None:
            return _ask_for_analysis(
                f"{failing.words} {failing.equal} times in the same way"
                if again
                else f"{failing.words}, and nothing was {self._edited_word} since"
            )
        return self._after_analysis(failing, failing.cause)

    @property
    def _edited_word(self) -> str:
        return "edited" if self._sees_files else "changed, as far as is known,"

    def _may_meet_again(self, step: Step, said: Statements) -> Permission | None:
        """Refuse a command whose kind of failure occurred too often without an analysis.

        Reading and editing are never refused.
        """
        most = self._errors.equal_failures
        if not (self._errors.require_analysis and most) or said.cause is not None:
            return None
        line = command(step)
        if only_looks(step) or not (line or is_check(step.tool)):
            return None
        failing = self._failing.get(action(step))
        if (
            failing is not None
            and failing.cause is not None
            and self._may_be_retried(failing.cause)
        ):
            return None  # that analysis allows some tries
        news = self._alike.last if is_check(line or step.tool) else 0
        outcome = news if failing is None else failing.outcome
        kind = self._alike.find_unanswered(outcome, step.request, most)
        if kind is None:
            return None
        return _ask_for_analysis(
            f"the same failure came {kind.times} times, by whatever command: {kind.words}"
        )

    def _may_be_retried(self, cause: Cause) -> bool:
        """Whether a failure with this cause may be tried again unchanged."""
        return (self._errors.unknown if cause is Cause.UNKNOWN else cause) is not Cause.PERMANENT

    def _after_analysis(self, failing: _Failing, cause: Cause) -> Permission:
        errors = self._errors
        unknown = cause is Cause.UNKNOWN
        if unknown:
            cause = errors.unknown
        if cause is Cause.TRANSIENT:
            if failing.tries < errors.transient_tries:
                return Permission(wait=backoff(failing.tries + 1, errors))
            return _ask_for_analysis(
                f"waiting did not help: {failing.words} {failing.tries} times since"
            )
        if cause is Cause.UNKNOWN and not failing.spent:
            return ALLOWED
        if failing.tries:
            return _ask_for_analysis(f"{failing.words} again, after your analysis")
        if max(self._edited, self._moved) > failing.tick:
            return ALLOWED
        name = "unknown, which counts as permanent" if unknown else "permanent"
        return Permission(
            refusal=f"{failing.words}; by your analysis the cause is {name}, and nothing has "
            "changed since. Change the approach: edit what causes it, install what is missing, "
            "or do without it. If it passes with time, say so: `report_error` with `transient`."
        )


def _ask_for_analysis(why: str) -> Permission:
    return Permission(refusal=f"{why}. {_ASK}")


def backoff(number: int, errors: ErrorSettings) -> float:
    """Return the seconds to wait before a try, counted from 1: doubling, up to the longest wait."""
    doublings = min(number - 1, 64)  # more would overflow a float
    return min(errors.backoff_seconds * 2**doublings, errors.max_backoff_seconds)


log = logging.getLogger(__name__)


class AttemptGate:
    """The gate of one attempt. It is fed from the journal before each answer, so that it is the
    same after a crash, and knows what other processes have written.

    A gate that fails stays open: it exists to help the work and must never stop it.
    """

    def __init__(
        self, journal: Journal, attempt: int, gate: Gate, *, is_open: bool = False
    ) -> None:
        self._gate = gate
        self._journal = journal
        self._attempt = attempt
        self.is_open = is_open
        """Whether every call may run."""
        self._after = 0
        self._reading = asyncio.Lock()

    async def last_failure(self) -> LastFailure | None:
        """Return the last act of the attempt that failed."""
        await self._read()
        return self._gate.last_failure

    async def ask(self, step: Step, messages: Sequence[ModelMessage]) -> Permission:
        """Return whether a call may run, given as the step it would be, in the last turn."""
        if not self.is_open:
            await self._read()
        if self.is_open:
            return ALLOWED
        # Masked like recorded steps, with which it is compared.
        step = self._journal.masker.record(step)
        turn = last_response(messages)
        return self._gate.may(step, statements_in(turn.tool_calls if turn else ()))

    async def _read(self) -> None:
        """Take in what was recorded since the last time."""
        async with self._reading:
            while page := await self._journal.entries(
                self._after, attempt=self._attempt, kinds=KINDS
            ):
                self._after = page[-1].id
                try:
                    for entry in page:
                        self._gate.observe(entry)
                except Exception:
                    log.exception(
                        "the gate of attempt %s failed; it no longer refuses anything",
                        self._attempt,
                    )
                    self.is_open = True


async def gate_of(
    recorder: Recorder, settings: Settings, *, sees_files: bool, gated: bool = True
) -> AttemptGate:
    """Return the current gate of the recorder's attempt; open if nothing is to be refused."""
    gate = Gate(
        settings.errors,
        settings.plan,
        attempt=recorder.attempt.number,
        sees_files=sees_files,
        analysed=await _follows_completion(recorder),
    )
    return AttemptGate(
        recorder.journal, recorder.attempt.id, gate, is_open=not gated or settings.mode is Mode.OFF
    )


async def _follows_completion(recorder: Recorder) -> bool:
    """Whether the previous attempt was completed: a person had the task started again."""
    journal, attempt = recorder.journal, recorder.attempt
    others = await journal.attempts(attempt.task) if attempt.number > 1 else []
    before = [each.id for each in others if each.number == attempt.number - 1]
    ends = await journal.entries(attempt=before[0], kinds=(AttemptTransition,)) if before else []
    states = [each.record for each in ends if isinstance(each.record, AttemptTransition)]
    return bool(states) and states[-1].lifecycle is Lifecycle.COMPLETED
