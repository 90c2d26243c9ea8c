"""Edits count as they are observed: by path, by content, by writer."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Alert, Edit, Event, Resolution, Severity, Step, Writer
from midwatch_monitor.rules import rule_settings
from midwatch_monitor.rules.edits import MAX_FILES
from midwatch_tests.factories import change, edit, step

CLOSE = {"critical_after": 1, "notice_after": 0, "warn_after": 0, "return_weight": 2}
"""Shows every count as the value of an alert."""
SEED = {"critical_after": 5, "return_weight": 1, "movement_resets": False}
TWO = {**CLOSE, **SEED, "critical_after": 2}
ANEW = change(plan_step=2)
GONE = edit(deleted=True)


def make_judge(rule: str, **settings: Any) -> Judge:
    off: dict[str, Any] = {name: {"enabled": False} for name in rule_settings(Rules())}
    own = {rule: {"hold": 0, "cooldown": 0, **settings}}
    return Judge(Rules.model_validate({"agreement": False, **off, **own}))


def alerts_after_each(
    judge: Judge, events: Iterable[Event], path: str = "a.py"
) -> list[Alert | None]:
    """What stands of the file after each event; steps are numbered."""
    said, number = list[Alert | None](), 0
    for event in events:
        if isinstance(event, Step):
            number += 1
            event = replace(event, number=number)
        judge.observe(event)
        said.append(next((each for each in judge.firing if each.key.subject == path), None))
    return said


def values(judge: Judge, events: Iterable[Event], path: str = "a.py") -> str:
    return "".join(
        f"{each.value:g}" if each else "-" for each in alerts_after_each(judge, events, path)
    )


def severities(found: Iterable[Alert | None]) -> list[Severity]:
    return [each.severity for each in found if each]


def edit_step(*edits: Edit | str, **fields: Any) -> Step:
    """A step whose edits are these, or those that give `a.py` these contents."""
    made = tuple(edit(digest=each) if isinstance(each, str) else each for each in edits)
    return step(tool="edit_file", args=f"{[each.digest for each in made]}", edits=made, **fields)


def edit_steps(contents: str) -> list[Event]:
    return [edit_step(each) for each in contents]


def check_step(failure: str = "", line: str = "pytest") -> Step:
    code = int(bool(failure))
    said = f"ValueError: {failure}" if failure else "ok"
    return step(args=line, output=said, exit_code=code, ok=not code)


@pytest.mark.parametrize(
    ("settings", "events", "counts"),
    [
        pytest.param(CLOSE, [edit_step(""), edit_step(""), edit_step("")], "123", id="no digest"),
        pytest.param(CLOSE, edit_steps("1213"), "1245", id="a return weighs more"),
        pytest.param(
            CLOSE, [edit_step(each) for each in ("1", GONE, GONE)], "122", id="deleted once"
        ),
        pytest.param(CLOSE, [edit_step("1", "2", "3")], "1", id="one step"),
        pytest.param(
            CLOSE, [edit_step("1"), ANEW, *edit_steps("12")], "1--1", id="begun anew"
        ),
        pytest.param(
            CLOSE, [check_step("a"), *edit_steps("12"), check_step(), edit_step("3")], "-12-1",
            id="passed",
        ),
        pytest.param(
            CLOSE, [*edit_steps("12"), replace(check_step(), edits=(edit(digest="3"),))], "121",
            id="the edit of the step that passes comes after",
        ),
        pytest.param(
            CLOSE,
            [check_step("3 failed"), *edit_steps("12"), check_step("2 failed"), edit_step("3")],
            "-12-1", id="fewer failures",
        ),
        pytest.param(
            TWO,
            [
                check_step("3 failed"), *edit_steps("12"), check_step("2 failed"), check_step(),
                edit_step("3"),
            ],
            "--22-3", id="seed",
        ),
        pytest.param(
            SEED,
            [edit_step("1"), check_step(), edit_step("2"), check_step(), *edit_steps("345")],
            "------5", id="where checks confirm nothing",
        ),
    ],
)  # fmt: skip
def test_edits_are_counted_until_a_check_confirms_them(
    settings: dict[str, Any], events: list[Event], counts: str
) -> None:
    assert values(make_judge("repeated_edits", **settings), events) == counts


@pytest.mark.parametrize("by", [Writer.PERSON, Writer.OTHER])
def test_what_others_write_counts_for_nothing_but_becomes_known(by: Writer) -> None:
    other = edit_step(edit(digest="1", writer=by))
    assert values(make_judge("repeated_edits", **CLOSE), [other, *edit_steps("121")]) == "--13"


def test_a_program_confirms_what_it_does_not_write_unless_it_says_the_same_as_before() -> None:
    run = check_step(line="python try.py")
    says = [edit_step("1"), run, edit_step("2"), run, edit_step("3")]
    assert values(make_judge("repeated_edits", **CLOSE), says) == "1-112"
    both = edit_step("1", edit("b.py", "1"))
    wrote = replace(run, edits=(edit(digest="9"),))
    after = [both, wrote, edit_step("2", edit("b.py", "2"))]
    found = [
        values(make_judge("repeated_edits", **CLOSE), after, path) for path in ("a.py", "b.py")
    ]
    assert found == ["123", "1-1"]


def test_by_default_the_eighth_edit_is_noticed_and_the_sixteenth_without_a_check_warns() -> None:
    found = alerts_after_each(make_judge("repeated_edits"), [edit_step(f"d{n}") for n in range(20)])
    assert severities(found) == [Severity.NOTICE] * 8 + [Severity.WARNING] * 5
    assert found[-1]
    assert found[-1].evidence == tuple(range(9, 21))  # the newest twelve
    assert found[-1].summary == "a.py keeps changing: 20 edits counted, no check in between"


@pytest.mark.parametrize(
    ("failures", "severity"), [("7", Severity.WARNING), ("0123456789abcdefgh", Severity.NOTICE)]
)
def test_edits_whose_check_fails_the_same_way_each_time_warn(
    failures: str, severity: Severity
) -> None:
    events = [check_step("7")]
    for number in range(18):
        events += [edit_step(f"d{number}"), check_step(f"{failures[number % len(failures)]}")]
    last = alerts_after_each(make_judge("repeated_edits"), events)[-1]
    assert last
    assert last.severity is severity
    nothing = ", checks show nothing new" if severity is Severity.WARNING else ""
    assert last.summary == f"a.py keeps changing: 18 edits counted{nothing}"


def test_a_check_that_tells_something_new_ends_a_warning() -> None:
    events = [*(edit_step(f"d{n}") for n in range(16)), check_step("7"), edit_step("more")]
    found = alerts_after_each(make_judge("repeated_edits"), events)
    assert (found[-2], severities(found[-3:])) == (None, [Severity.WARNING, Severity.NOTICE])


def test_edits_that_only_add_are_no_alarm_however_many_they_are() -> None:
    adds = [
        step(args=f"cat >> a.py <<E\n{n}\nE", edits=(edit(digest=f"d{n}"),), exit_code=0)
        for n in range(30)
    ]
    assert set(severities(alerts_after_each(make_judge("repeated_edits"), adds))) == {
        Severity.NOTICE
    }


def test_the_file_least_recently_edited_is_dropped_and_that_is_no_recovery() -> None:
    judge = make_judge("repeated_edits", **CLOSE)
    files = [edit_step(edit(f"{number}", "1")) for number in range(MAX_FILES)]
    others = edit_step(*(edit(f"o{n}", "1", writer=Writer.OTHER) for n in range(10 * MAX_FILES)))
    alerts_after_each(judge, [*files, others, edit_step(edit("0", "2"))])
    gone, _ = judge.observe(edit_step(edit("new", "1"), number=99)).alerts
    assert (gone.key.subject, gone.resolution) == ("1", Resolution.RESTARTED)


BACK = step(args="git checkout -- a.py", exit_code=0)


@pytest.mark.parametrize(
    ("window", "events", "counts"),
    [
        pytest.param(30, edit_steps("12121212"), "----3456", id="to and fro"),
        pytest.param(30, edit_steps("123456789"), "-" * 9, id="it goes on"),
        pytest.param(30, edit_steps("111111111"), "-" * 9, id="it stays"),
        pytest.param(30, [edit_step("") for _ in range(9)], "-" * 9, id="no digest"),
        pytest.param(
            30, [*edit_steps("12"), *(replace(BACK, edits=(edit(digest=each),)) for each in "121")],
            "----3", id="a command whose edit is seen too",
        ),
        pytest.param(
            30, [edit_step(each) for each in ("1", GONE, "1", GONE, "1")], "----3", id="deleted"
        ),
        pytest.param(4, edit_steps("12125612"), "-" * 8, id="window"),
        pytest.param(
            4, [*edit_steps("12121"), *(step(args=f"{n}") for n in range(4))], "----3333-",
            id="over once the window is",
        ),
        pytest.param(
            30, [*edit_steps("12121"), ANEW, *edit_steps("212")], "----3---3", id="begun anew"
        ),
    ],
)  # fmt: skip
def test_returns_to_earlier_contents_are_counted_in_a_window(
    window: int, events: list[Event], counts: str
) -> None:
    judge = make_judge("revert_churn", window=window, notice_after=3, warn_after=5)
    assert values(judge, events) == counts


def test_returns_of_files_are_counted_apart_and_their_steps_are_named() -> None:
    other = [edit_step(edit("b.py", each)) for each in "343"]
    events = [*edit_steps("121x2"), *other, edit_step("1"), edit_step("2")]
    found = alerts_after_each(make_judge("revert_churn", notice_after=3, warn_after=5), events)
    assert [each and each.value for each in found[-3:]] == [None, 3, 4]
    assert found[-2]
    assert found[-2].evidence == (3, 5, 9)
    assert found[-2].summary == "a.py went back to an earlier version 3 times in 30 steps"
