"""The panes of the first screen and the preview, under the keys and the clicks of a person."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from textual.widgets import TabbedContent

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import Actor, Fault, Lifecycle, Record, Severity, Step
from midwatch_monitor.records.work import EMBEDDED
from midwatch_supervisor.tui.screens.banner import BannerLine
from midwatch_supervisor.tui.screens.preview import PreviewView
from midwatch_tests.console import ConsoleDriver, console_in, console_of, console_on
from midwatch_tests.factories import AT, alert, intervention, plan, reflecting, transition
from midwatch_tests.harness import assigned

Watch = ConsoleDriver[Journal]
WORKING = transition()
PARKED = transition(Lifecycle.INPUT_REQUIRED, reason="Which [b]port?")
CYCLE = alert(severity=Severity.CRITICAL, summary="the same three acts", step=4, at=AT)


def checkpoint(number: int, confidence: int, notes: str = "") -> Step:
    return reflecting(number, 10 * number, confidence, notes=notes)


open_console = partial(console_in, size=(120, 30), hertz=1000)


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncGenerator[Watch]:
    async with open_console(tmp_path) as driver:
        yield driver


TIMES = "\N{MULTIPLICATION SIGN}"
TASK = assigned().model_dump_json()


async def add_three_tasks(watch: Watch) -> None:
    """One works, one is in a loop, one waits for an answer."""
    await watch.write(
        WORKING, checkpoint(1, 80, "Begun."), checkpoint(2, 70, "[red]Half."), task="fine"
    )
    await watch.write(WORKING, CYCLE, task="loops")
    await watch.write(WORKING, checkpoint(1, 60), PARKED, task="port")


@pytest.fixture
async def busy_console(watch: Watch) -> Watch:
    await add_three_tasks(watch)
    return watch


@pytest.fixture(scope="module")
async def shared_console(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Watch]:
    async with open_console(tmp_path_factory.mktemp("panes")) as driver:
        await add_three_tasks(driver)
        yield driver


@pytest.fixture
async def first_pane(shared_console: Watch) -> Watch:
    """The same at its first pane, for tests that write nothing and change no order."""
    await shared_console.first_screen()
    await shared_console.press("1", "g")
    return shared_console


async def test_a_number_shows_its_pane_and_the_keys_go_there(first_pane: Watch) -> None:
    for key, name in zip("2341", ("checkpoints", "attention", "overview", "fleet"), strict=True):
        await first_pane.press(key)
        focused = first_pane.app.focused
        assert first_pane.tab == f"{name}-tab"
        assert focused is not None
        assert any(parent.id == f"{name}-tab" for parent in focused.ancestors)


async def test_a_click_on_a_tab_shows_its_pane_as_it_is_now(first_pane: Watch) -> None:
    await first_pane.pilot.click("#--content-tab-checkpoints-tab")
    await first_pane.until(lambda: first_pane.list("checkpoints").count == 3)


async def test_the_same_task_of_two_runs_is_told_apart_by_its_run(tmp_path: Path) -> None:
    async with open_console(tmp_path, run=None) as watch:
        second = await watch.journal.add_run(source="tasks.yaml", settings="{}", at=AT)
        for run in (1, second.id):
            watch.run = run
            watch.attempts.clear()
            await watch.write(WORKING, checkpoint(1, 60), CYCLE, PARKED)
        await watch.press("2")
        assert [line.split()[1:3] for line in watch.words("checkpoints")] == [
            ["1", "fix#1"],
            [str(second.id), "fix#1"],
        ]
        await watch.press("3")
        assert [line.split()[3:5] for line in watch.words("attention")] == [
            ["1", "fix#1"],
            [str(second.id), "fix#1"],
        ]
        await watch.press("colon", *"fix")
        runs = {line.strip("> ").split()[0] for line in watch.words("targets")}
        assert runs == {"1", str(second.id)}


async def test_a_checkpoint_keeps_the_plan_that_there_was_when_it_was_made(watch: Watch) -> None:
    await watch.write(WORKING, plan("a"), checkpoint(1, 80), plan("a", "b", "c", done=1))
    await watch.write(checkpoint(2, 80), plan("a", "b", "c", "d", "e", done=3), checkpoint(3, 80))
    await watch.press("2")
    assert [line.split()[2] for line in watch.words("checkpoints")] == ["-", "2/3", "4/5"]


async def test_the_stream_follows_its_end_until_left_and_keeps_its_filter(
    busy_console: Watch,
) -> None:
    await busy_console.press("2", "G")
    await busy_console.write(checkpoint(3, 75), task="fine")
    assert busy_console.list("checkpoints").cursor == 3
    await busy_console.press("k")
    await busy_console.write(checkpoint(4, 75), task="fine")
    assert busy_console.list("checkpoints").cursor == 2
    await busy_console.press("slash", *"half", "enter")
    assert busy_console.list("checkpoints").count == 1
    await busy_console.write(checkpoint(5, 75), checkpoint(6, 75, "Half again."), task="fine")
    assert busy_console.list("checkpoints").count == 2
    await busy_console.press("escape")
    assert busy_console.list("checkpoints").count == 7


async def test_equal_needs_are_one_line_that_unfolds_and_takes_no_act(watch: Watch) -> None:
    await watch.write(WORKING, checkpoint(1, 60), PARKED, task="port")
    for name in ("a", "b", "c", "d"):
        await watch.write(WORKING, CYCLE, task=name)
    await watch.press("3", "j")
    folded = [
        "? 0s answer port#1 Which [b]port? -",
        f">■ 0s stuck ▸ 4 {TIMES} the same three acts -",
    ]
    assert watch.words("attention") == folded
    await watch.press("c")
    assert watch.app.told[-1] == "4 attempts share this line: unfold it first (enter)"
    assert await watch.written() == []
    await watch.press("enter")
    assert watch.words("attention")[1:3] == [
        f">■ 0s stuck ▾ 4 {TIMES} the same three acts -",
        "■ 0s stuck a#1 the same three acts cycle",
    ]
    await watch.press("j", "j", "z")
    assert watch.words("attention") == folded
    await watch.press("slash", *"stuck", "enter")  # a filter shows them one by one
    assert len(watch.words("attention")) == 4


async def test_the_cursor_stays_on_what_is_folded_away(watch: Watch) -> None:
    for name in ("a", "b"):
        await watch.write(WORKING, CYCLE, task=name)
    await watch.press("3", "j")
    for name in ("c", "d"):
        await watch.write(WORKING, CYCLE, task=name)
    assert watch.words("attention") == [f">■ 0s stuck ▸ 4 {TIMES} the same three acts -"]


async def test_an_answered_attempt_leaves_the_queue_and_the_count_on_its_tab(
    busy_console: Watch,
) -> None:
    label = busy_console.app.query_one("#panes", TabbedContent).get_tab("attention-tab")
    assert str(label.label) == "Needs you (2)"
    await busy_console.press("3")
    await busy_console.write(WORKING, task="port")
    assert str(label.label) == "Needs you (1)"
    assert busy_console.words("attention") == [">■ 0s stuck loops#1 the same three acts cycle"]


async def test_enter_opens_the_attempt_of_the_line_and_escape_goes_back(first_pane: Watch) -> None:
    for keys, task in (("1g", "port"), ("2", "port"), ("3j", "loops"), ("2g", "fine")):
        await first_pane.press(*keys, "enter")
        assert first_pane.opened == task
    await first_pane.press("3", "enter", "escape")
    assert (first_pane.opened, first_pane.tab) == (None, "attention-tab")


async def test_n_opens_one_after_the_other_that_needs_a_person(busy_console: Watch) -> None:
    seen: list[str | None] = []
    for _ in range(3):
        await busy_console.press("n")
        seen.append(busy_console.opened)
    assert seen == ["port", "loops", "port"]
    assert len(busy_console.app.screen_stack) == 2


async def test_keys_group_sort_and_fold_the_fleet_from_any_pane(busy_console: Watch) -> None:
    await busy_console.press("z", "4", "o")
    assert busy_console.tab == "fleet-tab"
    await busy_console.press("4", "v")
    assert busy_console.tab == "fleet-tab"
    said = "sorted by name: from A to Z", "grouped by task"
    assert {"nothing to fold or unfold here", *said} <= {*busy_console.app.noticed}
    await busy_console.press("v", "v", "g", "p")
    assert busy_console.app.told[-1] == "no attempt is selected"
    assert await busy_console.written() == []
    await busy_console.press("enter")
    assert busy_console.words("fleet") == [">▸ coder (3) 1 waits for you, 1 stuck, 1 working"]
    await busy_console.press("z")
    assert busy_console.list("fleet").count == 4


async def test_a_need_rings_once_and_is_told_as_text(watch: Watch) -> None:
    await watch.write(WORKING)
    await watch.press("n", "6")
    await watch.write(PARKED)
    for _ in range(2):
        watch.app.pass_a_second()
    assert watch.app.rings == 1
    why_not = ["nothing needs you", "Local run: no nodes"]
    assert watch.app.noticed == [*why_not, "fix#1 waits for an answer: Which [b]port?"]


async def test_a_broken_part_of_the_watch_is_on_the_banner(busy_console: Watch) -> None:
    busy_console.app.pass_a_second()
    assert not busy_console.app.banner.display
    await busy_console.write(Fault(part="observer", error="boom [x"), task="fine")
    busy_console.app.pass_a_second()
    assert busy_console.app.banner.display
    what = "the observer failed in fine#1: boom [x → work continues without it"
    assert busy_console.app.banner.said == f"! since 20:00:00 (0s): {what}"


async def test_a_banner_that_was_put_away_comes_back_only_when_it_changes(
    busy_console: Watch,
) -> None:
    busy_console.app.time = AT + timedelta(seconds=61)
    busy_console.app.pass_a_second()
    await busy_console.press("slash", "x", "escape")
    assert "No new data for 1 min" in busy_console.app.banner.said
    await busy_console.press("escape")
    assert not busy_console.app.banner.display
    busy_console.app.time += timedelta(minutes=1)
    busy_console.app.pass_a_second()
    assert not busy_console.app.banner.display
    await busy_console.write(WORKING, task="more")
    busy_console.app.pass_a_second()
    assert "No new data for 2 min; 3 agents should be working" in busy_console.app.banner.said


async def test_escape_closes_the_notices_before_the_banner(journal: Journal) -> None:
    async with console_of(journal, WORKING, toasts=True) as ui:
        ui.app.time = AT + timedelta(seconds=61)
        ui.app.pass_a_second()
        await ui.press("T")
        assert len(ui.app.screen.query("Toast")) == 1
        await ui.press("escape")
        await ui.until(lambda: not ui.app.screen.query("Toast"))
        assert ui.app.banner.display


async def test_a_journal_that_stands_still_is_on_every_banner(busy_console: Watch) -> None:
    shown = (await busy_console.open_attempt("port")).query_one(BannerLine)
    assert not shown.display
    busy_console.app.time = AT + timedelta(seconds=61)
    busy_console.app.pass_a_second()
    still = "No new data for 1 min; 2 agents should be working → are they still running? See"
    await busy_console.until(lambda: still in shown.said)
    assert shown.display
    assert still in busy_console.app.banner.said
    busy_console.app.time = AT
    await busy_console.write(checkpoint(3, 75), task="fine")
    busy_console.app.pass_a_second()
    assert not busy_console.app.banner.said


async def test_what_the_monitor_logs_and_the_bus_drops_is_on_the_banner(watch: Watch) -> None:
    watch.app.banner.report_drops(5)
    watch.app.banner.refresh_board()
    assert "the bus is dropping hints: the display may lag" in watch.app.banner.said
    watch.app.time += timedelta(seconds=61)
    watch.app.pass_a_second()
    assert not watch.app.banner.said
    logging.getLogger("midwatch_monitor.loop").warning("the monitor failed")
    watch.app.pass_a_second()
    assert watch.app.banner.said == "! since 20:01:01 (0s): the monitor failed"


@asynccontextmanager
async def open_interrupted_run(
    journal: Journal, *records: Record, spec: str
) -> AsyncGenerator[Watch]:
    """A console on a run whose process is gone."""
    async with AsyncExitStack() as process:
        await process.enter_async_context(hold_run(journal, 1, lease_seconds=15))
        async with console_of(journal, *records, spec=spec, poll_seconds=0.01) as left:
            assert left.app.banner.said == ""
            await process.aclose()
            await left.until(lambda: 1 in left.app.board.interrupted)
            left.app.pass_a_second()
            yield left


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        (TASK, "`midwatch resume --run 1` continues it"),
        (EMBEDDED, "`midwatch cancel --run 1` cancels it"),
    ],
    ids=["of a task file", "of an agent with a Watch"],
)
async def test_the_banner_says_that_no_process_works_on_a_run_and_what_to_do(
    journal: Journal, spec: str, remedy: str
) -> None:
    async with open_interrupted_run(journal, WORKING, spec=spec) as left:
        assert f"no process works on run 1 → {remedy}" in left.app.banner.said


async def test_an_answer_to_a_run_that_is_over_says_what_continues_it(journal: Journal) -> None:
    async with open_interrupted_run(journal, WORKING, PARKED, spec=TASK) as left:
        assert left.app.banner.said == ""
        await left.write(intervention(by=Actor.OPERATOR, message="5432"))
        left.app.pass_a_second()
        assert "→ `midwatch resume --run 1` continues it" in left.app.banner.said


def preview_view(ui: ConsoleDriver[Journal]) -> PreviewView:
    return ui.app.query_one(PreviewView)


async def test_the_preview_stands_where_there_is_room(six_tasks: Journal) -> None:
    places = {  # neighbours differ, so that what is waited for is not what was there before
        (120, 27): "",
        (160, 45): "beside",
        (80, 24): "",
        (120, 36): "below",
        (40, 10): "",
        (140, 24): "beside",
        (139, 28): "below",
    }
    async with console_on(six_tasks, size=(160, 45)) as ui:
        for size, where in places.items():
            await ui.pilot.resize_terminal(*size)
            await ui.until(lambda where=where: preview_place(ui) == where)


def preview_place(ui: ConsoleDriver[Journal]) -> str:
    """Where the preview stands on the terminal."""
    lists, region = ui.app.query_one(TabbedContent).region, preview_view(ui).region
    if not region.area:
        return ""
    return "beside" if region.x >= lists.right else "below" if region.y else "over"


async def test_every_list_of_attempts_has_a_preview_that_follows(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(160, 45)) as ui:
        for pane, there in (("2", True), ("3", True), ("4", False), ("5", False)):
            await ui.press(pane)
            assert bool(preview_view(ui).region.area) is there
        for pane, row in (("3", "delivery#1"), ("1", "labels#1")):
            await ui.press(pane)
            assert f"{row} ─ WHY" in preview_view(ui).text
        await ui.press("j")
        assert "PROPOSED: RESTART by supervisor" in preview_view(ui).text
        await ui.press("r", "enter")
        await ui.until(lambda: "PROPOSED" not in preview_view(ui).text)


async def test_grouped_anew_the_preview_and_keys_are_the_cursors(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(120, 36)) as ui:
        await ui.press("v")
        assert ui.app.panes.fleet.chosen is ui.app.target
        assert "delivery#1 ─ WHY" in preview_view(ui).text
        assert "a Approve" in ui.footer


async def test_space_hides_the_preview_or_says_why_there_can_be_none(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(80, 24)) as ui:
        await ui.press("space")
        no_room = "no room: a preview needs 28 lines or 140 columns; enter shows more"
        assert ui.app.told == [no_room]
        await ui.pilot.resize_terminal(120, 36)
        # It was not hidden meanwhile.
        await ui.until(lambda: bool(preview_view(ui).region.area))
        await ui.press("space")
        assert not preview_view(ui).region.area
        await ui.press("space")
        assert "labels#1 ─ WHY" in preview_view(ui).text
        await ui.press("4", "space")
        assert ui.app.told == [no_room, "only a list of attempts has a preview"]


async def test_a_long_preview_scrolls_by_the_keys_of_a_list(six_tasks: Journal) -> None:
    async with console_on(six_tasks, size=(120, 28)) as ui:
        said = (reflecting(n, n, 90 - n, notes=f"{n} of 12. " * 20) for n in range(1, 12))
        await ui.write(transition(), *said, transition(Lifecycle.INPUT_REQUIRED))
        await ui.press("g")
        preview = preview_view(ui)
        assert "fix#1" in preview.text
        preview.focus()
        await ui.press("G")
        assert preview.scroll_offset.y > 0
        await ui.press("g")
        assert preview.scroll_offset.y == 0
