"""Operators' actions on attempts and on what was learned; each is stored in the journal."""

import getpass
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalError, StaleIncarnationError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import Clock
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.journal.fleet.run_lock import remember_lock
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertKey,
    Attempt,
    BudgetRequest,
    Chore,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Entry,
    Fact,
    FactAct,
    FactMark,
    Feedback,
    Grant,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    Intervention,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    LessonAct,
    LessonMark,
    LessonOrigin,
    Origin,
    PermissionRequest,
    PlanCheck,
    Record,
    Study,
    StudyState,
    SupervisedBy,
    Terms,
)
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.operator.tasks import (
    OpenQuestion,
    Reopening,
    find_reopening,
    store_reopening,
)
from midwatch_supervisor.present.known_text import Known
from midwatch_supervisor.present.numbers import grant_problem
from midwatch_tools.data_blocks import readable


class LearningMark(StrEnum):
    """What a person can do with a lesson, a fact or guidelines."""

    RATE = "rate"
    RETIRE = "retire"
    RESTORE = "restore"
    APPROVE = "approve"
    REJECT = "reject"
    ROLL_BACK = "roll back"


def refusal(mark: LearningMark, known: Known) -> str:
    """Return why a mark makes no sense for an entry; empty if it does."""
    if isinstance(known, KnownGuidelines):
        return _refused_version(mark, known)
    if mark in {LearningMark.REJECT, LearningMark.ROLL_BACK}:
        return "only guidelines can be rejected or rolled back"
    if mark is LearningMark.RATE:
        return "" if isinstance(known, KnownLesson) else "only lessons can be rated"
    if mark is LearningMark.APPROVE:
        return "" if known.waiting else "it is not waiting for approval"
    gone = known.obsolete if isinstance(known, KnownLesson) else not known.live
    if mark is LearningMark.RETIRE:
        return "it is already retired" if gone else ""
    return "" if gone else "it is waiting: approve it" if known.waiting else "it is already in use"


def _refused_version(mark: LearningMark, known: KnownGuidelines) -> str:
    if mark in {LearningMark.APPROVE, LearningMark.REJECT}:
        needed, called = GuidelinesState.PROPOSED, "proposed"
    elif mark is LearningMark.ROLL_BACK:
        needed, called = GuidelinesState.LIVE, "in force"
    else:
        return "guidelines can only be approved, rejected or rolled back"
    return "" if known.state is needed else f"it is not {called}; it is {known.state}"


def marked_state(mark: LearningMark, known: Known, rating: int = 0) -> str:
    """Return what a mark makes of the entry, in words that can follow `it is`."""
    return {
        LearningMark.RATE: f"rated {rating} of 5",
        LearningMark.RETIRE: "retired: it is no longer given to attempts",
        LearningMark.RESTORE: "back",
        LearningMark.APPROVE: "in force" if isinstance(known, KnownGuidelines) else "approved",
        LearningMark.REJECT: "rejected",
        LearningMark.ROLL_BACK: "rolled back",
    }[mark]


LESSON_ACTS = {
    LearningMark.RATE: LessonAct.RATED,
    LearningMark.RETIRE: LessonAct.RETIRED,
    LearningMark.RESTORE: LessonAct.RESTORED,
    LearningMark.APPROVE: LessonAct.APPROVED,
}
FACT_ACTS = {
    LearningMark.RETIRE: FactAct.RETIRED,
    LearningMark.RESTORE: FactAct.RESTORED,
    LearningMark.APPROVE: FactAct.REVIEWED,
}
GUIDELINES_ACTS = {
    LearningMark.APPROVE: GuidelinesAct.APPROVED,
    LearningMark.REJECT: GuidelinesAct.REJECTED,
    LearningMark.ROLL_BACK: GuidelinesAct.ROLLED_BACK,
}


_NO_TERMS = Terms()
GO_ON = "Go on."
"""Message to a worker that may continue, if the person wrote none."""
GRANTED = "Granted."
"""Message to a worker whose request is granted, if the person wrote none."""
_APPROVED = "Approved."

_ACCEPTED = "the result was accepted afterwards"
_ALL = 1_000
"""More than the chores of any attempt, and than the tries of any chore."""


def operator_name(name: str | None = None) -> str:
    """Return the given name, or else the user's."""
    try:
        return name or getpass.getuser()
    except (KeyError, OSError):  # neither the environment nor the system knows the user
        return "operator"


def _refuse_grant(grant: Grant) -> None:
    if problem := grant_problem(grant):
        raise UsageError(problem)


def _visible_comment(comment: str) -> str:
    """Return the comment, or an empty string if nothing in it is visible."""
    return comment if readable(comment).strip() else ""


