"""The model that answers in the place of the worker's own."""

from collections.abc import Callable

from pydantic_ai.models import Model

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Change, Fault

ModelFor = Callable[[str], Model]
"""A model by its name. Raises a MidwatchError where there is none."""


class Switch:
    """Holds the model that answers in the place of the worker's own."""

    def __init__(self, model_for: ModelFor | None) -> None:
        self._model_for = model_for
        self.name = ""
        """Of the other model; empty while the worker's own answers."""
        self.model: Model | None = None

    def turn_to(self, name: str) -> Fault | None:
        """Put another model in; where that fails the present one stays, and a fault says why."""
        if name == self.name:
            return None
        if self._model_for is None:
            return Fault(part="switch_model", error=f"no model {name!r} is at hand here")
        try:
            self.model = self._model_for(name)
        except MidwatchError as error:
            return Fault(part="switch_model", error=str(error))
        self.name = name
        return None


async def model_before(recorder: Recorder) -> str:
    """The other model that an attempt had turned to when it was interrupted, or nothing."""
    name = ""
    async for entry in recorder.journal.all_entries(attempt=recorder.attempt.id, kinds=(Change,)):
        if isinstance(entry.record, Change) and entry.record.model is not None:
            name = entry.record.model
    return "" if name == recorder.attempt.model else name
