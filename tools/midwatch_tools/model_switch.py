"""The model that answers instead of the worker's own."""

from collections.abc import Callable

from pydantic_ai.models import Model

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Change, Fault

ModelFor = Callable[[str], Model]
"""Returns a model by name. Raises a MidwatchError if there is none."""


class Switch:
    """Holds the model that answers instead of the worker's own."""

    def __init__(self, model_for: ModelFor | None) -> None:
        self._model_for = model_for
        self.name = ""
        """The other model's name; empty while the worker's own answers."""
        self.model: Model | None = None

    def turn_to(self, name: str) -> Fault | None:
        """Switch to another model; if that fails, keep the current one and return the fault."""
        if name == self.name:
            return None
        if self._model_for is None:
            return Fault(part="switch_model", error=f"model {name!r} is not available here")
        try:
            self.model = self._model_for(name)
        except MidwatchError as error:
            return Fault(part="switch_model", error=str(error))
        self.name = name
        return None


async def model_before(recorder: Recorder) -> str:
    """Return the model that an interrupted attempt had switched to; empty if none."""
    name = ""
    async for entry in recorder.journal.all_entries(attempt=recorder.attempt.id, kinds=(Change,)):
        if isinstance(entry.record, Change) and entry.record.model is not None:
            name = entry.record.model
    return "" if name == recorder.attempt.model else name
