"""What becomes of the facts of an ended attempt: stored, reviewed, put together. Never lost."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from midwatch_agents.learning.fact_review import Move, Settlement, distinct, held, merged, settled
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
from midwatch_supervisor.learning.casebook import case_of
from midwatch_tools.tools.duplicates import covers
from midwatch_tools.tools.facts import Facts, lacks

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
    shelf = Facts(journal=journal, task=task, attempt=attempt)
    state = FactState.PENDING if limits.review else FactState.WAITING
    taken = [_extracted(each, state) for each in facts]
    sound = distinct([each for each in taken if not lacks(each)])
    if len(sound) < len(facts):
        said = "attempt %d: %d of %d extracted facts are taken"
        log.info(said, attempt.id, len(sound), len(facts))

    async def write(fact: Fact) -> int:
        (id_,) = await _written(journal, task.id, attempt.id, [fact], now)
        return id_

    for fact in sound[: limits.max_per_attempt]:
        twin = await shelf.twin(fact)
        # What may yet be removed must not end what is known.
        if twin is None or not covers(twin.fact, fact):
            await write(fact)
        else:
            await shelf.absorb(fact, twin, write=write, at=now)


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
    new = sorted((each for each in own if _waits(each, attempt)), key=lambda each: each.id)
    about = await _end(journal, attempt)
    if not new or about is None:
        return None
    desk = _Desk(journal, learned, task, attempt, settings, now, lacks)
    reasons: list[str] = []
    for start in range(0, len(new), _BATCH):
        batch = new[start : start + _BATCH]
        reasons.append(await desk.review(batch, model))
    reason = "; ".join(dict.fromkeys(filter(None, reasons)))
    return Study(about=about, chore=Chore.REVIEW, state=StudyState.DONE, reason=reason)


def _waits(known: KnownFact, attempt: Attempt) -> bool:
    return known.attempt == attempt.id and known.state is FactState.PENDING


async def _end(journal: Journal, attempt: Attempt) -> int | None:
    """The entry with which the attempt was over."""
    found = None
    async for entry in journal.all_entries(attempt=attempt.id, kinds=(AttemptTransition,)):
        if isinstance(entry.record, AttemptTransition) and entry.record.lifecycle.over:
            found = entry.id
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What a review came to."""

    state: ReviewState
    settlement: Settlement
    error: str = ""
    model: str = ""
    spending: Spending | None = None

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


