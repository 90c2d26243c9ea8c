"""The end of a run as people read it."""

import pytest

from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.records import (
    Action,
    Budget,
    Completion,
    Ending,
    Lifecycle,
    Meter,
    Record,
    Spending,
    TaskTransition,
)
from midwatch_monitor.state.task import TaskState
from midwatch_stage import factories as make
from midwatch_supervisor.present.file_changes import FileChange, change_lines, changes_text
from midwatch_supervisor.present.run_text import TaskResult, run_end

FILES = (
    FileChange(name="a.py", added=14, removed=3),
    FileChange(name="logo.png", binary=True),
)
DONE = make.task_transition(Lifecycle.COMPLETED, passed=1, total=1)
USED = Budget(requests=Meter(used=1), tokens=Meter(used=45_000), cost_usd=Meter(used=0.12))
FAILED = make.task_transition(Lifecycle.FAILED, reason="out of budget: 60 requests")
PARKED = make.transition(Lifecycle.INPUT_REQUIRED)


def state(*records: Record, name: str = "fix", attempts: int = 1) -> TaskState:
    """Where a task stands after records of its last attempt."""
    task = TaskState(task=make.task(name=name))
    for id in range(1, attempts + 1):
        task.meet(make.attempt(id, number=id))
    for id, record in enumerate(records, start=1):
        attempt = None if isinstance(record, TaskTransition) else attempts
        task.fold(make.entry(id, record, attempt=attempt))
    return task


def result(*records: Record, **fields: object) -> TaskResult:
    made = {"branch": "midwatch/r1/fix-1", "files": FILES, "state": state(*records), **fields}
    return TaskResult(**made)  # pyright: ignore[reportArgumentType]


def block(*records: Record, width: int = 80, **fields: object) -> list[str]:
    """The lines of one task, without the empty ones around them."""
    lines = [*run_end([result(*records, **fields)], width=width)]
    return lines[1:-1]


def test_a_completed_task_says_all_that_is_needed() -> None:
    reflector = Spending(role="reflector", model="m", requests=2, tokens=900)
    checks = (make.acceptance(), make.acceptance(check="ruff check"))
    told = (make.alert(), make.change(budget=USED), *checks, reflector, make.ended(), DONE)
    assert block(*told) == [
        "fix: completed",
        "  changes  2 files, +14 -3",
        "  branch   midwatch/r1/fix-1",
        "  checks   2 of 2 checks pass; passed: make test, ruff check",
        "  tries    1 attempt, 1 alert",
        "  used     1 request, 45 k tokens, $0.12; reflector 2 requests, 900 tokens",
        "  look     midwatch diff fix",
        "  take     midwatch merge fix",
    ]


def test_a_failed_one_says_why_and_which_checks_failed_and_is_not_taken() -> None:
    check = make.acceptance(passed=False, detail="exit code 1\nmuch more")
    lines = block(check, make.ended(Ending.OUT_OF_BUDGET), FAILED, wanted=1)
    assert lines[0] == "fix: failed"
    assert "  why      out of budget: 60 requests" in lines
    assert "  checks   0 of 1 check passes; failed: make test (exit code 1)" in lines
    assert lines[-1] == "  look     midwatch diff fix"


def test_checks_that_did_not_run_are_said_not_to_have() -> None:
    assert "  checks   none of 2 ran" in block(make.ended(Ending.STUCK), FAILED, wanted=2)


def test_what_was_interrupted_shows_no_working_beside_a_person_who_is_waited_for() -> None:
    question = make.intervention(Action.ASK_OPERATOR, message="Which port?")
    told = (make.task_transition(), make.transition(), question, make.delivery(3), PARKED)
    lines = block(*told)
    assert lines[0] == "fix: waits for you"
    assert "  waits    for an answer: Which port?" in lines
    assert lines[-3:] == [
        '  answer   midwatch tell fix "your answer"',
        "  continue midwatch resume",
        "  look     midwatch diff fix",
    ]
    assert not any("working" in line for line in lines)


@pytest.mark.parametrize(
    ("told", "answers"),
    [
        (
            (make.intervention(needs_approval=True), PARKED),
            ["  answer   midwatch approve 1", "  answer   midwatch reject 1"],
        ),
        (
            (make.intervention(Action.PAUSE), make.delivery(), PARKED),
            ["  answer   midwatch tell fix --resume"],
        ),
    ],
)
def test_each_waiting_is_ended_by_a_command(told: tuple[Record, ...], answers: list[str]) -> None:
    assert [line for line in block(*told) if line.startswith("  answer")] == answers


