"""What a worker has to say before a call may run: why something failed, whether its plan holds.

Pure: the gate is fed the records of its attempt in the order of the journal, and answers by them.
"""

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
    Teller,
    Writer,
)
from midwatch_monitor.rules.act import Normaliser
from midwatch_monitor.rules.failure import failure_line, failure_lines, signature, surroundings
from midwatch_monitor.rules.identity import HELD_BACK, NO_WORK, answer, command, result
from midwatch_monitor.rules.plain_output import unwrap
from midwatch_tools.gate.failures import Alike, action, call_words, only_looks
from midwatch_tools.observation import last_response
from midwatch_tools.tools.proof import Statements, checks, statements_in

KINDS: tuple[type[Record], ...] = (Step, Change, Analysis, PlanCheck, Intervention, Delivery)
"""The records that the gate is fed."""

_REMEMBERED = 256
"""Failing acts that are remembered; the oldest go first."""
_SILENT = "[exit code"
"""How the last line begins of an output that says nothing of the failure."""

_ASK = (
    "Call `report_error`: what happened, whether the cause is transient, permanent or unknown, the "
    "root cause, and what you change. The next try may stand in the same turn."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Whether a call may run."""

    refusal: str = ""
    """Why it may not, and what to do; empty where it may."""
    wait: float = 0.0
    """Seconds to wait before it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    """The last act that failed, for the analysis of it."""

    number: int
    act: str
    """The act in words that the worker knows: it is never shown the numbers of steps."""
    blocked: str
    """What of the surroundings stood in the way; empty where nothing did."""
    words: str
    """The line of the output that tells most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failing:
    """An act that failed when it was last done."""

    words: str
    """What it is called, with the line of its last output that tells most."""
    tick: int
    """When it last failed, counted in records."""
    began: int
    """The model request of its first failure."""
    request: int
    """The model request of its last failure."""
    outcome: int
    equal: int = 1
    """How often in a row it failed in the same way."""
    cause: Cause | None = None
    """By the last analysis of a request after the first failure."""
    analysed: int = 0
    """The request of that analysis."""
    tries: int = 0
    """Failures since."""
    spent: bool = False
    """Whether the one more try for an unknown cause was had."""


ALLOWED = Permission()


class Gate:
    """The state of one attempt, as far as it decides which calls may run.

    "Newer" and "before" are told by model requests where calls of one turn run at the same time,
    so that it does not matter which of them ends first. A call that failed in the turn in hand is
    never refused: the worker cannot know of it.
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
        """Begin with an attempt of that number, of which nothing is known yet.

        Where nobody sees the files, whatever succeeded and does not only look may have been an
        edit. Where the attempt before did not fail, it counts as `analysed`.
        """
        self._errors = errors
        self._plan = plan
        self._attempt = attempt
        self._sees_files = sees_files
        self._acts = Normaliser()
        self._failing: dict[int, _Failing] = {}
        self._alike = Alike()
        self._tick = 0
        self._request = 0
        self._edited = 0
        self._moved = 0
        self._analysed = analysed
        self._operators: set[int] = set()
        self._delivered: dict[int, int] = {}
        self._plan_step = 0
        self._plan_steps = 0
        self._revision = 0
        self._unchecked: int | None = None
        self.last_failure: LastFailure | None = None
        """The last act of the attempt that failed."""

    # -- what has happened -----------------------------------------------------------------

    def observe(self, entry: Entry) -> None:
        """Take in a record of the attempt; those of other kinds than `KINDS` change nothing."""
        self._tick += 1
        match entry.record:
            case Step() as step:
                self._took(step)
            case Change() as change:
                self._take_plan_change(change)
            case Analysis(by=Teller.WORKER) as analysis:
                self._take_analysis(analysis)
            case PlanCheck(plan_step=number):
                if self._unchecked is not None and number >= self._unchecked:
                    self._unchecked = None
            case Intervention(by=Actor.OPERATOR):
                self._operators.add(entry.id)
                self._heard_of(entry.id)
            case Delivery(state=DeliveryState.DELIVERED, intervention=id):
                self._delivered[id] = self._tick
                self._heard_of(id)
            case _:
                pass

    def _heard_of(self, intervention: int) -> None:
        """Once a person's word has arrived, they may have mended what the worker cannot."""
        if intervention in self._operators:
            self._moved = max(self._moved, self._delivered.get(intervention, 0))

    def _took(self, step: Step) -> None:
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
        if failure_lines(step.output) and (command(step) or checks(step.tool)):
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
            number=step.number, act=act, blocked=surroundings(step.output), words=tells
        )

    def _take_analysis(self, analysis: Analysis) -> None:
        """An analysis answers every failure of the requests before its own."""
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
        """Whether the call that this step would be may run; its request says when it is asked."""
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
        """What stands before `complete_step` in its turn is over by then: it waits for that."""
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
                else f"{failing.words}, and nothing was {self._edits} since"
            )
        return self._after_analysis(failing, failing.cause)

    @property
    def _edits(self) -> str:
        return "edited" if self._sees_files else "changed, as far as is known,"

    def _may_meet_again(self, step: Step, said: Statements) -> Permission | None:
        """A failure that came too often waits for its analysis in all commands that may bring it.

        These are those that failed in this way, and any other check of the work while that is the
        last failure. Reading and editing wait for nothing.
        """
        most = self._errors.equal_failures
        if not (self._errors.require_analysis and most) or said.cause is not None:
            return None
        line = command(step)
        if only_looks(step) or not (line or checks(step.tool)):
            return None
        failing = self._failing.get(action(step))
        if failing is not None and failing.cause is not None and self._passes(failing.cause):
            return None  # that analysis allows some tries
        news = self._alike.last if checks(line or step.tool) else 0
        outcome = news if failing is None else failing.outcome
        kind = self._alike.find_unanswered(outcome, step.request, most)
        if kind is None:
            return None
        return _ask_for_analysis(
            f"the same failure came {kind.times} times, by whatever command: {kind.words}"
        )

    def _passes(self, cause: Cause) -> bool:
        """Whether what has this cause may be tried again as it is."""
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
    """Seconds before that try, counted from 1: doubling, up to the longest wait."""
    doublings = min(number - 1, 64)  # more of them make no float
    return min(errors.backoff_seconds * 2**doublings, errors.max_backoff_seconds)


