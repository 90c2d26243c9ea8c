"""The view of one attempt: a header, its sides as tabs, and all of the chosen line below."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static, TabbedContent, TabPane, Tabs

from midwatch_monitor.errors import JournalError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Alert, Attempt, Entry, Recall, Step, Task
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.present.learning_text import Given
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.keys import ATTEMPT, EVERYWHERE
from midwatch_supervisor.tui.learned.given import given_by
from midwatch_supervisor.tui.screens.attempt_tab import Facet
from midwatch_supervisor.tui.screens.attempt_tabs import alerts, checks, messages, numbered, plan
from midwatch_supervisor.tui.screens.chart import Chart
from midwatch_supervisor.tui.screens.detail import Detail
from midwatch_supervisor.tui.screens.diff import diff, lines
from midwatch_supervisor.tui.screens.header import header
from midwatch_supervisor.tui.screens.timeline import Timeline
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.state.feed import Batch
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.footer import Footing
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import palette
from midwatch_supervisor.workspaces.changes import changes
from midwatch_supervisor.workspaces.placing import ground_of

_PAGE = 1_000
"""Entries that are read at a time; keys are heard between."""
_SIDES = ("timeline", "alerts", "chart", "plan", "diff", "messages", "checks")
_DIFF_SECONDS = 2.0
"""How often the diff is read again at most while it is looked at."""


class AttemptScreen(Screen[None]):
    """One attempt, from its first entry on and then as it goes. It only reads the journal."""

    CSS = """
    AttemptScreen > .header {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    AttemptScreen TabbedContent { height: 1fr; }
    AttemptScreen TabPane { padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(key.binding for key in EVERYWHERE if key.id == "back"),
        *(key.binding for key in ATTEMPT),
    ]

    @dataclass
    class Read(Message):
        """A page of the journal."""

        entries: tuple[Entry, ...]

    @dataclass
    class Caught(Message):
        """All that the journal had was read, or it could not be."""

        problem: str = ""

    @dataclass
    class Compared(Message):
        """What the attempt has changed: a diff, or why there is none."""

        text: str
        reason: str = ""

    @dataclass
    class LookedUp(Message):
        """What the attempt was given of what had been learned."""

        recall: Recall
        given: Given

    @dataclass
    class Calibrated(Message):
        """What the stated confidence of the attempt's model was worth."""

        calibration: Calibration | None

    def __init__(
        self,
        row: Row,
        task: Task,
        attempt: Attempt,
        journal: Journal,
        *,
        now: Callable[[], datetime],
        calibrator: Calibrator,
        side: str = "timeline",
    ) -> None:
        """Show an attempt of a task; `row` is its line of the fleet, which the acts are about.

        Times are shown in the zone of `now`. It begins with `side`, one of its tabs in lower case.
        """
        super().__init__()
        self.story = AttemptTimeline(task, attempt)
        self.reading = False
        """Whether the journal is being read."""
        self._row = row
        self._journal = journal
        self._now = now
        self._calibrator = calibrator
        self._calibration: Calibration | None = None
        self._first = side
        self._after = 0
        self._behind = False
        self._problem = ""
        self._looked_up: Recall | None = None
        self._compared = -1
        """The newest step with edits when the diff was read; -1 before."""
        self._comparing = False
        zone = now().tzinfo
        self._timeline = Timeline(zone)
        self._alerts = alerts(zone)
        self._chart = Chart(id="chart")
        self._plan = plan()
        self._diff = diff()
        self._messages = messages(zone)
        self._checks = checks()
        self._detail = Detail()

    def compose(self) -> ComposeResult:
        """The header, the sides, the detail and the keys."""
        yield Static(id="standing", classes="header", markup=False)
        yield Static(id="waiting", classes="header", markup=False)
        with TabbedContent(id="sides", initial=f"{self._first}-tab"):
            for name, widget in zip(_SIDES, self._widgets(), strict=True):
                with TabPane(name.capitalize(), id=f"{name}-tab"):
                    yield widget
        yield self._detail
        yield Footing()

    def _widgets(self) -> tuple[Timeline | Facet[object] | Chart, ...]:
        found = (
            self._timeline,
            self._alerts,
            self._chart,
            self._plan,
            self._diff,
            self._messages,
            self._checks,
        )
        return cast("tuple[Timeline | Facet[object] | Chart, ...]", found)

    @property
    def chosen(self) -> Row:
        """The attempt's line of the fleet: what the acts are about."""
        return self._row

    def shows(self, waiting: int) -> bool:
        """Whether what waits, as far as the story was read, is this decision or petition."""
        account = self.story.account
        held = [each.id for each in account.interventions.held]
        return waiting == held[0] if held else waiting in account.open_requests

    @property
    def side(self) -> str:
        """The side that is shown."""
        return self.query_one("#sides", TabbedContent).active.removesuffix("-tab")

    @property
    def _facet(self) -> Timeline | Facet[object] | Chart:
        return self._widgets()[_SIDES.index(self.side)]

    def on_mount(self) -> None:
        """Begin to read."""
        self._look()
        self._calibrate()
        self._focus()
        # What only time changes: how long it has been idle; and the diff, while it is seen.
        self.set_interval(1.0, self._pass_a_second)
        self.set_interval(_DIFF_SECONDS, self._compare_again)

    def hear(self, batch: Batch) -> None:
        """The journal has grown; what is new of this task is read from it."""
        if batch.again or any(entry.task == self.story.task.id for entry in batch.entries):
            self._look()

    def _pass_a_second(self) -> None:
        self._show_header()
        if self._problem:
            self._look()

    def _look(self) -> None:
        self._behind = True
        if not self.reading:
            self.reading, self._behind = True, False
            self._read(self._after)

    @work(group="story")
    async def _read(self, after: int) -> None:
        task = self.story.task.id
        try:
            while page := await self._journal.entries(after, task=task, limit=_PAGE):
                after = page[-1].id
                self.post_message(self.Read(tuple(page)))
        except JournalError as error:
            self.post_message(self.Caught(str(error)))
        else:
            self.post_message(self.Caught())

    @on(Read)
    def _told(self, message: Read) -> None:
        for entry in message.entries:
            self.story.fold(entry)
        self._after = message.entries[-1].id
        if self.story.recall is not self._looked_up and self.story.recall is not None:
            self._looked_up = self.story.recall
            self._look_up(self.story.recall)
        self._show()

    @on(Caught)
    def _caught(self, message: Caught) -> None:
        self.reading = False
        if message.problem and message.problem != self._problem:
            said = one_line(message.problem)
            self.notify(said, title="The journal", severity="error", markup=False)
        self._problem = message.problem
        if self._behind and not message.problem:
            self._look()
        self._show_header()

    @work(group="given")
    async def _look_up(self, recall: Recall) -> None:
        self.post_message(self.LookedUp(recall, await given_by(Learned(self._journal), recall)))

    @on(LookedUp)
    def _remember(self, message: LookedUp) -> None:
        if message.recall is self._looked_up:  # an earlier one may be answered later
            self.story.remember(message.given)
            self._show()

    @work(group="calibration")
    async def _calibrate(self) -> None:
        model = self.story.attempt.model
        self.post_message(self.Calibrated(await self._calibrator.calibration(model)))

    @on(Calibrated)
    def _calibrated(self, message: Calibrated) -> None:
        self._calibration = message.calibration
        self._show_header()

    def _show(self) -> None:
        """Show the story on the side that is seen."""
        self._show_header()
        match self.side:
            case "timeline":
                self._timeline.show_story(self.story)
            case "alerts":
                self._alerts.show(self.story.alerts)
            case "chart":
                self._chart.show_story(self.story)
            case "plan":
                self._plan.show(numbered(self.story.account.plan))
            case "messages":
                self._messages.show(tuple(self.story.tellings.values()))
            case "checks":
                self._checks.show(self.story.checks())
            case _:
                pass
        self._show_detail()

    def _show_header(self) -> None:
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
        colours = palette(app.get_css_variables())
        standing, waiting = header(
            self.story, self._now(), colours, self._calibration, adrift=self._row.adrift
        )
        self.query_one("#standing", Static).update(standing)
        self.query_one("#waiting", Static).update(waiting)

    def _show_detail(self) -> None:
        if self._detail.open:
            facet = self._facet
            self._detail.tell("" if isinstance(facet, Chart) else facet.detail)

    def _focus(self) -> None:
        facet = self._facet
        if isinstance(facet, Chart):
            self.query_one(Tabs).focus()
        else:
            facet.roll.focus()

    @on(TabbedContent.TabActivated, "#sides")
    def _turned(self) -> None:
        if self.side == "diff":
            self._compare()
        self._show()
        self._focus()

    def action_side(self, name: str) -> None:
        """Show a side."""
        self.query_one("#sides", TabbedContent).active = f"{name}-tab"

    def action_turn(self, sides: int) -> None:
        """Show the next side, or the one before."""
        self.action_side(_SIDES[(_SIDES.index(self.side) + sides) % len(_SIDES)])

    def action_detail(self) -> None:
        """Show all of the line of the cursor, or close that."""
        self._detail.open = not self._detail.open
        self._show_detail()
        if not self._detail.open:
            self._focus()

    async def action_back(self) -> None:
        """Close the detail, or go back to what was seen before."""
        if self._detail.open:
            self.action_detail()
        else:
            await self.run_action("app.back")

    @on(LineList.Moved)
    def _moved(self) -> None:
        self._show_detail()

    @on(LineList.Opened)
    def _opened(self, message: LineList.Opened) -> None:
        if message.roll is self._alerts.roll:
            self._open_alert(message.index)
        elif not self._detail.open:
            self.action_detail()

    def _open_alert(self, index: int) -> None:
        """Go to what an alert is grounded on; its steps are marked in the timeline."""
        record = self._alerts.items[index].record
        if isinstance(record, Alert):
            self._timeline.evidence = record.evidence or (record.step,)
            self._jump(max(self._timeline.evidence))

    def _jump(self, step: int) -> None:
        self.action_side("timeline")
        if not self._timeline.jump(self.story, step):
            self.notify(f"the timeline does not have step {step} any more", markup=False)

    def action_evidence(self) -> None:
        """Go to the next step of the evidence, after the last one to the first."""
        steps = sorted(self._timeline.evidence)
        if not steps:
            self.notify("open an alert first: its evidence is then marked in the timeline")
            return
        item = self._timeline.under_cursor
        here = item.record.number if item and isinstance(item.record, Step) else 0
        self._jump(next((step for step in steps if step > here), steps[0]))

    def _compare_again(self) -> None:
        if self.side == "diff" and self._compared != self.story.edited:
            self._compare()

    def _compare(self) -> None:
        workspace = self.story.attempt.workspace
        if not workspace:
            self._diff.say("The attempt has no workspace.")
        elif not self._comparing:
            self._comparing = True
            self._compared = self.story.edited
            where = f" (the attempt is on {self._row.node})" if self._row.moves else ""
            self._read_diff(Path(workspace), self.story.task, where)

    @work(group="diff")
    async def _read_diff(self, folder: Path, task: Task, where: str) -> None:
        try:
            text = await changes(await ground_of(assignment_of(task), folder))
        except WorkspaceError as error:
            self.post_message(self.Compared("", f"The diff cannot be read: {error}"))
            return
        reason = (
            "Nothing is changed."
            if text is not None
            else f"There is no git worktree here: {folder}{where}"
        )
        self.post_message(self.Compared(self._journal.masker.text(text or ""), reason))

    @on(Compared)
    def _show_diff(self, message: Compared) -> None:
        self._comparing = False
        self._diff.say(one_line(message.reason))
        self._diff.show(lines(message.text))
        self._show_detail()
