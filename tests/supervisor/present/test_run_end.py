"""A run as people read it: its progress and its end.

Each case is told in `run_ends.txt` beside this file; `MIDWATCH_UPDATE=1` writes it anew.
"""

import os
from collections.abc import Iterator
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.file_changes import FileChange, change_lines, changes_text
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.run_text import TaskResult, progress_line, run_end
from midwatch_supervisor.present.text_line import with_reservations
from midwatch_tests import factories as make

TEXTS = Path(__file__).with_name("run_ends.txt")
FILES = (
    FileChange(name="a.py", added=14, removed=3),
    FileChange(name="logo.png", binary=True),
)
DONE = make.task_transition(r.Lifecycle.COMPLETED, passed=1, total=1)
USED = make.change(
    budget=r.Budget(
        requests=r.Meter(used=1), tokens=r.Meter(used=45_000), cost_usd=r.Meter(used=0.12)
    )
)
FAILED = make.task_transition(r.Lifecycle.FAILED, reason="out of budget: 60 requests")
PARKED = make.transition(r.Lifecycle.INPUT_REQUIRED)
ASKS = make.intervention(r.Action.ASK_OPERATOR, message="Which port?")
PAUSE = make.intervention(r.Action.PAUSE)


def state(*records: r.Record, name: str = "fix", attempts: int = 1) -> TaskState:
    """Where a task stands after records of its last attempt."""
    task = TaskState(task=make.task(name=name))
    for id in range(1, attempts + 1):
        task.meet(make.attempt(id, number=id))
    for id, record in enumerate(records, start=1):
        attempt = None if isinstance(record, r.TaskTransition) else attempts
        task.fold(make.entry(id, record, attempt=attempt))
    return task


def result(*records: r.Record, **fields: object) -> TaskResult:
    made = {"branch": "midwatch/r1/fix-1", "files": FILES, "state": state(*records), **fields}
    return TaskResult(**made)  # pyright: ignore[reportArgumentType]


def ends() -> Iterator[tuple[str, list[TaskResult]]]:
    """Each case, and the results of its tasks."""
    reflector = r.Spending(role="reflector", model="m", requests=2, tokens=900)
    checks = (make.acceptance(), make.acceptance(check="ruff check"))
    whole = (make.alert(), USED, *checks, reflector, make.ended(), DONE)
    yield "a completed task says all that is needed", [result(*whole)]
    check = make.acceptance(passed=False, detail="exit code 1\nmuch more")
    failed = (check, make.ended(r.Ending.OUT_OF_BUDGET), FAILED)
    yield (
        "a failed one says why and which checks failed, and is not taken",
        [result(*failed, wanted=1)],
    )
    yield (
        "checks that did not run are said not to have",
        [result(make.ended(r.Ending.STUCK), FAILED, wanted=2)],
    )
    yield (
        "what was interrupted shows no working beside a person who is waited for",
        [result(make.task_transition(), make.transition(), ASKS, make.delivery(3), PARKED)],
    )
    yield (
        "a proposal is approved or rejected",
        [result(make.intervention(needs_approval=True), PARKED)],
    )
    yield "a pause is ended by a command", [result(PAUSE, make.delivery(), PARKED)]
    yield (
        "a result without git is in its folder",
        [result(make.ended(), DONE, branch="", folder="workspaces/fix-1")],
    )
    yield "nothing changed is nothing to take", [result(make.ended(), DONE, files=())]
    flagged = r.Completion(plan_step=0, goal="g", confidence=7, accepted=True, flag="not reviewed")
    yield "reservations stand beside the status", [result(flagged, make.ended(), DONE)]
    again = TaskState(task=make.task())
    for id in (1, 2):
        again.meet(make.attempt(id, number=id))
    again.fold(make.entry(1, make.acceptance(), attempt=1))
    yield "the checks of an earlier attempt say so", [result(state=again)]
    done = result(USED, make.ended(), DONE)
    cut = result(make.ended(r.Ending.STUCK), FAILED, state=state(FAILED, name="cut"))
    yield "many tasks are told in a line each", [*[done] * 4, cut]
    report = result(state=state(make.ended(), DONE, name="report"), branch="")
    yield "many that did not work in git are taken into a folder", [report] * 5
    yield "of many tasks those that did not work in git are named", [done, report, *[done] * 3]


