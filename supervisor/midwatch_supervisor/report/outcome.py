"""How much of the plans was done, and what stated confidence was worth. Pure."""

from collections.abc import Callable, Sequence

from midwatch_monitor.metrics.plans import PlanFigures, PlanSum
from midwatch_monitor.metrics.stated import Bin, Source, StatedFigures
from midwatch_monitor.replay.tune.figures import Share
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.saying import of, rate
from midwatch_supervisor.report.section import Bar, Chart, Section, Table

_WORDS = 200
_SOURCES = {
    Source.CHECKPOINT: "last checkpoint",
    Source.COMPLETION: "last claim of completion",
}


def plans(figures: PlanFigures, name: Callable[[int], str]) -> Section:
    """How much of the plans was done."""
    explained = (
        "Plans as they stood when their attempt was over; of tasks, that of the last attempt.",
        "A plan step that was finished with a reservation is done, and flagged.",
    )
    sums = [
        (what, found)
        for what, found in (("tasks", figures.tasks), ("attempts", figures.attempts))
        if found.plans
    ]
    if not sums and not (figures.accepted or figures.refused):
        return Section(title="Plans", explained=explained, nothing="No plan has come to its end.")
    tables = [_plan_table(sums)] if sums else []
    if figures.accepted or figures.refused:
        tables.append(
            Table(
                heads=("claims that something is done", "count"),
                rows=(
                    ("accepted", str(figures.accepted)),
                    ("of these with a reservation", str(figures.reserved)),
                    ("refused", str(figures.refused)),
                ),
            )
        )
    if figures.reservations:
        tables.append(_reservations(figures, name))
    charts = (_plan_chart(sums),) if sums else ()
    return Section(title="Plans", explained=explained, charts=charts, tables=tuple(tables))


def _plan_chart(sums: Sequence[tuple[str, PlanSum]]) -> Chart:
    bars = tuple(
        Bar(label=what, parts=(found.done, found.skipped, found.open), told=str(found.steps))
        for what, found in sums
    )
    return Chart(title="plan steps", series=("done", "skipped", "open"), bars=bars)


def _plan_table(sums: Sequence[tuple[str, PlanSum]]) -> Table:
    return Table(
        heads=(
            *("", "plans", "closed", "plan steps", "done", "skipped", "open", "flagged"),
            *("revisions", "done (95 % interval)"),
        ),
        rows=tuple(
            (
                what,
                str(found.plans),
                str(found.closed),
                str(found.steps),
                str(found.done),
                str(found.skipped),
                str(found.open),
                str(found.flagged),
                str(found.revisions),
                rate(Share(hits=found.done, of=found.steps)),
            )
            for what, found in sums
        ),
    )


def _reservations(figures: PlanFigures, name: Callable[[int], str]) -> Table:
    return Table(
        heads=("task", "plan step", "goal", "reservation"),
        rows=tuple(
            (
                name(each.task),
                str(each.plan_step) if each.plan_step else "whole",
                brief(each.goal, _WORDS),
                brief(each.flag, _WORDS),
            )
            for each in figures.reservations
        ),
        words=(0, 2, 3),
    )


def stated(figures: Sequence[StatedFigures]) -> Section:
    """Stated confidence against what the checks said."""
    explained = (
        "Attempts that are over, by the confidence that they stated last. One succeeded if every "
        "acceptance check passed, unless a person said otherwise.",
        "The checks are those that Midwatch ran itself, each by its last result; an attempt that "
        "ended before its checks adds none.",
    )
    told = [each for each in figures if each.attempts]
    if not told:
        return Section(
            title="Stated confidence",
            explained=explained,
            nothing="No attempt that stated its confidence is over.",
        )
    errors = tuple(
        (_SOURCES[each.source], str(each.attempts), f"{each.error:.2f}")
        for each in told
        if each.error is not None
    )
    summary = Table(heads=("stated in the", "attempts", "expected calibration error"), rows=errors)
    return Section(
        title="Stated confidence",
        explained=explained,
        charts=tuple(_stated_chart(each) for each in told),
        tables=(summary, *(_bins(each) for each in told)),
    )


def _stated_chart(figures: StatedFigures) -> Chart:
    return Chart(
        title=f"attempts that succeeded, in percent, by the {_SOURCES[figures.source]}",
        series=("succeeded",),
        bars=tuple(
            Bar(
                label=_range(each),
                parts=(100 * each.attempts.rate,),
                told=of(each.attempts),
                low=100 * each.attempts.interval.low,
                high=100 * each.attempts.interval.high,
                mark=(each.low + each.high) / 2,
            )
            for each in figures.bins
        ),
        top=100,
        mark="what was stated",
    )


def _bins(figures: StatedFigures) -> Table:
    return Table(
        heads=(
            _SOURCES[figures.source],
            "succeeded",
            "rate (95 % interval)",
            "checks passed",
            "of checks",
        ),
        rows=tuple(
            (
                _range(each),
                of(each.attempts),
                rate(each.attempts),
                of(each.checks),
                rate(each.checks),
            )
            for each in figures.bins
        ),
    )


def _range(each: Bin) -> str:
    return f"{each.low} to {each.high} %"
