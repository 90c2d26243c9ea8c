"""The panes of the first screen, under the keys and the clicks of a person."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TabbedContent

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    Checkpoint,
    Commit,
    Draft,
    Fault,
    Hint,
    Lifecycle,
    Record,
    Severity,
    Step,
    StepKind,
)
from midwatch_stage.seat import AT, Hearing
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.overview import OverviewPane
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.widgets.line_list import LineList

WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
PARKED = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason="Which [b]port?")
CYCLE = Alert(
    key=AlertKey(rule="cycle"),
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    value=3,
    summary="the same three acts",
    since_step=1,
    step=4,
    at=AT,
)


def reflects(number: int, confidence: int, notes: str = "") -> Step:
    said = Checkpoint(progress_percent=10 * number, confidence=confidence, notes=notes)
    return Step(number=number, kind=StepKind.CHECKPOINT, checkpoint=said)


class Ringing(Hearing):
    """A console that keeps its rings, and whose time stands still."""

    def __init__(self, feed: Feed, desk: OperatorActions) -> None:
        self.time = AT
        self.rings = 0
        super().__init__(feed, desk, now=lambda: self.time)

    def bell(self) -> None:
        self.rings += 1


@dataclass
class Watch:
    """Somebody before the console, and a run that writes."""

    journal: Journal
    run: int
    bus: LocalBus
    app: Ringing
    pilot: Pilot[int]
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])

    async def write(self, name: str, *records: Record) -> None:
        """Commit records of a task's only attempt, and wait until the console has them."""
        if name not in self.attempts:
            task = await self.journal.add_task(run=self.run, name=name, title="", spec="{}", at=AT)
            self.attempts[name] = await self.journal.add_attempt(
                task=task.id, number=1, worker="coder", model="m", node="n", workspace="", at=AT
            )
        attempt = self.attempts[name]
        drafts = tuple(
            Draft(record=record, at=AT, task=attempt.task, attempt=attempt.id) for record in records
        )
        last = (await self.journal.commit(Commit(drafts=drafts)))[-1].id
        self.bus.publish(Hint(entry=last, kind="step"))
        await self.until(lambda: self.app.read >= last)

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console; half a minute at most."""
        async with asyncio.timeout(30):
            while not happened():
                await self.pilot.pause()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def roll(self, name: str) -> LineList:
        """A list of the first screen."""
        return self.app.screen_stack[0].query_one(f"#{name}", LineList)

    def lines(self, name: str) -> list[str]:
        """What a list shows, line by line."""
        roll = self.roll(name)
        return [" ".join(roll.render_line(y).text.split()) for y in range(roll.count)]

    @property
    def tab(self) -> str:
        """The tab that is seen."""
        return self.app.screen_stack[0].query_one("#panes", TabbedContent).active

    @property
    def opened(self) -> str | None:
        """The task whose attempt is in front."""
        screen = self.app.screen
        return screen.timeline.task.name if isinstance(screen, AttemptScreen) else None


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncGenerator[Watch]:
    async with await Journal.open(tmp_path / "journal.db") as journal:
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
        bus = LocalBus()
        feed = Feed(journal, run=run.id, bus=bus, poll_seconds=60, hertz=1000)
        app = Ringing(feed, OperatorActions(journal, author="ada", bus=bus, clock=lambda: AT))
        async with app.run_test(size=(120, 30)) as pilot:
            yield Watch(journal=journal, run=run.id, bus=bus, app=app, pilot=pilot)


@pytest.fixture
async def busy(watch: Watch) -> Watch:
    await watch.write("fine", WORKING, reflects(1, 80, "Begun."), reflects(2, 70, "[red]Half."))
    await watch.write("loops", WORKING, CYCLE)
    await watch.write("port", WORKING, reflects(1, 60), PARKED)
    return watch


async def test_a_number_shows_its_pane_and_the_keys_go_there(busy: Watch) -> None:
    for key, name in zip("2341", ("checkpoints", "attention", "overview", "fleet"), strict=True):
        await busy.press(key)
        focused = busy.app.focused
        assert busy.tab == f"{name}-tab"
        assert focused is not None
        assert any(parent.id == f"{name}-tab" for parent in focused.ancestors)


async def test_a_click_on_a_tab_shows_its_pane_as_it_is_now(busy: Watch) -> None:
    await busy.pilot.click("#--content-tab-checkpoints-tab")
    await busy.until(lambda: busy.roll("checkpoints").count == 3)


async def test_the_stream_tells_each_checkpoint_with_its_change(busy: Watch) -> None:
    await busy.press("2")
    assert busy.lines("checkpoints") == [
        "20:00:00 fine#1 1 10% 80% - continue - Begun.",
        "20:00:00 fine#1 1 20% 70% -10 continue - [red]Half.",
        ">20:00:00 port#1 1 10% 60% - continue - -",
    ]


async def test_the_stream_follows_its_end_until_the_cursor_leaves_it(busy: Watch) -> None:
    await busy.press("2", "G")
    await busy.write("fine", reflects(3, 75))
    assert busy.roll("checkpoints").cursor == 3
    await busy.press("k")
    await busy.write("fine", reflects(4, 75))
    assert busy.roll("checkpoints").cursor == 2


async def test_a_filter_holds_for_checkpoints_that_come_later(busy: Watch) -> None:
    await busy.press("2", "slash", *"half", "enter")
    assert busy.roll("checkpoints").count == 1
    await busy.write("fine", reflects(3, 75), reflects(4, 75, "Half again."))
    assert busy.roll("checkpoints").count == 2
    await busy.press("escape")
    assert busy.roll("checkpoints").count == 5


async def test_escape_closes_the_filter_and_the_keys_go_to_the_lines(busy: Watch) -> None:
    await busy.press("3", "slash")
    assert isinstance(busy.app.focused, Input)
    await busy.press("escape")
    assert busy.app.focused is busy.roll("attention")


async def test_the_queue_names_what_waits_for_an_answer_before_what_is_stuck(busy: Watch) -> None:
    await busy.press("3")
    assert busy.lines("attention") == [
        ">? 0s answer port#1 Which [b]port? -",
        "■ 0s stuck loops#1 the same three acts cycle",
    ]


async def test_an_answered_attempt_leaves_the_queue_and_the_count_on_its_tab(busy: Watch) -> None:
    label = busy.app.query_one("#panes", TabbedContent).get_tab("attention-tab")
    assert str(label.label) == "Attention (2)"
    await busy.press("3")
    await busy.write("port", WORKING)
    assert str(label.label) == "Attention (1)"
    assert busy.lines("attention") == [">■ 0s stuck loops#1 the same three acts cycle"]


async def test_enter_opens_the_attempt_of_the_line(busy: Watch) -> None:
    for keys, task in (("1g", "port"), ("2", "port"), ("3j", "loops"), ("2g", "fine")):
        await busy.press(*keys, "enter")
        assert busy.opened == task


async def test_escape_leaves_the_attempt_for_the_pane_it_was_opened_from(busy: Watch) -> None:
    await busy.press("3", "enter", "escape")
    assert (busy.opened, busy.tab) == (None, "attention-tab")


async def test_n_opens_one_after_the_other_that_needs_a_person(busy: Watch) -> None:
    seen: list[str | None] = []
    for _ in range(3):
        await busy.press("n")
        seen.append(busy.opened)
    assert seen == ["port", "loops", "port"]
    assert len(busy.app.screen_stack) == 2


async def test_n_says_so_where_nothing_waits(watch: Watch) -> None:
    await watch.write("fine", WORKING)
    await watch.press("n")
    assert watch.app.noticed == ["nothing waits for a person"]


async def test_v_groups_the_fleet_from_any_pane(busy: Watch) -> None:
    await busy.press("4", "v")
    assert busy.tab == "fleet-tab"
    assert "grouped by task" in busy.app.noticed


async def test_an_empty_pane_says_what_it_would_show(watch: Watch) -> None:
    await watch.press("3")
    pane = watch.app.query_one("#attention-pane")
    assert pane.has_class("empty")


async def test_the_overview_counts_who_does_what(busy: Watch) -> None:
    await busy.press("4")
    said = " ".join(busy.app.query_one(OverviewPane).text.split())
    assert "1 working" in said
    assert "1 stuck" in said
    assert "1 waiting" in said
    assert "alerts fired 1" in said


async def test_a_need_rings_once_and_is_told_as_text(watch: Watch) -> None:
    await watch.write("port", WORKING, PARKED)
    watch.app.pass_a_second()
    watch.app.pass_a_second()
    assert watch.app.rings == 1
    assert watch.app.noticed == ["port#1 waits for an answer: Which [b]port?"]


async def test_a_broken_part_of_the_watch_is_on_the_banner(busy: Watch) -> None:
    busy.app.pass_a_second()
    assert not busy.app.banner.display
    await busy.write("fine", Fault(part="observer", error="boom [x"))
    busy.app.pass_a_second()
    assert busy.app.banner.display
    assert busy.app.banner.said == "! since 20:00:00 (0s): the observer failed in fine#1: boom [x"


async def test_a_journal_that_stands_still_is_on_the_banner_until_it_grows(busy: Watch) -> None:
    busy.app.time = AT + timedelta(seconds=61)
    busy.app.pass_a_second()
    assert "No new data for 1 min; 2 agents should be working" in busy.app.banner.said
    busy.app.time = AT
    await busy.write("fine", reflects(3, 75))
    busy.app.pass_a_second()
    assert not busy.app.banner.said


async def test_what_the_monitor_logs_is_on_the_banner(watch: Watch) -> None:
    logging.getLogger("midwatch_monitor.loop").warning("the monitor failed")
    watch.app.pass_a_second()
    assert watch.app.banner.said == "! since 20:00:00 (0s): the monitor failed"


async def test_a_bus_that_drops_hints_is_on_the_banner_for_a_minute(watch: Watch) -> None:
    watch.app.banner.report_drops(5)
    watch.app.banner.refresh_board()
    assert watch.app.banner.said.endswith("the bus drops hints: what is shown may be late")
    watch.app.time += timedelta(seconds=61)
    watch.app.pass_a_second()
    assert not watch.app.banner.said
