"""Which models give no answer at present, and are left alone for a while."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.models import Model

FAILURES = 3
"""Failures of one model in a row after which it is left alone."""
PAUSE = timedelta(minutes=5)
"""For so long; then one question tries it."""


@dataclass(slots=True)
class _Silence:
    failures: int = 0
    """In a row."""
    until: datetime | None = None


class Outages:
    """The models that failed several times in a row.

    Asked on in an outage, they would cost each chore one of its tries.
    """

    def __init__(self) -> None:
        # By identity: models need not be hashable, and whoever built one keeps it.
        self._silences: dict[int, _Silence] = {}

    def __bool__(self) -> bool:
        """Whether any model is left alone, or was until just now."""
        return any(each.until for each in self._silences.values())

    def resting(self, model: "Model | None", at: datetime) -> bool:
        """Whether a model is not to be asked at that time; no model never is."""
        silence = self._silences.get(id(model))
        return silence is not None and silence.until is not None and at < silence.until

    def failed(self, model: "Model | None", at: datetime) -> None:
        """A question was not answered."""
        if model is None:
            return
        silence = self._silences.setdefault(id(model), _Silence())
        silence.failures += 1
        if silence.failures >= FAILURES:
            silence.until = at + PAUSE

    def worked(self, model: "Model | None") -> None:
        """A question was answered."""
        self._silences.pop(id(model), None)

    def probe(self) -> None:
        """Let one question to each of them through now."""
        for silence in self._silences.values():
            silence.until = None
