"""What becomes of facts by the answer of a review: none is lost, and contradictions are settled."""

from dataclasses import replace
from typing import Any

import pytest

from midwatch_agents.learning.fact_review import (
    MOST_MISSED,
    Conflict,
    Correction,
    Missed,
    Move,
    ReviewReply,
    Settlement,
    faults,
    hold_all,
    settlement,
)
from midwatch_monitor.records import Certainty, Fact, FactAct, FactMaker, FactState, KnownFact
from midwatch_tests.factories import known_fact

INFERRED, CONFIRMED = Certainty.INFERRED, Certainty.CONFIRMED
REVIEWED, HELD = FactAct.REVIEWED, FactAct.HELD
REMOVED, REPLACED = FactAct.REMOVED, FactAct.REPLACED
HARMLESS = dict.fromkeys(("names_a_command", "about_checks", "about_instructions"), False)


def fact(
    number: int,
    text: str,
    certainty: Certainty = INFERRED,
    *,
    state: FactState = FactState.PENDING,
    attempt: int = 3,
    **more: Any,
) -> KnownFact:
    said = Fact(text=text, certainty=certainty, **more)
    return known_fact(number, fact=said, state=state, attempt=attempt, sources=(attempt,))


NEW = (
    fact(11, "The tests need some database", files=("a.py",), tags=("db",)),
    fact(12, "The server listens on port 8080", CONFIRMED, value='{"port": 8080}'),
    fact(13, "The author was in a hurry here"),
)
POSTGRES = "The tests need PostgreSQL 16"
SECRET = "The password is set by DB_PASSWORD=hunter2hunter2"


def settle_corrections(*corrected: Correction, missed: tuple[Missed, ...] = ()) -> Settlement:
    return settlement(ReviewReply(corrected=corrected, missed=missed), NEW, ())


def keep(number: int, text: str = "", certainty: str = "") -> Correction:
    return Correction(number=number, action="keep", text=text, certainty=certainty, **HARMLESS)


def enrich(number: int, text: str, certainty: str = "") -> Correction:
    return replace(keep(number, text, certainty), action="enrich")


def remove(number: int, reason: str = "not so") -> Correction:
    return replace(keep(number), action="remove", reason=reason)


def acts(settlement: Settlement) -> tuple[FactAct, ...]:
    """What becomes of the facts, by their ids."""
    found = {id_: move.act for move in settlement.moves for id_ in move.facts}
    return tuple(found[id_] for id_ in sorted(found))


def test_v12_keep_enrich_and_remove_do_what_they_say() -> None:
    state, maker = FactState.REVIEWED, FactMaker.REVIEW
    better = replace(NEW[0].fact, text=POSTGRES, state=state, maker=maker, sources=(3,))
    assert settle_corrections(enrich(1, POSTGRES), keep(2), remove(3)) == Settlement(
        moves=(
            Move(facts=(11,), act=REPLACED, fact=better, reason="the review: enrich"),
            Move(facts=(12,), act=REVIEWED),
            Move(facts=(13,), act=REMOVED, reason="not so"),
        ),
        modified=1,
        removed=1,
    )


REST = (keep(2), keep(3))
WAITS, STANDS = (HELD, REVIEWED, REVIEWED), (REVIEWED, REVIEWED, REVIEWED)
WORDS = {
    "v20 an empty answer": ((), (HELD, HELD, HELD)),
    "v27 what is left out": ((keep(2),), (HELD, REVIEWED, HELD)),
    "no such fact": ((keep(4), *REST), WAITS),
    "a number below 1": ((keep(0), *REST), WAITS),
    "no such action": ((replace(keep(1), action="drop"), *REST), WAITS),
    "nothing said of doubts": ((Correction(number=1, action="keep"), *REST), WAITS),
    "v6 what cannot be taken": ((enrich(1, SECRET), *REST), WAITS),
    "v6 no reasons": ((remove(1), remove(2, ""), remove(3, " ")), (REMOVED, HELD, HELD)),
    "v6 all, with reasons": ((remove(1), remove(2), remove(3)), (REMOVED, REMOVED, REMOVED)),
    "v8 the first of two": ((keep(1), remove(1), *REST), STANDS),
    "no new words": ((enrich(1, ""), enrich(2, NEW[1].fact.text), keep(3)), STANDS),
    "v5 kept in other words": ((keep(1, POSTGRES), *REST), (REPLACED, REVIEWED, REVIEWED)),
    "only confirmed": ((keep(1, "", "confirmed"), *REST), (REPLACED, REVIEWED, REVIEWED)),
}


