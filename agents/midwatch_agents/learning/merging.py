"""Near-duplicates among facts: what is put together, and what is news. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from midwatch_agents.learning.factreview import Move
from midwatch_monitor.records import Fact, FactState, KnownFact
from midwatch_tools.tools.duplicates import covers, joined, same
from midwatch_tools.tools.facts import JOINED, KNOWN, oldest_same


def merged(new: Sequence[KnownFact], known: Sequence[KnownFact], *, alike: float) -> list[Move]:
    """What is to be done so that no new fact says the same as another one that stands.

    Of two, the older one stands if it says all that the newer one does, else the newer one if it
    says all that the older one does; else one is written that says both. A fact is put together
    with one other at most.
    """
    moves: list[Move] = []
    standing = {each.id: each for each in known if each.live}
    for each in sorted(new, key=lambda it: it.id):
        others = [other for other in standing.values() if other.id != each.id]
        twin = oldest_same(each.fact, others, alike=alike)
        if twin is None:
            standing[each.id] = each
            continue
        move = _of_two(twin, each)
        moves.append(move)
        standing |= {each.id: each}
        standing = {id: other for id, other in standing.items() if id not in move.facts}
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
        sources=tuple(dict.fromkeys((*_sources(older), *_sources(newer)))),
    )
    return Move(facts=(older.id, newer.id), fact=both, reason=JOINED)


def _sources(known: KnownFact) -> tuple[int, ...]:
    return (known.attempt, *known.sources, *known.fact.sources)


def distinct(facts: Sequence[Fact], *, alike: float) -> list[Fact]:
    """Facts that came together, each thing once."""
    found: list[Fact] = []
    for fact in facts:
        at = next((n for n, each in enumerate(found) if same(each, fact, alike=alike)), None)
        if at is None:
            found.append(fact)
        elif not covers(found[at], fact):
            found[at] = joined(found[at], fact)
    return found
