"""The view of one attempt: its sides, its header, its cursor, its diff."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from textual.screen import Screen

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Change,
    Ending,
    Fault,
    Plan,
    PlanStep,
    PlanStepState,
    Step,
)
from midwatch_stage.console import ConsoleDriver, console_in
from midwatch_stage.factories import (
    AT,
    acceptance,
    alert,
    delivery,
    editing,
    ended,
    escalation,
    intervention,
    outcome,
    reflecting,
    transition,
)
from midwatch_stage.repository import worktree_with
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.widgets.scrolling_text import Detail

CODE = "x = [b]1[/b] \x1b[31m\u202e"
WORKING = transition()
PLAN = Plan(
    steps=(PlanStep(title="find it", state=PlanStepState.DONE), PlanStep(title="fix it")),
    revision=1,
)
ALERT = alert("repeated_edits", subject="a.py", step=3, evidence=(1, 3))


def write(number: int) -> Step:
    return editing(number, "a.py", tool="write_file", output=f"{CODE} {number}")


EVERYTHING = (
    *(WORKING, PLAN, write(1), reflecting(2, 40, 30, blockers=("no key",)), write(3), ALERT),
    escalation(1, "repeated_edits"),
    intervention(Action.NUDGE, Actor.OPERATOR, author="eve", answers=(ALERT.key,)),
    *(delivery(8, step=3), write(4), replace(ALERT, state=AlertState.RESOLVED, step=4)),
    *(outcome(8, step=4), Fault(part="cycle", error="boom")),
    acceptance(passed=False, detail="1 failed"),
)
"""Most kinds of records, in a new journal."""


Seat = ConsoleDriver[Journal]
Sit = Callable[..., AbstractAsyncContextManager[Seat]]


@asynccontextmanager
async def sitting(
    folder: Path,
    *,
    bare: bool = False,
    size: tuple[int, int] = (120, 40),
    poll_seconds: float = 60,
    **task: str,
) -> AsyncGenerator[Seat]:
    """Opens the console on a journal with one attempt, which holds everything unless told."""
    async with console_in(folder, size=size, poll_seconds=poll_seconds) as driver:
        await driver.add(title="Fix it", **task)
        await driver.write(*([WORKING] if bare else EVERYTHING))
        yield driver


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    return partial(sitting, tmp_path)


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Seat]:
    async with sitting(tmp_path_factory.mktemp("attempt")) as driver:
        yield driver


@pytest.fixture
async def seat(shared: Seat) -> Seat:
    """The console before an attempt that holds everything, for tests that write nothing."""
    await shared.first_screen()
    return shared


async def test_a_time_of_another_day_is_told_with_its_day(sit: Sit) -> None:
    async with sit(bare=True) as seat:
        await seat.open_attempt()
        assert seat.words("timeline")[-1] == ">20:00:00 - ▶ status working"
        await seat.first_screen()
        seat.app.time = AT + timedelta(days=2)
        await seat.open_attempt()
        assert seat.words("timeline")[-1] == ">21 Nov 20:00:00 - ▶ status working"


async def test_that_no_check_was_run_is_said_as_final_of_an_attempt_that_is_over(sit: Sit) -> None:
    async with sit(bare=True) as seat:
        await seat.open_attempt()
        await seat.press("f8")
        assert seat.text("#checks-pane > .nothing").endswith("when the worker says it is done.")
        await seat.write(ended(Ending.RESTARTED))
        said = "No acceptance checks were run."
        await seat.until(lambda: seat.text("#checks-pane > .nothing") == said)


async def test_enter_shows_all_of_a_step_and_escape_closes_it_then_goes_back(seat: Seat) -> None:
    view = await seat.open_attempt()
    detail = view.query_one(Detail)
    await seat.press("g", "j", "j", "j", "enter")
    assert detail.text.endswith("output:\nx = [b]1[/b]  1")
    assert not {"\x1b", "\u202e"} & set(seat.app.export_screenshot())
    await seat.press("escape")
    assert not detail.open
    await seat.press("escape")
    assert not isinstance(seat.app.screen, AttemptScreen)


async def test_keys_scroll_a_detail_and_act_on_its_attempt_meanwhile(sit: Sit) -> None:
    async with sit(bare=True, size=(80, 24)) as seat:
        await seat.write(WORKING, replace(write(1), output="\n".join("abcdefghijklmnop")))
        view = await seat.open_attempt()
        detail = view.query_one(Detail)
        await seat.press("enter", "tab", "G")
        await seat.until(lambda: detail.scroll_y > 0)
        await seat.press("g")
        await seat.until(lambda: detail.scroll_y == 0)
        assert seat.app.focused is detail
        await seat.press("p")
        assert seat.app.told == ["fix#1: pause sent; it takes effect at the next request"]


async def test_the_keys_turn_through_all_sides(seat: Seat) -> None:
    view = await seat.open_attempt()
    seen = [view.tab]
    for key in (*"lllllll", "h"):
        await seat.press(key)
        seen.append(view.tab)
    sides = ["timeline", "alerts", "chart", "plan", "diff", "messages", "checks"]
    assert seen == [*sides, "timeline", "checks"]


async def test_what_is_added_appears_and_the_cursor_at_the_end_follows(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open_attempt()
        await seat.write(write(5))
        await seat.until(lambda: view.timeline.state.last_step == 5)
        assert seat.lines("timeline")[-1].startswith(">20:00:00    5")
        await seat.app.push_screen(Screen[None]())  # it is not missed behind another screen
        await seat.write(write(6))
        await seat.until(lambda: view.timeline.state.last_step == 6)
        await seat.app.pop_screen()
        assert seat.lines("timeline")[-1].startswith(">20:00:00    6")
        await seat.press("g", "j")
        await seat.write(write(7))
        await seat.until(lambda: view.timeline.state.last_step == 7)
        assert seat.lines("timeline")[1].startswith(">")


async def test_a_task_that_has_not_begun_opens_nothing(sit: Sit) -> None:
    async with sit(bare=True, poll_seconds=0.1) as seat:  # nobody hints at it
        task = await seat.journal.add_task(run=1, name="later", title="", spec="{}", at=AT)
        await seat.until(lambda: task.id in seat.app.board.queued)
        seat.app.open_attempt(seat.app.board.queued[task.id])
        await seat.pilot.pause()
        assert not isinstance(seat.app.screen, AttemptScreen)


async def test_the_diff_of_the_worktree_is_shown_by_sign(sit: Sit, tmp_path: Path) -> None:
    folder, spec = await worktree_with(tmp_path, "a.py", "x = 1\n")
    (folder / "a.py").write_text("x = 2  # [b]\n")
    async with sit(workspace=str(folder), spec=spec) as seat:
        await seat.open_attempt()
        await seat.press("f6")
        await seat.until(lambda: bool(seat.lines("diff")))
        assert seat.lines("diff")[-2:] == [" -x = 1", " +x = 2  # [b]"]


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ("", "The attempt has no workspace."),
        ("/nowhere/at/all", "There is no git worktree here: /nowhere/at/all"),
    ],
)
async def test_a_side_without_a_diff_says_why(sit: Sit, workspace: str, said: str) -> None:
    async with sit(workspace=workspace) as seat:
        await seat.open_attempt()
        await seat.press("f6")
        await seat.until(lambda: seat.text("#diff-pane > .nothing") == said)


async def test_an_attempt_without_anything_says_so_on_every_side(sit: Sit) -> None:
    async with sit(bare=True) as seat:
        view = await seat.open_attempt()
        for key in ("f3", "f4", "f5", "f7", "f8"):
            await seat.press(key)
            active = view.query_one(f"#{view.tab}-tab")
            assert active.query_one(".empty").display


async def test_every_side_can_be_drawn_at_any_size(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open_attempt()
        for size in ((20, 5), (200, 60)):
            await seat.pilot.resize_terminal(*size)
            await seat.press("f2", "f3", "f4", "f5", "f6", "f7", "f8", "space", "T")
            assert seat.app.export_screenshot()


async def test_the_header_tells_what_confidence_was_worth(tmp_path: Path) -> None:
    async with console_in(tmp_path, size=(120, 30)) as seat:
        for number in range(5):
            await seat.write(reflecting(1, 40, 80), ended(Ending.STUCK), task=f"task-{number}")
        await seat.open_attempt("task-4")
        words = "confidence 80% (worth 7% so far)  coder"
        await seat.until(lambda: words in seat.text("#standing"))


async def test_the_header_says_where_the_rules_do_not_go_by_it(tmp_path: Path) -> None:
    records = Change(confidence_counts=False), reflecting(1, 40, 80)
    async with console_in(tmp_path, *records, size=(120, 30)) as seat:
        await seat.open_attempt()
        await seat.until(lambda: "confidence 80% (worthless)" in seat.text("#standing"))
