"""What moved, what repeats, and the bounded memory that tells."""

from functools import partial
from typing import Any

import pytest

from midwatch_monitor.records import Edit, Movement, Writer
from midwatch_monitor.rules.act import Act, CheckKind, Normaliser
from midwatch_monitor.rules.detector import NO_ECHO, Echo, Movements, Repeat, Repeats
from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.memory import Memory, remember
from midwatch_tests.factories import change, edit, step

NEW, PASSED, FEWER = Movement.NEW_FAILURE, Movement.CHECK_PASSED, Movement.FEWER_FAILURES
STILL = set[Movement]()
FAILS, PASSES = ("pytest", 1, "3 failed"), ("pytest", 0, "3 passed")
TWO, ONE = ("pytest", 1, "2 failed"), ("pytest", 1, "1 failed")


@pytest.mark.parametrize(
    ("commands", "moved"),
    [
        # A command that failed and now succeeds has passed; the first failure is a starting point.
        ([FAILS, ("ls", 0, ""), PASSES], {PASSED}),
        ([FAILS, PASSES, PASSES], STILL),
        ([PASSES, FAILS], {Movement.CHECK_BROKEN}),
        ([FAILS], STILL),
        # A failure is new once, unless it says nothing.
        ([FAILS, ("pytest", 1, "4 failed")], {NEW}),
        ([FAILS, ("pytest", 1, "4 failed"), FAILS], STILL),
        ([("test -f a", 1, ""), ("test -f b", 1, "")], STILL),
        # Fewer failures than ever of the same command.
        ([FAILS, TWO], {NEW, FEWER}),
        ([FAILS, TWO, FAILS, TWO], STILL),
        ([FAILS, TWO, FAILS, ONE], {NEW, FEWER}),
        ([FAILS, ("pytest a.py", 1, "1 failed")], {NEW}),
        # A run that tells no number keeps the one before.
        ([FAILS, ("pytest", 1, "ImportError: no"), TWO], {NEW, FEWER}),
        # An act of unknown result is no check.
        ([FAILS, ("pytest", None, "ok")], STILL),
    ],
)
def test_what_moves_at_the_last_of_some_commands(
    commands: list[tuple[str, int | None, str]], moved: set[Movement]
) -> None:
    movements, normaliser, kinds = Movements(), Normaliser(), frozenset[Movement]()
    for number, (line, code, output) in enumerate(commands, start=1):
        done = step(number, args=line, exit_code=code, output=output, ok=None)
        kinds = movements.observe(normaliser.act(done)).kinds
    assert kinds == moved


@pytest.mark.parametrize(
    ("edits", "moved"),
    [
        pytest.param([edit(digest=each) for each in "1212"], "xx--", id="only a new content"),
        pytest.param(
            [edit(digest="1", writer=Writer.PERSON), edit(digest="1"), edit(), edit(deleted=True)],
            "----",
            id="only the worker's own and known ones",
        ),
    ],
)
def test_a_content_that_a_file_never_had_moves(edits: list[Edit], moved: str) -> None:
    movements, normaliser = Movements(), Normaliser()
    acts = [normaliser.act(step(tool="write", edits=(each,))) for each in edits]
    paths = ["x" if movements.observe(act).paths else "-" for act in acts]
    assert "".join(paths) == moved


def test_a_higher_plan_step_moves_and_a_lower_one_does_not() -> None:
    movements = Movements()
    found = [bool(movements.plan(change(plan_step=each)).kinds) for each in (1, 2, 1, 2, 3)]
    assert found == [False, True, False, False, True]


def act(action: str, result: str = "", **fields: Any) -> Act:
    shown = digest(result) if result else 0
    return Act(1, work=True, action=digest(action), result=shown, **fields)


changing_act = partial(act, changes=True)
LOOK, SILENT = act("11", "101"), act("13")
CHECK = act("12", "102", failed=False, shell=True)
TESTS = CHECK._replace(check=CheckKind.TESTS)
FAIL = act("12", "103", failed=True, shell=True)
EDIT = changing_act("14", "104", edits=(edit("a", "1"),))
OTHER = changing_act("15", "104", edits=(edit("a", "2"),))
PUT = EDIT._replace(action=digest("16"), shell=True)
REVERT = changing_act("17", "107", reverted=("a",), shell=True)


def last_echo(*acts: Act) -> Echo:
    repeats = Repeats()
    return [repeats.observe(act)._replace(times=0) for act in acts][-1]


def echo(repeat: Repeat, distance: int) -> Echo:
    return Echo(repeat, distance, before=1)


@pytest.mark.parametrize(
    "acts",
    [
        *((each,) for each in (LOOK, CHECK, FAIL, SILENT, EDIT, PUT, REVERT)),
        (LOOK, LOOK._replace(result=digest("99"))),
        (LOOK, LOOK._replace(result=0)),
        (LOOK, LOOK._replace(action=digest("99"), changes=True)),
        (LOOK, TESTS._replace(action=digest("99"), result=LOOK.result)),
        (TESTS, EDIT, TESTS),
        (SILENT, EDIT, SILENT),
    ],
)
def test_what_is_new_or_gives_something_else_repeats_nothing(acts: tuple[Act, ...]) -> None:
    assert last_echo(*acts) == NO_ECHO


