"""The console as a Textual app: follows the journal and shows each batch."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from time import monotonic
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.message import Message

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.errors import JournalError, MidwatchError
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.bell import Bell, escape, notifier, notify_desktop
from midwatch_supervisor.tui.command_palette import ConsoleCommands
from midwatch_supervisor.tui.jump import JumpDialog, JumpTarget
from midwatch_supervisor.tui.keys import (
    ACTS,
    EVERYWHERE,
    in_force,
    key_groups,
    key_text,
    next_theme,
    with_new_ids,
)
from midwatch_supervisor.tui.learned.pane import LearnedPane
from midwatch_supervisor.tui.log_capture import LogCapture
from midwatch_supervisor.tui.operator_command import DialogQuestion, Offer
from midwatch_supervisor.tui.operator_keys import OperatorApp
from midwatch_supervisor.tui.screens.banner import Banner
from midwatch_supervisor.tui.screens.panes import BatchReceiver, Panes
from midwatch_supervisor.tui.screens.title import TitleLine
from midwatch_supervisor.tui.state.attention import AttentionQueue, next_of, proposed_guidelines
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.feed import Feed, FeedBatch
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.dialogs import ConfirmDialog, HelpScreen
from midwatch_supervisor.tui.widgets.footer import Footer
from midwatch_supervisor.tui.widgets.palette import THEMES

RunWork = Callable[[], Awaitable[int]]
"""A run in this process; returns its exit code."""

_FRAME_SECONDS = 0.1
_LONG = 20
"""Seconds for which an important notice is shown; escape closes it earlier."""
_PATIENT = 3
"""Seconds without a broker before that is reported."""

NO_BROKER = "no broker: hints are delayed"
_WITHOUT_BROKER = "nothing is lost, only delayed; check the broker and the account"

INTERRUPTED = 130
"""Exit code if the console is quit while its run is working."""

_SELDOM = (50_000, 20, 100)
"""Thresholds of the garbage collector: objects, and rounds of younger generations."""


def collect_garbage_seldom() -> None:
    """Exclude existing objects from garbage collection, and collect rarely.

    A full collection of all imported objects blocks keys for 200 ms. Affects the whole process.
    """
    gc.freeze()
    gc.set_threshold(*_SELDOM)


async def _import_ahead() -> None:
    """Import what the first frame does not need, before a key needs it."""
    await asyncio.to_thread(import_module, "midwatch_supervisor.tui.screens.attempt")


class Console(OperatorApp):
    """The operator's app; returns the exit code of the run, if it ran here."""

    TITLE = "Midwatch"
    # Notices have their own lines above the footer and cover nothing. Only the newest is visible,
    # and after it the one before, if that has not expired.
    CSS = """
    ToastRack { layer: default; scrollbar-size: 0 0; }
    ToastHolder { display: none; }
    ToastHolder:last-child { display: block; }
    Toast { width: 1fr; max-width: 100%; max-height: 3; margin: 0; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in EVERYWHERE]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ConsoleCommands}

    @dataclass
    class Grew(Message):
        batch: FeedBatch

    def __init__(
        self,
        feed: Feed,
        operator: OperatorActions,
        *,
        work: RunWork | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone(),
        settings: ConsoleSettings | None = None,
        about: Sequence[str] = (),
        nothing: str = "",
        attempt: int | None = None,
    ) -> None:
        """Show the entries from `feed`, and open `attempt` first.

        `about` are lines about what is watched; `nothing` says what to do if there is no task yet.
        """
        super().__init__()
        # No animations: sliding to another tab alone would take a third of a second.
        self.animation_level = "none"
        self.settings = settings or ConsoleSettings()
        self._keys = with_new_ids(self.settings.keys)
        self.about = tuple(about)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme
        self.board = FleetBoard()
        self.log_capture = LogCapture(feed.journal.masker.text)
        self.queue = AttentionQueue(self.board)
        self.learned = LearnedPane(feed.journal, self.board.learning, operator, now)
        keys = {} if operator.barred else self._spoken_keys()
        self.panes = Panes(
            self.board, self.queue, self.learned, now, keys=keys, about=about, nothing=nothing
        )
        self.banner = Banner(self.board, now, stale_seconds=self.settings.stale_seconds)
        self._bell = Bell(now())
        self._first = attempt  # to be opened; None once it is
        self._visited: int | None = None
        """The last opened attempt."""
        self.operator = operator
        self.code: int | None = None
        """The exit code of this process's run, once it is over."""
        self._feed = feed
        self._calibrator = Calibrator(feed.journal)
        self._title_line = TitleLine(self.board, self.queue, now)
        self._unheard = 0
        """Seconds without a broker so far."""
        self._taken = asyncio.Event()
        self._leaving = False
        self._painted = 0.0
        self._work = work
        self.conducts = work is not None
        self._now = now

    def _spoken_keys(self) -> dict[str, str]:
        """Return the first key of each action, on an attempt or anywhere, as people write it."""
        return {key.id: key_text(in_force(key, self._keys)[0]) for key in (*ACTS, *EVERYWHERE)}

    def compose(self) -> ComposeResult:
        yield self._title_line
        yield self.banner
        yield self.panes
        yield Footer()

    def on_mount(self) -> None:
        self.set_keymap(self._keys)
        self.log_capture.attach()
        self._receive_batches()
        self.call_after_refresh(self.run_worker, _import_ahead)
        if self._work is not None:
            self._run_work(self._work)
        # For what changes with time alone: idle times, ages.
        self.set_interval(1.0, self.pass_a_second)

    def on_unmount(self) -> None:
        self.log_capture.close()

    @work(exclusive=True, group="feed")
    async def _receive_batches(self) -> None:
        try:
            async for batch in self._feed.batches():
                self._taken.clear()
                self.post_message(self.Grew(batch))
                await self._taken.wait()  # keys are handled between two batches
        except JournalError as error:
            what = f"the journal can no longer be read: {error}"
            self.banner.report("journal", what, remedy=f"run `{command('db check')}`")
            self.banner.refresh_board()

    @work(exclusive=True, group="run")
    async def _run_work(self, work: RunWork) -> None:
        try:
            self.code = await work()
        except MidwatchError as error:
            # The caller of the console gets the error too; people can still read the journal here.
            self.code = 1
            said = f"the run failed: {one_line(str(error))}"
            self.notify(said, severity="error", timeout=_LONG, markup=False)
        else:
            self.notify(f"the run is over (exit code {self.code}); q quits", timeout=10)

    def offers(self) -> tuple[Offer, ...]:
        """Return what can be done with the selected row, or line of the Learned tab."""
        if self.operator.barred:
            return ()
        return (*super().offers(), *self.learned.offers())

    def _go_on(self) -> None:
        """Continue this process's run if a task was restarted after its end."""
        if self._work is not None and self.code is not None and self.board.reopened:
            self.board.reopened.clear()
            self.code = None
            self._run_work(self._work)

    @on(Grew)
    def _apply_batch(self, message: Grew) -> None:
        self.board.take(message.batch)
        self.follow_commands(message.batch.entries)
        self.queue.observe(message.batch.entries, of_nodes=message.batch.nodes is not None)
        self.learned.observe(message.batch.entries, again=message.batch.again)
        for screen in self.screen_stack:
            if isinstance(screen, BatchReceiver):
                screen.receive(message.batch)
        self._taken.set()
        first = None if self.board.loading else self.board.rows.get(self._first or 0)
        if first is not None:
            self._first = None
            self.open_attempt(first)
        self._refresh_if_due(soon=message.batch.more)
        if not message.batch.more:
            self.panes.fleet.settle()

    def _refresh_if_due(self, *, soon: bool) -> None:
        # While a long history arrives in many batches, ten frames a second are enough.
        if soon and monotonic() - self._painted < _FRAME_SECONDS:
            return
        self._painted = monotonic()
        self.refresh_panes()

    def refresh_panes(self) -> None:
        """Show the board's current state; a screen that another one covers entirely can wait."""
        if all(screen.is_modal for screen in self.screen_stack[1:]):
            self.panes.refresh_board()
            self._title_line.refresh_board()
        self.refresh_footer()

    def pass_a_second(self) -> None:
        """Update what depends on time (ages, silence), and call a person if one is needed."""
        self._go_on()
        self._look_at_broker()
        self._say_later_run()
        self.refresh_panes()
        self.banner.report_drops(self._feed.dropped)
        self.banner.report_silence(self._feed.unanswered, self._feed.problem)
        if complaint := self.log_capture.take():
            self.banner.report("log", complaint, passing=True)
        self.banner.refresh_board()
        said = None if self.board.loading else self._bell.next_call(self.queue.calling)
        if said is not None:
            self._notify_operator(said)

    def _look_at_broker(self) -> None:
        self._title_line.mark(NO_BROKER if self._unheard > _PATIENT else "")
        self._unheard = 0 if self._feed.connected else self._unheard + 1
        if self._unheard == 0:
            self.log_capture.take_bus()
            self.banner.forget("broker")
        elif self._unheard > _PATIENT and (why := self.log_capture.take_bus()):
            self.banner.report("broker", why, remedy=_WITHOUT_BROKER, passing=True)

    def _say_later_run(self) -> None:
        """Report that a newer run has begun since the console was opened."""
        if self._feed.later:
            newest = self._feed.later[-1].id
            shows, every = command(f"watch --run {newest}"), command("watch --all")
            remedy = f"`{shows}` shows it, `{every}` every run"
            what = f"run {newest} has begun, but is not shown"
            self.banner.report("later run", what, remedy=remedy)

    def _notify_operator(self, said: str) -> None:
        self.notify(said, title="You are needed", severity="warning", markup=False)
        if self.settings.bell:
            self.bell()
        if self.settings.desktop_notify:
            self._call_desktop(said)

    def _call_desktop(self, said: str) -> None:
        program = notifier()
        if program is not None:
            self.run_worker(partial(notify_desktop, program, said), group="desktop")
        elif self._driver is not None and not self.is_headless:
            self._driver.write(escape(said))

    @on(Panes.Wanted)
    def _open_wanted(self, message: Panes.Wanted) -> None:
        self.open_attempt(message.row)

    def open_attempt(self, row: Row) -> None:
        """Show one attempt; for a task without one there is nothing to show."""
        if row.attempt is None:
            said = f"{row.name} has not begun yet; it is waiting for {self.board.turn(row)}"
            self.notify(one_line(said), timeout=5, markup=False)
            return
        from midwatch_supervisor.tui.screens.attempt import AttemptScreen

        self._visited = row.attempt
        attempt, task = self.board.attempts[row.attempt], self.board.tasks[row.task]
        self.push_screen(
            AttemptScreen(
                row,
                task,
                attempt,
                self._feed.journal,
                now=self._now,
                calibrator=self._calibrator,
                trouble=lambda: self.banner.said,
            )
        )

    @on(LearnedPane.Read)
    def _learning_read(self, message: LearnedPane.Read) -> None:
        self.queue.proposals = tuple(map(proposed_guidelines, message.view.proposed))
        self.refresh_panes()

    @on(LearnedPane.Wanted)
    def _show_source(self, message: LearnedPane.Wanted) -> None:
        row = self.board.rows.get(message.attempt)
        if row is not None:
            self.open_attempt(row)
            return
        said = f"attempt {message.attempt} is in another run: {command(f'show {message.attempt}')}"
        self.notify(said, markup=False)

    def action_pane(self, name: str) -> None:
        """Show a pane, whatever is in front of it."""
        if name == "nodes-pane" and not self.board.node_list.nodes:
            self.notify(self._without_nodes(), timeout=3, markup=False)
            return
        self._show_base_screen()
        self.panes.show(name)
        self.refresh_panes()

    def _without_nodes(self) -> str:
        if self._feed.of_a_fleet and not self.board.node_list.read:
            return "the nodes have not been read yet: try again in a moment"
        if self.board.open_since is not None:
            return f"No nodes: `{command('node')}` starts one"
        return "Local run: no nodes"

    def action_next_attention(self) -> None:
        """Open the next attempt that needs a person, else the nodes or the guidelines that do."""
        inside = len(self.screen_stack) > 1
        row = next_of(self.queue.rows, self._visited if inside else None)
        if row is not None:
            self._show_base_screen()
            self.open_attempt(row)
            self.brought_at = monotonic()
        elif self.queue.of_nodes:
            self.action_pane("nodes-pane")
        elif self.queue.proposals and (version := self.queue.proposals[0].version):
            self._show_base_screen()
            self.panes.show_version(version.id)
        else:
            self.notify("nothing needs you", timeout=3)

    def _show_base_screen(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def on_key(self, event: events.Key) -> None:
        """Pass a letter that reached the list on to the focused field.

        Letters typed right after `/` may still be sent to the list, where they would be actions.
        """
        focused = self.focused
        if focused is not None and focused.check_consume_key(event.key, event.character):
            event.prevent_default()
            focused.post_message(events.Key(event.key, event.character))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether there are lines to filter; screens in front decide for themselves."""
        if action == "filter":
            return len(self.screen_stack) == 1 and self.panes.table is not None
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        if self.panes.table is not None:
            self.panes.table.open_filter()

    def action_jump(self) -> None:
        from midwatch_supervisor.tui.screens.attempt import AttemptScreen

        inside = isinstance(self.screen, AttemptScreen)
        self.push_screen(JumpDialog(self.board.all_rows(), in_attempt=inside), self._open_target)

    async def _open_target(self, target: JumpTarget | None) -> None:
        if target is not None and target.row is not None:
            self._show_base_screen()
            self.open_attempt(target.row)
        elif target is not None:
            await self.run_action(target.action)

    async def action_back(self) -> None:
        """Close the screen in front; else clear the filter, the notices, or the banner."""
        noticed = bool(self.screen.query("Toast"))
        self.clear_notifications()
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.refresh_panes()
        elif not (self.panes.current.close_filter() or noticed):
            self.banner.put_away()

    def action_preview(self) -> None:
        if len(self.screen_stack) == 1 and (why := self.panes.toggle_preview()):
            self.notify(why, timeout=3)

    def action_group(self) -> None:
        if len(self.screen_stack) == 1:
            self.panes.show("fleet-pane")
            self.panes.fleet.regroup()
            self.notify(f"grouped by {self.panes.fleet.order.grouping.name}", timeout=2)

    def action_sort(self) -> None:
        if len(self.screen_stack) == 1:
            self.panes.show("fleet-pane")
            self.panes.fleet.sort_again()
            sort = self.panes.fleet.order.sort
            self.notify(f"sorted by {sort.name}: {sort.says}", timeout=2)

    def action_fold(self) -> None:
        if len(self.screen_stack) == 1 and not self.panes.fold():
            self.notify("nothing to fold or unfold here", timeout=3)

    def action_help(self) -> None:
        self.push_screen(
            HelpScreen(key_groups(acts=not self.operator.barred), self._keys, self.about)
        )

    def action_next_theme(self) -> None:
        self.theme = next_theme(self.theme)
        self.notify(f"theme: {self.theme}", timeout=2)

    def action_help_quit(self) -> None:
        """After ctrl+c, say which key quits."""
        self.notify(f"{self._spoken_keys()['quit']} quits the console", timeout=3, markup=False)

    async def action_quit(self) -> None:
        """Replace Textual's own quit command, in its palette."""
        self.action_leave()

    def action_leave(self) -> None:
        """Quit with the run's exit code; ask first while the run is working here."""
        if self._work is None or self.code is not None:
            self._request_quit()
        else:
            self.push_screen(
                ConfirmDialog(
                    DialogQuestion(
                        title="Quit before the run is over?",
                        quote=f"The run stops; `{command('resume')}` continues it.",
                        send="Quit",
                        leave="Stay",
                        confirm=True,
                    )
                ),
                self._leave_confirmed,
            )

    def _leave_confirmed(self, agreed: bool | None) -> None:
        if agreed:
            self._request_quit()

    def _request_quit(self) -> None:
        """Quit once all writes are stored; at once if asked again."""
        if self._leaving or not self.storing:
            self._exit_with_code()
            return
        self._leaving = True
        self.notify("storing your commands first; quit again to discard them", timeout=_LONG)
        self.run_worker(self._leave_when_stored, group="leaving")

    async def _leave_when_stored(self) -> None:
        self._leaving = stored = await self.stored()
        if stored:
            self._exit_with_code()

    def _exit_with_code(self) -> None:
        unknown = 0 if self._work is None else INTERRUPTED
        self.exit(unknown if self.code is None else self.code)
