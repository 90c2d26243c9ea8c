"""Only the same act with the same result repeats; of what kind it is depends on what changed."""

import pytest

from midwatch_monitor.records import Edit
from midwatch_monitor.rules.act import Act, Check
from midwatch_monitor.rules.detector import NO_ECHO, Echo, Repeat, Repeats
from midwatch_monitor.rules.identity import digest

LOOK = Act(1, work=True, action=digest("11"), result=digest("101"))
CHECK = Act(1, work=True, action=digest("12"), result=digest("102"), failed=False, shell=True)
TESTS = CHECK._replace(check=Check.TESTS)
FAIL = Act(1, work=True, action=digest("12"), result=digest("103"), failed=True, shell=True)
SILENT = Act(1, work=True, action=digest("13"))
EDIT = Act(
    1,
    work=True,
    action=digest("14"),
    result=digest("104"),
    edits=(Edit(path="a", digest="1"),),
    changes=True,
)
OTHER = Act(
    1,
    work=True,
    action=digest("15"),
    result=digest("104"),
    edits=(Edit(path="a", digest="2"),),
    changes=True,
)
PUT = EDIT._replace(action=digest("16"), shell=True)
REVERT = Act(
    1,
    work=True,
    action=digest("17"),
    result=digest("107"),
    reverted=("a",),
    changes=True,
    shell=True,
)


def last(*acts: Act) -> Echo:
    repeats = Repeats()
    return [repeats.observe(act) for act in acts][-1]


def echo(repeat: Repeat, distance: int) -> Echo:
    return Echo(repeat, distance, before=1)


@pytest.mark.parametrize("act", [LOOK, CHECK, FAIL, SILENT, EDIT, PUT, REVERT])
def test_what_was_never_done_before_repeats_nothing(act: Act) -> None:
    assert last(act) == NO_ECHO


@pytest.mark.parametrize(
    "other",
    [
        LOOK._replace(action=digest("99")),
        LOOK._replace(result=digest("99")),
        LOOK._replace(result=0),
    ],
)
def test_another_act_or_another_result_repeats_nothing(other: Act) -> None:
    assert last(LOOK, other) == NO_ECHO


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        ((LOOK, LOOK), echo(Repeat.UNCHANGED, 1)),
        ((LOOK, CHECK, LOOK), echo(Repeat.UNCHANGED, 2)),
        ((SILENT, SILENT), echo(Repeat.UNCHANGED, 1)),
        ((EDIT, EDIT), echo(Repeat.UNCHANGED, 1)),
        ((EDIT, OTHER, EDIT), echo(Repeat.REDONE, 2)),
        ((PUT, OTHER, PUT), echo(Repeat.VERIFIED, 2)),
        ((REVERT, OTHER, REVERT), echo(Repeat.VERIFIED, 2)),
        ((FAIL, EDIT, FAIL), echo(Repeat.FAILED_AGAIN, 2)),
        ((FAIL, REVERT, FAIL), echo(Repeat.FAILED_AGAIN, 2)),
        ((CHECK, EDIT, CHECK), echo(Repeat.VERIFIED, 2)),
        ((TESTS, EDIT, TESTS), NO_ECHO),
        ((LOOK, EDIT, LOOK), echo(Repeat.VERIFIED, 2)),
        ((SILENT, EDIT, SILENT), NO_ECHO),
    ],
)
def test_a_repetition_is_of_the_kind_that_its_change_makes_it(
    acts: tuple[Act, ...], expected: Echo
) -> None:
    assert last(*acts) == expected


def test_the_distance_is_that_to_the_last_time() -> None:
    assert last(LOOK, CHECK, FAIL, LOOK, CHECK, LOOK) == echo(Repeat.UNCHANGED, 2)


def test_steps_and_changes_are_counted_on_past_sixteen_bits() -> None:
    repeats = Repeats()
    for number in range(2**16 - 2):
        repeats.observe(
            Act(
                number,
                work=True,
                action=digest("1"),
                result=digest("1"),
                edits=EDIT.edits,
                changes=True,
            )
        )
    found = [repeats.observe(act) for act in (LOOK, CHECK, EDIT, LOOK, LOOK)]
    assert found[-2:] == [echo(Repeat.VERIFIED, 3), echo(Repeat.UNCHANGED, 1)]
