"""Stores and reviews the facts of an ended attempt, and merges equal ones. None is lost."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from midwatch_agents.consultation import spent_before
from midwatch_agents.learning.fact_review import (
    Move,
    Settlement,
    hold_all,
    review_facts,
    settlement,
)
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, StaleIncarnationError, WorkerError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Chore,
    Commit,
    Draft,
    Entry,
    Fact,
    FactAct,
    FactMaker,
    FactMark,
    FactReview,
    FactState,
    KnownFact,
    LearnedQuery,
    Record,
    ReviewState,
    Spending,
    Study,
    StudyState,
    Task,
)
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief
from midwatch_tools.tools.facts import Facts, refusal_of, repeats

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)

NO_MODEL = "there is no model for the review"
_NOTHING_SAID = "the answer names no action that is possible for any fact"
_BATCH = 40
"""Number of new facts in one question; more take several questions."""
_KNOWN = 60
"""Largest number of known facts in one question."""
_EACH = 8
"""Known facts that are looked up for each new one."""
_ALL = 10_000


async def store(
    journal: Journal,
    task: Task,
    attempt: Attempt,
    facts: Sequence[Fact],
    *,
    settings: Settings,
    now: datetime,
) -> None:
    """Store facts drawn from an ended attempt, and merge known ones.

    They wait for a review if that is enabled, else for a person. Raises JournalError.
    """
    limits = settings.learning.facts
    if not limits.enabled or not task.project:
        return
    recorded = Facts(journal=journal, task=task, attempt=attempt)
    state = FactState.PENDING if limits.review else FactState.WAITING
    sound: list[Fact] = []
    for each in facts:
        text = " ".join(each.text.split())
        fact = replace(each, text=text, state=state, maker=FactMaker.EXTRACTION)
        if not refusal_of(fact) and not any(repeats(fact, other) for other in sound):
            sound.append(fact)
    if len(sound) < len(facts):
        said = "attempt %d: %d of %d extracted facts were accepted"
        log.info(said, attempt.id, len(sound), len(facts))

    async def write(fact: Fact) -> int:
        (entry,) = await write_records(journal, task.id, attempt.id, [fact], now)
        return entry.id

    for fact in sound[: limits.max_per_attempt]:
        twin = await recorded.twin(fact)
        if twin is None:
            await write(fact)
        else:
            await recorded.absorb(fact, twin, write=write, at=now)


async def review_attempt(
    journal: Journal,
    attempt: Attempt,
    task: Task,
    *,
    model: "Model | None",
    settings: Settings,
    now: datetime,
    lacks: str = "",
) -> Study | None:
    """Review the waiting facts of an ended attempt, and apply the review.

    Without a review, or if it fails, they wait for a person; `lacks` says why there is no model.
    Raises only JournalError. The caller stores the returned Study; `None` if no fact waits or the
    attempt is not over.
    """
    learned = Learned(journal)
    own = await learned.facts(attempt=attempt.id, limit=_ALL)
    pending = [each for each in own if each.state is FactState.PENDING]
    # A fact stated by several attempts is reviewed with the first of them.
    new = sorted((each for each in pending if each.attempt == attempt.id), key=lambda it: it.id)
    about = await _end_entry(journal, attempt)
    if not new or about is None:
        return None
    reviewer = _Reviewer(
        journal=journal,
        learned=learned,
        task=task,
        attempt=attempt,
        settings=settings,
        now=now,
        no_model=NO_MODEL + (f": {lacks}" if lacks else ""),
    )
    reasons: list[str] = []
    for start in range(0, len(new), _BATCH):
        batch = new[start : start + _BATCH]
        reasons.append(await reviewer.review(batch, model))
    reason = "; ".join(dict.fromkeys(filter(None, reasons)))
    return Study(about=about, chore=Chore.REVIEW, state=StudyState.DONE, reason=reason)


async def _end_entry(journal: Journal, attempt: Attempt) -> int | None:
    """Return the id of the entry with which the attempt ended; `None` if it has not."""
    found = None
    async for entry in journal.all_entries(attempt=attempt.id, kinds=(AttemptTransition,)):
        if isinstance(entry.record, AttemptTransition) and entry.record.lifecycle.over:
            found = entry.id
    return found


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a review."""

    state: ReviewState
    settlement: Settlement
    error: str = ""
    spending: tuple[Spending, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reviewer:
    """Reviews the facts of one attempt, and stores the result."""

    journal: Journal
    learned: Learned
    task: Task
    attempt: Attempt
    settings: Settings
    now: datetime
    no_model: str
    """Why there is no model for the review."""

    async def review(self, new: Sequence[KnownFact], model: "Model | None") -> str:
        """Review some facts; return why that was not possible, empty if it was."""
        limits, skipped = self.settings.learning.facts, ""
        if not (limits.review and limits.enabled):
            skipped = "the review is switched off"
        elif model is None:
            skipped = self.no_model
        if model is None or skipped:
            found = _Outcome(ReviewState.SKIPPED, hold_all(new, skipped), skipped)
        else:
            found = await self._ask_model(new, model)
        settled = found.settlement
        review = FactReview(
            state=found.state,
            facts=tuple(each.id for each in new),
            modified=settled.modified,
            removed=settled.removed,
            missed=settled.missed,
            conflicts=settled.conflicts,
            unanswered=settled.unanswered if found.state is ReviewState.OK else 0,
            error=found.error,
            model=model.model_name if model and not skipped else "",
        )
        # One commit for both: the time of the entries links the cost to the review.
        await self._write_for_attempt([review, *found.spending])
        await self._apply_moves(settled.moves, new)
        return found.error

    async def _ask_model(self, new: Sequence[KnownFact], model: "Model") -> _Outcome:
        """Ask a model and settle its answer; whatever it answers, no fact is lost."""
        try:
            known = await self._similar_facts(new)
            case = await case_of(self.journal, self.task, self.attempt)
            said = await review_facts(
                model, new=new, known=known, case=case, settings=self.settings
            )
            settled, spending = settlement(said.answer, new, known), (said.spending,)
        except JournalError:
            raise
        except Exception as error:
            # A foreign error may quote the answer: only its class is shown.
            why = str(error) if isinstance(error, WorkerError) else type(error).__name__
            spending = spent_before(error)
            log.warning(
                "attempt %d: %s left to a person because the review failed: %s",
                *(self.attempt.id, count_noun(len(new), "fact"), brief(why, 200)),
            )
            return _Outcome(ReviewState.FALLBACK, hold_all(new, "the review failed"), why, spending)
        if settled.empty:
            return _Outcome(ReviewState.FALLBACK, settled, _NOTHING_SAID, spending)
        return _Outcome(ReviewState.OK, settled, spending=spending)

    async def _similar_facts(self, new: Sequence[KnownFact]) -> list[KnownFact]:
        """Return the project's shared facts that fit the new ones best, without the new ones."""
        ids = {each.id for each in new}
        found: list[list[KnownFact]] = []
        for each in new:
            wanted = LearnedQuery(
                project=self.task.project,
                text=each.fact.text,
                files=each.fact.files,
                tags=each.fact.tags,
            )
            like = await self.learned.facts_like(wanted, limit=_EACH + len(ids))
            found.append([other for other in like if other.shared and other.id not in ids][:_EACH])
        # First the best for each new fact, then the second best; without duplicates.
        turns = (each for rank in zip_longest(*found) for each in rank if each is not None)
        return list({each.id: each for each in turns}.values())[:_KNOWN]

    async def _apply_moves(self, moves: Sequence[Move], new: Sequence[KnownFact]) -> None:
        """Apply a settlement to those facts that still hold."""
        named = {id for move in moves for id in (*move.facts, move.instead) if id is not None}
        standing = {each.id: each for each in await self.learned.facts(ids=tuple(named))}
        for move in moves:
            facts = [standing[id] for id in move.facts if id in standing]
            act, instead, reason = move.act, move.instead, move.reason
            if move.facts and not facts:
                continue
            if instead is not None and instead not in standing:
                own = {each.id for each in new}
                facts = [each for each in facts if each.id in own]
                act, instead = FactAct.HELD, None
                reason = "the fact that should replace it is gone"
            elif move.fact is not None:
                (entry,) = await self._write_for_attempt([move.fact])
                instead = entry.id
            for each in facts:
                mark = FactMark(fact=each.id, act=act, instead=instead, reason=reason)
                await self._write_mark(each, mark)

    async def _write_mark(self, of: KnownFact, mark: FactMark) -> None:
        whose = await self.journal.attempt(of.attempt)
        try:
            await write_records(self.journal, whose.task, whose.id, [mark], self.now)
        except StaleIncarnationError:  # a person was faster; continue with the others
            log.info("fact %d was changed during the review", of.id)

    async def _write_for_attempt(self, records: Sequence[Record]) -> Sequence[Entry]:
        return await write_records(self.journal, self.task.id, self.attempt.id, records, self.now)


async def write_records(
    journal: Journal, task: int, attempt: int, records: Sequence[Record], at: datetime
) -> Sequence[Entry]:
    """Write records of an attempt, and return their entries in the same order."""
    drafts = tuple(Draft(record=each, at=at, task=task, attempt=attempt) for each in records)
    return await journal.commit(Commit(drafts=drafts))