class _Desk:
    """Reviews the facts of one attempt, and writes down what comes of it."""

    def __init__(
        self,
        journal: Journal,
        learned: Learned,
        task: Task,
        attempt: Attempt,
        settings: Settings,
        now: datetime,
        lacks: str,
    ) -> None:
        self._journal = journal
        self._learned = learned
        self._task = task
        self._attempt = attempt
        self._settings = settings
        self._limits = settings.learning.facts
        self._now = now
        self._without = NO_MODEL + (f": {lacks}" if lacks else "")

    async def review(self, new: Sequence[KnownFact], model: "Model | None") -> str:
        """Review some facts; why that was not possible, empty if it was."""
        known = await self._beside(new)
        outcome = await self._outcome(new, known, model)
        records: list[Record] = [outcome.record(new)]
        if outcome.spending is not None:
            records.append(outcome.spending)
        # Committed at one moment: what a review cost is told by that.
        await self._commit(records)
        fresh = await self._apply(outcome.settlement.moves, new)
        await self._put_together(fresh)
        return outcome.error

    async def _outcome(
        self, new: Sequence[KnownFact], known: Sequence[KnownFact], model: "Model | None"
    ) -> _Outcome:
        on = self._limits.review and self._limits.enabled
        if model is None or not on:
            why = self._without if on else "the review is switched off"
            return _Outcome(state=ReviewState.SKIPPED, settlement=held(new, why), error=why)
        try:
            return await self._ask(new, known, model)
        except JournalError:
            raise
        except Exception as error:  # whatever a model's answer does, no fact is lost by it
            # An error that is not Midwatch's own may quote the answer: only its name is told.
            why = str(error) if isinstance(error, WorkerError) else type(error).__name__
            log.warning(
                "the review of %d facts of attempt %d failed (%s): they wait for a person",
                *(len(new), self._attempt.id, type(error.__cause__ or error).__name__),
            )
            return _Outcome(
                state=ReviewState.FALLBACK,
                settlement=held(new, "the review failed"),
                error=why,
                model=model.model_name,
            )

    async def _ask(
        self, new: Sequence[KnownFact], known: Sequence[KnownFact], model: "Model"
    ) -> _Outcome:
        from midwatch_agents.factreviewer import review_facts

        case = await case_of(self._journal, self._task, self._attempt)
        told = await review_facts(
            model,
            new=new,
            known=known,
            case=case,
            settings=self._settings,
        )
        found = settled(told.answer, new, known)
        nothing = found.empty
        return _Outcome(
            state=ReviewState.FALLBACK if nothing else ReviewState.OK,
            settlement=found,
            error="the answer says nothing that can be done of any fact" if nothing else "",
            model=model.model_name,
            spending=told.spending,
        )

    async def _beside(self, new: Sequence[KnownFact]) -> list[KnownFact]:
        """The shared facts of the project that fit the new ones best, without these."""
        ids = {each.id for each in new}
        found = [
            await self._learned.facts_like(
                Wanted(
                    project=self._task.project,
                    text=each.fact.text,
                    files=each.fact.files,
                    tags=each.fact.tags,
                ),
                limit=_EACH + len(ids),
            )
            for each in new
        ]
        return _by_turns([_without(each, ids)[:_EACH] for each in found])[:_KNOWN]

    async def _put_together(self, ids: Iterable[int]) -> None:
        """Let no new fact that stands say the same as another one."""
        standing = await self._learned.facts(ids=tuple(ids))
        fresh = [each for each in standing if each.shared]
        moves = merged(fresh, await self._beside(fresh))
        await self._apply(moves, fresh)

    # -- writing ---------------------------------------------------------------------------

    async def _apply(self, moves: Sequence[Move], new: Sequence[KnownFact]) -> list[int]:
        """Do it, as far as the facts still stand; the facts of the attempt that are there now."""
        named = {id for move in moves for id in (*move.facts, move.instead) if id is not None}
        standing = {each.id: each for each in await self._learned.facts(ids=tuple(named))}
        own = {each.id for each in new}
        possible = [each for move in moves if (each := _possible(move, standing, own)) is not None]
        facts = [move.fact for move in possible if move.fact is not None]
        ids = iter(await _written(self._journal, self._task.id, self._attempt.id, facts, self._now))
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
        return [*own, *(heir for heir in written if heir is not None)]

    async def _mark(self, of: KnownFact, move: Move, instead: int | None) -> None:
        mark = FactMark(
            fact=of.id,
            act=move.act,
            instead=instead if move.act is FactAct.REPLACED else None,
            reason=move.reason,
        )
        whose = await self._journal.attempt(of.attempt)
        draft = Draft(record=mark, at=self._now, task=whose.task, attempt=whose.id)
        try:
            await self._journal.commit(Commit(drafts=(draft,)))
        except StaleIncarnationError:  # a person was quicker; the other facts go on
            log.info("fact %d is no longer what the review saw", of.id)

    async def _commit(self, records: Sequence[Record]) -> None:
        drafts = [
            Draft(record=each, at=self._now, task=self._task.id, attempt=self._attempt.id)
            for each in records
        ]
        await self._journal.commit(Commit(drafts=tuple(drafts)))


async def _written(
    journal: Journal, task: int, attempt: int, facts: Sequence[Fact], at: datetime
) -> list[int]:
    """Write facts; their ids, in the same order."""
    if not facts:
        return []
    drafts = tuple(Draft(record=each, at=at, task=task, attempt=attempt) for each in facts)
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


def _without(facts: Iterable[KnownFact], ids: set[int]) -> list[KnownFact]:
    return [each for each in facts if each.shared and each.id not in ids]


def _by_turns(found: Sequence[Sequence[KnownFact]]) -> list[KnownFact]:
    """The best of each list first, then the second of each; every fact once."""
    turns = (each for rank in zip_longest(*found) for each in rank if each is not None)
    return list({each.id: each for each in turns}.values())
