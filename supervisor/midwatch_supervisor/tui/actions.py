"""The console's hands: a key becomes an act at the desk, and what comes of it is told."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.widgets import TabbedContent
from textual.worker import Worker

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import Action, Attempt, Entry, Intervention
from midwatch_monitor.state.intervention import WorkerRequest
from midwatch_supervisor.decide.worker_request import GRANTED, petition_words
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.lookup import assignment_of, models_of
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.spelling import in_brackets, terms_words
from midwatch_supervisor.tui.action import (
    ABOUT_ALERTS,
    ACTIONS,
    Act,
    held_decision,
    issued,
    name_of,
    question,
    refusal,
    terms_in,
    waiting_petition,
    waits,
    wanted_budget,
)
from midwatch_supervisor.tui.keys import ACTS
from midwatch_supervisor.tui.state.action_results import News, Trail
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.closing import Palette
from midwatch_supervisor.tui.widgets.dialogs import confirmation, in_words

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
class Reader(Protocol):
    """A screen that tells what waits as it has read it, perhaps later than the board."""

    def shows(self, waiting: int) -> bool:
        """Whether the decision or the petition of a journal id is the one that it tells of."""
        ...


@dataclass
class Acted(Message):
    """An act stands in the journal."""

    id: int | None
    """The intervention's journal id, if one is under way now."""
    act: Act
    row: Row
    words: str = ""
    """What was approved."""


@dataclass
class ActFailed(Message):
    """The journal did not take an act."""

    act: Act
    row: Row
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deed:
    """An act that was begun, with the decision or the petition that waited then."""

    act: Act
    row: Row
    held: tuple[int, Intervention] | None
    asked: tuple[int, WorkerRequest] | None = None

    @property
    def about(self) -> int | None:
        """The journal id of the decision, or of what the worker asked for, that it settles."""
        if not self.act.of_decision and self.act is not Act.GRANT:
            return None
        waiting = self.asked if self.act is Act.GRANT or self.held is None else self.held
        return None if waiting is None else waiting[0]

    @property
    def settled(self) -> bool:
        """Whether the decision, or what the worker asked for, no longer waits."""
        return self.about is not None and self.about not in {*self.row.held, *self.row.petitions}


def _begun(act: Act, row: Row) -> _Deed:
    asked = wanted_budget(row) if act is Act.GRANT else waiting_petition(row)
    return _Deed(act=act, row=row, held=held_decision(row), asked=asked)


class Acting(App[int]):
    """An app whose keys act on the chosen row. Dialogs ask, a worker writes, messages tell."""

    BINDINGS: ClassVar[list[BindingType]] = [key.binding for key in ACTS]

    board: Board
    desk: OperatorActions

    def __init__(self) -> None:
        super().__init__()
        self._trail = Trail()
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

    def follow_acts(self, entries: Iterable[Entry]) -> None:
        """Take in what the journal says, and tell what came of this console's acts."""
        for entry in entries:
            if isinstance(entry.record, Intervention) and entry.record.action is Action.PAUSE:
                self._pauses.discard(entry.attempt or 0)
            self._tell(self._trail.fold(entry))

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
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_act(self, name: str) -> None:
        """Begin an act on the chosen row, or say why it makes no sense."""
        row = self.target
        if row is None:
            self.notify("no attempt is chosen", severity="warning")
        else:
            self.begin(Act(name), row)

    def action_pause(self) -> None:
        """Hold the chosen attempt, or let it go on."""
        row = self.target
        waiting = row is not None and waits(row, pausing=self._pausing(row))
        self.action_act(Act.RESUME if waiting else Act.PAUSE)

    def begin(self, act: Act, row: Row) -> None:
        """Ask what there is to be asked and then act, unless that makes no sense for the row."""
        # The dialog may stand open for long: the decision that it showed is what is acted on.
        deed = _begun(act, row)
        if self._refused(deed):
            return
        models = models_of(self.board.tasks[row.task], row.worker) if act is Act.SWITCH else ()
        asked = question(act, row, models=models)
        if asked is None:
            self._do(deed)
        elif asked.confirm:
            self.push_screen(confirmation(asked), partial(self._agreed, deed))
        else:
            self.push_screen(in_words(asked), partial(self._written, deed))

    def _refused(self, deed: _Deed) -> bool:
        act, row = deed.act, deed.row
        left = self._attempts_left(row) if act is Act.RESTART else None
        why = refusal(act, row, pausing=self._pausing(row), attempts_left=left)
        if not why and (deed.settled or deed.about in self._settled):
            why = "that decision was settled meanwhile"
            if deed.held is None or deed.act is Act.GRANT:
                why = "what it asked for was answered meanwhile"
        if not why and not self._read(deed):
            why = "what waits has changed just now: look at it first"
        if why:
            self._notify(f"{name_of(row)}: {why}", good=False)
        return bool(why)

    def _read(self, deed: _Deed) -> bool:
        """Whether a person can have read what is approved; other acts show it in their dialog."""
        if deed.act is not Act.APPROVE or deed.about is None or not isinstance(self.screen, Reader):
            return True
        return self.screen.shows(deed.about)

    def _pausing(self, row: Row) -> bool:
        id = row.attempt
        return id is not None and (id in self._pauses or self._trail.pausing(id))

    def _attempts_left(self, row: Row) -> int | None:
        assignment = assignment_of(self.board.tasks[row.task])
        return None if assignment is None else assignment.task.max_attempts - row.number

    def _agreed(self, deed: _Deed, yes: bool | None) -> None:
        if yes and not self._refused(deed):
            self._do(deed)

    def _written(self, deed: _Deed, words: str | None) -> None:
        if words is not None and not self._refused(deed):
            self._do(deed, words)

    def _do(self, deed: _Deed, words: str = "") -> None:
        if deed.row.attempt is not None:
            attempt = self.board.attempts[deed.row.attempt]
            if deed.about is not None:
                self._settled.add(deed.about)
            if deed.act is Act.PAUSE:
                self._pauses.add(attempt.id)
            self.run_worker(self._perform(deed, attempt, words), group=STORING)

    async def _perform(self, deed: _Deed, attempt: Attempt, words: str) -> bool:
        try:
            async with self._in_turn:
                acted = await _write(self.desk, deed, attempt, words)
        except MidwatchError as error:
            self._settled.discard(deed.about or 0)
            self._pauses.discard(attempt.id)
            self.post_message(ActFailed(deed.act, deed.row, str(error)))
            return False
        self.post_message(acted)
        return True

    @on(Acted)
    def _acted(self, message: Acted) -> None:
        said = issued(message.act, message.row)
        self._notify(f"{said}: {message.words}" if message.words else said)
        if message.id is not None:
            self._tell(self._trail.follow(message.id, name_of(message.row)))

    @on(ActFailed)
    def _failed(self, message: ActFailed) -> None:
        what = f"{message.act} for {name_of(message.row)} was not stored"
        self.notify(one_line(f"{what}: {message.error}"), severity="error", markup=False)

    def _tell(self, news: News | None) -> None:
        if news is not None:
            self._notify(news.text, good=news.good)

    def _notify(self, text: str, *, good: bool = True) -> None:
        said = one_line(text)
        said = said if len(said) <= _MAX_TOLD else f"{said[:_MAX_TOLD]}…"
        self.notify(said, severity="information" if good else "warning", markup=False)


