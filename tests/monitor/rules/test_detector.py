"""A count answers only where something changed; the last steps are bits."""

import sys
from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import Graded
from midwatch_monitor.records import (
    AlertKey,
    Change,
    Edit,
    Event,
    Finding,
    Movement,
    Severity,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.act import Act, CheckKind, Normaliser
from midwatch_monitor.rules.detector import (
    NO_ECHO,
    Clear,
    Echo,
    EvidenceKind,
    GradedDetector,
    Moved,
    Movements,
    Recent,
    Repeat,
    Repeats,
    RuleAnswer,
    Seen,
)
from midwatch_monitor.rules.identity import digest
from midwatch_monitor.rules.memory import Memory, remember

A, B = AlertKey(rule="r", subject="a"), AlertKey(rule="r", subject="b")


class Counted(GradedDetector):
    """A rule that is told its value."""

    rule = "r"
    evidence = EvidenceKind.EDITS

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        return ()


def gauge(notice: int = 2, warn: int = 4) -> Counted:
    return Counted(Graded(notice_after=notice, warn_after=warn))


def finding(key: AlertKey, severity: Severity, value: float) -> Finding:
    return Finding(key=key, severity=severity, value=value, summary="s")


@pytest.mark.parametrize(
    ("value", "severity"), [(2, Severity.NOTICE), (3.5, Severity.NOTICE), (4, Severity.WARNING)]
)
def test_a_value_has_the_severity_of_the_highest_threshold_it_reached(
    value: float, severity: Severity
) -> None:
    assert gauge().find(value, "s", subject="a") == (finding(A, severity, value),)


def test_the_end_of_what_stood_is_said_once() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert not tried.rests(1)
    assert tried.find(1, "s", subject="a") == (Clear(key=A),)
    assert (tried.rests(1), tried.clear()) == (True, ())


def test_a_finding_about_another_subject_ends_the_one_before() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert tried.find(2, "s", subject="b") == (Clear(key=A), finding(B, Severity.NOTICE, 2))
    assert tried.subject == "b"


def test_what_stands_of_one_subject_leaves_a_low_value_of_another_at_rest() -> None:
    tried = gauge()
    tried.find(2, "s", subject="a")
    assert [tried.rests(1, about=each) for each in ("a", "b")] == [False, True]
    assert not tried.rests(2, about="b")


def test_only_the_last_steps_are_counted() -> None:
    recent = Recent(3)
    counts = [recent.add(n, 10 * n) if n in {1, 2, 5} else recent.count(n) for n in range(1, 8)]
    assert counts == [1, 2, 2, 1, 1, 1, 1]
    assert recent.steps == (50,)


def test_the_counted_steps_are_named_oldest_first() -> None:
    recent = Recent(4)
    for place, number in enumerate((10, 20, 30, 40, 50, 60)):
        if number != 40:
            recent.add(place, number)
    assert recent.steps == (30, 50, 60)


class Run:
    """A run of commands and edits, numbered."""

    def __init__(self) -> None:
        self.movements = Movements()
        self.normaliser = Normaliser()
        self.step = 0

    def feed(self, step: Step) -> Moved:
        return self.movements.observe(self.normaliser.act(step))

    def command(self, args: str, exit_code: int | None, output: str = "") -> set[Movement]:
        self.step += 1
        step = Step(
            number=self.step,
            kind=StepKind.TOOL,
            tool="shell",
            args=args,
            exit_code=exit_code,
            output=output,
        )
        return set(self.feed(step).kinds)

    def edit(self, *edits: Edit) -> tuple[str, ...]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="write", edits=edits)
        return self.feed(step).paths


NEW, PASSED, FEWER = Movement.NEW_FAILURE, Movement.CHECK_PASSED, Movement.FEWER_FAILURES
STILL = set[Movement]()
FAILS, PASSES = ("pytest", 1, "3 failed"), ("pytest", 0, "3 passed")


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
        ([FAILS, ("ruff check", 1, "E501")], {NEW}),
        ([("test -f a", 1, ""), ("test -f b", 1, "")], STILL),
        # Fewer failures than ever of the same command.
        ([FAILS, ("pytest", 1, "2 failed")], {NEW, FEWER}),
        ([FAILS, ("pytest", 1, "2 failed"), FAILS, ("pytest", 1, "2 failed")], STILL),
        ([FAILS, ("pytest", 1, "2 failed"), FAILS, ("pytest", 1, "1 failed")], {NEW, FEWER}),
        ([("pytest", 1, "2 failed"), FAILS, ("pytest", 1, "2 failed")], STILL),
        ([FAILS, ("pytest a.py", 1, "1 failed")], {NEW}),
        # A run that tells no number keeps the one before.
        ([FAILS, ("pytest", 1, "ImportError: no"), ("pytest", 1, "2 failed")], {NEW, FEWER}),
        # An act of unknown result is no check.
        ([FAILS, ("pytest", None, "ok")], STILL),
    ],
)
def test_what_moves_at_the_last_of_some_commands(
    commands: list[tuple[str, int | None, str]], moved: set[Movement]
) -> None:
    run = Run()
    assert [run.command(*each) for each in commands][-1] == moved


def test_a_content_that_a_file_never_had_moves() -> None:
    run = Run()
    one, two = (Edit(path="a.py", digest=digest) for digest in ("1", "2"))
    assert [run.edit(each) for each in (one, two, one, two)] == [("a.py",), ("a.py",), (), ()]


