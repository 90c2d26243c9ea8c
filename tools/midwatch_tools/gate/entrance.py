"""What stands before every call of a worker's tools: the gate, fed with what is recorded."""

import logging
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Delivery, Entry, Intervention, Step
from midwatch_tools.gate.gate import ALLOWED, KINDS, Failure, Gate, Verdict
from midwatch_tools.tools.statement import said_in

log = logging.getLogger(__name__)


class Entrance:
    """The gate of one attempt. It knows what the journal knows, and so the same after a crash.

    A gate that fails is left open: it is there to help the work, and must never stop it.
    """

    def __init__(
        self, journal: Journal, attempt: int, gate: Gate, *, is_open: bool = False
    ) -> None:
        self._journal = journal
        self._attempt = attempt
        self._gate = gate
        self._is_open = is_open
        self._early: list[Entry] | None = []
        self._after = 0
        self._foreign = 0
        self._delivered = 0
        """How often something was delivered."""
        self._looked_up = 0
        """After how many of these it was read what that was."""

    async def rebuild(self) -> None:
        """Take in what the journal holds, and then what was heard meanwhile."""
        while page := await self._journal.entries(self._after, attempt=self._attempt, kinds=KINDS):
            self._take(page)
            self._after = page[-1].id
        self._foreign = self._after
        early, self._early = self._early or [], None
        self._take([entry for entry in early if entry.id > self._after])

    def hear(self, entries: Sequence[Entry]) -> None:
        """Take in what was recorded just now."""
        if self._early is not None:
            self._early += entries
        else:
            self._take(entries)

    def _take(self, entries: Sequence[Entry]) -> None:
        try:
            for entry in entries:
                self._gate.observe(entry)
                self._delivered += isinstance(entry.record, Delivery)
        except Exception:
            log.exception("the gate of attempt %s is open from here on", self._attempt)
            self._is_open = True

    async def ask(self, step: Step, messages: Sequence[ModelMessage]) -> Verdict:
        """Whether the call that this step would be may run, now that its turn has been said."""
        if self._is_open:
            return ALLOWED
        if self._looked_up < self._delivered:
            await self._look_up()
        # As it would be recorded: what it is compared with is masked.
        step = self._journal.masker.record(step)
        return self._gate.may(step, said_in(_turn(messages)))

    async def _look_up(self) -> None:
        """Read who issued what was delivered: others than the recorder write that."""
        delivered = self._delivered
        entries = await self._journal.entries(
            self._foreign, attempt=self._attempt, kinds=(Intervention,)
        )
        # Only now: the calls beside this one must not be judged without it.
        self._looked_up = max(self._looked_up, delivered)
        new = [entry for entry in entries if entry.id > self._foreign]
        self._foreign = max((entry.id for entry in new), default=self._foreign)
        self._take(new)

    @property
    def last_failure(self) -> Failure | None:
        """The last act of the attempt that failed."""
        return self._gate.last_failure


async def gate_of(recorder: Recorder, settings: Settings, *, sees_files: bool) -> Entrance:
    """The gate of the recorder's attempt as it stands; open where Midwatch only records."""
    gate = Gate(
        settings.errors, settings.plan, attempt=recorder.attempt.number, sees_files=sees_files
    )
    entrance = Entrance(
        recorder.journal, recorder.attempt.id, gate, is_open=settings.mode is Mode.OFF
    )
    recorder.listener = entrance.hear
    await entrance.rebuild()
    return entrance


def _turn(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """The calls of the last turn."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return message.tool_calls
    return ()