async def _write(desk: OperatorActions, deed: _Deed, attempt: Attempt, words: str) -> Acted:
    act, row = deed.act, deed.row
    if act.of_result:
        await desk.judge(attempt, accepted=act is Act.ACCEPT, comment=words)
        return Acted(None, act, row)
    if act.of_decision and deed.held is not None:
        return await _settle(desk, deed, deed.held, attempt, words)
    if act.of_decision and deed.asked is not None:
        return await _reply(desk, deed, deed.asked, attempt, words)
    if act in {Act.GRANT, Act.SWITCH}:
        return await _give(desk, deed, attempt, words)
    about = tuple(row.firing) if act in ABOUT_ALERTS else ()
    return Acted(await desk.act(attempt, ACTIONS[act], words, about=about), act, row)


async def _settle(
    desk: OperatorActions, deed: _Deed, held: tuple[int, Intervention], attempt: Attempt, words: str
) -> Acted:
    id, decision = held
    step = deed.row.last_step
    if deed.act is Act.MODIFY:
        new = await desk.modify(attempt, id, decision, words, step=step)
        return Acted(new, deed.act, deed.row)
    if deed.act is Act.REJECT:
        await desk.reject(attempt, id, words, step=step, petition=decision.petition)
        return Acted(None, deed.act, deed.row)
    await desk.approve(attempt, id, step=step)
    what = f"{decision.action}{in_brackets(terms_words(decision.terms))}"
    said = f"{what}: {decision.message}" if decision.message else what
    return Acted(id, deed.act, deed.row, said)


async def _reply(
    desk: OperatorActions,
    deed: _Deed,
    asked: tuple[int, WorkerRequest],
    attempt: Attempt,
    words: str,
) -> Acted:
    id, petition = asked
    if deed.act is Act.REJECT:
        return Acted(await desk.refuse(attempt, id, words), deed.act, deed.row)
    issued = await desk.grant(attempt, id, petition)
    return Acted(issued, deed.act, deed.row, petition_words(petition))


async def _give(desk: OperatorActions, deed: _Deed, attempt: Attempt, words: str) -> Acted:
    terms, message = terms_in(deed.act, words)
    about = tuple(deed.row.firing)
    petition = None
    if deed.act is Act.GRANT:
        petition, message = deed.asked[0] if deed.asked else None, message or GRANTED
    action = ACTIONS[deed.act]
    issued = await desk.act(attempt, action, message, about=about, terms=terms, petition=petition)
    return Acted(issued, deed.act, deed.row, terms_words(terms))
