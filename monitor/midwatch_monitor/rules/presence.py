"""The rules over what a worker does not say."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import MissedCheckpoint
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import AlertKey, Change, Event, Lifecycle, Step
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import Answer, Seen
from midwatch_monitor.rules.gauge import Gauge

_REFLECT = "reflect"
"""The tool by which a worker reports."""

_KEY = AlertKey(rule="missed_checkpoint")


class MissedCheckpointDetector:
    """Counts model requests since the last checkpoint, where the worker could have given one."""

    __slots__ = (
        "_gauge",
        "_halves",
        "_interval",
        "_offered",
        "_parked",
        "_request",
        "_since",
    )
    hears = Facet.CHECKPOINT | Facet.CHANGE
    windowed = False

    def __init__(self, settings: MissedCheckpoint) -> None:
        self._gauge = Gauge(settings)
        self._interval = ReflectSettings().remind_every
        self._offered = False
        self._parked = False
        self._halves = 0
        self._request = 0
        self._since = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while too many intervals have passed, and a clear where it no longer stands."""
        if isinstance(event, Change):
            return self._change(event)
        if event.checkpoint is not None:
            self._offered = True
        if event.checkpoint is not None or event.tool == _REFLECT:  # a refused report is one, too
            self._count_from(event)
            return self._gauge.clear()
        request = event.request
        before, self._request = self._request, request
        if not self._offered or self._parked:
            return ()
        return self._count(event.number, request, new=request != before)

    @property
    def awake(self) -> bool:
        """Every request without a checkpoint counts, where one could have been given."""
        return self._offered

    def restart(self) -> None:
        """There is no window: only a checkpoint, or taking `reflect` away, ends the count."""

    def _change(self, change: Change) -> Sequence[Answer]:
        if change.lifecycle is not None:
            self._parked = change.lifecycle is Lifecycle.INPUT_REQUIRED
        if change.reflect is not None and change.reflect != self._offered:
            self._offered = change.reflect
            self._halves = 0
        if change.reflect_every is not None:
            self._interval = change.reflect_every
        return () if self._offered and self._interval else self._gauge.clear()

    def _count_from(self, step: Step) -> None:
        self._halves = 0
        self._request = step.request
        self._since = step.number

    def _count(self, step: int, request: int, *, new: bool) -> Sequence[Answer]:
        """One for each request, however many steps it has; half of one for a step of none known.

        The rest of the request that held the checkpoint is not counted.
        """
        self._halves += 2 * new if request else 1
        requests = self._halves // 2
        missed = requests // self._interval if self._interval else 0
        if self._gauge.rests(missed):
            return ()
        summary = f"no checkpoint in {requests} requests ({missed} reminder intervals)"
        return self._gauge.answer(_KEY, missed, summary, (self._since or 1, step))
