"""What an operator is told of an intervention that this console issued. Pure."""

from dataclasses import dataclass

from midwatch_monitor.records import Action, Delivery, DeliveryState, Outcome, OutcomeReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that an operator is told about an intervention."""

    text: str
    good: bool = True


_NAMES = {
    Action.NUDGE: "guidance",
    Action.GRANT_BUDGET: "more budget",
    Action.SWITCH_MODEL: "model switch",
}
"""What actions are called where their own names are no English."""


def notice(name: str, action: Action, news: Delivery | OutcomeReport) -> Notice | None:
    """What is told of the attempt `name`; `None` if the operator knows it already."""
    what = _NAMES.get(action, action.value)
    if isinstance(news, OutcomeReport):
        good = news.outcome is Outcome.RECOVERED
        reason = f": {news.reason}" if news.reason else ""
        return Notice(text=f"{name}: {news.outcome} after {what}{reason}", good=good)
    match news.state:
        case DeliveryState.DELIVERED if not action.of_alerts:
            return Notice(text=f"{name}: {what} delivered")
        case DeliveryState.EXPIRED:
            return Notice(text=f"{name}: {what} came too late, the attempt is over", good=False)
        case DeliveryState.REJECTED:
            return Notice(text=f"{name}: {what} rejected", good=False)
        case _:
            return None
