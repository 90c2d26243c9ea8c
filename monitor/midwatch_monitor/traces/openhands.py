"""Conversations of OpenHands: the events of the 0.x server, and those of the SDK (1.x).

A file is one JSON array of events, a document that holds one (as `trajectory`, `history`, `events`
or `items`), or one event a line. One step for each action of the agent, and for each message
without one. What people said, recalls and changes of state are no steps. A 1.x conversation that is
stored as a folder of `event-*.json` files is not read: join them into one file, one event a line.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.shell import Shell
from midwatch_monitor.shell.digest import digest
from midwatch_monitor.traces import openhands_sdk, openhands_server
from midwatch_monitor.traces.calls import Calls
from midwatch_monitor.traces.damage import Damage
from midwatch_monitor.traces.json_items import first_items, items
from midwatch_monitor.traces.json_lines import first_lines, lines
from midwatch_monitor.traces.node import Item, Node
from midwatch_monitor.traces.openhands_act import Act, Answer, Command, Writing
from midwatch_monitor.traces.place import within

_ARRAYS = ("", "trajectory", "history", "events", "items")
_LOOKED_AT = 200
"""Events in which the folder of the work is looked for, before the first one is read."""
_RECOGNISED_BY = 20
"""Events of which one must be known."""
_NOTHING_RAN = (126, 127)


def recognise(path: Path) -> bool:
    """Whether the head of the file holds events of either kind."""
    if _array(path) is not None:
        return True
    return any(_is_event(line) for line in islice(first_lines(path), _RECOGNISED_BY))


def read(path: Path) -> Iterator[Event | Damage]:
    """The steps of a conversation in the order of completion, as they are asked for."""
    array = _array(path)
    run = _Run(_root(path, array))
    for item in _events(path, array):
        if isinstance(item, Damage):
            yield item
        else:
            yield from run.take(item.node)
    yield from run.finish()


class _Run:
    """One conversation as it is read."""

    def __init__(self, root: str) -> None:
        self._shell = Shell()
        self._calls = Calls()
        self._requests = 0
        self._response = ""
        self._spent = 0.0
        self._root = self._cwd = root
        self._shell.edits("", cwd=root)  # paths are relative to the first folder that it is told

    def take(self, event: Node) -> Iterator[Step]:
        """The steps that are complete with this event."""
        dialect = openhands_sdk if openhands_sdk.is_event(event) else openhands_server
        match dialect.reading(event):
            case Act() as act:
                yield from self._act(act)
            case Answer() as answer:
                yield from self._answer(answer)
            case None:
                return

    def finish(self) -> Iterator[Step]:
        """What still waits at the end."""
        return self._calls.rest()

    def _act(self, act: Act) -> Iterator[Step]:
        if self._calls.knows(act.key):
            return
        first = not act.response or act.response != self._response
        self._requests += first
        self._response = act.response
        spent, self._spent = self._spent, max(act.spent_usd, self._spent)
        step = Step(
            number=0,
            kind=StepKind.TOOL if act.tool else StepKind.MESSAGE,
            at=act.at,
            request=self._requests,
            tool=act.tool,
            args=act.args,
            path=within(act.path, self._root, self._cwd),
            edits=self._edits(act),
            text=act.text,
            tokens=act.tokens if first else 0,
            cost_usd=self._spent - spent,
            call=act.call,
        )
        if act.waits:
            yield from self._calls.open(act.key, step)
        else:
            yield self._calls.numbered(step)

    def _edits(self, act: Act) -> tuple[Edit, ...]:
        """What an action changes if it succeeds."""
        match act.doing:
            case Command(text=text):
                return self._shell.edits(text, cwd=self._cwd)
            case Writing(content=content):
                path = within(act.path, self._root, self._cwd)
                if content is None:
                    return (Edit(path=path),)
                self._shell.note(path, content)
                return (Edit(path=path, digest=digest(content)),)
            case None:
                return ()

    def _answer(self, answer: Answer) -> Iterator[Step]:
        keys = tuple(filter(None, answer.keys)) or ("",)
        step = next(filter(None, map(self._calls.close, keys)), None)
        self._cwd = answer.cwd if self._root and answer.cwd else self._cwd
        if step is None:
            return
        ok = answer.exit_code == 0 if answer.exit_code is not None else answer.ok
        yield self._calls.numbered(
            replace(
                step,
                at=answer.at or step.at,
                ok=ok,
                exit_code=answer.exit_code,
                output=answer.output,
                edits=_kept(step.edits, answer, ok=ok),
            )
        )


def _kept(edits: tuple[Edit, ...], answer: Answer, *, ok: bool | None) -> tuple[Edit, ...]:
    """What did change: a command that failed may still have written, a refused act has not."""
    if answer.exit_code in _NOTHING_RAN or (ok is False and answer.exit_code is None):
        return ()
    if len(edits) == 1 and answer.content is not None:
        return (replace(edits[0], digest=digest(answer.content)),)
    return edits


def _array(path: Path) -> str | None:
    """The array of the document that holds events, if the file is such a document."""
    for array in _ARRAYS:
        if any(_is_event(node) for node in islice(first_items(path, array), _RECOGNISED_BY)):
            return array
    return None


def _events(path: Path, array: str | None) -> Iterator[Item | Damage]:
    return lines(path) if array is None else items(path, array)


def _is_event(node: Node) -> bool:
    return openhands_sdk.is_event(node) or openhands_server.is_event(node)


def _root(path: Path, array: str | None) -> str:
    """The folder of the first command: later paths are given relative to it."""
    for item in islice(_events(path, array), _LOOKED_AT):
        if isinstance(item, Item):
            for observed in (item.node["observation"], item.node["extras"]):
                if folder := observed["metadata"]["working_dir"].text:
                    return folder
    return ""