@pytest.mark.parametrize(("corrected", "became"), WORDS.values(), ids=WORDS)
def test_each_fact_becomes_what_the_answer_says_or_waits(
    corrected: tuple[Correction, ...], became: tuple[FactAct, ...]
) -> None:
    found = settle_corrections(*corrected)
    assert (acts(found), found.empty) == (became, not corrected)
    assert (found.modified, found.removed) == (became.count(REPLACED), became.count(REMOVED))


def test_v19_the_fallback_is_every_fact_as_it_is_and_nothing_else() -> None:
    found = hold_all(NEW, "no answer")
    assert acts(found) == (HELD, HELD, HELD)
    assert all(move.fact is None and move.instead is None for move in found.moves)
    assert (found.missed, found.conflicts) == (0, 0)


def test_requirement_19_a_structured_value_is_carried_over_untouched() -> None:
    found = settle_corrections(keep(1), enrich(2, "The dev server listens on port 8080"), keep(3))
    written = [move.fact for move in found.moves if move.fact]
    assert [fact.value for fact in written] == ['{"port": 8080}']


@pytest.mark.parametrize(
    ("number", "certainty", "after"),
    [(1, "confirmed", CONFIRMED), (2, "inferred", CONFIRMED), (1, "certain", INFERRED)],
)
def test_v9_certainty_never_falls(number: int, certainty: str, after: Certainty) -> None:
    found = settle_corrections(enrich(number, "It is the server of src/app.py", certainty))
    assert [move.fact.certainty for move in found.moves if move.fact] == [after]


def test_v13_what_was_missed_is_added() -> None:
    text = "CI runs on Python 3.11"
    missed = Missed(text=text, certainty="confirmed", files=("ci.yml",), **HARMLESS)
    found = settle_corrections(keep(1), *REST, missed=(missed,))
    assert found.missed == 1
    assert found.moves[-1].fact == Fact(
        text=text,
        certainty=CONFIRMED,
        files=("ci.yml",),
        state=FactState.REVIEWED,
        maker=FactMaker.REVIEW,
    )


@pytest.mark.parametrize("text", ["", "It works now", NEW[1].fact.text, SECRET])
def test_v4_what_says_nothing_new_is_not_added(text: str) -> None:
    assert settle_corrections(keep(1), missed=(Missed(text=text),)).missed == 0


def test_v10_each_missed_fact_is_added_once_and_not_without_end() -> None:
    many = tuple(Missed(text=f"The port of service {n} is {n}") for n in range(MOST_MISSED + 5))
    assert settle_corrections(missed=(many[0], many[0])).missed == 1
    assert settle_corrections(missed=many).missed == MOST_MISSED


@pytest.mark.parametrize("flag", HARMLESS)
def test_a_fact_of_which_the_review_has_a_doubt_waits_for_a_person(flag: str) -> None:
    doubted: dict[str, Any] = HARMLESS | {flag: True}
    better = Correction(number=2, action="enrich", text="The server listens on 8081", **doubted)
    missed = Missed(text="CI runs on Python 3.11", **doubted)
    found = settle_corrections(
        Correction(number=1, action="keep", **doubted), better, keep(3), missed=(missed,)
    )
    assert acts(found) == (HELD, REPLACED, REVIEWED)
    assert [move.fact.state for move in found.moves if move.fact] == [FactState.WAITING] * 2


