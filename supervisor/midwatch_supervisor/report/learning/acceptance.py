"""How many results were accepted: in all, by week, and from attempt to attempt. Pure."""

from collections.abc import Sequence

from midwatch_monitor.metrics.verdicts import AcceptanceFigures
from midwatch_monitor.replay.tune.figures import Share
from midwatch_supervisor.report.learning.bars import NAMES, rate_bar
from midwatch_supervisor.report.saying import of, rate
from midwatch_supervisor.report.section import Chart, Section, Table

MAX_WEEKS = 26
"""Weeks that are drawn; the newest. `--json` has them all."""


def acceptance(figures: Sequence[AcceptanceFigures]) -> Section:
    """The share of accepted results, by week."""
    explained = (
        "Of an attempt the newest verdict of each origin counts, and verdicts of two origins never "
        "stand in one rate: a person's own, what a person did with merged work, and the checks "
        "with how the attempt ended.",
        "Weeks begin on Monday, in UTC, and hold what was judged in them. Without a verdict there "
        "is nothing: silence is no acceptance.",
    )
    if not figures:
        return Section(title="Acceptance", explained=explained, nothing="No result was judged yet.")
    rows = tuple((NAMES[each.origin], of(each.accepted), rate(each.accepted)) for each in figures)
    return Section(
        title="Acceptance",
        explained=explained,
        charts=tuple(_weekly(each) for each in figures),
        tables=(Table(heads=("verdicts", "accepted", "rate (95 % interval)"), rows=rows),),
    )


def _weekly(figures: AcceptanceFigures) -> Chart:
    weeks = figures.weeks[-MAX_WEEKS:]
    return _chart(
        f"accepted by week, in percent: {NAMES[figures.origin]}",
        [(f"{week.begins:%Y-%m-%d}", week.accepted) for week in weeks],
    )


def curve(figures: Sequence[AcceptanceFigures]) -> Section:
    """The learning curve: the share of accepted results over the attempts in their order."""
    explained = (
        "The judged attempts of each origin in the order in which they began, cut into ten parts "
        "of equal size. A rising curve may as well come from easier tasks or a better model: only "
        "the comparison with a control group tells what lessons are worth.",
    )
    if not figures:
        return Section(
            title="Learning curve", explained=explained, nothing="No result was judged yet."
        )
    charts = tuple(
        _chart(
            f"accepted by attempts, in percent: {NAMES[each.origin]}",
            [(_span(part.first, part.last), part.accepted) for part in each.curve],
        )
        for each in figures
    )
    return Section(title="Learning curve", explained=explained, charts=charts)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _chart(title: str, found: Sequence[tuple[str, Share]]) -> Chart:
    bars = tuple(rate_bar(label, share) for label, share in found)
    return Chart(title=title, series=("accepted",), bars=bars, top=100)
