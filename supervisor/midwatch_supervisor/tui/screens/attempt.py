"""The view of one attempt: a header, tabs, and the detail of the selected line below."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Static, TabbedContent, Tabs

from midwatch_monitor.errors import JournalError, UsageError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Attempt, Entry, Recall, Step, Task
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.present.lookup import given_by
from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.keys import ATTEMPT, EVERYWHERE
from midwatch_supervisor.tui.operator_keys import RowChooser
from midwatch_supervisor.tui.screens.attempt_tabs import (
    TimelineTab,
    alerts_tab,
    checks_tab,
    diff_lines,
    diff_tab,
    messages_tab,
    no_check_text,
    numbered_steps,
    plan_tab,
)
from midwatch_supervisor.tui.screens.banner import BannerLine
from midwatch_supervisor.tui.screens.chart import Chart
from midwatch_supervisor.tui.screens.title import header
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline
from midwatch_supervisor.tui.state.feed import FeedBatch
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.detail_tabs import DetailTabs
from midwatch_supervisor.tui.widgets.footer import Footer
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.palette import on_theme_change, palette_of
from midwatch_supervisor.tui.widgets.scrolling_text import Detail
from midwatch_supervisor.tui.widgets.table import Table
from midwatch_supervisor.workspaces.task_workspace import workspace_in

_PAGE = 1_000
"""Entries read at a time; keys are handled in between."""
_DIFF_SECONDS = 2.0
"""Seconds between checks whether the shown diff must be read again."""


class AttemptScreen(Screen[None], DetailTabs, RowChooser):  # pyright: ignore[reportIncompatibleMethodOverride] - in Textual itself
    """One attempt, from its first entry on, followed live. It only reads the journal."""

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

    def __init__(
        self,
        row: Row,
        task: Task,
        attempt: Attempt,
        journal: Journal,
        *,
        now: Callable[[], datetime],
        calibrator: Calibrator,
        trouble: Callable[[], str],
    ) -> None:
        """Show an attempt at a task; `row` is its row in the fleet, on which the keys act.

        Times are shown in the zone of `now`; `trouble` returns what the banner says.
        """
        super().__init__()
        self.timeline = AttemptTimeline(task, attempt, judged=row.state.judged)
        self.reading = False
        """Whether the journal is being read."""
        self._row = row
        self._journal = journal
        self._now = now
        self._calibrator = calibrator
        self._trouble = trouble
        self._calibration: Calibration | None = None
        self._after = 0
        self._behind = False
        self._problem = ""
        self._looked_up: Recall | None = None
        self._compared = -1
        """The newest step with edits when the diff was read; -1 before."""
        self._comparing = False
        self._timeline = TimelineTab(now)
        self._alerts = alerts_tab(now)
        self._chart = Chart(id="chart")
        self._plan = plan_tab()
        self._diff = diff_tab()
        self._messages = messages_tab(attempt.id, now)
        self._checks = checks_tab()
        # Kept, because a query finds nothing if the view is closed while it reads.
        self._banner = BannerLine(markup=False)
        self._standing = Static(id="standing", classes="header", markup=False)
        self._waiting = Static(id="waiting", classes="header", markup=False)
        self._detail = Detail()
        self._tabs = TabbedContent(id="sides", initial="timeline-tab")
        self._parts = {
            "timeline": self._timeline,
            "alerts": self._alerts,
            "chart": self._chart,
            "plan": self._plan,
            "diff": self._diff,
            "messages": self._messages,
            "checks": self._checks,
        }

    def compose(self) -> ComposeResult:
        yield self._standing
        yield self._waiting
        yield self._banner
        yield from self._compose_tabs()
        yield self._detail
        yield Footer()

    @property
    def chosen(self) -> Row:
        """The attempt's row in the fleet, on which the keys act."""
        return self._row

    def shows(self, waiting: int) -> bool:
        state = self.timeline.state
        held = state.interventions.held
        return waiting == held[0].id if held else waiting in state.open_requests

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Whether there is something to search or, for a match, a search."""
        del parameters
        if action in {"filter", "match"}:
            return self.table is not None and (action == "filter" or bool(self.table.wanted))
        return True

    def on_mount(self) -> None:
        self._wait_for("Reading the journal…")
        self._start_reading()
        self._read_calibration()
        self.focus_lines()
        on_theme_change(self, self._show_header)
        # For the idle time, which changes with time alone, and for the diff while it is shown.
        self.set_interval(1.0, self._pass_a_second)
        self.set_interval(_DIFF_SECONDS, self._compare_again)

    def receive(self, batch: FeedBatch) -> None:
        """Read this task's new entries from the journal."""
        if batch.again or any(entry.task == self.timeline.task.id for entry in batch.entries):
            self._start_reading()

    def _pass_a_second(self) -> None:
        self._show_header()
        if self._problem:
            self._start_reading()

    def _start_reading(self) -> None:
        self._behind = True
        if not self.reading:
            self.reading, self._behind = True, False
            self._read_journal(self._after)

    @work(group="timeline")
    async def _read_journal(self, after: int) -> None:
        problem = ""
        try:
            while page := await self._journal.entries(
                after, task=self.timeline.task.id, limit=_PAGE
            ):
                after = self._after = page[-1].id
                self._fold_entries(page)
        except JournalError as error:
            problem = str(error)
        self.reading = False
        if not problem:
            self._wait_for("")
        if problem and problem != self._problem:
            said = one_line(problem)
            self.notify(said, title="Journal", severity="error", markup=False)
        self._problem = problem
        if self._behind and not problem:
            self._start_reading()
        self._show_header()

    def _wait_for(self, progress: str) -> None:
        for part in self._parts.values():
            # The diff does not come from the journal.
            if isinstance(part, Table | Chart) and part is not self._diff:
                part.wait_for(progress)

    def _fold_entries(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.timeline.fold(entry)
        recall = self.timeline.recall
        if recall is not self._looked_up and recall is not None:
            self._looked_up = recall
            self._look_up(recall)
        self._show_current_tab()

    @work(group="given")
    async def _look_up(self, recall: Recall) -> None:
        given = await given_by(Learned(self._journal), recall)
        if recall is self._looked_up:  # an earlier one may be answered later
            self.timeline.remember(given)
            self._show_current_tab()

    @work(group="calibration")
    async def _read_calibration(self) -> None:
        model = self.timeline.attempt.model
        self._calibration = await self._calibrator.calibration(model)
        self._show_header()

    def _show_current_tab(self) -> None:
        """Show the data on the visible tab; the diff is shown once it is read."""
        self._show_header()
        timeline, state = self.timeline, self.timeline.state
        match self.tab:
            case "timeline":
                self._timeline.take(timeline.items)
            case "alerts":
                self._alerts.take(timeline.alert_lines())
            case "chart":
                self._chart.show_timeline(timeline)
            case "plan":
                self._plan.take(numbered_steps(state.plan))
            case "messages":
                self._messages.take(tuple(state.interventions))
            case "checks":
                self._checks.say(no_check_text(over=state.over))
                self._checks.take(timeline.checks())
            case _:
                pass
        self._show_detail()

    def _show_header(self) -> None:
        colours, adrift = palette_of(self), self._row.adrift
        lines = header(self.timeline, self._now(), self._calibration, adrift=adrift)
        for line, cells in zip((self._standing, self._waiting), lines, strict=True):
            line.update(colours.assemble(cells), layout=False)
        self._banner.show_text(self._trouble())

    def _show_detail(self) -> None:
        if self._detail.open:
            self._detail.show_detail("" if self.table is None else self.table.detail)

    def focus_lines(self) -> None:
        (self.query_one(Tabs) if self.table is None else self.table.list).focus()

    @on(TabbedContent.TabActivated, "#sides")
    def _after_tab(self) -> None:
        if self.tab == "diff":
            self._request_diff()
        self._show_current_tab()
        self.focus_lines()
        self.refresh_bindings()

    def action_filter(self) -> None:
        if self.table is not None:
            self.table.open_filter()

    def action_match(self, matches: int) -> None:
        if self.table is not None:
            self.table.go_to_match(matches)

    async def action_back(self) -> None:
        """Close the search being typed, else the detail, else the search; else go back."""
        if not self.close_filter():
            await self.run_action("app.back")

    @on(LineList.Opened)
    def _open_line(self, message: LineList.Opened) -> None:
        if message.list is self._alerts.list:
            self._open_alert(message.index)
        elif not self._detail.open:
            self.action_detail()

    def _open_alert(self, index: int) -> None:
        """Go to an alert's evidence; its steps are marked in the timeline."""
        alert = self._alerts.items[index].alert
        self._timeline.evidence = alert.evidence or (alert.step,)
        self._jump_to_step(max(self._timeline.evidence))

    def _jump_to_step(self, step: int) -> None:
        self.action_tab("timeline")
        if not self._timeline.jump(self.timeline, step):
            self.notify(f"the timeline has no step {step}", markup=False)

    def action_step(self, number: int) -> None:
        self._jump_to_step(number)

    def action_evidence(self) -> None:
        """Go to the next step of the evidence, cyclically."""
        steps = sorted(self._timeline.evidence)
        if not steps:
            self.notify("open an alert first: its evidence is then marked in the timeline")
            return
        item = self._timeline.current
        here = item.record.number if item and isinstance(item.record, Step) else 0
        self._jump_to_step(next((step for step in steps if step > here), steps[0]))

    def _compare_again(self) -> None:
        if self.tab == "diff" and self._compared != self.timeline.state.edited_step:
            self._request_diff()

    def _request_diff(self) -> None:
        if not self.timeline.attempt.workspace:
            self._diff.say("The attempt has no workspace.")
        elif not self._comparing:
            self._comparing = True
            self._compared = self.timeline.state.edited_step
            self._read_diff()

    @work(group="diff")
    async def _read_diff(self) -> None:
        text, nothing = "", "No changes."
        at = workspace_in(self.timeline.task, self.timeline.state)
        try:
            found = await at.diff(self._journal)
        except (WorkspaceError, UsageError) as error:
            nothing = f"The diff cannot be read: {error}"
        else:
            text = self._journal.masker.text(found[0].shown if found else "")
            if found is None:
                where = f" (the attempt is on {self._row.state.node})" if self._row.movable else ""
                nothing = f"There is no git worktree here: {at.folder}{where}"
        self._comparing = False
        self._diff.say(one_line(nothing))
        self._diff.take(diff_lines(text))
        self._show_detail()
