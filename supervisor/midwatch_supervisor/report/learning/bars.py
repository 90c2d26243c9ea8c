"""Verdicts by their origin, and shares as bars. Pure."""

from midwatch_monitor.records import Origin
from midwatch_monitor.replay.tune.figures import Share
from midwatch_supervisor.report.saying import of, percent
from midwatch_supervisor.report.section import Bar

NAMES = {
    Origin.EXPLICIT: "a person's own",
    Origin.IMPLIED: "what a person did with it",
    Origin.AUTOMATIC: "checks and endings",
}


def rate_bar(label: str, share: Share) -> Bar:
    """A share as a bar on a scale of percent, with its 95 % interval."""
    return Bar(
        label=label,
        parts=(100 * share.rate,),
        told=f"{percent(share.rate)}, {of(share)}" if share.of else "-",
        low=100 * share.interval.low if share.of else None,
        high=100 * share.interval.high if share.of else None,
    )


def count_bar(label: str, count: int) -> Bar:
    """A count as a bar."""
    return Bar(label=label, parts=(count,), told=str(count))
