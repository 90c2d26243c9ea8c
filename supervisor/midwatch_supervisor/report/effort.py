"""How fast trouble was noticed, and what trying again was worth. Pure."""

from midwatch_monitor.metrics.detection import DetectionFigures
from midwatch_monitor.metrics.distribution import Distribution
from midwatch_monitor.metrics.retries import Comparison, RetryFigures
from midwatch_monitor.replay.tune.figures import Share
from midwatch_supervisor.report.saying import of, percent, rate
from midwatch_supervisor.report.section import Bar, Chart, Section, Table

SPANS: tuple[tuple[int, int | None], ...] = (
    *((each, each) for each in range(1, 6)),
    (6, 10),
    (11, 20),
    (21, None),
)
"""Requests to detection that are told together, both ends included."""


def detection(figures: DetectionFigures) -> Section:
    """Requests from the onset of trouble to its alarm."""
    explained = [
        "Model requests from the onset of trouble to its alarm, both counted: 1 is at once.",
        "The onset is the earliest step that the alarm rests on, from which its rule counts; what "
        "a person would call the first mistake may lie before it.",
    ]
    if figures.unknown:
        explained.append(
            f"{figures.unknown} more alarms have no onset: their rule watches a meter, the time or "
            "other attempts, or the steps do not say which request they came from."
        )
    if not figures.requests.of:
        return Section(
            title="Detection", explained=tuple(explained), nothing="No alarm with an onset."
        )
    rows = [("all", figures.requests), *((each.rule, each.requests) for each in figures.rules)]
    chart = Chart(
        title="alarms by requests to detection",
        series=("alarms",),
        bars=tuple(_span(figures.requests, low, high) for low, high in SPANS),
    )
    table = Table(
        heads=("rule", "alarms", "median", "within 5", "slowest"),
        rows=tuple(_speed(name, requests) for name, requests in rows),
    )
    return Section(title="Detection", explained=tuple(explained), charts=(chart,), tables=(table,))


def _span(requests: Distribution, low: int, high: int | None) -> Bar:
    count = requests.between(low, high)
    label = f"{low} or more" if high is None else str(low) if low == high else f"{low} to {high}"
    return Bar(label=label, parts=(count,), told=str(count))


def _speed(name: str, requests: Distribution) -> tuple[str, ...]:
    within = Share(hits=requests.between(1, 5), of=requests.of)
    return (
        name,
        str(requests.of),
        f"{requests.median:g}",
        of(within),
        str(requests.counts[-1][0]),
    )


def retries(figures: RetryFigures) -> Section:
    """What trying again was worth, with and without an analysis."""
    explained = (
        "A retry of an act is the same call after it failed, and succeeds if it does not fail "
        "again. A further attempt succeeds if its checks pass, and its analysis must come before "
        "its first work.",
        "Nobody drew lots for who writes an analysis: a difference need not come from it.",
    )
    groups = [
        group
        for what, found in (("same act", figures.acts), ("further attempt", figures.attempts))
        for group in _compared(what, found)
    ]
    said = [
        *((f"analyses: {cause}", str(count)) for cause, count in figures.causes),
        *_counted("analyses by Midwatch, of a provider", figures.provider),
        *_counted("calls held back until something was said", figures.held_back),
    ]
    tables = [Table(heads=("", "count"), rows=tuple(said))] if said else []
    if not any(found.of for _, found in groups):
        return Section(
            title="Retries",
            explained=explained,
            tables=tuple(tables),
            nothing="Nothing was tried again.",
        )
    bars = tuple(
        Bar(
            label=name,
            parts=(100 * found.rate,),
            told=f"{percent(found.rate)}, {of(found)}",
            low=100 * found.interval.low,
            high=100 * found.interval.high,
        )
        for name, found in groups
        if found.of
    )
    chart = Chart(title="retries that succeed, in percent", series=("succeed",), bars=bars, top=100)
    table = Table(
        heads=("retry", "succeeded", "rate (95 % interval)"),
        rows=tuple((name, of(found), rate(found)) for name, found in groups),
    )
    return Section(title="Retries", explained=explained, charts=(chart,), tables=(table, *tables))


def _compared(what: str, found: Comparison) -> tuple[tuple[str, Share], ...]:
    return (
        (f"{what}, with an analysis", found.analysed),
        (f"{what}, without one", found.unanalysed),
    )


def _counted(what: str, count: int) -> list[tuple[str, str]]:
    return [(what, str(count))] if count else []
