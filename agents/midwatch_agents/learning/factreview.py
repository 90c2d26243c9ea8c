"""What becomes of facts by the answer of their review. Pure.

No answer loses a fact: what it leaves out, says wrongly or cannot say waits for a person, and so
does a text that names a command, or that is about checks or instructions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from midwatch_agents.learning.factanswer import (
    Answer,
    Conflict,
    Correction,
    Judged,
    Missed,
    Verdict,
    Way,
)
from midwatch_monitor.records import (
    Certainty,
    Fact,
    FactAct,
    FactMaker,
    FactState,
    KnownFact,
)
from midwatch_tools.tools.duplicates import same
from midwatch_tools.tools.facts import lacks

MOST_MISSED = 20
"""Facts that one review may add."""
_REASON = 300
"""Characters of a reason that is kept."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing that comes of a review: a fact is written, facts are marked, or both."""

    facts: tuple[int, ...] = ()
    """The facts that are marked, by journal id."""
    act: FactAct = FactAct.REPLACED
    fact: Fact | None = None
    """What is written first; it stands in the place of those that are replaced."""
    instead: int | None = None
    """The fact that stands in their place where none is written."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What becomes of all new facts, and of the known ones that they contradict."""

    moves: tuple[Move, ...] = ()
    modified: int = 0
    removed: int = 0
    missed: int = 0
    conflicts: int = 0
    unanswered: int = 0
    """New facts of which the review says nothing that can be done."""

    @property
    def empty(self) -> bool:
        """Whether the review said nothing of anything: that is no review."""
        return self.unanswered == len(self.moves)


def settled(
    answer: Answer,
    new: Sequence[KnownFact],
    known: Sequence[KnownFact],
    *,
    alike: float,
) -> Settlement:
    """What becomes of the facts by an answer; both sequences are numbered from 1 in it.

    A contradiction counts before what is said of the fact alone, and of several things about one
    fact the first that can be done. What is confirmed yields to nothing that is inferred. A
    structured value is carried over as it is. All facts at once go only with a reason for each.
    """
    table = _Table(new=tuple(new), known=tuple(known), alike=alike, said=_said(answer, new))
    for conflict in answer.conflicts:
        table.settle(conflict)
    table.correct()
    for missed in answer.missed:
        table.add(missed)
    return table.settlement()


def held(new: Sequence[KnownFact], reason: str) -> Settlement:
    """Every fact as it is, for a person: as if there were no review."""
    moves = (Move(facts=(each.id,), act=FactAct.HELD, reason=reason) for each in new)
    return Settlement(moves=tuple(moves), unanswered=len(new))