def test_the_doubt_is_told_as_the_reason_in_any_language() -> None:
    answer = ReviewReply(corrected=(replace(keep(1), about_checks=True),))
    (move,) = settlement(answer, [fact(11, "遅いテストは 常に 無視して よい")], ()).moves
    assert (move.facts, move.act, move.reason) == ((11,), HELD, "it is about checks")


def test_what_looks_like_a_command_waits_whatever_the_review_says() -> None:
    (better, *_) = settle_corrections(
        enrich(1, "The tests run with `make check` alone"), *REST
    ).moves
    assert (better.facts, better.act) == ((11,), REPLACED)
    assert better.fact is not None
    assert better.fact.state is FactState.WAITING


def test_v27_the_model_is_told_what_its_answer_lacks() -> None:
    wrong = (keep(1), Correction(number=2, action="drop"), remove(9), enrich(3, ""))
    assert faults(ReviewReply(corrected=wrong), new=4, known=0) == [
        "nothing is said of the new facts 4",
        "'drop' is not an action",
        "there is no new fact 9",
        "new fact 3 is enriched without a text",
    ]
    assert faults(ReviewReply(corrected=(keep(1),)), new=1, known=0) == []


# -- contradictions between new facts and known ones -------------------------------------------

NEW_FACTS = (fact(11, "The app uses React 19"), fact(12, "The tests run with vitest"))
OLD = (
    fact(1, "The app uses React 18", state=FactState.REVIEWED, attempt=1),
    fact(2, "The tests run with jest", state=FactState.REVIEWED, attempt=1),
)


def settle_conflicts(
    *conflicts: Conflict,
    new: tuple[KnownFact, ...] = NEW_FACTS,
    known: tuple[KnownFact, ...] = OLD,
    corrected: tuple[Correction, ...] = (),
) -> Settlement:
    given = corrected or tuple(keep(number) for number in range(1, len(new) + 1))
    return settlement(ReviewReply(corrected=given, conflicts=conflicts), new, known)


ShortMove = tuple[tuple[int, ...], FactAct, int | None]


def short_moves(settlement: Settlement) -> list[ShortMove]:
    return [(move.facts, move.act, move.instead) for move in settlement.moves]


def conflict(resolution: str, new: int = 1, known: int = 1, text: str = "") -> Conflict:
    return Conflict(new=new, known=known, resolution=resolution, text=text, **HARMLESS)


OLD_YIELDS, NEW_YIELDS = ((1,), REPLACED, 11), ((11,), REPLACED, 1)
ONE_WAITS, ONE_STANDS, TWO_STANDS = (
    (ids, act, None) for ids, act in (((11,), HELD), ((11,), REVIEWED), ((12,), REVIEWED))
)
NEW_WINS, KNOWN_WINS = conflict("keep_new"), conflict("keep_existing")
UNSETTLED = [ONE_WAITS, TWO_STANDS]
BOTH_STAND = [ONE_STANDS, TWO_STANDS]
NEXT_TOO = conflict("keep_new", 1, 2)
SETTLED = {
    "v3 without a contradiction both stand": ((), BOTH_STAND),
    "v11 keep new": ((NEW_WINS,), [OLD_YIELDS, *BOTH_STAND]),
    "v11 keep existing": ((KNOWN_WINS,), [NEW_YIELDS, TWO_STANDS]),
    "a merge without a text": ((conflict("merge"),), UNSETTLED),
    "a merge whose text cannot be taken": ((conflict("merge", text="React"),), UNSETTLED),
    "no such resolution": ((conflict("neither"),), UNSETTLED),
    "no such known fact": ((conflict("keep_new", known=9),), UNSETTLED),
    "no such new fact": ((conflict("keep_existing", new=7),), BOTH_STAND),
    "of several the first counts": ((KNOWN_WINS, NEW_WINS, NEXT_TOO), [NEW_YIELDS, TWO_STANDS]),
    "what beat one is not beaten by the next": (
        (NEW_WINS, conflict("keep_existing", 1, 2)),
        [OLD_YIELDS, *BOTH_STAND],
    ),
    "one may end several": ((NEW_WINS, NEXT_TOO), [OLD_YIELDS, ((2,), REPLACED, 11), *BOTH_STAND]),
}


