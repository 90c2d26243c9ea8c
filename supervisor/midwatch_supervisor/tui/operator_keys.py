"""An app whose keys are commands of an operator: asked, stored in the journal, and followed."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widgets import TabbedContent
from textual.worker import Worker

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import (
    Action,
    Attempt,
    Delivery,
    Entry,
    Intervention,
    OutcomeReport,
)
from midwatch_monitor.state.intervention import InterventionState, WorkerRequest
from midwatch_supervisor.operator.actions import GRANTED, OperatorActions
from midwatch_supervisor.present.intervention_text import request_text, terms_text
from midwatch_supervisor.present.lookup import assignment_of, models_of
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.text_line import bracketed
from midwatch_supervisor.tui.keys import ACTS
from midwatch_supervisor.tui.operator_command import (
    ABOUT_ALERTS,
    ACTIONS,
    Command,
    confirmation_text,
    held_decision,
    is_held,
    question,
    refusal,
    terms_in,
    waiting_petition,
    wanted_budget,
)
from midwatch_supervisor.tui.state.action_results import notice
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.dialogs import OnceCommandPalette, dialog

STORING = "acts"
"""The group of the workers that write what a person said."""
_MAX_TOLD = 300
"""Characters of a notification."""


@runtime_checkable
class Chooser(Protocol):
    """Whatever on the screen has chosen a row: the keys act on that."""

    @property
    def chosen(self) -> Row | None:
        """The row that the keys act on."""
        ...


@runtime_checkable
class DecisionReader(Protocol):
    """A screen that tells what waits as it has read it, perhaps later than the board."""

    def shows(self, waiting: int) -> bool:
        """Whether the decision or the request of a journal id is the one that it tells of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What stands in the journal now."""

    id: int | None = None
    """The intervention's journal id, if one is under way."""
    words: str = ""
    """What was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A command that was begun, with the decision or the request that waited then."""

    command: Command
    row: Row
    held: InterventionState | None
    asked: tuple[int, WorkerRequest] | None = None

    @property
    def about(self) -> int | None:
        """The journal id of the decision, or of what the worker asked for, that it settles."""
        if not self.command.of_decision and self.command is not Command.GRANT:
            return None
        if self.held is not None and self.command is not Command.GRANT:
            return self.held.id
        return None if self.asked is None else self.asked[0]

    @property
    def settled(self) -> bool:
        """Whether the decision, or what the worker asked for, no longer waits."""
        state = self.row.state
        waiting = {*(each.id for each in state.interventions.held), *state.open_requests}
        return self.about is not None and self.about not in waiting


def _begun(command: Command, row: Row) -> _Pending:
    asked = wanted_budget(row) if command is Command.GRANT else waiting_petition(row)
    return _Pending(command=command, row=row, held=held_decision(row), asked=asked)


