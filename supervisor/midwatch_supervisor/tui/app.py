"""The console as a Textual app: it hears the journal, and turns each batch into what is shown."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.theme import Theme

from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import JournalError, MidwatchError
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.actions import Acting
from midwatch_supervisor.tui.bell import Bell, escape, notifier, notify_desktop
from midwatch_supervisor.tui.collector import calm_collector
from midwatch_supervisor.tui.commands import ConsoleCommands
from midwatch_supervisor.tui.keys import EVERYWHERE, key_groups
from midwatch_supervisor.tui.learned.pane import LearnedPane
from midwatch_supervisor.tui.log_capture import LogCapture
from midwatch_supervisor.tui.looks import following
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.screens.banner import Banner
from midwatch_supervisor.tui.screens.pane import Hearer
from midwatch_supervisor.tui.screens.panes import Panes
from midwatch_supervisor.tui.state.attention import Proposal, Queue, next_of
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.feed import Batch, Feed
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.themes import THEMES
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog
from midwatch_supervisor.tui.widgets.footer import Footing
from midwatch_supervisor.tui.widgets.help import HelpScreen
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.title import Heading

Work = Callable[[], Awaitable[int]]
"""A run that is conducted in this process; answers its exit code."""

_FRAME_SECONDS = 0.1
_PATIENT = 3
"""Seconds without a broker that are not worth a word."""

NO_BROKER = "no broker: hints are late"

INTERRUPTED = 130
"""The exit code of a console that was left while its run worked."""


class Console(Acting):
    """What an operator sees and does; answers the exit code of the run, if it ran here."""

    TITLE = "Midwatch"
    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in EVERYWHERE]
    COMMANDS = Acting.COMMANDS | {ConsoleCommands}

    @dataclass
    class Grew(Message):
        """The journal has grown."""

        batch: Batch

    @dataclass
    class Lost(Message):
        """The journal can no longer be read."""

        problem: str

    @dataclass
    class Finished(Message):
        """The run of this process is over."""

        code: int
        problem: str = ""
        """Why it broke off, if it did."""

    def __init__(
        self,
        feed: Feed,
        desk: OperatorActions,
        *,
        work: Work | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone(),
        settings: ConsoleSettings | None = None,
        about: Sequence[str] = (),
    ) -> None:
        """Show what `feed` brings; `about` says in lines what is watched, the first one on top."""
        super().__init__()
        # A key shows its effect at once: the slide to another tab alone costs a third of a second.
        self.animation_level = "none"
        self.settings = settings or ConsoleSettings()
        self.about = tuple(about)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme
        self.board = Board()
        self.complaints = LogCapture(feed.journal.masker.text)
        self.queue = Queue(self.board)
        self.learned = LearnedPane(feed.journal, self.board.tally, desk.shelf, now)
        self.panes = Panes(self.board, self.queue, self.learned, now)
        self.banner = Banner(self.board, now, stale_seconds=self.settings.stale_seconds)
        self._bell = Bell(now())
        self._visited: int | None = None
        """The attempt that was opened last."""
        self.desk = desk
        self.code: int | None = None
        """The exit code of the run of this process, once it is over."""
        self._feed = feed
        self._calibrator = Calibrator(feed.journal)
        self._heading = Heading(self.about)
        self._unheard = 0
        """For how many seconds there has been no broker."""
        self._taken = asyncio.Event()
        self._leaving = False
        self._painted = 0.0
        self._work = work
        self._now = now

    def compose(self) -> ComposeResult:
        """What is watched, the panes, and the keys below."""
        yield self._heading
        yield self.banner
        yield self.panes
        yield Footing()

    def on_mount(self) -> None:
        """Begin to listen, and to work if there is work."""
        self.set_keymap(self.settings.keys)
        self.theme_changed_signal.subscribe(self, self._recolour)
        self.complaints.__enter__()
        calm_collector()
        self._listen()
        if self._work is not None:
            self._conduct(self._work)
        # What only time changes: idle times, ages.
        self.set_interval(1.0, self.pass_a_second)

    def on_unmount(self) -> None:
        """The log goes its usual ways again."""
        self.complaints.__exit__(None, None, None)

    @work(exclusive=True, group="feed")
    async def _listen(self) -> None:
        try:
            async for batch in self._feed.batches():
                self._taken.clear()
                self.post_message(self.Grew(batch))
                await self._taken.wait()  # keys are heard between two batches
        except JournalError as error:
            self.post_message(self.Lost(str(error)))

    @work(exclusive=True, group="run")
    async def _conduct(self, work: Work) -> None:
        try:
            self.post_message(self.Finished(await work()))
        except MidwatchError as error:
            # Who started the console hears of it too; here a person reads what the journal has.
            self.post_message(self.Finished(1, str(error)))

    @on(Grew)
    def _grew(self, message: Grew) -> None:
        for run in message.batch.runs:
            self.board.meet_run(run)
        for task in message.batch.tasks:
            self.board.meet_task(task)
        for attempt in message.batch.attempts:
            self.board.meet_attempt(attempt)
        for entry in message.batch.entries:
            self.board.fold(entry)
        if message.batch.nodes is not None:
            self.board.meet_nodes(message.batch.nodes)
        if message.batch.monitors is not None:
            self.board.meet_monitors(message.batch.monitors)
        self.follow_acts(message.batch.entries)
        self.queue.hear(message.batch.entries, of_nodes=message.batch.nodes is not None)
        self.learned.hear(message.batch.entries, again=message.batch.again)
        for screen in self.screen_stack:
            if isinstance(screen, Hearer):
                screen.hear(message.batch)
        self._taken.set()
        self._paint(soon=message.batch.more)
        if not message.batch.more:
            self.panes.fleet.settle()

    def _paint(self, *, soon: bool) -> None:
        # Of a long history that arrives in many batches, ten pictures a second are enough.
        if soon and monotonic() - self._painted < _FRAME_SECONDS:
            return
        self._painted = monotonic()
        self.refresh_panes()

    @on(Lost)
    def _lost(self, message: Lost) -> None:
        self.banner.tell("journal", f"the journal cannot be read any more: {message.problem}")
        self.banner.refresh_board()

    @on(Finished)
    def _finished(self, message: Finished) -> None:
        self.code = message.code
        if message.problem:
            said = f"the run broke off: {one_line(message.problem)}"
            self.notify(said, severity="error", timeout=60, markup=False)
        else:
            self.notify(f"the run is over (exit code {message.code}); q leaves", timeout=10)

    def refresh_panes(self) -> None:
        """Show the board as it is now; what another screen covers can wait."""
        if len(self.screen_stack) == 1:
            self.panes.refresh_board()

    def pass_a_second(self) -> None:
        """Show what only time changes (ages, silence), and call a person if one is needed."""
        self.refresh_panes()
        self.banner.hear_of_drops(self._feed.dropped)
        self.banner.hear_of_silence(self._feed.unanswered, self._feed.problem)
        self._hear_of_broker()
        if complaint := self.complaints.take():
            self.banner.tell("log", complaint, passing=True)
        self.banner.refresh_board()
        said = self._bell.hear(self.queue.calling)
        if said is not None:
            self._call(said)

    def _hear_of_broker(self) -> None:
        self._heading.mark(NO_BROKER if self._unheard > _PATIENT else "")
        self._unheard = 0 if self._feed.connected else self._unheard + 1
        if self._unheard == 0:
            self.complaints.take_bus()
            self.banner.forget("broker")
        elif self._unheard > _PATIENT and (why := self.complaints.take_bus()):
            self.banner.tell("broker", why, passing=True)

    def _call(self, said: str) -> None:
        self.notify(said, title="A person is needed", severity="warning", markup=False)
        if self.settings.bell:
            self.bell()
        if self.settings.desktop_notify:
            self._call_desktop(said)

    def _call_desktop(self, said: str) -> None:
        program = notifier()
        if program is not None:
            self.run_worker(notify_desktop(program, said), group="desktop")
        elif self._driver is not None and not self.is_headless:
            self._driver.write(escape(said))

    @on(Panes.Wanted)
    def _wanted(self, message: Panes.Wanted) -> None:
        self.open_attempt(message.row)

    def open_attempt(self, row: Row) -> None:
        """Show one attempt; of a task that has none yet there is nothing to show."""
        if row.attempt is None:
            waits = f"has not begun yet; it waits for {self.board.turn(row)}"
            self.notify(f"{one_line(row.name)} {one_line(waits)}", timeout=5, markup=False)
            return
        self._visited = row.attempt
        attempt, task = self.board.attempts[row.attempt], self.board.tasks[row.task]
        journal, calibrator = self._feed.journal, self._calibrator
        self.push_screen(
            AttemptScreen(row, task, attempt, journal, now=self._now, calibrator=calibrator)
        )

    @on(LearnedPane.Read)
    def _studied(self, message: LearnedPane.Read) -> None:
        self.queue.proposals = tuple(Proposal(known=each) for each in message.lore.proposed)
        self.refresh_panes()

    @on(LearnedPane.Wanted)
    def _wanted_source(self, message: LearnedPane.Wanted) -> None:
        row = self.board.rows.get(message.attempt)
        if row is not None:
            self.open_attempt(row)
            return
        said = f"attempt {message.attempt} is of another run: midwatch show {message.attempt}"
        self.notify(said, markup=False)

    def action_pane(self, name: str) -> None:
        """See a pane, whatever is in front of it."""
        if name == "nodes-pane" and not self.board.muster.nodes:
            self.notify(self._without_nodes(), timeout=3, markup=False)
            return
        self._uncover()
        self.panes.show(name)
        self.refresh_panes()

    def _without_nodes(self) -> str:
        if self._feed.of_a_fleet and not self.board.muster.read:
            return "the nodes are not read yet: try again in a moment"
        if self.board.open_since is not None:
            return "there are no nodes: `midwatch node` starts one"
        return "there are no nodes: the work is done where it was started"

    def action_next_attention(self) -> None:
        """Open the next attempt that needs a person; from another one's view, the one after it."""
        inside = len(self.screen_stack) > 1
        row = next_of(self.queue.rows, self._visited if inside else None)
        if row is not None:
            self._uncover()
            self.open_attempt(row)
        elif self.queue.losses or self.queue.unplaced:
            self.action_pane("nodes-pane")
        elif self.queue.proposals:
            self._uncover()
            self.panes.show_proposal(self.queue.proposals[0])
        else:
            self.notify("nothing waits for a person", timeout=3)

    def _uncover(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_filter(self) -> None:
        """Filter the lines of the pane that is seen."""
        if len(self.screen_stack) == 1:
            self.panes.current.open_filter()

    async def action_back(self) -> None:
        """Drop the filter, or leave the screen in front."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.refresh_panes()
        else:
            self.panes.current.close_filter()

    def action_group(self) -> None:
        """Group the fleet by the next thing."""
        if len(self.screen_stack) == 1:
            self.panes.show("fleet-pane")
            self.panes.fleet.regroup()
            self.notify(f"grouped by {self.panes.fleet.grouped_by}", timeout=2)

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(HelpScreen(key_groups(), self.settings.keys, self.about))

    def action_next_theme(self) -> None:
        """Take the next theme."""
        self.theme = following(self.theme)
        self.notify(f"theme: {self.theme}", timeout=2)

    def _recolour(self, theme: Theme) -> None:
        del theme
        for screen in self.screen_stack:
            for roll in screen.query(LineList):
                roll.recolour()
            for footing in screen.query(Footing):
                footing.recolour()

    async def action_quit(self) -> None:
        """Textual's own way out, from its command palette, is ours."""
        self.action_leave()

    def action_leave(self) -> None:
        """Leave; the exit code is the run's. While it works here, that is asked first."""
        if self._work is None or self.code is not None:
            self._leave()
        else:
            self.push_screen(
                ConfirmDialog(
                    "Leave while the run works?",
                    detail="It is interrupted and can be gone on with: midwatch resume",
                    yes="Leave",
                    no="Stay",
                ),
                self._left,
            )

    def _left(self, agreed: bool | None) -> None:
        if agreed:
            self._leave()

    def _leave(self) -> None:
        """Leave as soon as what was said is stored; asked for again, at once."""
        if self._leaving or not self.storing:
            self._go()
            return
        self._leaving = True
        self.notify("what you said is being stored first; leave again to drop it", timeout=60)
        self.run_worker(self._leave_later(), group="leaving")

    async def _leave_later(self) -> None:
        self._leaving = stored = await self.stored()
        if stored:
            self._go()

    def _go(self) -> None:
        unknown = 0 if self._work is None else INTERRUPTED
        self.exit(unknown if self.code is None else self.code)