@dataclass(slots=True, kw_only=True)
class _Table:
    """What is settled so far."""

    new: tuple[KnownFact, ...]
    known: tuple[KnownFact, ...]
    alike: float
    said: dict[int, Correction]
    """The first thing that can be done about each new fact, by its id."""
    moves: list[Move] = field(default_factory=list[Move])
    closed: set[int] = field(default_factory=set[int])
    """Facts that no longer stand."""
    stronger: set[int] = field(default_factory=set[int])
    """New facts that stand against a known one."""
    doubtful: dict[int, str] = field(default_factory=dict[int, str])
    """New facts with a contradiction that could not be settled, and why."""
    conflicts: int = 0
    modified: int = 0
    removed: int = 0
    missed: int = 0
    unanswered: int = 0

    # -- contradictions --------------------------------------------------------------------

    def settle(self, conflict: Conflict) -> None:
        """Settle a contradiction, or keep both facts where that cannot be done."""
        new, known = _at(self.new, conflict.new), _at(self.known, conflict.known)
        if new is None:
            return
        if known is None or conflict.resolution not in {*Way}:
            self.doubtful.setdefault(new.id, "the contradiction that was named is not clear")
        elif not {new.id, known.id} & self.closed:
            self._resolve(conflict, new, known)

    def _resolve(self, conflict: Conflict, new: KnownFact, known: KnownFact) -> None:
        way = Way(conflict.resolution)
        if way is Way.MERGE:
            self._merge(new, known, conflict)
            return
        kept, gone = (new, known) if way is Way.KEEP_NEW else (known, new)
        if kept is new and (doubt := self._doubt(new)):
            self.doubtful[new.id] = doubt  # what waits ends nothing that is shared
        elif _certain(gone) and not _certain(kept):
            self.doubtful[new.id] = f"what is inferred ends no confirmed fact: {known.id} stands"
        elif gone.id not in self.stronger:
            self.stronger |= {kept.id} & {each.id for each in self.new}
            self._end((gone.id,), instead=kept.id, reason=f"the review: {way.value}")
            self.conflicts += 1

    def _merge(self, new: KnownFact, known: KnownFact, conflict: Conflict) -> None:
        merged = replace(
            _reworded(known.fact, conflict.text, sure=_certain(new) or _certain(known)),
            value=known.fact.value or new.fact.value,
            files=_union(known.fact.files, new.fact.files),
            tags=_union(known.fact.tags, new.fact.tags),
            sources=_union(_sources(known), _sources(new)),
        )
        values = {known.fact.value, new.fact.value} - {""}
        doubt = conflict.doubt(_words(merged))
        if doubt or len(values) > 1 or lacks(merged):
            why = f": {doubt}" if doubt else ""
            self.doubtful[new.id] = f"it could not be merged with fact {known.id}{why}"
            return
        self._end((new.id, known.id), fact=merged, reason="the review: merge")
        self.conflicts += 1

    def _end(
        self,
        facts: tuple[int, ...],
        *,
        fact: Fact | None = None,
        instead: int | None = None,
        reason: str,
    ) -> None:
        self.closed |= {*facts}
        self.moves.append(Move(facts=facts, fact=fact, instead=instead, reason=reason[:_REASON]))

    # -- new facts -------------------------------------------------------------------------

    def correct(self) -> None:
        """Do what is said of each new fact that still stands."""
        gone = {id for id, each in self.said.items() if each.action == Verdict.REMOVE}
        everything = gone >= {each.id for each in self.new}
        for each in self.new:
            if each.id not in self.closed:
                self._judge(each, self.said.get(each.id), everything=everything)

    def _doubt(self, new: KnownFact) -> str:
        """Why a new fact must be read by a person, as it is; empty if it need not."""
        said = self.said.get(new.id)
        return said.doubt(_words(new.fact)) if said else "the review says nothing of it"

    def _judge(self, new: KnownFact, said: Correction | None, *, everything: bool) -> None:
        stands = new.id in self.stronger
        if new.id in self.doubtful:
            self._release(new, self.doubtful[new.id])
        elif said is None:
            self._release(new, "the review says nothing of it")
        elif said.action == Verdict.REMOVE:
            self._remove(new, said, stands=stands, everything=everything)
        else:
            self._improve(new, said)

    def _keep(self, new: KnownFact) -> None:
        doubt = self._doubt(new)
        act = FactAct.HELD if doubt else FactAct.REVIEWED
        self.moves.append(Move(facts=(new.id,), act=act, reason=doubt))

    def _release(self, new: KnownFact, reason: str) -> None:
        self.unanswered += 1
        self.moves.append(Move(facts=(new.id,), act=FactAct.HELD, reason=reason))

    def _remove(self, new: KnownFact, said: Correction, *, stands: bool, everything: bool) -> None:
        reason = " ".join(said.reason.split())[:_REASON]
        if stands:  # it was kept against a known one: gone, there would be neither
            self._keep(new)
        elif everything and not reason:
            self._release(new, "all facts at once go only with a reason for each")
        else:
            self.removed += 1
            self.closed.add(new.id)
            self.moves.append(Move(facts=(new.id,), act=FactAct.REMOVED, reason=reason))

    def _improve(self, new: KnownFact, said: Correction) -> None:
        """Keep a fact, in other words where there are some: that counts whatever it is called."""
        fact = new.fact
        text = " ".join(said.text.split()) or fact.text
        sure = _certain(new) or said.certainty == Certainty.CONFIRMED
        if text == fact.text and sure == _certain(new):
            self._keep(new)
            return
        better = replace(_reworded(fact, text, sure=sure), sources=_sources(new))
        if lacks(better):
            self._release(new, "its new words could not be taken")
            return
        self.modified += 1
        better = replace(better, state=_state(said, better))
        self._end((new.id,), fact=better, reason=said.reason or "the review: enrich")

    # -- what nobody wrote down ------------------------------------------------------------

    def add(self, missed: Missed) -> None:
        """Add a fact that was missed, unless it says nothing or nothing new."""
        fact = Fact(
            text=" ".join(missed.text.split()),
            certainty=_certainty(sure=missed.certainty == Certainty.CONFIRMED),
            files=tuple(dict.fromkeys(filter(None, map(str.strip, missed.files)))),
            maker=FactMaker.REVIEW,
        )
        fact = replace(fact, state=_state(missed, fact))
        there = [each.fact for each in (*self.new, *self.known)]
        there += [move.fact for move in self.moves if move.fact is not None]
        if (
            self.missed < MOST_MISSED
            and not lacks(fact)
            and not any(same(each, fact, alike=self.alike) for each in there)
        ):
            self.missed += 1
            self.moves.append(Move(fact=fact))

    def settlement(self) -> Settlement:
        return Settlement(
            moves=tuple(self.moves),
            modified=self.modified,
            removed=self.removed,
            missed=self.missed,
            conflicts=self.conflicts,
            unanswered=self.unanswered,
        )


def _said(answer: Answer, new: Sequence[KnownFact]) -> dict[int, Correction]:
    said: dict[int, Correction] = {}
    for each in answer.corrected:
        if (fact := _at(new, each.number)) and each.action in {*Verdict}:
            said.setdefault(fact.id, each)
    return said


def _state(judged: Judged, fact: Fact) -> FactState:
    return FactState.WAITING if judged.doubt(_words(fact)) else FactState.REVIEWED


def _words(fact: Fact) -> str:
    """All of a fact that workers read."""
    return "\n".join((fact.text, fact.value, *fact.files, *fact.tags))


def _at(facts: Sequence[KnownFact], number: int) -> KnownFact | None:
    return facts[number - 1] if 1 <= number <= len(facts) else None


def _certain(known: KnownFact) -> bool:
    return known.fact.certainty is Certainty.CONFIRMED


def _certainty(*, sure: bool) -> Certainty:
    return Certainty.CONFIRMED if sure else Certainty.INFERRED


def _reworded(fact: Fact, text: str, *, sure: bool) -> Fact:
    """The fact in other words, with all else that it holds."""
    return replace(
        fact,
        text=" ".join(text.split()),
        certainty=_certainty(sure=sure),
        state=FactState.REVIEWED,
        maker=FactMaker.REVIEW,
    )


def _sources(known: KnownFact) -> tuple[int, ...]:
    return _union((known.attempt, *known.fact.sources), known.sources)


def _union(one: Sequence[T], other: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
