"""Attempts that work side by side and change the same file."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.records import AlertKey, Edit, Finding, Severity, Step, Writer
from midwatch_monitor.rules.conflict import ConflictDetector
from midwatch_monitor.rules.detector import Clear, RuleAnswer
from midwatch_tests.factories import edit, editing, step

KEY = AlertKey(rule="workspace_conflict", subject="a.py")
OVER = Clear(key=KEY)
ALSO = "{}, still in progress, also changed a.py"
PLANS = "{}, still in progress, also plans to change a.py"


def change_finding(
    who: str, *steps: int, text: str = ALSO, others: int = 1, by: Severity = Severity.WARNING
) -> Finding:
    summary = text.format(who)
    return Finding(key=KEY, severity=by, value=others, summary=summary, evidence=steps)


def plan_finding(who: str, *steps: int, text: str = PLANS) -> Finding:
    return change_finding(who, *steps, text=text, by=Severity.NOTICE)


@pytest.fixture
def detector() -> ConflictDetector:
    """A detector that knows three attempts."""
    detector = ConflictDetector(WorkspaceConflict())
    for attempt, name in enumerate(("task fix", "task port", "task test"), start=1):
        detector.meet(attempt, name)
    return detector


def test_each_is_told_once_of_a_file_that_both_change_and_again_when_a_third_comes() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    assert detector.observe(1, editing(3, "a.py")) == []
    one = "another attempt"
    assert detector.observe(2, editing(5, "a.py")) == [
        (1, change_finding(one, 3)),
        (2, change_finding(one, 5)),
    ]
    assert detector.observe(1, editing(4, "a.py")) == []
    told = detector.observe(3, editing(9, "a.py"))
    assert told == [
        (attempt, change_finding("2 other attempts", at, others=2))
        for attempt, at in ((1, 4), (2, 5), (3, 9))
    ]


@pytest.mark.parametrize(
    "other", [editing(1, "b.py"), step(edits=(edit("a.py", "d", writer=Writer.PERSON),))]
)
def test_different_files_and_what_others_write_are_no_conflict(
    detector: ConflictDetector, other: Step
) -> None:
    detector.observe(1, editing(1, "a.py"))
    assert detector.observe(2, other) == []


def test_who_is_left_alone_is_in_no_conflict(detector: ConflictDetector) -> None:
    for attempt in (1, 2, 3):
        detector.observe(attempt, editing(1, "a.py"))
    assert [detector.end(attempt) for attempt in (1, 2, 3)] == [[], [(3, OVER)], []]
    assert detector.observe(4, editing(1, "a.py")) == []


def test_two_that_mean_to_change_one_file_are_told_of_each_other(
    detector: ConflictDetector,
) -> None:
    assert detector.plan(1, ["a.py"]) == []
    both = [(1, plan_finding("task port")), (2, plan_finding("task fix"))]
    assert detector.plan(2, ["b.py", "./a.py"]) == both
    assert detector.plan(2, ["a.py", "b.py"]) == []
    assert detector.plan(2, ["b.py"]) == [(1, OVER), (2, OVER)]
    assert detector.plan(1, []) == []


def test_who_means_to_change_what_another_changed_is_told_so(detector: ConflictDetector) -> None:
    detector.observe(1, editing(3, "a.py"))
    changed = "{}, still in progress, changed a.py, which this attempt plans to change"
    told = [(1, plan_finding("task port", 3)), (2, plan_finding("task fix", text=changed))]
    assert detector.plan(2, ["a.py"]) == told
    assert detector.plan(1, ["a.py"]) == detector.plan(1, []) == []  # nothing new
    both = [(1, change_finding("task port", 3)), (2, change_finding("task fix", 4))]
    assert detector.observe(2, editing(4, "a.py")) == both
    assert detector.plan(2, []) == []  # once changed, whatever the plan says


def test_a_conflict_of_changes_ends_where_only_one_who_means_to_is_left(
    detector: ConflictDetector,
) -> None:
    for attempt in (1, 2):
        detector.observe(attempt, editing(1, "a.py"))
    detector.plan(3, ["a.py"])
    assert [detector.end(attempt) for attempt in (1, 2)] == [[(2, OVER)], [(3, OVER)]]


def test_a_pattern_is_no_file_that_one_means_to_change(detector: ConflictDetector) -> None:
    patterns = ["*.py", "a[1].py", ""]
    assert [detector.plan(attempt, patterns) for attempt in (1, 2)] == [[], []]


def test_up_to_three_others_are_named() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    told: list[Sequence[tuple[int, RuleAnswer]]] = []
    for attempt, name in enumerate("abcde", start=1):
        detector.meet(attempt, name)
        told.append(detector.observe(attempt, editing(1, "a.py")))
    first = [dict(each)[1] for each in told[1:]]
    names = ["b", "b and c", "b and c and d", "4 other attempts"]
    said = [each.summary for each in first if isinstance(each, Finding)]
    assert said == [ALSO.format(each) for each in names]


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        (edit("a.py", "y", before="x"), edit("a.py", "x"), [(1, OVER), (2, OVER)]),
        (edit("a.py", "y", before="x"), edit("a.py", "z"), []),
        (edit("a.py", "y"), edit("a.py", deleted=True), [(1, OVER), (2, OVER)]),
    ],
    ids=["put back", "changed again", "made and deleted"],
)
def test_who_undoes_its_changes_leaves_the_conflict(
    detector: ConflictDetector, first: Edit, then: Edit, told: list[object]
) -> None:
    detector.observe(1, editing(1, "a.py"))
    detector.observe(2, step(1, edits=(first,)))
    assert detector.observe(2, step(2, edits=(then,))) == told
