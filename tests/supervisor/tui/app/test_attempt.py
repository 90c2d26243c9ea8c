"""The view of one attempt: its sides, its header, its cursor, its diff, its search; and filters."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from textual import events
from textual.screen import Screen
from textual.widgets import Input
from textual.widgets._toast import Toast

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
from midwatch_supervisor.tui.keys import ATTEMPT
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.attempt_timeline import KINDS
from midwatch_supervisor.tui.widgets.scrolling_text import Detail
from midwatch_tests.console import ConsoleDriver, console_in
from midwatch_tests.factories import (
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
    step,
    transition,
)
from midwatch_tests.repository import worktree_with

CODE = "x = [b]1[/b] \x1b[31m\u202e"
WORKING = transition()
PLAN = Plan(
    steps=(PlanStep(title="find it", state=PlanStepState.DONE), PlanStep(title="fix it")),
    revision=1,
)
ALERT = alert("repeated_edits", subject="a.py", step=3, evidence=(1, 3))


def write_step(number: int) -> Step:
    return editing(number, "a.py", tool="write_file", output=f"{CODE} {number}")


EVERYTHING = (
    *(
        WORKING,
        PLAN,
        write_step(1),
        reflecting(2, 40, 30, blockers=("no key",)),
        write_step(3),
        ALERT,
    ),
    escalation(1, "repeated_edits"),
    intervention(Action.NUDGE, Actor.OPERATOR, author="eve", answers=(ALERT.key,)),
    *(delivery(8, step=3), write_step(4), replace(ALERT, state=AlertState.RESOLVED, step=4)),
    *(outcome(8, step=4), Fault(part="cycle", error="boom")),
    acceptance(passed=False, detail="1 failed"),
)
"""Most kinds of records, in a new journal."""


Driver = ConsoleDriver[Journal]
OpenConsole = Callable[..., AbstractAsyncContextManager[Driver]]


@asynccontextmanager
async def console_on_attempt(
    folder: Path,
    *,
    bare: bool = False,
    size: tuple[int, int] = (120, 40),
    poll_seconds: float = 60,
    **task: str,
) -> AsyncGenerator[Driver]:
    """The console on a journal with one attempt, which holds everything unless told."""
    async with console_in(folder, size=size, poll_seconds=poll_seconds) as driver:
        await driver.add(title="Fix it", **task)
        await driver.write(*([WORKING] if bare else EVERYTHING))
        yield driver


@pytest.fixture
def open_console(tmp_path: Path) -> OpenConsole:
    return partial(console_on_attempt, tmp_path)


@pytest.fixture(scope="module")
async def shared_console(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Driver]:
    async with console_on_attempt(tmp_path_factory.mktemp("attempt")) as driver:
        yield driver


@pytest.fixture
async def ui(shared_console: Driver) -> Driver:
    """The console before an attempt that holds everything, for tests that write nothing."""
    await shared_console.first_screen()
    return shared_console


async def test_a_time_of_another_day_is_told_with_its_day(open_console: OpenConsole) -> None:
    async with open_console(bare=True) as ui:
        await ui.open_attempt()
        assert ui.words("timeline")[-1] == ">20:00:00 - ▶ status working"
        await ui.first_screen()
        ui.app.time = AT + timedelta(days=2)
        await ui.open_attempt()
        assert ui.words("timeline")[-1] == ">21 Nov 20:00:00 - ▶ status working"


async def test_that_no_check_was_run_is_said_as_final_of_an_attempt_that_is_over(
    open_console: OpenConsole,
) -> None:
    async with open_console(bare=True) as ui:
        await ui.open_attempt()
        await ui.press("f8")
        assert ui.text("#checks-pane > .nothing").endswith("when the worker says it is done.")
        await ui.write(ended(Ending.RESTARTED))
        said = "No acceptance checks were run."
        await ui.until(lambda: ui.text("#checks-pane > .nothing") == said)


async def test_enter_shows_all_of_a_step_and_escape_closes_it_then_goes_back(ui: Driver) -> None:
    view = await ui.open_attempt()
    detail = view.query_one(Detail)
    await ui.press("g", "j", "j", "j", "enter")
    assert detail.text.endswith("output:\nx = [b]1[/b]  1")
    assert not {"\x1b", "\u202e"} & set(ui.app.export_screenshot())
    await ui.press("escape")
    assert not detail.open
    await ui.press("escape")
    assert not isinstance(ui.app.screen, AttemptScreen)


async def test_keys_scroll_a_detail_and_act_on_its_attempt_meanwhile(
    open_console: OpenConsole,
) -> None:
    async with open_console(bare=True, size=(80, 24)) as ui:
        await ui.write(WORKING, replace(write_step(1), output="\n".join("abcdefghijklmnop")))
        view = await ui.open_attempt()
        detail = view.query_one(Detail)
        await ui.press("enter", "tab", "G")
        await ui.until(lambda: detail.scroll_y > 0)
        await ui.press("g")
        await ui.until(lambda: detail.scroll_y == 0)
        assert ui.app.focused is detail
        await ui.press("p")
        assert ui.app.told == ["fix#1: pause sent; it takes effect at the next request"]


async def test_the_keys_turn_through_all_sides(ui: Driver) -> None:
    view = await ui.open_attempt()
    seen = [view.tab]
    for key in (*"lllllll", "h"):
        await ui.press(key)
        seen.append(view.tab)
    sides = ["timeline", "alerts", "chart", "plan", "diff", "messages", "checks"]
    assert seen == [*sides, "timeline", "checks"]


async def test_what_is_added_appears_and_the_cursor_at_the_end_follows(
    open_console: OpenConsole,
) -> None:
    async with open_console() as ui:
        view = await ui.open_attempt()
        await ui.write(write_step(5))
        await ui.until(lambda: view.timeline.state.last_step == 5)
        assert ui.lines("timeline")[-1].startswith(">20:00:00    5")
        await ui.app.push_screen(Screen[None]())  # it is not missed behind another screen
        await ui.write(write_step(6))
        await ui.until(lambda: view.timeline.state.last_step == 6)
        await ui.app.pop_screen()
        assert ui.lines("timeline")[-1].startswith(">20:00:00    6")
        await ui.press("g", "j")
        await ui.write(write_step(7))
        await ui.until(lambda: view.timeline.state.last_step == 7)
        assert ui.lines("timeline")[1].startswith(">")


async def test_a_task_that_has_not_begun_opens_nothing(open_console: OpenConsole) -> None:
    async with open_console(bare=True, poll_seconds=0.1) as ui:  # nobody hints at it
        task = await ui.journal.add_task(run=1, name="later", title="", spec="{}", at=AT)
        await ui.until(lambda: task.id in ui.app.board.queued)
        ui.app.open_attempt(ui.app.board.queued[task.id])
        await ui.pilot.pause()
        assert not isinstance(ui.app.screen, AttemptScreen)


async def test_the_diff_of_the_worktree_is_shown_by_sign(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    folder, spec = await worktree_with(tmp_path, "a.py", "x = 1\n")
    (folder / "a.py").write_text("x = 2  # [b]\n")
    async with open_console(workspace=str(folder), spec=spec) as ui:
        await ui.open_attempt()
        await ui.press("f6")
        await ui.until(lambda: bool(ui.lines("diff")))
        assert ui.lines("diff")[-2:] == [" -x = 1", " +x = 2  # [b]"]


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ("", "The attempt has no workspace."),
        ("/nowhere/at/all", "There is no git worktree here: /nowhere/at/all"),
    ],
)
async def test_a_side_without_a_diff_says_why(
    open_console: OpenConsole, workspace: str, said: str
) -> None:
    async with open_console(workspace=workspace) as ui:
        await ui.open_attempt()
        await ui.press("f6")
        await ui.until(lambda: ui.text("#diff-pane > .nothing") == said)


async def test_an_attempt_without_anything_says_so_on_every_side(open_console: OpenConsole) -> None:
    async with open_console(bare=True) as ui:
        view = await ui.open_attempt()
        for key in ("f3", "f4", "f5", "f7", "f8"):
            await ui.press(key)
            active = view.query_one(f"#{view.tab}-tab")
            assert active.query_one(".empty").display


async def test_every_side_can_be_drawn_at_any_size(open_console: OpenConsole) -> None:
    async with open_console() as ui:
        await ui.open_attempt()
        await ui.pilot.resize_terminal(20, 5)
        await ui.press("f2", "f3", "f4", "f5", "f6", "f7", "f8", "space", "T")
        assert ui.app.export_screenshot()


async def test_the_header_tells_what_confidence_was_worth(tmp_path: Path) -> None:
    async with console_in(tmp_path, size=(120, 30)) as ui:
        for number in range(5):
            await ui.write(reflecting(1, 40, 80), ended(Ending.STUCK), task=f"task-{number}")
        await ui.open_attempt("task-4")
        words = "confidence 80% (worth 7% so far)  coder"
        await ui.until(lambda: words in ui.text("#standing"))


async def test_the_header_says_where_the_rules_do_not_go_by_it(tmp_path: Path) -> None:
    records = Change(confidence_counts=False), reflecting(1, 40, 80)
    async with console_in(tmp_path, *records, size=(120, 30)) as ui:
        await ui.open_attempt()
        await ui.until(lambda: "confidence 80% (worthless)" in ui.text("#standing"))


def read_step(number: int, what: str, **fields: object) -> Step:
    return replace(step(number, "read_file", path=what), **fields)


STEPS = (
    transition(),
    *(read_step(number, f"docs/page_{number}.md") for number in range(1, 20)),
    read_step(20, "docs/rates.md"),
    *(read_step(number, f"docs/page_{number}.md") for number in range(21, 40)),
    editing(40, "totals.py"),
    step(41, "run_command", ok=False, output="the Rates are wrong"),
    reflecting(42, notes="I look at the rates again."),
    alert("cycle", step=42, evidence=(3, 41)),
    Plan(steps=(PlanStep(title="Read the tables"), PlanStep(title="Round"))),
    acceptance(check="pytest", passed=False, detail="1 failed"),
    *(read_step(number, f"docs/page_{number}.md") for number in range(43, 60)),
)


@pytest.fixture(scope="module")
async def shared_lines(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Driver]:
    """A console on an attempt with some hundred lines, in a terminal that shows a third of them."""
    folder = tmp_path_factory.mktemp("search")
    async with console_in(folder, *STEPS, size=(120, 30)) as driver:
        yield driver


@pytest.fixture
async def long_attempt(shared_lines: Driver) -> Driver:
    """The attempt's view, opened anew, for tests that write nothing."""
    await shared_lines.first_screen()
    shared_lines.app.noticed.clear()
    await shared_lines.open_attempt()
    return shared_lines