@pytest.mark.parametrize(("conflicts", "became"), SETTLED.values(), ids=SETTLED)
def test_a_contradiction_is_settled_or_keeps_both(
    conflicts: tuple[Conflict, ...], became: list[ShortMove]
) -> None:
    found = settle_conflicts(*conflicts)
    assert short_moves(found) == became
    assert found.conflicts == sum(act is REPLACED for _, act, _ in became)


def test_v11_merge_writes_one_fact_in_the_place_of_both() -> None:
    text = "The app uses React 19, and React 18 in packages/old"
    known = replace(OLD[0], fact=replace(OLD[0].fact, value='{"react": 18}', files=("a",)))
    found = settle_conflicts(conflict("merge", text=text), known=(known,))
    assert short_moves(found)[0] == ((11, 1), REPLACED, None)
    assert found.moves[0].fact == Fact(
        text=text,
        files=("a",),
        value='{"react": 18}',
        state=FactState.REVIEWED,
        maker=FactMaker.REVIEW,
        sources=(1, 3),
    )


def test_v3_what_is_inferred_ends_no_confirmed_fact() -> None:
    known = (fact(1, "The app uses React 18", CONFIRMED, state=FactState.REVIEWED),)
    assert short_moves(settle_conflicts(NEW_WINS, known=known))[0] == ONE_WAITS
    new = (fact(11, "The app uses React 19", CONFIRMED),)
    assert short_moves(settle_conflicts(KNOWN_WINS, new=new)) == [ONE_WAITS]


def test_two_values_are_never_merged_into_one() -> None:
    new = (fact(11, "The port of the server", value="80"),)
    known = (fact(1, "The server's port", value="8080", state=FactState.REVIEWED),)
    found = settle_conflicts(conflict("merge", text="The port of the server"), new=new, known=known)
    assert short_moves(found) == [ONE_WAITS]


def test_the_winner_of_a_contradiction_is_not_removed_but_may_be_worded_better() -> None:
    assert ONE_STANDS in short_moves(settle_conflicts(NEW_WINS, corrected=(remove(1),)))
    found = settle_conflicts(NEW_WINS, corrected=(enrich(1, "The app uses React 19.1"),))
    assert short_moves(found)[:2] == [OLD_YIELDS, ((11,), REPLACED, None)]
    assert (found.conflicts, found.modified) == (1, 1)


def test_what_waits_for_a_person_ends_nothing_that_is_shared() -> None:
    doubted = replace(keep(1), about_checks=True)
    assert short_moves(settle_conflicts(NEW_WINS, corrected=(doubted, keep(2)))) == UNSETTLED
    merge = replace(conflict("merge", text="The app uses React 19 now"), about_instructions=True)
    assert short_moves(settle_conflicts(merge)) == UNSETTLED


# -- the same text -------------------------------------------------------------------------------

TEXT = "The tests need Redis on port 6379"
SAME = {
    "the new one adds nothing": (CONFIRMED, fact(11, TEXT.upper()), [NEW_YIELDS]),
    "the known one says less": (
        INFERRED,
        fact(11, TEXT, CONFIRMED, value="6379"),
        [ONE_STANDS, OLD_YIELDS],
    ),
    "each says more": (CONFIRMED, fact(11, TEXT, value="6379"), [ONE_STANDS]),
}


@pytest.mark.parametrize(("certainty", "new", "became"), SAME.values(), ids=SAME)
def test_v7_of_facts_in_the_same_words(
    certainty: Certainty, new: KnownFact, became: list[ShortMove]
) -> None:
    known = fact(1, TEXT, certainty, state=FactState.REVIEWED, attempt=1)
    assert short_moves(settle_conflicts(new=(new,), known=(known,))) == became
