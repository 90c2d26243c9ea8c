"""Attempts that work side by side and change the same file."""

import pytest

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.records import AlertKey, Edit, Finding, Severity, Step, StepKind, Writer
from midwatch_monitor.rules.conflict import ConflictDetector
from midwatch_monitor.rules.detector import Clear

KEY = AlertKey(rule="workspace_conflict", subject="a.py")


def edit(number: int, *paths: str, by: Writer = Writer.WORKER) -> Step:
    edits = tuple(Edit(path=path, digest="d", writer=by) for path in paths)
    return Step(number=number, kind=StepKind.TOOL, tool="edit", edits=edits)


def finding(step: int, others: int = 1, who: str = "another attempt") -> Finding:
    return Finding(
        key=KEY,
        severity=Severity.WARNING,
        value=others,
        summary=f"{who}, still in progress, also changed a.py",
        evidence=(step,),
    )


def planned(summary: str, *steps: int, others: int = 1) -> Finding:
    return Finding(key=KEY, severity=Severity.NOTICE, value=others, summary=summary, evidence=steps)


def named(*names: str) -> ConflictDetector:
    detector = ConflictDetector(WorkspaceConflict())
    for attempt, name in enumerate(names, start=1):
        detector.meet(attempt, name)
    return detector


def test_two_attempts_that_change_one_file_are_both_told() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    assert detector.observe(1, edit(3, "a.py")) == []
    assert detector.observe(2, edit(5, "a.py")) == [(1, finding(3)), (2, finding(5))]


def test_each_is_told_once_and_again_when_a_third_comes() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    for attempt in (1, 2):
        detector.observe(attempt, edit(3, "a.py"))
    assert detector.observe(1, edit(4, "a.py")) == []
    told = detector.observe(3, edit(9, "a.py"))
    assert told == [
        (1, finding(4, 2, "2 other attempts")),
        (2, finding(3, 2, "2 other attempts")),
        (3, finding(9, 2, "2 other attempts")),
    ]


def test_different_files_are_no_conflict() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    detector.observe(1, edit(1, "a.py"))
    assert detector.observe(2, edit(1, "b.py")) == []


def test_what_others_write_is_no_conflict() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    detector.observe(1, edit(1, "a.py"))
    assert detector.observe(2, edit(1, "a.py", by=Writer.PERSON)) == []


def test_who_is_left_alone_is_in_no_conflict() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    for attempt in (1, 2, 3):
        detector.observe(attempt, edit(1, "a.py"))
    assert detector.end(1) == []
    assert detector.end(2) == [(3, Clear(key=KEY))]
    assert detector.end(3) == []


def test_an_attempt_that_is_over_is_in_nobodys_way() -> None:
    detector = ConflictDetector(WorkspaceConflict())
    detector.observe(1, edit(1, "a.py"))
    detector.end(1)
    assert detector.observe(2, edit(1, "a.py")) == []


def test_two_that_mean_to_change_one_file_are_told_of_each_other() -> None:
    detector = named("task fix", "task port")
    assert detector.plan(1, ["a.py"]) == []
    assert detector.plan(2, ["b.py", "./a.py"]) == [
        (1, planned("task port, still in progress, also plans to change a.py")),
        (2, planned("task fix, still in progress, also plans to change a.py")),
    ]
    assert detector.plan(2, ["a.py", "b.py"]) == []


def test_who_means_to_change_what_another_changed_is_told_so() -> None:
    detector = named("task fix", "task port")
    detector.observe(1, edit(3, "a.py"))
    assert detector.plan(2, ["a.py"]) == [
        (1, planned("task port, still in progress, also plans to change a.py", 3)),
        (
            2,
            planned(
                "task fix, still in progress, changed a.py, which this attempt plans to change"
            ),
        ),
    ]
    assert detector.observe(2, edit(4, "a.py")) == [
        (1, finding(3, who="task port")),
        (2, finding(4, who="task fix")),
    ]


def test_who_goes_on_meaning_to_change_what_it_changed_is_told_nothing_new() -> None:
    detector = named("task fix", "task port")
    detector.observe(1, edit(3, "a.py"))
    detector.plan(2, ["a.py"])
    assert detector.plan(1, ["a.py"]) == []
    assert detector.plan(1, []) == []


def test_a_plan_step_that_leaves_the_file_alone_ends_a_planned_conflict_for_both() -> None:
    detector = named("task fix", "task port")
    detector.plan(1, ["a.py"])
    detector.plan(2, ["a.py"])
    assert detector.plan(2, ["b.py"]) == [(1, Clear(key=KEY)), (2, Clear(key=KEY))]
    assert detector.plan(1, []) == []


def test_once_changed_a_file_stays_in_conflict_whatever_the_plan_says() -> None:
    detector = named("task fix", "task port")
    for attempt in (1, 2):
        detector.plan(attempt, ["a.py"])
        detector.observe(attempt, edit(1, "a.py"))
    assert detector.plan(1, []) == []


def test_a_conflict_of_changes_ends_where_only_one_who_means_to_is_left() -> None:
    detector = named("task fix", "task port", "task test")
    for attempt in (1, 2):
        detector.observe(attempt, edit(1, "a.py"))
    detector.plan(3, ["a.py"])
    assert detector.end(1) == [(2, Clear(key=KEY))]
    assert detector.end(2) == [(3, Clear(key=KEY))]


def test_a_pattern_is_no_file_that_one_means_to_change() -> None:
    detector = named("task fix", "task port")
    assert [detector.plan(attempt, ["*.py", "a[1].py", ""]) for attempt in (1, 2)] == [[], []]


def test_up_to_three_others_are_named() -> None:
    detector = named("a", "b", "c", "d", "e")
    told = [detector.observe(attempt, edit(1, "a.py")) for attempt in range(1, 6)]
    said = [dict(each)[1] for each in told[1:]]
    assert [each.summary for each in said if isinstance(each, Finding)] == [
        "b, still in progress, also changed a.py",
        "b and c, still in progress, also changed a.py",
        "b and c and d, still in progress, also changed a.py",
        "4 other attempts, still in progress, also changed a.py",
    ]


@pytest.mark.parametrize(
    ("first", "then", "ends"),
    [
        (Edit(path="a.py", before="x", digest="y"), Edit(path="a.py", digest="x"), True),
        (Edit(path="a.py", before="x", digest="y"), Edit(path="a.py", digest="z"), False),
        (Edit(path="a.py", digest="y"), Edit(path="a.py", deleted=True), True),
    ],
    ids=["put back", "changed again", "made and deleted"],
)
def test_who_undoes_its_changes_leaves_the_conflict(first: Edit, then: Edit, ends: bool) -> None:
    detector = named("task fix", "task port")
    detector.observe(1, edit(1, "a.py"))
    detector.observe(2, Step(number=1, kind=StepKind.TOOL, edits=(first,)))
    told = detector.observe(2, Step(number=2, kind=StepKind.TOOL, edits=(then,)))
    assert told == ([(1, Clear(key=KEY)), (2, Clear(key=KEY))] if ends else [])