def test_a_result_without_git_is_in_its_folder() -> None:
    lines = block(make.ended(), DONE, branch="", folder="workspaces/fix-1")
    assert "  folder   workspaces/fix-1" in lines
    assert lines[-1] == "  take     midwatch merge fix --into FOLDER"


def test_nothing_changed_is_nothing_to_take() -> None:
    lines = block(make.ended(), DONE, files=())
    assert "  changes  no changes" in lines
    assert lines[-1] == "  look     midwatch show fix"


def test_reservations_stand_beside_the_status() -> None:
    flagged = Completion(plan_step=0, goal="g", confidence=7, accepted=True, flag="not reviewed")
    first, *_ = block(flagged, make.ended(), DONE)
    assert first == "fix: completed, with reservations: not reviewed"


def test_commands_name_the_journal_that_was_named() -> None:
    with naming_journal("x.db"):
        lines = [*run_end([result(make.ended(), DONE)], width=80)]
    assert "  take     midwatch merge fix --journal x.db" in lines


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("count", [1, 20])
def test_no_line_is_wider_than_the_terminal_and_no_count_is_torn_from_its_noun(
    width: int, count: int
) -> None:
    told = (
        *(make.alert(f"rule{number}") for number in range(11)),
        make.change(budget=USED),
        make.acceptance(check="python3 -m pytest -q tests"),
        make.acceptance(check="ruff check", passed=False, detail="exit code 1"),
        make.ended(Ending.UNACCEPTED),
        FAILED,
    )
    results = [
        TaskResult(state=state(*told, name=f"task{at}", attempts=2), files=FILES, folder="w")
        for at in range(count)
    ]
    lines = [*run_end(results, width=width)]
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line and line[-1].isdigit() and line[-2] == " "]


def test_many_tasks_are_told_in_a_line_each() -> None:
    done = result(make.change(budget=USED), make.ended(), DONE)
    failed = result(make.ended(Ending.STUCK), FAILED, state=state(FAILED, name="cut"))
    lines = [*run_end([done] * 4 + [failed], width=80)]
    first = "fix: completed, 2 files, +14 -3, 1 of 1 check passes, 1 attempt, 45 k tokens,"
    assert lines[1:3] == [first, "  $0.12"]
    assert lines[-6:-4] == [
        "cut: failed, 2 files, +14 -3, 1 attempt",
        "  why      out of budget: 60 requests",
    ]
    assert lines[-3:] == [
        "  used     4 requests, 180 k tokens, $0.48",
        "  look     midwatch diff TASK",
        "  take     midwatch merge TASK",
    ]


def test_of_many_tasks_those_that_did_not_work_in_git_are_taken_into_a_folder() -> None:
    report = result(state=state(make.ended(), DONE, name="report"), branch="")
    assert [*run_end([report] * 5, width=80)][-1] == "  take     midwatch merge TASK --into FOLDER"
    done = result(make.ended(), DONE)
    assert [*run_end([done, report, done, done, done], width=80)][-2:] == [
        "  take     midwatch merge TASK (fix, fix, fix, fix)",
        "  take     midwatch merge TASK --into FOLDER (report)",
    ]


def test_changes_are_counted_in_lines_and_named() -> None:
    assert changes_text(FILES) == "2 files, +14 -3"
    assert changes_text(FILES[1:]) == "1 file"
    assert [*change_lines(FILES, {})] == ["+14 -3  a.py", "binary  logo.png"]
    many = [FileChange(name=f"{at}.py", added=1) for at in range(250)]
    assert [*change_lines(many, {})][-1] == "… and 50 more files"


def test_what_a_person_should_notice_of_a_file_is_told_even_among_too_many() -> None:
    many = [FileChange(name=f"{at}.py", added=1) for at in range(250)]
    lines = [*change_lines(many, {"240.py": "a link to /etc"})]
    assert lines[:2] == ["+1 -0  240.py (a link to /etc)", "+1 -0  0.py"]
    assert [*change_lines(FILES, {"logo.png": "12 MB"})][1] == "binary  logo.png (12 MB)"


def test_the_checks_of_an_earlier_attempt_say_so() -> None:
    task = TaskState(task=make.task())
    for id in (1, 2):
        task.meet(make.attempt(id, number=id))
    task.fold(make.entry(1, make.acceptance(), attempt=1))
    (line,) = [each for each in block(state=task) if each.startswith("  checks")]
    assert line.endswith("passed: make test (attempt 1)")