class OperatorApp(App[int]):
    """An app whose keys act on the chosen row. Dialogs ask, a worker writes."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in ACTS]

    board: Board
    operator: OperatorActions

    def __init__(self) -> None:
        super().__init__()
        self._followed: dict[int, Row] = {}
        """The interventions of this console, by journal id, with what they were issued on."""
        self._in_turn = asyncio.Lock()
        """What is said is stored in the order of the keys."""
        self._settled: set[int] = set()
        """What was settled here, by journal id; the board hears of it later."""
        self._pauses: set[int] = set()
        """The attempts of which a pause is being stored."""

    @property
    def target(self) -> Row | None:
        """The row that the keys act on: where the focus is, else in the pane that is shown."""
        for node in self._places():
            if isinstance(node, Chooser):
                return node.chosen
        return None

    def _places(self) -> Iterator[DOMNode]:
        if self.screen.focused is not None:
            yield from self.screen.focused.ancestors_with_self
        yield self.screen
        for tabs in self.screen.query(TabbedContent):
            if tabs.active_pane is not None:
                yield from tabs.active_pane.query("*")

    def follow_commands(self, entries: Iterable[Entry]) -> None:
        """Tell what came of this console's commands; the board has the entries already."""
        for entry in entries:
            match entry.record:
                case Intervention(action=Action.PAUSE):
                    self._pauses.discard(entry.attempt or 0)
                case Delivery() | OutcomeReport() as news if news.intervention in self._followed:
                    self._announce(news)
                case _:
                    pass

    def _follow(self, id: int, row: Row) -> None:
        """Tell of an intervention from now on; the board may know already what came of it."""
        self._followed[id] = row
        state = row.state.interventions.get(id)
        news = state and (state.report or state.stamp)
        if news:
            self._announce(news)

    def _announce(self, news: Delivery | OutcomeReport) -> None:
        row = self._followed[news.intervention]
        state = row.state.interventions.get(news.intervention)
        told = None if state is None else notice(row.label, state.action, news)
        if told is not None:
            self._notify(told.text, good=told.good)

    @property
    def storing(self) -> list[Worker[bool]]:
        """The workers that write what a person said, each of which answers whether it could."""
        return [each for each in self.workers if each.group == STORING and not each.is_finished]

    async def stored(self) -> bool:
        """Wait until all that was said is stored; answers whether it could be."""
        while storing := self.storing:
            if not all([await each.wait() for each in storing]):
                return False
        return True

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        if not isinstance(self.screen, OnceCommandPalette):
            self.push_screen(OnceCommandPalette(id="--command-palette"))

    def action_act(self, name: str) -> None:
        """Begin a command on the chosen row, or say why it makes no sense."""
        row = self.target
        if row is None:
            self.notify("no attempt is chosen", severity="warning")
        else:
            self.begin(Command(name), row)

    def action_pause(self) -> None:
        """Hold the chosen attempt, or let it go on."""
        row = self.target
        waiting = row is not None and is_held(row, pausing=row.attempt in self._pauses)
        self.action_act(Command.RESUME if waiting else Command.PAUSE)

    def begin(self, command: Command, row: Row) -> None:
        """Ask what there is to be asked and then act, unless that makes no sense for the row."""
        # The dialog may stand open for long: the decision that it showed is what is acted on.
        pending = _begun(command, row)
        if self._refused(pending):
            return
        models = (
            models_of(self.board.tasks[row.task], row.state.attempt.worker)
            if command is Command.SWITCH
            else ()
        )
        asked = question(command, row, models=models)
        if asked is None:
            self._do(pending)
        else:
            self.push_screen(dialog(asked), partial(self._answered, pending))

    def _refused(self, pending: _Pending) -> bool:
        command, row = pending.command, pending.row
        left = self._attempts_left(row) if command is Command.RESTART else None
        why = refusal(command, row, pausing=row.attempt in self._pauses, attempts_left=left)
        if not why and (pending.settled or pending.about in self._settled):
            why = "that decision was settled meanwhile"
            if pending.held is None or pending.command is Command.GRANT:
                why = "what it asked for was answered meanwhile"
        if not why and not self._read(pending):
            why = "what waits has changed just now: look at it first"
        if why:
            self._notify(f"{row.label}: {why}", good=False)
        return bool(why)

    def _read(self, pending: _Pending) -> bool:
        """Whether a person can have read what is approved; other acts show it in their dialog."""
        screen, about = self.screen, pending.about
        if pending.command is not Command.APPROVE or about is None:
            return True
        return not isinstance(screen, DecisionReader) or screen.shows(about)

    def _attempts_left(self, row: Row) -> int | None:
        assignment = assignment_of(self.board.tasks[row.task])
        return None if assignment is None else assignment.task.max_attempts - row.number

    def _answered(self, pending: _Pending, said: str | bool | None) -> None:
        if said is not None and said is not False and not self._refused(pending):
            self._do(pending, "" if said is True else said)

    def _do(self, pending: _Pending, words: str = "") -> None:
        if pending.row.attempt is not None:
            attempt = self.board.attempts[pending.row.attempt]
            if pending.about is not None:
                self._settled.add(pending.about)
            if pending.command is Command.PAUSE:
                self._pauses.add(attempt.id)
            self.run_worker(self._perform(pending, attempt, words), group=STORING)

    async def _perform(self, pending: _Pending, attempt: Attempt, words: str) -> bool:
        name = pending.row.label
        try:
            async with self._in_turn:
                done = await _write(self.operator, pending, attempt, words)
        except MidwatchError as error:
            self._settled.discard(pending.about or 0)
            self._pauses.discard(attempt.id)
            said = one_line(f"{pending.command} for {name} was not stored: {error}")
            self.notify(said, severity="error", markup=False)
            return False
        said = confirmation_text(pending.command, pending.row)
        self._notify(f"{said}: {done.words}" if done.words else said)
        if done.id is not None:
            self._follow(done.id, pending.row)
        return True

    def _notify(self, text: str, *, good: bool = True) -> None:
        said = one_line(text)
        said = said if len(said) <= _MAX_TOLD else f"{said[:_MAX_TOLD]}…"
        self.notify(said, severity="information" if good else "warning", markup=False)


async def _write(
    operator: OperatorActions, pending: _Pending, attempt: Attempt, words: str
) -> _Stored:
    command, row = pending.command, pending.row
    if command.of_result:
        await operator.judge(attempt, accepted=command is Command.ACCEPT, comment=words)
        return _Stored()
    if command.of_decision and pending.held is not None:
        return await _settle(operator, pending, pending.held, attempt, words)
    if command.of_decision and pending.asked is not None:
        return await _reply(operator, pending, pending.asked, attempt, words)
    if command in {Command.GRANT, Command.SWITCH}:
        return await _give(operator, pending, attempt, words)
    about = tuple(alert.key for alert in row.state.firing) if command in ABOUT_ALERTS else ()
    return _Stored(id=await operator.act(attempt, ACTIONS[command], words, about=about))


async def _settle(
    operator: OperatorActions,
    pending: _Pending,
    held: InterventionState,
    attempt: Attempt,
    words: str,
) -> _Stored:
    id, decision = held.id, held.intervention
    step = pending.row.state.last_step
    if pending.command is Command.MODIFY:
        new = await operator.modify(attempt, id, decision, words, step=step)
        return _Stored(id=new)
    if pending.command is Command.REJECT:
        await operator.reject(attempt, id, words, step=step, petition=decision.petition)
        return _Stored()
    await operator.approve(attempt, id, step=step)
    what = f"{decision.action}{bracketed(terms_text(decision.terms))}"
    said = f"{what}: {decision.message}" if decision.message else what
    return _Stored(id=id, words=said)


async def _reply(
    operator: OperatorActions,
    pending: _Pending,
    asked: tuple[int, WorkerRequest],
    attempt: Attempt,
    words: str,
) -> _Stored:
    id, petition = asked
    if pending.command is Command.REJECT:
        return _Stored(id=await operator.refuse(attempt, id, words))
    issued = await operator.grant(attempt, id, petition)
    return _Stored(id=issued, words=request_text(petition))


async def _give(
    operator: OperatorActions, pending: _Pending, attempt: Attempt, words: str
) -> _Stored:
    terms, message = terms_in(pending.command, words)
    about = tuple(alert.key for alert in pending.row.state.firing)
    petition = None
    if pending.command is Command.GRANT:
        petition, message = pending.asked[0] if pending.asked else None, message or GRANTED
    action = ACTIONS[pending.command]
    issued = await operator.act(
        attempt, action, message, about=about, terms=terms, petition=petition
    )
    return _Stored(id=issued, words=terms_text(terms))
