"""Contradictions between new facts and known ones: they are settled, not only counted."""

from dataclasses import replace

import pytest

from midwatch_agents.learning.fact_review import (
    Conflict,
    Correction,
    ReviewReply,
    Settlement,
    settlement,
)
from midwatch_monitor.records import Certainty, Fact, FactAct, FactMaker, FactState, KnownFact
from midwatch_stage.factories import known_fact

INFERRED, CONFIRMED = Certainty.INFERRED, Certainty.CONFIRMED
REVIEWED, HELD, REPLACED = FactAct.REVIEWED, FactAct.HELD, FactAct.REPLACED
HARMLESS = dict.fromkeys(("names_a_command", "about_checks", "about_instructions"), False)


def fact(
    number: int,
    text: str,
    certainty: Certainty = INFERRED,
    *,
    state: FactState = FactState.PENDING,
    attempt: int = 3,
    value: str = "",
) -> KnownFact:
    said = Fact(text=text, certainty=certainty, value=value, state=state)
    return known_fact(number, fact=said, state=state, attempt=attempt, sources=(attempt,))


NEW = (fact(11, "The app uses React 19"), fact(12, "The tests run with vitest"))
OLD = (
    fact(1, "The app uses React 18", state=FactState.REVIEWED, attempt=1),
    fact(2, "The tests run with jest", state=FactState.REVIEWED, attempt=1),
)


def resolved(
    *conflicts: Conflict,
    new: tuple[KnownFact, ...] = NEW,
    known: tuple[KnownFact, ...] = OLD,
    corrected: tuple[Correction, ...] = (),
) -> Settlement:
    given = corrected or tuple(
        Correction(number=n, action="keep", **HARMLESS) for n in range(1, len(new) + 1)
    )
    return settlement(ReviewReply(corrected=given, conflicts=conflicts), new, known)


def ways(settlement: Settlement) -> list[tuple[tuple[int, ...], FactAct, int | None]]:
    return [(move.facts, move.act, move.instead) for move in settlement.moves]


def conflict(resolution: str, new: int = 1, known: int = 1, text: str = "") -> Conflict:
    return Conflict(new=new, known=known, resolution=resolution, text=text, **HARMLESS)


def test_v11_keep_new_puts_the_new_fact_in_the_place_of_the_known_one() -> None:
    found = resolved(conflict("keep_new"))
    assert ways(found) == [((1,), REPLACED, 11), ((11,), REVIEWED, None), ((12,), REVIEWED, None)]
    assert found.conflicts == 1


def test_v11_keep_existing_ends_the_new_fact() -> None:
    found = resolved(conflict("keep_existing"))
    assert ways(found) == [((11,), REPLACED, 1), ((12,), REVIEWED, None)]


def test_v11_merge_writes_one_fact_in_the_place_of_both() -> None:
    text = "The app uses React 19, and React 18 in packages/old"
    known = replace(OLD[0], fact=replace(OLD[0].fact, value='{"react": 18}', files=("a",)))
    found = resolved(conflict("merge", text=text), known=(known,))
    assert ways(found)[0] == ((11, 1), REPLACED, None)
    assert found.moves[0].fact == Fact(
        text=text,
        files=("a",),
        value='{"react": 18}',
        state=FactState.REVIEWED,
        maker=FactMaker.REVIEW,
        sources=(1, 3),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        conflict("merge"),
        conflict("merge", text="React"),
        conflict("neither"),
        conflict("keep_new", known=9),
    ],
)
def test_requirement_19_what_cannot_be_settled_keeps_both(wrong: Conflict) -> None:
    found = resolved(wrong)
    assert ways(found) == [((11,), HELD, None), ((12,), REVIEWED, None)]
    assert (found.conflicts, found.unanswered) == (0, 1)


def test_an_unknown_new_number_changes_nothing() -> None:
    assert resolved(conflict("keep_existing", new=7)) == resolved()