async def test_what_is_written_meanwhile_is_searched_too(tmp_path: Path) -> None:
    async with console_in(tmp_path, *STEPS, size=(120, 30)) as ui:
        await ui.open_attempt()
        await ui.press("slash", *"rates", "enter")
        await ui.write(read_step(60, "rates.csv"))
        await ui.until(lambda: list_position(ui) == "1 of 4 found")
        assert "docs/rates.md" in ui.cursor_line
        await ui.write(transition(), task="port")
        await ui.press("escape", "escape", "slash", *"port", "enter")
        assert list_position(ui, "fleet") == "1 of 2 match"
        await ui.press("escape", "2", "slash", *"nothing")
        said = ui.text("#checkpoints-pane > .nothing")
        assert said == "No line matches the filter; escape clears it."


def list_position(ui: Driver, name: str = "timeline") -> str:
    """What stands at the end of the titles."""
    return ui.text(f"#{name}-pane > .titles").rsplit("  ", 1)[-1].strip()


async def test_a_search_goes_to_the_first_match_and_leaves_the_lines_around(
    long_attempt: Driver,
) -> None:
    lines = long_attempt.list("timeline").count
    await long_attempt.press("slash", *"rates", "enter")
    assert "docs/rates.md" in long_attempt.cursor_line
    assert long_attempt.list("timeline").count == lines
    assert list_position(long_attempt) == "1 of 3 found"
    seen = long_attempt.list("timeline").seen
    assert seen.start < long_attempt.list("timeline").cursor - 3 < seen.stop - 6


