"""An app with an operator's keys: asks, stores commands in the journal, follows their results."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget
from textual.widgets import TabbedContent
from textual.worker import Worker

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import Action, Attempt, Delivery, Entry, Intervention, OutcomeReport
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.operator.actions import GRANTED, OperatorActions
from midwatch_supervisor.operator.tasks import alerts_answered, is_held, questions, reached_after
from midwatch_supervisor.present.intervention_text import action_text, request_text, terms_text
from midwatch_supervisor.present.lookup import models_of
from midwatch_supervisor.present.text_line import because, one_line
from midwatch_supervisor.tui.keys import ACTS
from midwatch_supervisor.tui.operator_command import (
    Offer,
    OperatorCommand,
    Waiting,
    begins_again,
    confirmation,
    offers,
    question,
    question_for,
    refusal,
    result_text,
    terms_in,
)
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.dialogs import OnceCommandPalette, dialog
from midwatch_supervisor.tui.widgets.footer import Footer
from midwatch_supervisor.tui.widgets.line_list import LineList

STORING = "acts"
"""The group of Textual workers that store an operator's commands."""
NOTHING_CHOSEN = "no attempt is selected"
_LONGEST = 300
"""Maximum characters of a notification."""


class RowChooser(Widget):
    """A part of the screen with a selected row, on which the keys act. Use it as a second base."""

    @property
    def chosen(self) -> Row | None:
        return None

    @property
    def unchosen(self) -> str:
        """Return why no row is selected, for people; empty if there is nothing to add."""
        return ""

    def slip(self, glance: float) -> str:
        """Return why a row that moved under the cursor by itself ignores action keys.

        Empty if it has been there for `glance` seconds.
        """
        del glance
        return ""

    def shows(self, waiting: int) -> bool:
        """Whether it shows a decision or request, by journal id, as far as it has read."""
        del waiting
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A command in preparation, with the decision or request that waited when it began."""

    command: OperatorCommand
    row: Row
    waiting: Waiting | None

    @property
    def id(self) -> int | None:
        """The journal id of that decision or request."""
        return None if self.waiting is None else self.waiting[0]

    @property
    def settled(self) -> bool:
        """Whether that no longer waits."""
        return self.id is not None and self.id not in questions(self.row.state)


class OperatorApp(App[int]):
    """An app whose keys act on the selected row. Dialogs ask, a Textual worker writes."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in ACTS]

    board: FleetBoard
    operator: OperatorActions
    conducts: bool
    """Whether the run is in this process."""
    glance_seconds = 0.7
    """Seconds for which a row that moved under the cursor by itself ignores action keys: they may
    be meant for the row that was there before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._followed: dict[int, Row] = {}
        """This console's interventions by journal id, with the row they were issued on."""
        self._in_turn = asyncio.Lock()
        """Keeps commands in the order of the key presses."""
        self._settled: set[int] = set()
        """Journal ids of what was settled here, which the board may not know yet."""
        self.brought_at = -inf
        """When the console itself last opened an attempt, by `time.monotonic`."""
        self._pauses: set[int] = set()
        """Attempts with a pause that is being stored."""

    @property
    def target(self) -> Row | None:
        """Return the row that the keys act on: in the focused part, else in the shown pane."""
        chooser = self._row_chooser()
        return None if chooser is None else chooser.chosen

    def offers(self) -> tuple[Offer, ...]:
        """Return what can be done with the selected row; empty while the cursor follows a list."""
        chooser = self._row_chooser()
        row = None if chooser is None else chooser.chosen
        if chooser is None or row is None or chooser.slip(0):
            return ()
        return offers(row, pausing=row.attempt in self._pauses)

    def refresh_footer(self) -> None:
        """Update the footer of the screen in front."""
        # Called for every key: going through the screen takes only half a millisecond. An app that
        # is closing has no screen.
        for screen in self.screen_stack[-1:]:
            for each in screen.children:
                if isinstance(each, Footer):
                    each.offer(self.offers())

    @on(LineList.Moved)
    def _after_move(self) -> None:
        self.refresh_footer()

    def why_not(self, key: str) -> str:
        """Return why a key's command is impossible now; empty if it is possible."""
        command, row = OperatorCommand(key), self.target
        if self.operator.barred:
            return self.operator.barred
        if row is None:
            return NOTHING_CHOSEN
        if command is OperatorCommand.PAUSE and self._is_held(row):
            command = OperatorCommand.RESUME
        return self._refusal_reason(
            _Pending(command=command, row=row, waiting=question_for(command, row))
        )

    def _row_chooser(self) -> RowChooser | None:
        return next(
            (each for each in self._candidate_nodes() if isinstance(each, RowChooser)), None
        )

    def _candidate_nodes(self) -> Iterator[DOMNode]:
        # A dialog or the palette is about the screen below it.
        screen = next(each for each in reversed(self.screen_stack) if not each.is_modal)
        if screen.focused is not None:
            yield from screen.focused.ancestors_with_self
        yield screen
        for tabs in screen.query(TabbedContent):
            if tabs.active_pane is not None:
                yield from tabs.active_pane.query("*")

    def follow_commands(self, entries: Iterable[Entry]) -> None:
        """Report results of this console's commands; the board has the entries already."""
        for entry in entries:
            match entry.record:
                case Intervention(action=Action.PAUSE):
                    self._pauses.discard(entry.attempt or 0)
                case Delivery() | OutcomeReport() as news if news.intervention in self._followed:
                    self._notify_result(news)
                case _:
                    pass

    def _follow_intervention(self, id: int, row: Row) -> None:
        """Follow an intervention from now on; the board may already know its result."""
        self._followed[id] = row
        state = row.state.interventions.get(id)
        if news := state and (state.report or state.stamp):
            self._notify_result(news)

    def _notify_result(self, news: Delivery | OutcomeReport) -> None:
        row = self._followed[news.intervention]
        if state := row.state.interventions.get(news.intervention):
            text, good = result_text(state.action, news, over=row.state.over)
            if text:
                self._notify_line(f"{row.label}: {text}", good=good)

    @property
    def storing(self) -> list[Worker[bool]]:
        """The Textual workers that store commands, each returning whether it succeeded."""
        return [each for each in self.workers if each.group == STORING and not each.is_finished]

    async def stored(self) -> bool:
        """Wait until everything is stored; return whether that succeeded."""
        while storing := self.storing:
            if not all([await each.wait() for each in storing]):
                return False
        return True

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        if not isinstance(self.screen, OnceCommandPalette):
            self.push_screen(OnceCommandPalette(id="--command-palette"))

    def action_act(self, name: str) -> None:
        """Begin a command on the selected row, or say why it is impossible."""
        chooser = self._row_chooser()
        row = None if chooser is None else chooser.chosen
        if chooser is None or row is None:
            why = "" if chooser is None else chooser.unchosen
            self.notify(why or NOTHING_CHOSEN, severity="warning")
        elif why := self._unread_reason(chooser):
            self.notify(why, severity="warning")
        else:
            self.begin(OperatorCommand(name), row)

    def _unread_reason(self, chooser: RowChooser) -> str:
        """Return why nobody can have read the selected row yet; empty if somebody can."""
        if monotonic() - self.brought_at < self.glance_seconds:
            return "this attempt was just opened: look at it first"
        return chooser.slip(self.glance_seconds)

    def action_pause(self) -> None:
        """Pause the selected attempt, or let it continue."""
        row = self.target
        held = row is not None and self._is_held(row)
        self.action_act(OperatorCommand.RESUME if held else OperatorCommand.PAUSE)

    def _is_held(self, row: Row) -> bool:
        return row.attempt in self._pauses or is_held(row.state)

    def begin(self, command: OperatorCommand, row: Row) -> None:
        """Ask the command's question and then act, unless the command is impossible for the row."""
        # The dialog may be open for a long time: the command acts on the decision it showed.
        pending = _Pending(command=command, row=row, waiting=question_for(command, row))
        if self._notify_if_refused(pending):
            return
        models = self._switch_models(command, row)
        asked = question(command, row, models=models, unheard=self._awaited_first(command, row))
        if asked is None:
            self._start_command(pending)
        else:
            self.push_screen(dialog(asked), partial(self._carry_out, pending))

    def _carry_out(self, pending: _Pending, said: str | bool | None) -> None:
        if said is None or said is False:
            return
        if not self._notify_if_refused(pending, answered=True):
            self._start_command(pending, "" if said is True else said)

    def _notify_if_refused(self, pending: _Pending, *, answered: bool = False) -> bool:
        why = self._refusal_reason(pending, answered=answered)
        if why:
            self._notify_line(f"{pending.row.label}: {why}", good=False)
        return bool(why)

    def _refusal_reason(self, pending: _Pending, *, answered: bool = False) -> str:
        command, row = pending.command, pending.row
        models, pausing = self._switch_models(command, row), row.attempt in self._pauses
        if why := refusal(command, row, pausing=pausing, models=models):
            return why
        if command is OperatorCommand.RESTART and (newest := self._newest_number(row)) > row.number:
            return f"attempt {newest} has taken over"
        if pending.settled or pending.id in self._settled:
            if pending.waiting and isinstance(pending.waiting[1], InterventionState):
                return "that decision has already been settled"
            return "its request has already been answered"
        # A person must have been able to read what is approved; a dialog shows it itself.
        if command is OperatorCommand.APPROVE and pending.id is not None and not answered:
            screen = self.screen
            if isinstance(screen, RowChooser) and not screen.shows(pending.id):
                return "what is waiting has just changed: look at it first"
        return ""

    def _newest_number(self, row: Row) -> int:
        return max(each.number for each in self.board.rows.values() if each.task == row.task)

    def _switch_models(self, command: OperatorCommand, row: Row) -> Sequence[str]:
        if command is not OperatorCommand.SWITCH:
            return ()
        return models_of(self.board.tasks[row.task], row.state.attempt.worker)

    def _awaited_first(self, command: OperatorCommand, row: Row) -> str:
        """Return what must happen before the worker receives a command; empty if nothing."""
        run = self.board.runs.get(row.run)
        if run is None or command.of_result or command.of_alerts or row.over:
            return ""
        if row.run not in self.board.interrupted:
            return ""
        return reached_after(run, embedded=self.board.tasks[row.task].embedded)

    def _start_command(self, pending: _Pending, words: str = "") -> None:
        if pending.row.attempt is not None:
            attempt = self.board.attempts[pending.row.attempt]
            if pending.id is not None:
                self._settled.add(pending.id)
            if pending.command is OperatorCommand.PAUSE:
                self._pauses.add(attempt.id)
                self.refresh_footer()
            # A function, not a coroutine: if the app closes first, nothing is left unawaited.
            self.run_worker(partial(self._store_command, pending, attempt, words), group=STORING)

    async def _store_command(self, pending: _Pending, attempt: Attempt, words: str) -> bool:
        command, row = pending.command, pending.row
        try:
            async with self._in_turn:
                id, what = await _write_command(
                    self.operator, pending, attempt, words, here=self.conducts
                )
        except MidwatchError as error:
            self._settled.discard(pending.id or 0)
            self._pauses.discard(attempt.id)
            said = one_line(f"{command} for {row.label} was not stored: {error}")
            self.notify(said, severity="error", markup=False)
            return False
        said = f"{row.label}: {confirmation(command, row)}"
        if why := self._awaited_first(command, row):
            said = f"{said.partition(';')[0]}; {why}"
        self._notify_line(f"{said}: {what}" if what else said)
        if id is not None:
            self._follow_intervention(id, row)
        return True

    def _notify_line(self, text: str, *, good: bool = True) -> None:
        said = one_line(text)
        said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
        self.notify(said, severity="information" if good else "warning", markup=False)


