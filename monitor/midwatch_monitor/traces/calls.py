"""The calls of a recorded run that still wait for their result, and the count of its steps."""

from collections.abc import Iterator
from dataclasses import replace

from midwatch_monitor.records import Step

MAX_OPEN = 256
"""Calls that wait at a time; the oldest is then taken for one whose result never comes."""
_MAX_CLOSED = 1024


class Calls:
    """Numbers the steps of a run in the order of completion, in bounded memory."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, Step] = {}
        self._closed: dict[str, None] = {}

    def numbered(self, step: Step) -> Step:
        """The step as the next one of the run."""
        self._count += 1
        return replace(step, number=self._count)

    def knows(self, key: str) -> bool:
        """Whether the call was seen before: sessions that were resumed repeat what came before."""
        return bool(key) and (key in self._open or key in self._closed)

    def open(self, key: str, step: Step) -> Iterator[Step]:
        """A call that now waits. Yields the step of one that has waited too long.

        Calls without a key wait one at a time, under the empty one.
        """
        if key in self._open:
            yield self._forsake(key)
        self._open[key] = step
        if len(self._open) > MAX_OPEN:
            yield self._forsake(next(iter(self._open)))

    def close(self, key: str) -> Step | None:
        """The call whose result this is, if it waits; it has no number yet."""
        step = self._open.pop(key, None)
        if step is not None:
            self._closed[key] = None
            if len(self._closed) > _MAX_CLOSED:
                del self._closed[next(iter(self._closed))]
        return step

    def rest(self) -> Iterator[Step]:
        """The steps whose results never came, when the run is over."""
        while self._open:
            yield self._forsake(next(iter(self._open)))

    def _forsake(self, key: str) -> Step:
        """The call without its result: what it changed is not known."""
        return self.numbered(replace(self._open.pop(key), edits=()))