async def test_letters_typed_at_once_after_the_key_are_searched_and_are_no_acts(
    long_attempt: Driver,
) -> None:
    for key in ("slash", *"xrates"):
        long_attempt.app.post_message(events.Key(key, "/" if key == "slash" else key))
    typed = long_attempt.app.screen.query_one("#timeline-filter", Input)
    await long_attempt.until(lambda: typed.value == "xrates")
    assert len(long_attempt.app.screen_stack) == 2
    assert not long_attempt.app.noticed


async def test_n_and_shift_n_walk_from_match_to_match_and_round(long_attempt: Driver) -> None:
    await long_attempt.press("slash", *"rates", "enter", "n")
    assert "n Match" in long_attempt.footer
    assert "run_command" in long_attempt.cursor_line
    found = [line for line in long_attempt.lines("timeline") if line.startswith("•")]
    assert [line.split()[2] for line in found] == ["◆"]
    await long_attempt.press("n", "n")
    assert "docs/rates.md" in long_attempt.cursor_line
    await long_attempt.press("N")
    assert "checkpoint" in long_attempt.cursor_line
    assert list_position(long_attempt) == "3 of 3 found"
    await long_attempt.press("j")
    assert list_position(long_attempt) == "3 found"
    await long_attempt.press("escape")
    assert "n Match" not in long_attempt.footer


async def test_a_word_for_a_kind_leaves_only_such_lines(long_attempt: Driver) -> None:
    every = long_attempt.list("timeline").count
    for wanted, kinds in {
        "is:failed": ["run_command", "check"],
        "is:edit": ["edit_file"],
        "is:check": ["checkpoint"],
        "is:alert is:checkpoint": ["checkpoint", "alert"],
    }.items():
        await long_attempt.press("slash", *wanted, "enter")
        lines = long_attempt.lines("timeline")
        assert all(kind in line for kind, line in zip(kinds, lines, strict=True))
        assert list_position(long_attempt) == f"{len(kinds)} of {every} match"
        await long_attempt.press("escape")


