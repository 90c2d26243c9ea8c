"""The console of a fleet: its nodes, what lacks one, its monitors, and a broker that is away."""

import asyncio
import html
import logging
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest

from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Commit, Lifecycle, NodeStatus, SupervisedBy
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.tui.app import NO_BROKER, Console
from midwatch_supervisor.tui.screens.title import TitleLine
from midwatch_supervisor.tui.state.feed import NodesNow
from midwatch_tests.console import ConsoleDriver, console_on
from midwatch_tests.factories import AT, draft, task_transition
from midwatch_tests.nodes import node

NOW = datetime(2026, 11, 21, 20, 9, 40, tzinfo=UTC)
EAST = node("east", "gpu", slots=2, busy=2, heard=NOW)
TASKS = (
    TaskSpec(id="flash", goal="x", acceptance=("true",), labels=("fpga",)),
    TaskSpec(id="totals", goal="x", acceptance=("true",)),
    TaskSpec(id="labels", goal="x", acceptance=("true",), depends_on=("totals",)),
)


def open_console(
    journal: Journal,
    nodes: NodesNow | None = None,
    *,
    size: tuple[int, int] = (140, 40),
    **feed: Any,
) -> AbstractAsyncContextManager[ConsoleDriver[Journal]]:
    return console_on(journal, nodes=nodes, size=size, now=lambda: NOW, poll_seconds=0.05, **feed)


def pass_seconds(app: Console, seconds: int = 6) -> None:
    for _ in range(seconds):
        app.pass_a_second()


async def test_a_lost_node_leads_to_the_nodes_and_enter_on_a_node_shows_what_is_at_work_there(
    three_nodes: Journal, nodes_now: NodesNow
) -> None:
    async with open_console(three_nodes, nodes_now) as ui:
        for keys in ("n", "3 enter", "6"):
            await ui.press("1", *keys.split())
            assert ui.tab == "nodes-tab"
        await ui.press("G", "enter")
        assert ui.tab == "fleet-tab"
        (line,) = ui.lines("fleet")
        assert "labels" in line
        await ui.press("escape")
        assert len(ui.app.panes.fleet.items) == 3


async def test_why_there_is_no_broker_is_said_until_there_is_one(six_tasks: Journal) -> None:
    there = False
    async with open_console(six_tasks, connected=lambda: there) as ui:
        app, title = ui.app, ui.app.query_one(TitleLine)
        pass_seconds(app)
        # A broker that is away is a small mark, and nothing else.
        assert (NO_BROKER in str(title.render()), app.banner.said) == (True, "")
        logging.getLogger("midwatch_monitor.bus.client").warning("it refuses the user %r", "ada")
        pass_seconds(app)
        assert "it refuses the user 'ada' →" in app.banner.said
        there = True
        pass_seconds(app, 2)
        assert (NO_BROKER in str(title.render()), app.banner.said) == (False, "")


@pytest.fixture
async def unstarted_run() -> AsyncGenerator[Journal]:
    """A run of a fleet of which nothing has begun."""
    async with await Journal.open(":memory:") as journal:
        run = await journal.add_run(
            source="t", settings="{}", at=AT, supervised_by=SupervisedBy.MONITOR
        )
        for wanted in TASKS:
            spec = Assignment(task=wanted, worker="w", spec=WorkerSpec(), models={}, workspace=None)
            task = await journal.add_task(
                run=run.id, name=wanted.id, title="", spec=spec.model_dump_json(), at=AT
            )
            waits = draft(task_transition(Lifecycle.SUBMITTED), task=task.id, attempt=None, at=NOW)
            await journal.commit(Commit(drafts=(waits,)))
        yield journal


class Fleet:
    """What a journal tells of nodes and monitors; it may be slow."""

    def __init__(self, *nodes: NodeStatus) -> None:
        self.known = nodes
        self.answers = asyncio.Event()
        self.answers.set()

    async def nodes(self) -> Sequence[NodeStatus]:
        await self.answers.wait()
        return self.known

    async def monitors(self) -> Sequence[MonitorStatus]:
        return ()


def screen_lines(app: Console) -> list[str]:
    """The lines of the screen."""
    lines: dict[float, str] = defaultdict(str)
    pieces = r'<text [^>]* y="([\d.]+)"[^>]*>([^<]*)</text>'
    for y, text in re.findall(pieces, app.export_screenshot()):
        lines[float(y)] += html.unescape(text).replace("\xa0", " ")
    return [line for _, line in sorted(lines.items())]


async def test_a_fleet_without_any_node_says_how_one_comes(unstarted_run: Journal) -> None:
    async with open_console(unstarted_run, Fleet().nodes) as ui:
        await ui.until(lambda: ui.app.board.node_list.read)
        await ui.press("6")
        assert ui.app.told == ["No nodes: `midwatch node` starts one"]


async def test_a_line_says_why_its_task_waits_and_leads_to_the_nodes(
    unstarted_run: Journal,
) -> None:
    async with open_console(unstarted_run, Fleet(EAST).nodes, size=(80, 24)) as ui:
        await ui.until(lambda: len(ui.app.queue.calling) == 1)
        queued = [line.strip(">").split() for line in screen_lines(ui.app) if " queued " in line]
        lines = {words[1]: " ".join(words) for words in queued}
        assert "no node: fpga" in lines["flash"]
        assert "no free slot" in lines["totals"]
        assert "after totals" in lines["labels"]
        await ui.press("3")
        lines = screen_lines(ui.app)
        assert any("flash" in line and "no node has the label" in line for line in lines)
        await ui.press("enter")
        assert ui.tab == "nodes-tab"
        await ui.press("1", "n")
        assert ui.tab == "nodes-tab"


async def test_work_that_nobody_watches_is_told_on_top(unstarted_run: Journal) -> None:
    fleet = Fleet(EAST)
    async with open_console(
        unstarted_run, fleet.nodes, monitors=fleet.monitors, size=(80, 24)
    ) as ui:
        await ui.until(lambda: ui.app.board.node_list.monitors is not None)
        ui.app.pass_a_second()
        await ui.pilot.pause()
        said = " ".join(line.strip() for line in screen_lines(ui.app)[:5])
        assert "no monitor is running: nobody escalates" in said
        assert "`midwatch monitor` starts one" in said


async def test_before_the_nodes_were_read_nothing_is_said_of_them(journal: Journal) -> None:
    fleet = Fleet(EAST)
    fleet.answers.clear()
    async with open_console(journal, fleet.nodes) as ui:
        await ui.press("6")
        assert ui.app.told == ["the nodes have not been read yet: try again in a moment"]
        fleet.answers.set()
        await ui.until(lambda: bool(ui.app.board.node_list.nodes))
        await ui.press("6")
        assert ui.tab == "nodes-tab"