OVER = "the session ended"
PROGRESS: dict[str, list[r.Record]] = {
    "a line says when, who and what": [
        make.transition(),
        make.step(3, "run", args="pytest"),
        make.alert(severity=r.Severity.CRITICAL, subject="a.py"),
        make.alert(state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED),
        make.escalation(9),
        make.intervention(needs_approval=True, message="Look\nup."),
        make.ended(reason="it passes"),
        make.task_transition(r.Lifecycle.COMPLETED, passed=2, total=2),
    ],
    "the end of what nobody checked is told once": [
        make.task_transition(r.Lifecycle.COMPLETED, reason=OVER),
        make.ended(r.Ending.UNCHECKED, reason=OVER),
    ],
    "a permission is told with the commands that answer it": [
        make.transition(),
        r.PermissionRequest(tool="execute", what="run `make`"),
        make.change(lifecycle=r.Lifecycle.INPUT_REQUIRED),
        make.transition(r.Lifecycle.INPUT_REQUIRED, reason="asks to run `make`"),
    ],
    "an outage is told when it lasts, when its reason changes and when it is over": [
        make.away(seconds=1),
        make.away(since=2),
        make.away(since=2),
        make.away(since=32, reason="Connection refused"),
        make.step(1, "run", args="pytest"),
        make.away(since=3600, over=True),
        make.away(since=3600, over=True),
    ],
    "a refusal has no line, since the run ends with it": [make.away(next_try=None)],
    "what became of an intervention names it": [
        make.intervention(),
        make.delivery(),
        make.outcome(),
    ],
    "an attempt that a person paused is paused": [PAUSE, make.delivery(), PARKED],
    "the model in force is named": [make.change(model="big"), make.transition()],
    "nothing is said of what nobody waits for": [
        make.alert(state=r.AlertState.PENDING),
        make.alert(state=r.AlertState.RESOLVED, resolution=r.Resolution.ENDED),
        make.escalation(state=r.EscalationState.ANSWERED),
        make.escalation(state=r.EscalationState.CLOSED),
        make.delivery(77),
        make.plan(),
    ],
}
"""Each case, and the records of which some have a line."""


def progress_lines(records: list[r.Record], zone: tzinfo = UTC) -> Iterator[str]:
    transcript = Transcript([make.task(name="totals")], [make.attempt(model="m")])
    for id, record in enumerate(records, start=1):
        checked = isinstance(record, r.TaskTransition) and record.total
        entry = make.entry(id, record, at=make.AT, attempt=None if checked else 1)
        told = transcript.line(entry)
        text = progress_line(entry, transcript, zone) if told else None
        yield text or f"({type(record).__name__})"


def golden_text() -> str:
    blocks = [(name, run_end(results, width=80)) for name, results in ends()]
    blocks += [(name, progress_lines(records)) for name, records in PROGRESS.items()]
    texts = ((name, "\n".join(lines).strip("\n")) for name, lines in blocks)
    return "\n".join(f"## {name}\n{text}\n" for name, text in texts)


def test_each_end_and_each_progress_is_told_as_the_golden_file_says() -> None:
    if os.environ.get("MIDWATCH_UPDATE"):
        TEXTS.write_text(golden_text(), encoding="utf-8")
    assert golden_text() == TEXTS.read_text(encoding="utf-8")


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
        USED,
        make.acceptance(check="python3 -m pytest -q tests"),
        make.acceptance(check="ruff check", passed=False, detail="exit code 1"),
        make.ended(r.Ending.UNACCEPTED),
        FAILED,
    )
    results = [
        TaskResult(state=state(*told, name=f"task{at}", attempts=2), files=FILES, folder="w")
        for at in range(count)
    ]
    lines = [*run_end(results, width=width)]
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line and line[-1].isdigit() and line[-2] == " "]


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


def test_an_outage_that_goes_on_is_told_again_after_ten_minutes() -> None:
    transcript = Transcript([make.task()], [make.attempt()])
    told = [
        transcript.line(make.entry(id, make.away(since=60 * id), at=make.after(minutes=id)))
        for id in range(1, 25)
    ]
    assert [id for id, line in enumerate(told, start=1) if line] == [1, 11, 21]


def test_the_time_is_that_of_the_zone() -> None:
    (told,) = progress_lines([make.transition()], timezone(timedelta(hours=2)))
    assert told == "22:00:00 totals#1: working (coder with m)"


def test_long_reservations_are_cut() -> None:
    assert len(with_reservations(("x" * 500,))) < 220