log = logging.getLogger(__name__)


class Entrance:
    """The gate of one attempt. It knows what the journal knows, and so the same after a crash.

    A gate that fails is left open: it is there to help the work, and must never stop it.
    """

    def __init__(
        self, journal: Journal, attempt: int, gate: Gate, *, is_open: bool = False
    ) -> None:
        self.gate = gate
        self._journal = journal
        self._attempt = attempt
        self.is_open = is_open
        """Whether every call may run."""
        self._early: list[Entry] | None = []
        self._after = 0
        self._foreign = 0
        self._delivered = 0
        """How often something was delivered."""
        self._looked_up = 0
        """After how many of these it was read what that was."""

    async def rebuild(self) -> None:
        """Take in what the journal holds, and then what was heard meanwhile."""
        while page := await self._journal.entries(self._after, attempt=self._attempt, kinds=KINDS):
            self._take(page)
            self._after = page[-1].id
        self._foreign = self._after
        early, self._early = self._early or [], None
        self._take([entry for entry in early if entry.id > self._after])

    def hear(self, entries: Sequence[Entry]) -> None:
        """Take in what was recorded just now."""
        if self._early is not None:
            self._early += entries
        else:
            self._take(entries)

    def _take(self, entries: Sequence[Entry]) -> None:
        try:
            for entry in entries:
                self.gate.observe(entry)
                self._delivered += isinstance(entry.record, Delivery)
        except Exception:
            log.exception("the gate of attempt %s is open from here on", self._attempt)
            self.is_open = True

    async def ask(self, step: Step, messages: Sequence[ModelMessage]) -> Permission:
        """Whether the call that this step would be may run, now that its turn has been said."""
        if self.is_open:
            return ALLOWED
        if self._looked_up < self._delivered:
            await self._look_up()
        # As it would be recorded: what it is compared with is masked.
        step = self._journal.masker.record(step)
        turn = last_response(messages)
        return self.gate.may(step, statements_in(turn.tool_calls if turn else ()))

    async def _look_up(self) -> None:
        """Read who issued what was delivered: others than the recorder write that."""
        delivered = self._delivered
        entries = await self._journal.entries(
            self._foreign, attempt=self._attempt, kinds=(Intervention,)
        )
        # Only now: the calls beside this one must not be judged without it.
        self._looked_up = max(self._looked_up, delivered)
        new = [entry for entry in entries if entry.id > self._foreign]
        self._foreign = max((entry.id for entry in new), default=self._foreign)
        self._take(new)


async def gate_of(
    recorder: Recorder, settings: Settings, *, sees_files: bool, gated: bool = True
) -> Entrance:
    """The gate of the recorder's attempt as it stands; open where nothing is to be refused."""
    gate = Gate(
        settings.errors,
        settings.plan,
        attempt=recorder.attempt.number,
        sees_files=sees_files,
        analysed=await _follows_completion(recorder),
    )
    entrance = Entrance(
        recorder.journal, recorder.attempt.id, gate, is_open=not gated or settings.mode is Mode.OFF
    )
    if gated:
        recorder.listeners.append(entrance.hear)
        await entrance.rebuild()
    return entrance


async def _follows_completion(recorder: Recorder) -> bool:
    """Whether the attempt before was completed: a person had the task begun again."""
    journal, attempt = recorder.journal, recorder.attempt
    others = await journal.attempts(attempt.task) if attempt.number > 1 else []
    before = [each.id for each in others if each.number == attempt.number - 1]
    ends = await journal.entries(attempt=before[0], kinds=(AttemptTransition,)) if before else []
    states = [each.record for each in ends if isinstance(each.record, AttemptTransition)]
    return bool(states) and states[-1].lifecycle is Lifecycle.COMPLETED
