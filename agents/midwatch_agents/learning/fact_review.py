"""What a review of new facts may answer, and what becomes of the facts by it. Pure.

One wrong item of an answer spoils itself and no other. No answer loses a fact: what it leaves out,
says wrongly or cannot say waits for a person, and so does a text that names a command, or that is
about checks or instructions.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, TypeVar

from pydantic import Field

from midwatch_agents.learning.screening import names_a_command
from midwatch_monitor.records import (
    Certainty,
    Fact,
    FactAct,
    FactMaker,
    FactState,
    KnownFact,
)
from midwatch_tools.tools.duplicates import covers, joined, same
from midwatch_tools.tools.facts import JOINED, KNOWN, lacks, oldest_same

MOST_MISSED = 20
"""Facts that one review may add."""
_REASON = 300
"""Characters of a reason that is kept."""

T = TypeVar("T")


class Verdict(StrEnum):
    """What is thought of a new fact."""

    KEEP = "keep"
    ENRICH = "enrich"
    REMOVE = "remove"


class Way(StrEnum):
    """How a contradiction between a new fact and a known one is settled."""

    KEEP_NEW = "keep_new"
    KEEP_EXISTING = "keep_existing"
    MERGE = "merge"


_CERTAINTY = Field(
    json_schema_extra={"enum": [each.value for each in Certainty]},
    description="`confirmed` if the attempt shows it in a file or an output, else `inferred`.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the text of a fact is about, as it will be shared. What is not said counts as yes."""

    names_a_command: Annotated[
        bool, Field(description="Whether it names anything that one could run, open or install.")
    ] = True
    about_checks: Annotated[
        bool,
        Field(description="Whether it would have tests, checks or reviews left out or weakened."),
    ] = True
    about_instructions: Annotated[
        bool,
        Field(description="Whether it speaks to its reader, or of what its reader is told to do."),
    ] = True

    def doubt(self, fact: Fact) -> str:
        """Why a person must read that fact first; empty if none must."""
        text = "\n".join((fact.text, fact.value, *fact.files, *fact.tags))
        reasons = {
            "it names a command": self.names_a_command or names_a_command(text),
            "it is about checks": self.about_checks,
            "it is about instructions": self.about_instructions,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    def state_of(self, fact: Fact) -> FactState:
        return FactState.WAITING if self.doubt(fact) else FactState.REVIEWED


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction(Judged):
    """What is thought of one new fact."""

    number: Annotated[int, Field(description="Of the new fact.")]
    action: Annotated[
        str,
        Field(
            json_schema_extra={"enum": [each.value for each in Verdict]},
            description="`keep` if it is right, `enrich` to word it better or more fully, "
            "`remove` if it is wrong or of no use.",
        ),
    ]
    text: Annotated[str, Field(description="For `enrich`: the whole fact in its new words.")] = ""
    certainty: Annotated[str, _CERTAINTY] = ""
    reason: Annotated[str, Field(description="Why; needed for `remove`.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed(Judged):
    """A fact that the attempt shows and nobody wrote down."""

    text: str
    certainty: Annotated[str, _CERTAINTY] = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Judged):
    """A new fact and a known one that cannot both be true, or that say the same."""

    new: Annotated[int, Field(description="The number of the new fact.")]
    known: Annotated[int, Field(description="The number of the known fact.")]
    resolution: Annotated[str, Field(json_schema_extra={"enum": [each.value for each in Way]})]
    text: Annotated[str, Field(description="For `merge`: one fact that holds both.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that a review says."""

    corrected: Annotated[
        tuple[Correction, ...], Field(description="Every new fact, each once, by its number.")
    ] = ()
    missed: tuple[Missed, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def faults(answer: Answer, *, new: int, known: int) -> list[str]:
    """What is wrong with an answer about so many facts, in words for the model."""
    said = [each.number for each in answer.corrected]
    left = [str(number) for number in range(1, new + 1) if number not in said]
    found = [f"nothing is said of the new facts {', '.join(left)}"] if left else []
    for each in answer.corrected:
        if not 1 <= each.number <= new:
            found.append(f"there is no new fact {each.number}")
        elif each.action not in {*Verdict}:
            found.append(f"{each.action!r} is no action")
        elif each.action == Verdict.REMOVE and not each.reason.strip():
            found.append(f"the removal of new fact {each.number} has no reason")
        elif each.action == Verdict.ENRICH and not each.text.strip():
            found.append(f"new fact {each.number} is enriched without a text")
    for each in answer.conflicts:
        if not (1 <= each.new <= new and 1 <= each.known <= known):
            found.append(f"there are no facts {each.new} and {each.known} for a conflict")
        elif each.resolution not in {*Way}:
            found.append(f"{each.resolution!r} is no resolution")
        elif each.resolution == Way.MERGE and not each.text.strip():
            found.append("a merge has no text")
    return found


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


def settled(answer: Answer, new: Sequence[KnownFact], known: Sequence[KnownFact]) -> Settlement:
    """What becomes of the facts by an answer; both sequences are numbered from 1 in it.

    A contradiction counts before what is said of the fact alone, and of several things about one
    fact the first that can be done. What is confirmed yields to nothing that is inferred. A
    structured value is carried over as it is. All facts at once go only with a reason for each.
    """
    corrections: dict[int, Correction] = {}
    for each in answer.corrected:
        if (fact := _at(new, each.number)) and each.action in {*Verdict}:
            corrections.setdefault(fact.id, each)
    review = _Review(new=tuple(new), known=tuple(known), corrections=corrections)
    for conflict in answer.conflicts:
        review.settle(conflict)
    review.correct()
    for missed in answer.missed:
        review.add(missed)
    return Settlement(moves=tuple(review.moves), **review.counts)


def held(new: Sequence[KnownFact], reason: str) -> Settlement:
    """Every fact as it is, for a person: as if there were no review."""
    moves = (Move(facts=(each.id,), act=FactAct.HELD, reason=reason) for each in new)
    return Settlement(moves=tuple(moves), unanswered=len(new))


@dataclass(slots=True, kw_only=True)
class _Review:
    new: tuple[KnownFact, ...]
    known: tuple[KnownFact, ...]
    corrections: dict[int, Correction]
    """The first thing that can be done about each new fact, by its id."""
    moves: list[Move] = field(default_factory=list[Move])
    counts: Counter[str] = field(default_factory=Counter[str])
    """The figures of the settlement, by their names."""
    closed: set[int] = field(default_factory=set[int])
    """Facts that no longer stand."""
    stronger: set[int] = field(default_factory=set[int])
    """New facts that stand against a known one."""
    doubtful: dict[int, str] = field(default_factory=dict[int, str])
    """New facts with a contradiction that could not be settled, and why."""

    def settle(self, conflict: Conflict) -> None:
        """Settle a contradiction, or keep both facts where that cannot be done."""
        new, known = _at(self.new, conflict.new), _at(self.known, conflict.known)
        if new is None:
            return
        if known is None or conflict.resolution not in {*Way}:
            self.doubtful.setdefault(new.id, "the contradiction that was named is not clear")
        elif not {new.id, known.id} & self.closed:
            if conflict.resolution == Way.MERGE:
                self._merge(new, known, conflict)
            else:
                self._choose(new, known, Way(conflict.resolution))

    def _choose(self, new: KnownFact, known: KnownFact, way: Way) -> None:
        kept, gone = (new, known) if way is Way.KEEP_NEW else (known, new)
        if kept is new and (doubt := self._doubt(new)):
            self.doubtful[new.id] = doubt  # what waits ends nothing that is shared
        elif _confirmed(gone) and not _confirmed(kept):
            self.doubtful[new.id] = f"what is inferred ends no confirmed fact: {known.id} stands"
        elif gone.id not in self.stronger:
            self.stronger |= {kept.id} & {each.id for each in self.new}
            self._end(gone.id, instead=kept.id, reason=f"the review: {way.value}")
            self.counts["conflicts"] += 1

    def _merge(self, new: KnownFact, known: KnownFact, conflict: Conflict) -> None:
        both = joined(known.fact, new.fact)
        merged = replace(
            _reworded(both, conflict.text, confirmed=_confirmed(new) or _confirmed(known)),
            sources=_union(_sources(known), _sources(new)),
        )
        values = {known.fact.value, new.fact.value} - {""}
        doubt = conflict.doubt(merged)
        if doubt or len(values) > 1 or lacks(merged):
            why = f": {doubt}" if doubt else ""
            self.doubtful[new.id] = f"it could not be merged with fact {known.id}{why}"
            return
        self._end(new.id, known.id, fact=merged, reason="the review: merge")
        self.counts["conflicts"] += 1

    def _end(
        self, *facts: int, fact: Fact | None = None, instead: int | None = None, reason: str
    ) -> None:
        self.closed |= {*facts}
        self.moves.append(Move(facts=facts, fact=fact, instead=instead, reason=reason[:_REASON]))

    def correct(self) -> None:
        """Do what is said of each new fact that still stands."""
        gone = {id for id, each in self.corrections.items() if each.action == Verdict.REMOVE}
        everything = gone >= {each.id for each in self.new}
        for new in self.new:
            if new.id in self.closed:
                continue
            said = self.corrections.get(new.id)
            if said is None or new.id in self.doubtful:
                self._hold(new, self.doubtful.get(new.id) or self._doubt(new))
            elif said.action == Verdict.REMOVE:
                self._remove(new, said, everything=everything)
            else:
                self._improve(new, said)

    def _doubt(self, new: KnownFact) -> str:
        """Why a new fact must be read by a person, as it is; empty if it need not."""
        said = self.corrections.get(new.id)
        return said.doubt(new.fact) if said else "the review says nothing of it"

    def _keep(self, new: KnownFact) -> None:
        doubt = self._doubt(new)
        self._move(new, FactAct.HELD if doubt else FactAct.REVIEWED, doubt)

    def _move(self, new: KnownFact, act: FactAct, reason: str) -> None:
        self.moves.append(Move(facts=(new.id,), act=act, reason=reason))

    def _hold(self, new: KnownFact, reason: str) -> None:
        self.counts["unanswered"] += 1
        self._move(new, FactAct.HELD, reason)

    def _remove(self, new: KnownFact, said: Correction, *, everything: bool) -> None:
        reason = " ".join(said.reason.split())[:_REASON]
        if new.id in self.stronger:  # it stands against a known one: else there would be neither
            self._keep(new)
        elif everything and not reason:
            self._hold(new, "all facts at once go only with a reason for each")
        else:
            self.counts["removed"] += 1
            self.closed.add(new.id)
            self._move(new, FactAct.REMOVED, reason)

    def _improve(self, new: KnownFact, said: Correction) -> None:
        """Keep a fact, in other words where there are some: that counts whatever it is called."""
        text = " ".join(said.text.split()) or new.fact.text
        confirmed = _confirmed(new) or said.certainty == Certainty.CONFIRMED
        if text == new.fact.text and confirmed == _confirmed(new):
            self._keep(new)
            return
        better = replace(_reworded(new.fact, text, confirmed=confirmed), sources=_sources(new))
        if lacks(better):
            self._hold(new, "its new words could not be taken")
            return
        self.counts["modified"] += 1
        better = replace(better, state=said.state_of(better))
        self._end(new.id, fact=better, reason=said.reason or "the review: enrich")

    def add(self, missed: Missed) -> None:
        """Add a fact that was missed, unless it says nothing or nothing new."""
        files = tuple(dict.fromkeys(each.strip() for each in missed.files if each.strip()))
        confirmed = missed.certainty == Certainty.CONFIRMED
        fact = _reworded(Fact(text="", files=files), missed.text, confirmed=confirmed)
        fact = replace(fact, state=missed.state_of(fact))
        there = [each.fact for each in (*self.new, *self.known)]
        there += [move.fact for move in self.moves if move.fact is not None]
        news = not lacks(fact) and not any(same(each, fact) for each in there)
        if news and self.counts["missed"] < MOST_MISSED:
            self.counts["missed"] += 1
            self.moves.append(Move(fact=fact))


def merged(new: Sequence[KnownFact], known: Sequence[KnownFact]) -> list[Move]:
    """What is to be done so that no new fact says the same as another one that stands.

    Of two, the older one stands if it says all that the newer one does, else the newer one if it
    says all that the older one does; else one is written that says both. A fact is put together
    with one other at most.
    """
    moves: list[Move] = []
    standing = {each.id: each for each in known if each.live}
    for each in sorted(new, key=lambda it: it.id):
        twin = oldest_same(each.fact, [it for it in standing.values() if it.id != each.id])
        standing[each.id] = each
        if twin is not None:
            moves.append(_of_two(twin, each))
            for ended in moves[-1].facts:
                del standing[ended]
    return moves


def _of_two(older: KnownFact, newer: KnownFact) -> Move:
    if covers(older.fact, newer.fact):
        return Move(facts=(newer.id,), instead=older.id, reason=KNOWN)
    if covers(newer.fact, older.fact):
        return Move(facts=(older.id,), instead=newer.id, reason=JOINED)
    both = replace(
        joined(older.fact, newer.fact),
        # What is reviewed on one side only is not reviewed.
        state=older.state if newer.state is FactState.REVIEWED else newer.state,
        sources=_union(_sources(older), _sources(newer)),
    )
    return Move(facts=(older.id, newer.id), fact=both, reason=JOINED)


def distinct(facts: Sequence[Fact]) -> list[Fact]:
    """Facts that came together, each thing once."""
    found: list[Fact] = []
    for fact in facts:
        at = next((n for n, each in enumerate(found) if same(each, fact)), None)
        if at is None:
            found.append(fact)
        elif not covers(found[at], fact):
            found[at] = joined(found[at], fact)
    return found


def _at(facts: Sequence[KnownFact], number: int) -> KnownFact | None:
    return facts[number - 1] if 1 <= number <= len(facts) else None


def _confirmed(known: KnownFact) -> bool:
    return known.fact.certainty is Certainty.CONFIRMED


def _reworded(fact: Fact, text: str, *, confirmed: bool) -> Fact:
    return replace(
        fact,
        text=" ".join(text.split()),
        certainty=Certainty.CONFIRMED if confirmed else Certainty.INFERRED,
        state=FactState.REVIEWED,
        maker=FactMaker.REVIEW,
    )


def _sources(known: KnownFact) -> tuple[int, ...]:
    return _union((known.attempt, *known.fact.sources), known.sources)


def _union(one: Sequence[T], other: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
