"""A run as people read it: its progress and its end."""

from datetime import UTC, timedelta, timezone

import pytest

from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.records import (
    Action,
    AlertState,
    Budget,
    Change,
    Completion,
    DeliveryState,
    Ending,
    EscalationState,
    Lifecycle,
    Meter,
    PermissionRequest,
    Record,
    Resolution,
    Severity,
    Spending,
    TaskTransition,
)
from midwatch_monitor.state.task import TaskState
from midwatch_stage import factories as make
from midwatch_supervisor.present.file_changes import FileChange, change_lines, changes_text
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.run_text import TaskResult, progress_line, run_end
from midwatch_supervisor.present.text_line import with_reservations

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


CHECKED = make.task_transition(Lifecycle.COMPLETED, passed=2, total=2)


def progress(*records: Record, hours: int = 0) -> list[str | None]:
    transcript = Transcript([make.task(name="totals")], [make.attempt(model="m")])
    zone = timezone(timedelta(hours=hours))
    found: list[str | None] = []
    for id, record in enumerate(records, start=1):
        attempt = None if isinstance(record, TaskTransition) else 1
        entry = make.entry(id, record, at=make.AT, attempt=attempt)
        told = transcript.line(entry)
        found.append(None if told is None else progress_line(entry, transcript, zone))
    return found


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (CHECKED, "totals: completed (2 of 2 checks pass)"),
        (make.transition(), "totals#1: working (coder with m)"),
        (make.ended(reason="it passes"), "totals#1: completed: it passes"),
        (make.step(3, "run", args="pytest"), "totals#1: step 3, run: pytest"),
        (
            make.alert(severity=Severity.CRITICAL, subject="a.py"),
            "totals#1: alert: firing critical cycle (a.py): cycle was seen",
        ),
        (
            make.alert(state=AlertState.RESOLVED, resolution=Resolution.CLEARED),
            "totals#1: alert: resolved warning cycle: cycle was seen",
        ),
        (make.escalation(9), "totals#1: escalation: 9 open: cycle"),
        (
            make.intervention(needs_approval=True, message="Look\nup."),
            "totals#1: message: nudge 1 waits for approval, by policy: Look up.",
        ),
    ],
)
def test_a_line_says_when_who_and_what(record: Record, text: str) -> None:
    assert progress(record) == [f"20:00:00 {text}"]


def test_the_end_of_what_nobody_checked_is_told_once() -> None:
    transcript = Transcript([make.task(name="repo")], [make.attempt()])
    why = "the session ended"
    told = [
        make.task_transition(Lifecycle.COMPLETED, reason=why),
        make.ended(Ending.UNCHECKED, reason=why),
    ]
    said = list[str | None]()
    for id, record in enumerate(told, start=1):
        entry = make.entry(id, record, at=make.AT)
        transcript.line(entry)
        said.append(progress_line(entry, transcript, UTC))
    assert said == [None, "20:00:00 repo#1: ended: the session ended"]


def test_a_permission_is_told_with_the_commands_that_answer_it() -> None:
    asks = "asks to run `make`"
    *_, told = progress(
        make.transition(),
        PermissionRequest(tool="execute", what="run `make`"),
        make.change(lifecycle=Lifecycle.INPUT_REQUIRED),
        make.transition(Lifecycle.INPUT_REQUIRED, reason=asks),
    )
    assert told == (
        f"20:00:00 totals#1: waiting for a person: {asks} (coder with m): `midwatch approve 2` or "
        "`midwatch reject 2`"
    )


def test_an_outage_is_told_when_it_lasts_when_its_reason_changes_and_when_it_is_over() -> None:
    refused = "Connection refused"
    told = progress(
        make.away(seconds=1),
        make.away(since=2, seconds=30),
        make.away(since=2, seconds=30),
        make.away(since=32, seconds=30, reason=refused),
        make.step(1, "run", args="pytest"),
        make.away(since=3600, over=True),
        make.away(since=3600, over=True),
    )
    assert told == [
        None,
        "20:00:00 totals#1: provider: waiting 2 s for http://far.test/v1: HTTP 503; "
        "next try in 30 s",
        None,
        f"20:00:00 totals#1: provider: waiting 32 s for http://far.test/v1: {refused}; "
        "next try in 30 s",
        "20:00:00 totals#1: step 1, run: pytest",
        "20:00:00 totals#1: provider: http://far.test/v1 answers, after 60 min",
        None,
    ]


def test_an_outage_that_goes_on_is_told_again_after_ten_minutes() -> None:
    transcript = Transcript([make.task()], [make.attempt()])
    told = [
        transcript.line(make.entry(id, make.away(since=60 * id), at=make.after(minutes=id)))
        for id in range(1, 25)
    ]
    assert [id for id, line in enumerate(told, start=1) if line] == [1, 11, 21]


def test_a_refusal_has_no_line_since_the_run_ends_with_it() -> None:
    assert progress(make.away(next_try=None)) == [None]


def test_what_became_of_an_intervention_names_it() -> None:
    told = progress(make.intervention(), make.delivery(), make.outcome())
    assert told[1:] == [
        "20:00:00 totals#1: delivered: nudge delivered",
        "20:00:00 totals#1: outcome: nudge: recovered: it moves",
    ]


def test_an_attempt_that_a_person_paused_is_paused() -> None:
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    assert progress(make.intervention(Action.PAUSE), make.delivery(), parked)[-1] == (
        "20:00:00 totals#1: paused (coder with m)"
    )


def test_the_model_in_force_is_named() -> None:
    assert progress(Change(model="big"), make.transition())[-1] == (
        "20:00:00 totals#1: working (coder with big)"
    )


@pytest.mark.parametrize(
    "record",
    [
        make.alert(state=AlertState.PENDING),
        make.alert(state=AlertState.RESOLVED, resolution=Resolution.ENDED),
        make.escalation(state=EscalationState.ANSWERED),
        make.escalation(state=EscalationState.CLOSED),
        make.delivery(77, DeliveryState.DELIVERED),
        make.plan(),
    ],
)
def test_nothing_is_said_of_what_nobody_waits_for(record: Record) -> None:
    assert progress(record) == [None]


def test_the_time_is_that_of_the_zone() -> None:
    assert progress(CHECKED, hours=2) == ["22:00:00 totals: completed (2 of 2 checks pass)"]


def test_long_reservations_are_cut() -> None:
    assert len(with_reservations(("x" * 500,))) < 220
