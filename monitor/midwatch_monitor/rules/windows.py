"""When the windows of an attempt start anew."""

from midwatch_monitor.records import Change, Course, Event

MAX_PIVOTS = 2
"""Pivots that end windows in one plan step: who pivots more often only goes round and round."""


class Windows:
    """Follows plan step, revision and pivots, and answers whether an event ends the windows."""

    __slots__ = ("_pivots", "_plan_step", "_revision")

    def __init__(self) -> None:
        self._plan_step: int | None = None
        self._revision = 0
        self._pivots = 0

    def restart(self, event: Event) -> bool:
        """Whether what was counted so far belongs to something that is over.

        The checkpoint of a pivot that ends the old window belongs to no window.
        """
        if isinstance(event, Change):
            moved_on = self._changed(event)
        elif event.checkpoint is None:
            return False
        else:
            before, self._plan_step = self._plan_step, event.checkpoint.plan_step
            moved_on = before is not None and before != event.checkpoint.plan_step
        if moved_on:
            self._pivots = 0
            return True
        return self._pivots_again(event)

    def _pivots_again(self, event: Event) -> bool:
        if isinstance(event, Change) or event.checkpoint is None:
            return False
        if event.checkpoint.decision is not Course.PIVOT:
            return False
        self._pivots += 1
        return self._pivots <= MAX_PIVOTS

    def _changed(self, change: Change) -> bool:
        restart = False
        if change.plan_step is not None and change.plan_step != self._plan_step:
            self._plan_step = change.plan_step
            restart = True
        if change.revision is not None and change.revision != self._revision:
            self._revision = change.revision
            restart = True
        return restart