async def test_n_goes_through_lines_of_a_kind_and_escape_stays_on_one(long_attempt: Driver) -> None:
    every = long_attempt.list("timeline").count
    await long_attempt.press("slash", *"is:failed rates", "enter")
    assert long_attempt.list("timeline").count == 2
    assert list_position(long_attempt) == "1 of 1 found"
    await long_attempt.press("escape", "slash", *"is:failed", "enter", "g")
    first = long_attempt.cursor_line
    for key, line in (("n", "check"), ("n", first), ("N", "check"), ("g", "run_command")):
        await long_attempt.press(key)
        assert line in long_attempt.cursor_line
    await long_attempt.press("escape")
    assert long_attempt.list("timeline").count == every
    assert "run_command" in long_attempt.cursor_line
    assert isinstance(long_attempt.app.screen, AttemptScreen)
    await long_attempt.press("escape")
    assert not isinstance(long_attempt.app.screen, AttemptScreen)


async def test_an_unknown_kind_says_which_there_are_as_the_help_does(long_attempt: Driver) -> None:
    await long_attempt.press("slash", *"is:broken", "enter")
    assert long_attempt.text("#timeline-pane > .nothing") == (
        "No line matches the filter; escape clears it."
        " Kinds of lines: is:failed is:edit is:checkpoint is:alert."
    )
    said = next(key.does for key in ATTEMPT if key.id == "attempt.search")
    assert all(f"`is:{kind}`" in said for kind in KINDS)


async def test_evidence_is_reached_through_a_filter_that_hides_it(long_attempt: Driver) -> None:
    await long_attempt.press("slash", *"is:failed", "enter", "f3", "enter")
    await long_attempt.until(lambda: "run_command" in long_attempt.cursor_line)
    assert long_attempt.list("timeline").count == 2  # it shows this one, and stays
    await long_attempt.press("e")
    assert "page_3.md" in long_attempt.cursor_line


async def test_the_detail_follows_the_matches(long_attempt: Driver) -> None:
    await long_attempt.press("slash", *"rates", "enter", "space", "n")
    assert long_attempt.app.screen.query_one(Detail).text.endswith("the Rates are wrong")
    await long_attempt.press("escape")
    assert list_position(long_attempt) == "2 of 3 found"


async def test_every_list_of_an_attempt_can_be_searched(long_attempt: Driver) -> None:
    wanted = {"f3": ("alerts", "firing"), "f5": ("plan", "tables"), "f8": ("checks", "failed")}
    for key, (name, word) in wanted.items():
        await long_attempt.press(key, "slash", *word, "enter")
        assert list_position(long_attempt, name) == "1 of 1 found"


async def test_where_there_are_no_lines_no_filter_is_offered(long_attempt: Driver) -> None:
    assert "Search" in long_attempt.footer
    await long_attempt.press("f4", "slash")
    assert "Search" not in long_attempt.footer
    assert not isinstance(long_attempt.app.focused, Input)
    await long_attempt.press("escape")
    assert "Filter" in long_attempt.footer
    await long_attempt.press("4", "slash")
    assert "Filter" not in long_attempt.footer
    assert not isinstance(long_attempt.app.focused, Input)


async def test_a_long_list_says_which_lines_are_seen(long_attempt: Driver) -> None:
    every = long_attempt.list("timeline").count
    seen = long_attempt.list("timeline").seen
    assert list_position(long_attempt) == f"{every - len(seen) + 1}-{every} of {every}"
    await long_attempt.press("g")
    await long_attempt.until(lambda: list_position(long_attempt) == f"1-{len(seen)} of {every}")
    await long_attempt.press("f5")
    assert " of " not in list_position(long_attempt, "plan")


async def test_what_is_told_covers_nothing(tmp_path: Path) -> None:
    async with console_in(tmp_path, transition(), size=(80, 24), toasts=True) as ui:
        for keys in ((), ("4",), ("5",), ("1", "enter"), ("space",)):
            await ui.press(*keys)
            for text in ("one", "three", "long " * 60):
                ui.app.notify(text)
            await ui.until(lambda: [each.region.height for each in toasts(ui)] == [3])
            (told,) = toasts(ui)
            parts = [each for each in ui.app.screen.children if told not in each.walk_children()]
            assert [each for each in parts if each.region.overlaps(told.region)] == []
            assert told.region.bottom == 23  # the keys stand below it
            ui.app.clear_notifications()
            await ui.until(lambda: toasts(ui) == [])


def toasts(ui: Driver) -> list[Toast]:
    """What is told on the screen in front, where it is seen."""
    return [each for each in ui.app.screen.query(Toast) if each.region.height]
