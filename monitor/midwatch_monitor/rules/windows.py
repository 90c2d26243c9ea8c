"""When the windows of an attempt start anew."""

from midwatch_monitor.words import Change, Course, Event


class Windows:
    """Follows plan step and revision, and answers whether an event ends the windows."""

    __slots__ = ("_plan_step", "_revision")

    def __init__(self) -> None:
        self._plan_step: int | None = None
        self._revision = 0

    def restart(self, event: Event) -> bool:
        """Whether what was counted so far belongs to something that is over.

        The checkpoint of a pivot ends the old window and belongs to no window.
        """
        if isinstance(event, Change):
            return self._changed(event)
        if event.checkpoint is None:
            return False
        before, self._plan_step = self._plan_step, event.checkpoint.plan_step
        moved_on = before is not None and before != event.checkpoint.plan_step
        return moved_on or event.checkpoint.decision is Course.PIVOT

    def _changed(self, change: Change) -> bool:
        restart = False
        if change.plan_step is not None and change.plan_step != self._plan_step:
            self._plan_step = change.plan_step
            restart = True
        if change.revision is not None and change.revision != self._revision:
            self._revision = change.revision
            restart = True
        return restart
