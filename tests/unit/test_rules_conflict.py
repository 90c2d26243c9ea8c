"""Attempts that work side by side and change the same file."""

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.rules.conflict import ConflictDetector
from midwatch_monitor.rules.detector import Clear
from midwatch_monitor.words import AlertKey, Edit, Finding, Severity, Step, StepKind, Writer

KEY = AlertKey(rule="workspace_conflict", subject="a.py")


def edit(number: int, *paths: str, by: Writer = Writer.WORKER) -> Step:
    edits = tuple(Edit(path=path, digest="d", writer=by) for path in paths)
    return Step(number=number, kind=StepKind.TOOL, tool="edit", edits=edits)


def finding(step: int, others: int = 1, who: str = "another attempt") -> Finding:
    return Finding(
        key=KEY,
        severity=Severity.NOTICE,
        value=others,
        summary=f"{who} at work changed a.py too",
        evidence=(step,),
    )


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