class OperatorActions:
    """Stores an operator's actions in the journal.

    Decides nothing. Raises UsageError if a question is already answered, or if a grant is out of
    range; callers check everything else.
    """

    def __init__(
        self, journal: Journal, *, author: str, bus: Bus | None = None, clock: Clock | None = None
    ) -> None:
        """Act in a journal as `author`; without a clock, the time is the database's at each act."""
        self._journal = journal
        self._bus = bus
        self._clock = clock
        self.author = author

    @property
    def barred(self) -> str:
        """Why nothing can be done here, in words; empty if actions can be stored."""
        return "" if self._journal.writable else "this journal is read-only here"

    # -- on attempts -----------------------------------------------------------------------

    async def act(
        self,
        attempt: Attempt,
        action: Action,
        message: str = "",
        *,
        about: Sequence[AlertKey] = (),
        terms: Terms = _NO_TERMS,
        petition: int | None = None,
    ) -> int:
        """Issue an intervention, and return its journal id.

        `about` are the alerts that it should resolve, which decide its outcome; `petition` is the
        journal id of the worker request that it answers.
        """
        if action is Action.RESUME and not message.strip():
            message = GO_ON
        _refuse_grant(terms.grant)
        order = self._operator_intervention(action, message, petition)
        order = replace(order, terms=terms, answers=tuple(about))
        return await self._store_answers(attempt, order)

    async def begin_again(
        self, attempt: Attempt, message: str, *, about: Sequence[AlertKey] = (), step: int
    ) -> Reopening:
        """Begin the task of a finished attempt again, with a note for the next attempt.

        `about` are the alerts that still fired at its end, `step` is its last step. Raises
        UsageError if the task is not over, or cannot be begun again.
        """
        what = await find_reopening(self._journal, attempt)
        order = replace(self._operator_intervention(Action.RESTART, message), answers=tuple(about))
        at = await self._read_clock()
        self._publish(await store_reopening(self._journal, what, order, step=step, at=at))
        if what.run.supervised_by is SupervisedBy.PROCESS:
            await remember_lock(self._journal, what.run.id)
        return what

    async def settle(
        self,
        attempt: Attempt,
        id: int,
        asked: OpenQuestion,
        *,
        agreed: bool,
        comment: str = "",
        step: int,
    ) -> int | None:
        """Answer the open question with the journal id `id`.

        Returns the journal id of the intervention that the worker gets, or `None` if it gets none.
        `step` is the attempt's last step.
        """
        comment = _visible_comment(comment)
        match asked:
            case InterventionState(intervention=held) if agreed:
                _refuse_grant(held.terms.grant)
                approval = self._operator_delivery(id, DeliveryState.APPROVED, step)
                await self._store_answers(attempt, approval)
                return id
            case InterventionState(intervention=held):
                refusal = self._operator_delivery(id, DeliveryState.REJECTED, step, comment)
                told = [self._refuse_request(held.petition, comment)] if held.petition else []
                await self._store_answers(attempt, refusal, *told)
                return None
            case request if agreed:
                return await self._store_answers(attempt, self._grant_request(id, request))
            case _:
                return await self._store_answers(attempt, self._refuse_request(id, comment))

    async def modify(
        self, attempt: Attempt, intervention: int, held: Intervention, message: str, *, step: int
    ) -> int:
        """Reject a decision, issue the same action in the operator's words, and return its id."""
        instead = replace(
            held, by=Actor.OPERATOR, author=self.author, message=message, needs_approval=False
        )
        refusal = self._operator_delivery(
            intervention, DeliveryState.REJECTED, step, "in other words"
        )
        return await self._store_answers(attempt, refusal, instead)

    async def judge(self, attempt: Attempt, *, accepted: bool, comment: str = "") -> int:
        """Store a person's verdict on the result of an attempt, and return its journal id.

        Accepting a result that was rejected before also retracts what the rejection taught.
        """
        verdict = Feedback(accepted=accepted, comment=_visible_comment(comment), author=self.author)
        id = await self._store_answers(attempt, verdict)
        if accepted:
            await self._take_back(attempt)
        return id

    async def _take_back(self, attempt: Attempt) -> None:
        """Retire the lessons of a person's earlier rejections, and prevent new ones."""
        while records := await self._withdraw_lessons(attempt):
            try:
                await self._store_answers(attempt, *records)
            except StaleIncarnationError:  # a lesson was drawn or retired since the read
                continue
            return

    async def _withdraw_lessons(self, attempt: Attempt) -> list[Record]:
        """Return records that retire the lessons of a person's rejections, and prevent new ones."""
        learned = Learned(self._journal)
        said = await self._journal.entries(attempt=attempt.id, kinds=(Feedback,))
        ours = {
            each.id
            for each in said
            if isinstance(each.record, Feedback) and each.record.origin is Origin.EXPLICIT
        }
        # Lessons are read last, so that one drawn meanwhile is in one of the two lists.
        open_ones = await learned.chores(tries=_ALL, attempt=attempt.id)
        lessons = await learned.lessons(attempt=attempt.id)
        retired = [
            LessonMark(lesson=each.id, act=LessonAct.RETIRED, author=self.author, comment=_ACCEPTED)
            for each in lessons
            if each.lesson.origin is Origin.EXPLICIT
            and each.lesson.born is not LessonOrigin.PERSON
            and not each.obsolete
        ]
        refused = [
            Study(about=each.about, chore=each.chore, state=StudyState.REFUSED, reason=_ACCEPTED)
            for each in open_ones
            if each.chore is Chore.LESSON and each.about in ours
        ]
        return [*retired, *refused]

    # -- on what was learned ---------------------------------------------------------------

    async def mark(
        self, mark: LearningMark, known: Known, comment: str = "", *, rating: int = 0
    ) -> int:
        """Store a mark that `refusal` allows, and return its journal id.

        Raises JournalError if the entry no longer exists, and StaleIncarnationError if somebody
        else settled a version of the guidelines meanwhile.
        """
        id, author = known.id, self.author
        match known:
            case KnownLesson():
                act, kind = LESSON_ACTS[mark], Lesson
                record = LessonMark(
                    lesson=id, act=act, rating=rating, author=author, comment=comment
                )
            case KnownFact():
                act, kind = FACT_ACTS[mark], Fact
                record = FactMark(fact=id, act=act, author=author, reason=comment)
            case KnownGuidelines():
                act, kind = GUIDELINES_ACTS[mark], Guidelines
                by = Actor.OPERATOR
                record = GuidelinesMark(
                    guidelines=id, act=act, by=by, author=author, comment=comment
                )
        marked = await self._find_marked(id, kind)
        return await self._commit(record, task=marked.task, attempt=marked.attempt)

    async def _find_marked(self, id: int, kind: type[Record]) -> Entry:
        """Return the marked entry: its mark is stored with the same task and attempt."""
        for entry in await self._journal.entries(id - 1, limit=1):
            if entry.id == id and isinstance(entry.record, kind):
                return entry
        raise JournalError(f"{self._journal.name} has no {kind.__name__.lower()} {id}")

    async def add_lesson(self, lesson: Lesson, attempt: Attempt) -> int:
        """Store a lesson that the author wrote; `attempt` is one of the project that it is for."""
        record = replace(
            lesson, born=LessonOrigin.PERSON, origin=Origin.EXPLICIT, author=self.author
        )
        return await self._commit(record, task=attempt.task, attempt=attempt.id)

    async def give_lesson(self, lesson: int, task: int, comment: str = "") -> int:
        """Give a lesson of its project to the next attempt of a task."""
        mark = LessonMark(lesson=lesson, act=LessonAct.GIVEN, author=self.author, comment=comment)
        return await self._commit(mark, task=task)

    # -- records ---------------------------------------------------------------------------

    def _operator_intervention(
        self, action: Action, message: str, petition: int | None = None
    ) -> Intervention:
        return Intervention(
            action=action, by=Actor.OPERATOR, author=self.author, message=message, petition=petition
        )

    def _grant_request(self, id: int, request: WorkerRequest) -> Intervention:
        """Return the intervention that grants a worker request; `id` is the request's."""
        match request:
            case PlanCheck(proposed=plan):
                return replace(self._operator_intervention(Action.REPLAN, _APPROVED, id), plan=plan)
            case BudgetRequest(wanted=wanted):
                _refuse_grant(wanted)
                granted = self._operator_intervention(Action.GRANT_BUDGET, GRANTED, id)
                return replace(granted, terms=Terms(grant=wanted))
            case PermissionRequest():
                return self._operator_intervention(Action.RESUME, _APPROVED, id)

    def _refuse_request(self, id: int, message: str) -> Intervention:
        """Return the intervention that refuses a worker request; `id` is the request's."""
        return self._operator_intervention(Action.NUDGE, message or "Refused.", id)

    def _operator_delivery(
        self, intervention: int, state: DeliveryState, step: int, comment: str = ""
    ) -> Delivery:
        return Delivery(
            intervention=intervention, state=state, step=step, author=self.author, comment=comment
        )

    async def _store_answers(self, attempt: Attempt, *records: Record) -> int:
        """Store records of an attempt, and return the last one's journal id.

        Raises UsageError if one of them answers a question that has been answered meanwhile.
        """
        at = await self._read_clock()
        drafts = tuple(
            Draft(record=each, at=at, task=attempt.task, attempt=attempt.id) for each in records
        )
        entries = await self._journal.answer(Commit(drafts=drafts))
        if entries is None:
            raise UsageError("somebody else has just answered that")
        self._publish(entries)
        return entries[-1].id

    async def _commit(self, record: Record, *, task: int, attempt: int | None = None) -> int:
        draft = Draft(record=record, at=await self._read_clock(), task=task, attempt=attempt)
        entries = await self._journal.commit(Commit(drafts=(draft,)))
        self._publish(entries)
        return entries[-1].id

    async def _read_clock(self) -> datetime:
        return self._clock() if self._clock else await self._journal.now()

    def _publish(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if self._bus is not None:
                self._bus.publish(hint_of(entry))