def test_only_the_workers_own_known_contents_move() -> None:
    run = Run()
    person = Edit(path="a.py", digest="1", writer=Writer.PERSON)
    assert run.edit(person) == ()
    assert run.edit(Edit(path="a.py", digest="1")) == ()
    assert run.edit(Edit(path="a.py")) == ()
    assert run.edit(Edit(path="a.py", deleted=True)) == ()


def test_a_higher_plan_step_moves_and_a_lower_one_does_not() -> None:
    movements = Movements()
    found = [bool(movements.plan(Change(plan_step=each)).kinds) for each in (1, 2, 1, 2, 3)]
    assert found == [False, True, False, False, True]


LOOK = Act(1, work=True, action=digest("11"), result=digest("101"))

CHECK = Act(1, work=True, action=digest("12"), result=digest("102"), failed=False, shell=True)

TESTS = CHECK._replace(check=CheckKind.TESTS)

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
    return [repeats.observe(act)._replace(times=0) for act in acts][-1]


def echo(repeat: Repeat, distance: int) -> Echo:
    return Echo(repeat, distance, before=1)


@pytest.mark.parametrize("act", [LOOK, CHECK, FAIL, SILENT, EDIT, PUT, REVERT])
def test_what_was_never_done_before_repeats_nothing(act: Act) -> None:
    assert last(act) == NO_ECHO


@pytest.mark.parametrize(
    "other",
    [
        LOOK._replace(result=digest("99")),
        LOOK._replace(result=0),
        LOOK._replace(action=digest("99"), changes=True),
        TESTS._replace(action=digest("99"), result=LOOK.result),
    ],
)
def test_another_act_or_another_result_repeats_nothing(other: Act) -> None:
    assert last(LOOK, other) == NO_ECHO


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
    others = [LOOK._replace(action=digest(f"{n}"), result=digest(f"r{n}")) for n in range(5)]
    repeats = Repeats()
    seen = [repeats.observe(act).repeat for act in [LOOK, *others, LOOK, *others, LOOK]]
    assert (seen[6], seen[-1]) == (Repeat.LOOKED, Repeat.UNCHANGED)


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


def test_what_is_done_again_after_a_look_that_shows_another_state_is_half_a_repeat() -> None:
    count = LOOK._replace(action=digest("count"), again=True)
    left = [count._replace(result=digest(f"{n} left")) for n in range(3)]
    assert last(CHECK, left[0], CHECK) == echo(Repeat.VERIFIED, 2)
    assert last(left[0], CHECK, CHECK, left[0], CHECK) == echo(Repeat.UNCHANGED, 2)
    assert last(FAIL, left[1], FAIL) == echo(Repeat.UNCHANGED, 2)
    assert last(CHECK, left[2]._replace(failed=True), CHECK) == echo(Repeat.UNCHANGED, 2)


def test_how_often_the_same_came_before_is_counted_up_to_eight() -> None:
    repeats = Repeats()
    found = [repeats.observe(act).times for act in (LOOK, CHECK, *[LOOK] * 9)]
    assert found == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8]


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
    acts = (LOOK, CHECK, EDIT, LOOK, LOOK)
    found = [repeats.observe(act)._replace(times=0) for act in acts]
    assert found[-2:] == [echo(Repeat.VERIFIED, 3), echo(Repeat.UNCHANGED, 1)]


BIG = 0xFEDC_BA98_7654_3210
"""A key of all 64 bits."""


def same_place(count: int) -> list[int]:
    """Keys that compete for the same four places."""
    return [BIG + (number << 40) for number in range(count)]


def room_of(memory: Memory) -> int:
    return sum(sys.getsizeof(getattr(memory, each)) for each in Memory.__slots__)


def test_a_number_is_remembered_under_its_key() -> None:
    memory = Memory(64)
    memory.put(BIG, 7)
    assert (memory.get(BIG), memory.get(BIG + 1)) == (7, None)


@pytest.mark.parametrize("again", ["nothing", "put", "get"])
def test_four_keys_share_a_place_and_the_fifth_makes_the_oldest_forgotten(again: str) -> None:
    """A key is no younger for being put again or read."""
    memory = Memory(64)
    keys = same_place(5)
    for number, key in enumerate(keys[:4]):
        memory.put(key, number)
    if again == "put":
        memory.put(keys[0], 0)
    elif again == "get":
        memory.get(keys[0])
    memory.put(keys[4], 4)
    assert [memory.get(key) for key in keys] == [None, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [0, 1, 2**16, 2**32 - 1])
def test_numbers_of_thirty_two_bits_are_kept_whole(number: int) -> None:
    memory = Memory(64)
    memory.put(BIG, number)
    assert memory.get(BIG) == number


def test_a_number_of_more_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        Memory(64).put(BIG, 2**32)


def test_the_room_never_grows() -> None:
    memory = Memory(64)
    before = room_of(memory)
    for key in range(1, 10_001):
        memory.put(key * 0x9E3779B97F4A7C15 % 2**64, key)
    assert room_of(memory) == before


def test_a_dict_forgets_its_oldest_key_and_names_it() -> None:
    memory: dict[str, int] = {}
    gone = [remember(memory, key, 1, 2) for key in ("a", "b", "a", "c")]
    assert (gone, list(memory)) == ([None, None, None, "b"], ["a", "c"])
