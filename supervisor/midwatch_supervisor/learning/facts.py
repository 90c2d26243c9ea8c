"""What becomes of the facts of an ended attempt: stored, reviewed, put together. Never lost."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

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
    Fact,
    FactAct,
    FactMaker,
    FactMark,
    FactReview,
    FactState,
    KnownFact,
    Record,
    ReviewState,
    Spending,
    Study,
    StudyState,
    Task,
    Wanted,
)
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import brief
from midwatch_tools.tools.facts import Facts, lacks, repeats

if TYPE_CHECKING:
    from pydantic_ai.models import Model

log = logging.getLogger(__name__)

NO_MODEL = "there is no model for the review"
_BATCH = 40
"""New facts in one question: more are asked about in several."""
_KNOWN = 60
"""Known facts that one question shows at most."""
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
    """Take in facts that were drawn from an ended attempt; what is known already is put together.

    They wait for a review where that is on, else for a person. Raises JournalError.
    """
    limits = settings.learning.facts
    if not limits.enabled or not task.project:
        return
    recorded = Facts(journal=journal, task=task, attempt=attempt)
    state = FactState.PENDING if limits.review else FactState.WAITING
    taken = [_extracted(each, state) for each in facts]
    sound: list[Fact] = []
    for each in taken:
        if not lacks(each) and not any(repeats(each, other) for other in sound):
            sound.append(each)
    if len(sound) < len(facts):
        said = "attempt %d: %d of %d extracted facts are taken"
        log.info(said, attempt.id, len(sound), len(facts))

    async def write(fact: Fact) -> int:
        (id_,) = await _written(journal, task.id, attempt.id, [fact], now)
        return id_

    for fact in sound[: limits.max_per_attempt]:
        twin = await recorded.twin(fact)
        if twin is None:
            await write(fact)
        else:
            await recorded.absorb(fact, twin, write=write, at=now)


def _extracted(fact: Fact, state: FactState) -> Fact:
    return replace(fact, text=" ".join(fact.text.split()), state=state, maker=FactMaker.EXTRACTION)


async def settle(
    journal: Journal,
    attempt: Attempt,
    task: Task,
    *,
    model: "Model | None",
    settings: Settings,
    now: datetime,
    lacks: str = "",
) -> Study | None:
    """Review the facts of an ended attempt that wait for it, and do what the review says.

    Without a review, or where it fails, they wait for a person; `lacks` says why there is no model.
    Raises nothing but JournalError. The Study is the caller's to store; `None` if no fact waits, or
    the attempt is not over.
    """
    learned = Learned(journal)
    own = await learned.facts(attempt=attempt.id, limit=_ALL)
    pending = [each for each in own if each.state is FactState.PENDING]
    # A fact that others said as well is reviewed with the attempt that said it first.
    new = sorted((each for each in pending if each.attempt == attempt.id), key=lambda it: it.id)
    about = await _end(journal, attempt)
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


async def _end(journal: Journal, attempt: Attempt) -> int | None:
    """The entry with which the attempt was over."""
    found = None
    async for entry in journal.all_entries(attempt=attempt.id, kinds=(AttemptTransition,)):
        if isinstance(entry.record, AttemptTransition) and entry.record.lifecycle.over:
            found = entry.id
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    state: ReviewState
    settlement: Settlement
    error: str = ""
    model: str = ""
    spending: tuple[Spending, ...] = ()

    def record(self, new: Sequence[KnownFact]) -> FactReview:
        it = self.settlement
        return FactReview(
            state=self.state,
            facts=tuple(each.id for each in new),
            modified=it.modified,
            removed=it.removed,
            missed=it.missed,
            conflicts=it.conflicts,
            unanswered=it.unanswered if self.state is ReviewState.OK else 0,
            error=self.error,
            model=self.model,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reviewer:
    """Reviews the facts of one attempt, and writes down what comes of it."""

    journal: Journal
    learned: Learned
    task: Task
    attempt: Attempt
    settings: Settings
    now: datetime
    no_model: str
    """Why nobody reviews them, where there is no model."""

    async def review(self, new: Sequence[KnownFact], model: "Model | None") -> str:
        """Review some facts; why that was not possible, empty if it was."""
        known = await self._beside(new)
        outcome = await self._outcome(new, known, model)
        # Committed at one moment: what a review cost is told by that.
        await self._write([outcome.record(new), *outcome.spending])
        await self._apply(outcome.settlement.moves, new)
        return outcome.error

    async def _outcome(
        self, new: Sequence[KnownFact], known: Sequence[KnownFact], model: "Model | None"
    ) -> _Outcome:
        limits = self.settings.learning.facts
        on = limits.review and limits.enabled
        if model is None or not on:
            why = self.no_model if on else "the review is switched off"
            return _Outcome(state=ReviewState.SKIPPED, settlement=hold_all(new, why), error=why)
        try:
            return await self._ask(new, known, model)
        except JournalError:
            raise
        except Exception as error:  # whatever a model's answer does, no fact is lost by it
            # An error that is not Midwatch's own may quote the answer: only its name is told.
            why = str(error) if isinstance(error, WorkerError) else type(error).__name__
            log.warning(
                "attempt %d: %s left to a person, as the review failed: %s",
                *(self.attempt.id, counted(len(new), "fact"), brief(why, 200)),
            )
            return _Outcome(
                state=ReviewState.FALLBACK,
                settlement=hold_all(new, "the review failed"),
                error=why,
                model=model.model_name,
            )

    async def _ask(
        self, new: Sequence[KnownFact], known: Sequence[KnownFact], model: "Model"
    ) -> _Outcome:
        case = await case_of(self.journal, self.task, self.attempt)
        said = await review_facts(model, new=new, known=known, case=case, settings=self.settings)
        found = settlement(said.answer, new, known)
        return _Outcome(
            state=ReviewState.FALLBACK if found.empty else ReviewState.OK,
            settlement=found,
            error="the answer says nothing that can be done of any fact" if found.empty else "",
            model=model.model_name,
            spending=(said.spending,),
        )

    async def _beside(self, new: Sequence[KnownFact]) -> list[KnownFact]:
        """The shared facts of the project that fit the new ones best, without these."""
        ids = {each.id for each in new}
        found: list[list[KnownFact]] = []
        for each in new:
            wanted = Wanted(
                project=self.task.project,
                text=each.fact.text,
                files=each.fact.files,
                tags=each.fact.tags,
            )
            like = await self.learned.facts_like(wanted, limit=_EACH + len(ids))
            found.append([other for other in like if other.shared and other.id not in ids][:_EACH])
        # The best of each first, then the second of each; every fact once.
        turns = (each for rank in zip_longest(*found) for each in rank if each is not None)
        return list({each.id: each for each in turns}.values())[:_KNOWN]

    async def _apply(self, moves: Sequence[Move], new: Sequence[KnownFact]) -> None:
        """Do what was settled, as far as the facts still stand."""
        named = {id for move in moves for id in (*move.facts, move.instead) if id is not None}
        standing = {each.id: each for each in await self.learned.facts(ids=tuple(named))}
        own = {each.id for each in new}
        possible = [each for move in moves if (each := _possible(move, standing, own)) is not None]
        facts = [move.fact for move in possible if move.fact is not None]
        ids = iter(await self._write(facts))
        written = [None if move.fact is None else next(ids) for move in possible]
        heirs = {
            old: heir
            for move, heir in zip(possible, written, strict=True)
            if heir is not None
            for old in move.facts
        }
        for move, heir in zip(possible, written, strict=True):
            instead = heir if heir is not None else heirs.get(move.instead or 0, move.instead)
            for id_ in move.facts:
                await self._mark(standing[id_], move, instead)

    async def _mark(self, of: KnownFact, move: Move, instead: int | None) -> None:
        mark = FactMark(
            fact=of.id,
            act=move.act,
            instead=instead if move.act is FactAct.REPLACED else None,
            reason=move.reason,
        )
        whose = await self.journal.attempt(of.attempt)
        draft = Draft(record=mark, at=self.now, task=whose.task, attempt=whose.id)
        try:
            await self.journal.commit(Commit(drafts=(draft,)))
        except StaleIncarnationError:  # a person was quicker; the other facts go on
            log.info("fact %d is no longer what the review saw", of.id)

    async def _write(self, records: Sequence[Record]) -> list[int]:
        return await _written(self.journal, self.task.id, self.attempt.id, records, self.now)


async def _written(
    journal: Journal, task: int, attempt: int, records: Sequence[Record], at: datetime
) -> list[int]:
    """Write records of an attempt; their ids, in the same order."""
    if not records:
        return []
    drafts = tuple(Draft(record=each, at=at, task=task, attempt=attempt) for each in records)
    return [entry.id for entry in await journal.commit(Commit(drafts=drafts))]


def _possible(move: Move, standing: dict[int, KnownFact], own: set[int]) -> Move | None:
    """What can still be done of a move: facts may have ended while the review was at work."""
    facts = tuple(id_ for id_ in move.facts if id_ in standing)
    if move.facts and not facts:
        return None
    if move.instead is None or move.instead in standing:
        return replace(move, facts=facts)
    kept = tuple(id_ for id_ in facts if id_ in own)
    why = "what should stand in its place is gone"
    return Move(facts=kept, act=FactAct.HELD, reason=why) if kept else None