_Written = tuple[int | None, str]
"""The journal id of the issued intervention, if any, and words to add to the confirmation."""


async def _write_command(
    operator: OperatorActions, pending: _Pending, attempt: Attempt, words: str, *, here: bool
) -> _Written:
    command, row = pending.command, pending.row
    if command.of_result:
        await operator.judge(attempt, accepted=command is OperatorCommand.ACCEPT, comment=words)
        return None, ""
    if begins_again(command, row):
        about, step = [each.key for each in row.state.unresolved], row.state.last_step
        begun = await operator.begin_again(attempt, words, about=about, step=step)
        return None, begun.begins if here else begun.follows
    if command.effect.action is None:
        return await _settle_pending(operator, pending, attempt, words)
    terms, message = terms_in(command, words)
    if command is OperatorCommand.GRANT:
        message = message or GRANTED
    id = await operator.act(
        attempt,
        command.effect.action,
        message,
        about=alerts_answered(row.state, command.effect.action),
        terms=terms,
        petition=pending.id,
    )
    return id, terms_text(terms)


async def _settle_pending(
    operator: OperatorActions, pending: _Pending, attempt: Attempt, words: str
) -> _Written:
    if pending.waiting is None:
        return None, ""
    (id, asked), step = pending.waiting, pending.row.state.last_step
    if pending.command is OperatorCommand.MODIFY and isinstance(asked, InterventionState):
        return await operator.modify(attempt, id, asked.intervention, words, step=step), ""
    agreed = pending.command is OperatorCommand.APPROVE
    issued = await operator.settle(attempt, id, asked, agreed=agreed, comment=words, step=step)
    if not agreed:
        return issued, ""
    if not isinstance(asked, InterventionState):
        return issued, request_text(asked)
    held = asked.intervention
    return issued, f"{action_text(held.action, held.terms)}{because(held.message)}"