COUNT = LOOK._replace(action=digest("count"), again=True)
LEFT = [COUNT._replace(result=digest(f"{n} left")) for n in range(3)]


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        ((LOOK, LOOK), echo(Repeat.UNCHANGED, 1)),
        ((LOOK, CHECK, LOOK), echo(Repeat.UNCHANGED, 2)),
        ((LOOK, CHECK, FAIL, LOOK, CHECK, LOOK), echo(Repeat.UNCHANGED, 2)),
        ((SILENT, SILENT), echo(Repeat.UNCHANGED, 1)),
        ((EDIT, EDIT), echo(Repeat.UNCHANGED, 1)),
        ((EDIT, OTHER, EDIT), echo(Repeat.REDONE, 2)),
        ((PUT, OTHER, PUT), echo(Repeat.VERIFIED, 2)),
        ((REVERT, OTHER, REVERT), echo(Repeat.VERIFIED, 2)),
        ((FAIL, EDIT, FAIL), echo(Repeat.FAILED_AGAIN, 2)),
        ((FAIL, REVERT, FAIL), echo(Repeat.FAILED_AGAIN, 2)),
        ((CHECK, EDIT, CHECK), echo(Repeat.VERIFIED, 2)),
        ((LOOK, EDIT, LOOK), echo(Repeat.VERIFIED, 2)),
        # After a look that shows another state it is half a repeat.
        ((CHECK, LEFT[0], CHECK), echo(Repeat.VERIFIED, 2)),
        ((LEFT[0], CHECK, CHECK, LEFT[0], CHECK), echo(Repeat.UNCHANGED, 2)),
        ((FAIL, LEFT[1], FAIL), echo(Repeat.UNCHANGED, 2)),
        ((CHECK, LEFT[2]._replace(failed=True), CHECK), echo(Repeat.UNCHANGED, 2)),
    ],
)
def test_a_repetition_is_of_the_kind_that_its_change_makes_it(
    acts: tuple[Act, ...], expected: Echo
) -> None:
    assert last_echo(*acts) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("grep -r total src/", "rg total src", Repeat.ALIKE),
        ("grep -r total src/", "rg total lib/", Repeat.ELSEWHERE),
        ("SELECT a FROM t", "SELECT a FROM t ORDER BY a", Repeat.ALIKE),
        ("SELECT a FROM t", "SELECT a FROM t LIMIT 10", Repeat.ELSEWHERE),
    ],
)
def test_another_act_with_the_same_result_is_half_a_repeat_where_it_aims_at_nothing_new(
    one: str, other: str, expected: Repeat
) -> None:
    repeats = Repeats()
    repeats.observe(LOOK, one)
    assert repeats.observe(LOOK._replace(action=digest("99")), other).repeat is expected


def test_what_was_looked_at_a_while_ago_may_be_looked_at_once_more() -> None:
    others = [act(f"{n}", f"r{n}") for n in range(5)]
    repeats = Repeats()
    seen = [repeats.observe(act).repeat for act in [LOOK, *others, LOOK, *others, LOOK]]
    assert (seen[6], seen[-1]) == (Repeat.LOOKED, Repeat.UNCHANGED)


def test_how_often_the_same_came_before_is_counted_up_to_eight() -> None:
    repeats = Repeats()
    found = [repeats.observe(act).times for act in (LOOK, CHECK, *[LOOK] * 9)]
    assert found == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8]


def test_steps_and_changes_are_counted_on_past_sixteen_bits() -> None:
    repeats = Repeats()
    for each in [changing_act("1", "1", edits=EDIT.edits)] * (2**16 - 2):
        repeats.observe(each)
    found = [repeats.observe(each)._replace(times=0) for each in (LOOK, CHECK, EDIT, LOOK, LOOK)]
    assert found[-2:] == [echo(Repeat.VERIFIED, 3), echo(Repeat.UNCHANGED, 1)]


BIG = 0xFEDC_BA98_7654_3210
"""A key of all 64 bits."""


@pytest.mark.parametrize("number", [0, 7, 2**32 - 1])
def test_a_number_of_thirty_two_bits_is_remembered_under_its_key(number: int) -> None:
    memory = Memory(64)
    memory.put(BIG, number)
    assert (memory.get(BIG), memory.get(BIG + 1)) == (number, None)
    with pytest.raises(OverflowError):
        memory.put(BIG, 2**32)


def test_four_keys_share_a_place_and_the_fifth_makes_the_oldest_forgotten() -> None:
    """A key is no younger for being put again or read."""
    memory = Memory(64)
    keys = [BIG + (number << 32) for number in range(5)]
    for number, key in enumerate(keys[:4]):
        memory.put(key, number)
    assert (memory.put(keys[0], 9), memory.get(keys[0])) == (0, 9)
    memory.put(keys[4], 4)
    assert [memory.get(key) for key in keys] == [None, 1, 2, 3, 4]


def test_a_dict_forgets_its_oldest_key_and_names_it() -> None:
    memory: dict[str, int] = {}
    gone = [remember(memory, key, 1, 2) for key in ("a", "b", "a", "c")]
    assert (gone, list(memory)) == ([None, None, None, "b"], ["a", "c"])
