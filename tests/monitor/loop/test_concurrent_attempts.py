"""The monitor's loop sees that two attempts at work change the same file."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.loop import Monitor
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_tests.factories import WHOSE, alert, ended, step

Claim = Callable[..., Awaitable[Recorder]]
Build = Callable[..., Monitor]
Join = Callable[..., Awaitable[Recorder]]
ConflictRow = tuple[int | None, r.AlertState, r.Resolution | None, int]

ONE, TWO = 2, 3
"""The ids of the attempts that join first and second."""
KEY = r.AlertKey(rule="workspace_conflict", subject="a.py")
DONE = ended()
FIRING = (r.AlertState.FIRING, None)
CLEARED = (r.AlertState.RESOLVED, r.Resolution.CLEARED)


def edit(path: str = "a.py", writer: r.Writer = r.Writer.WORKER) -> r.Step:
    return step(edits=(r.Edit(path=path, digest="d", writer=writer),))


def make_plan(*files: str) -> r.Plan:
    return r.Plan(
        steps=(r.PlanStep(title="mend", files=files), r.PlanStep(title="test", files=("t",)))
    )


async def recorded_conflicts(journal: Journal) -> list[ConflictRow]:
    """The conflicts in the journal, by attempt."""
    return [
        (entry.attempt, entry.record.state, entry.record.resolution, entry.record.step)
        for entry in await journal.entries(kinds=[r.Alert])
        if isinstance(entry.record, r.Alert) and entry.record.key == KEY
    ]


@pytest.fixture
async def join(journal: Journal, claim: Claim, at: datetime) -> Join:
    """Begins another attempt, of a task of its own, on a project."""
    names = iter(("one", "two", "three"))

    async def begin(project: str | None = "/project") -> Recorder:
        spec = "{}" if project is None else f'{{"workspace": "{project}"}}'
        task = await journal.add_task(run=1, name=next(names), title="", spec=spec, at=at)
        attempt = await journal.add_attempt(task=task.id, number=1, at=at, **WHOSE)
        recorder = await claim(of=attempt)
        await recorder.record(working_transition())
        return recorder

    return begin


def conflict_settings(**rule: Any) -> Settings:
    return Settings.model_validate({"rules": {"workspace_conflict": rule}})


async def test_both_attempts_are_told_and_the_supervisor_is_asked(
    journal: Journal, monitor: Monitor, join: Join, at: datetime
) -> None:
    one, two = await join(), await join()
    await one.record(step(), edit())
    await two.record(edit())
    await monitor.look()
    asked = await journal.entries(kinds=[r.Escalation])
    assert [entry.attempt for entry in asked] == [ONE, TWO]
    entries = await journal.entries(kinds=[r.Alert])
    assert [(entry.attempt, entry.record) for entry in entries] == [
        (
            attempt,
            alert(
                KEY.rule,
                subject=KEY.subject,
                value=1,
                summary=f"task {other}, still in progress, also changed a.py",
                evidence=(number,),
                step=number,
                since_at=at,
                at=at,
            ),
        )
        for attempt, number, other in ((ONE, 2, "two"), (TWO, 1, "one"))
    ]


async def test_what_plan_steps_in_hand_mean_to_change_is_noticed_before_anybody_does(
    journal: Journal, monitor: Monitor, join: Join
) -> None:
    """Whoever is told of it can still wait; nobody is asked as long as it is only planned."""
    for each in (await join(), await join()):
        await each.record(make_plan("a.py"))
        await monitor.look()
    assert await recorded_conflicts(journal) == [(ONE, *FIRING, 0), (TWO, *FIRING, 0)]
    entries = await journal.entries(kinds=[r.Alert, r.Escalation])
    assert [
        (e.record.severity, e.record.summary) for e in entries if isinstance(e.record, r.Alert)
    ] == [
        (r.Severity.NOTICE, "task two, still in progress, also plans to change a.py"),
        (r.Severity.NOTICE, "task one, still in progress, also plans to change a.py"),
    ]
    assert len(entries) == 2


@pytest.mark.parametrize(
    ("projects", "step"),
    [
        (("/project", "/other"), edit()),
        ((None, None), edit()),
        (("/project", "/project"), edit("b.py")),
        (("/project", "/project"), edit(writer=r.Writer.PERSON)),
    ],
)
async def test_other_projects_other_files_and_other_writers_are_no_conflict(
    journal: Journal, monitor: Monitor, join: Join,
    projects: tuple[str | None, str | None], step: r.Step,
) -> None:  # fmt: skip
    one, two = [await join(project) for project in projects]
    await one.record(edit())
    await two.record(step)
    await monitor.look()
    assert await recorded_conflicts(journal) == []


async def test_a_hold_counts_each_attempts_own(
    journal: Journal, make_monitor: Build, join: Join
) -> None:
    monitor = make_monitor(settings=conflict_settings(hold=2))
    one, two = await join(), await join()
    for each in (one, two, one, one):
        await each.record(edit())
        await monitor.look()
    pending = [(ONE, r.AlertState.PENDING, None, 1), (TWO, r.AlertState.PENDING, None, 1)]
    assert await recorded_conflicts(journal) == [*pending, (ONE, *FIRING, 3)]


async def test_a_monitor_that_starts_anew_says_nothing_twice_and_knows_who_is_at_work(
    journal: Journal, make_monitor: Build, join: Join
) -> None:
    settings = conflict_settings(cooldown=2)
    one, two = await join(), await join()
    for each in (one, two):
        await each.record(edit())
    await make_monitor(settings=conflict_settings(enabled=False)).look()
    assert await recorded_conflicts(journal) == []
    await make_monitor(settings=settings).look()
    again = make_monitor(settings=settings)
    await again.look(everything=True)
    assert len(await recorded_conflicts(journal)) == 2
    await two.end(DONE)
    await again.look()
    await (await join()).record(edit())
    for _ in range(3):
        await again.look()
        await one.record(step())
    mine = [state for attempt, *state in await recorded_conflicts(journal) if attempt == ONE]
    assert mine == [[*FIRING, 1], [*CLEARED, 1], [*FIRING, 3]]
