"""What became of acts, folded from the journal: what is told about those of this console. Pure."""

from dataclasses import dataclass

from midwatch_monitor.records import (
    Action,
    AttemptTransition,
    Delivery,
    Entry,
    Intervention,
    Outcome,
    OutcomeReport,
)
from midwatch_monitor.state.intervention import InterventionState, InterventionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that an operator is told about an act."""

    text: str
    good: bool = True


class ActionResults:
    """How every intervention fares, and which of them are followed."""

    def __init__(self) -> None:
        self._fates: dict[int, InterventionState] = {}
        self._followed: dict[int, str] = {}
        self._pauses: dict[int, set[int]] = {}

    def pausing(self, attempt: int) -> bool:
        """Whether a pause is on its way to an attempt."""
        return bool(self._pauses.get(attempt))

    def follow(self, id: int, name: str) -> Notice | None:
        """Tell of an intervention of `name` from now on; what has become of it already, if any.

        The journal may have been read before whoever wrote to it is heard.
        """
        self._followed[id] = name
        fate = self._fates.get(id)
        return None if fate is None else _notice(name, fate)

    def fold(self, entry: Entry) -> Notice | None:
        """Take in the journal's next entry; what is to be told of it."""
        match entry.record:
            case Intervention() as intervention:
                self._fates[entry.id] = InterventionState.begin(entry, intervention)
                if intervention.action is Action.PAUSE and entry.attempt is not None:
                    self._pauses.setdefault(entry.attempt, set()).add(entry.id)
            case Delivery() | OutcomeReport() as told:
                return self._further(entry, told)
            case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
                self._pauses.pop(entry.attempt or 0, None)
            case _:
                pass
        return None

    def _further(self, entry: Entry, told: Delivery | OutcomeReport) -> Notice | None:
        fate = self._fates.get(told.intervention)
        if fate is None:
            return None
        fate.fold(entry.at, told)
        if not fate.status.under_way and entry.attempt in self._pauses:
            self._pauses[entry.attempt].discard(told.intervention)
        name = self._followed.get(told.intervention)
        return None if name is None else _notice(name, fate)


_NAMES = {
    Action.NUDGE: "guidance",
    Action.GRANT_BUDGET: "more budget",
    Action.SWITCH_MODEL: "model switch",
}
"""What actions are called where their own names are no English."""


def _notice(name: str, fate: InterventionState) -> Notice | None:
    action = fate.intervention.action
    what = _NAMES.get(action, action.value)
    if fate.outcome is not None:
        good = fate.outcome is Outcome.RECOVERED
        reason = f": {fate.reason}" if fate.reason else ""
        return Notice(text=f"{name}: {fate.outcome} after {what}{reason}", good=good)
    match fate.status:
        case InterventionStatus.DELIVERED if action.of_alerts:
            return None  # it was said when it was stored
        case InterventionStatus.DELIVERED:
            return Notice(text=f"{name}: {what} delivered")
        case InterventionStatus.EXPIRED:
            return Notice(text=f"{name}: {what} came too late, the attempt is over", good=False)
        case InterventionStatus.REJECTED:
            return Notice(text=f"{name}: {what} rejected", good=False)
        case _:
            return None