def test_v3_what_is_inferred_ends_no_confirmed_fact() -> None:
    known = (fact(1, "The app uses React 18", CONFIRMED, state=FactState.REVIEWED),)
    assert ways(resolved(conflict("keep_new"), known=known))[0] == ((11,), HELD, None)
    new = (fact(11, "The app uses React 19", CONFIRMED),)
    assert ways(resolved(conflict("keep_existing"), new=new)) == [((11,), HELD, None)]


def test_two_values_are_never_merged_into_one() -> None:
    new = (fact(11, "The port of the server", value="80"),)
    known = (fact(1, "The server's port", value="8080", state=FactState.REVIEWED),)
    found = resolved(conflict("merge", text="The port of the server"), new=new, known=known)
    assert ways(found) == [((11,), HELD, None)]


def test_of_several_contradictions_of_one_fact_the_first_counts() -> None:
    found = resolved(conflict("keep_existing"), conflict("keep_new"), conflict("keep_new", 1, 2))
    assert ways(found) == [((11,), REPLACED, 1), ((12,), REVIEWED, None)]
    assert found.conflicts == 1


def test_a_fact_that_beat_one_is_not_beaten_by_the_next() -> None:
    found = resolved(conflict("keep_new"), conflict("keep_existing", 1, 2))
    assert ways(found)[:2] == [((1,), REPLACED, 11), ((11,), REVIEWED, None)]


def test_one_new_fact_may_end_several() -> None:
    found = resolved(conflict("keep_new"), conflict("keep_new", 1, 2))
    assert ways(found)[:2] == [((1,), REPLACED, 11), ((2,), REPLACED, 11)]


def test_the_winner_of_a_contradiction_is_not_removed() -> None:
    remove = Correction(number=1, action="remove", reason="wrong", **HARMLESS)
    assert ((11,), REVIEWED, None) in ways(resolved(conflict("keep_new"), corrected=(remove,)))


def test_the_winner_of_a_contradiction_may_be_worded_better() -> None:
    better = Correction(number=1, action="enrich", text="The app uses React 19.1", **HARMLESS)
    found = resolved(conflict("keep_new"), corrected=(better,))
    assert ways(found)[:2] == [((1,), REPLACED, 11), ((11,), REPLACED, None)]
    assert (found.conflicts, found.modified) == (1, 1)


def test_what_waits_for_a_person_ends_nothing_that_is_shared() -> None:
    keep = Correction(number=2, action="keep", **HARMLESS)
    doubted = replace(keep, number=1, about_checks=True)
    found = resolved(conflict("keep_new"), corrected=(doubted, keep))
    assert ways(found) == [((11,), HELD, None), ((12,), REVIEWED, None)]
    merge = replace(conflict("merge", text="The app uses React 19 now"), about_instructions=True)
    assert ways(resolved(merge)) == [((11,), HELD, None), ((12,), REVIEWED, None)]


# -- the same text -------------------------------------------------------------------------------

TEXT = "The tests need Redis on port 6379"
SHARED = FactState.REVIEWED


def test_v7_a_new_fact_that_adds_nothing_to_a_known_one_yields_to_it() -> None:
    known = fact(1, TEXT, CONFIRMED, state=SHARED, attempt=1)
    found = resolved(new=(fact(11, TEXT.upper()),), known=(known,))
    assert ways(found) == [((11,), REPLACED, 1)]


def test_v7_a_known_fact_that_says_less_than_the_new_one_yields_to_it() -> None:
    known = fact(1, TEXT, state=SHARED, attempt=1)
    found = resolved(new=(fact(11, TEXT, CONFIRMED, value="6379"),), known=(known,))
    assert ways(found) == [((11,), REVIEWED, None), ((1,), REPLACED, 11)]


def test_v7_where_each_says_more_both_stand() -> None:
    known = fact(1, TEXT, CONFIRMED, state=SHARED, attempt=1)
    found = resolved(new=(fact(11, TEXT, value="6379"),), known=(known,))
    assert ways(found) == [((11,), REVIEWED, None)]


def test_v3_facts_that_differ_in_a_number_are_both_kept() -> None:
    assert ways(resolved()) == [((11,), REVIEWED, None), ((12,), REVIEWED, None)]
