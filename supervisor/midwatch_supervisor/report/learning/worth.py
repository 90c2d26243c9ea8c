"""What lessons are worth: treatment beside control, and what tasks took. Pure."""

from collections.abc import Sequence

from midwatch_monitor.metrics.comparison import (
    ComparisonFigures,
    EffortFigures,
    SavingFigures,
    Side,
)
from midwatch_monitor.metrics.spending import SpendingFigures
from midwatch_monitor.replay.tune.peers import Interval
from midwatch_supervisor.report.learning.bars import NAMES, rate_bar
from midwatch_supervisor.report.saying import number, of, rate, share
from midwatch_supervisor.report.section import Bar, Chart, Section, Table

_LEARNER = "reflector"
"""The role under which lessons, summaries, facts and guidelines are written."""


def comparison(figures: Sequence[ComparisonFigures]) -> Section:
    """Treatment against control: acceptance of first attempts."""
    explained = (
        "Only the first attempt of a task counts: whether there is a second depends on the first. "
        "A task of the treatment group counts also where no lesson was found for it.",
        "The difference is treatment minus control in percentage points, with Newcombe's 95 % "
        "interval. Nothing is concluded with fewer than 10 different tasks in a group (the same "
        "task in several runs is one), or where the interval holds 0.",
        "Each origin is a look of its own: the more one looks, the likelier one of them is luck.",
    )
    if not figures:
        return Section(
            title="Control group",
            explained=explained,
            nothing="Nothing is compared: learning.lessons.control_share is 0, or nothing of a "
            "group was judged yet.",
        )
    charts = tuple(
        Chart(
            title=f"first attempts accepted, in percent: {NAMES[each.origin]}",
            series=("accepted",),
            bars=tuple(rate_bar(name, side.accepted) for name, side in _sides(each)),
            top=100,
        )
        for each in figures
    )
    groups = Table(
        heads=("verdicts", "group", "tasks", "accepted", "rate (95 % interval)"),
        rows=tuple(
            (
                NAMES[each.origin],
                name,
                str(side.tasks),
                of(side.accepted),
                rate(side.accepted),
            )
            for each in figures
            for name, side in _sides(each)
        ),
        words=(0, 1),
    )
    answers = Table(
        heads=("verdicts", "difference (95 % interval)", "what it says"),
        rows=tuple((NAMES[each.origin], _points(each), each.answer.value) for each in figures),
        words=(0, 2),
    )
    return Section(
        title="Control group", explained=explained, charts=charts, tables=(groups, answers)
    )


def _sides(figures: ComparisonFigures) -> tuple[tuple[str, Side], ...]:
    return ("treatment", figures.treatment), ("control", figures.control)


def _points(figures: ComparisonFigures) -> str:
    if figures.difference is None:
        return "-"
    apart = figures.treatment.accepted.rate - figures.control.accepted.rate
    spread = figures.difference
    return f"{100 * apart:+.0f} ({100 * spread.low:+.0f} to {100 * spread.high:+.0f})"


def effort(
    efforts: Sequence[EffortFigures],
    savings: Sequence[SavingFigures],
    spending: SpendingFigures,
) -> Section:
    """Attempts and tokens of a task, with lessons and without."""
    explained = (
        "Of tasks that are over and were not cancelled, by what their first attempt was given. "
        "Tokens are the workers'. What the reflector's model used is the price of learning.",
        "Only treatment and control were drawn by lot: elsewhere a difference need not come from "
        "lessons. Retries are saved where the difference of attempts lies below 0.",
    )
    if not efforts:
        return Section(title="Effort", explained=explained, nothing="No task is over yet.")
    chart = Chart(
        title="attempts of a task",
        series=("attempts",),
        bars=tuple(
            Bar(label=each.cohort, parts=(each.attempts,), told=f"{each.attempts:.2f}")
            for each in efforts
        ),
    )
    took = Table(
        heads=("tasks", "count", "attempts a task", "tokens a task"),
        rows=tuple(
            (each.cohort, str(each.tasks), f"{each.attempts:.2f}", number(round(each.tokens)))
            for each in efforts
        ),
    )
    tables = [took]
    if savings:
        tables.append(
            Table(
                heads=("treatment minus control", "a task (95 % interval)", "what it says"),
                rows=tuple((each.what, _saving(each), each.answer.value) for each in savings),
                words=(0, 2),
            )
        )
    tables += _price(spending)
    return Section(title="Effort", explained=explained, charts=(chart,), tables=tuple(tables))


def _saving(figures: SavingFigures) -> str:
    low_high = _spread(figures.what, figures.interval)
    return f"{_signed(figures.what, figures.difference)} ({low_high})"


def _spread(what: str, spread: Interval | None) -> str:
    if spread is None:
        return "-"
    return f"{_signed(what, spread.low)} to {_signed(what, spread.high)}"


def _signed(what: str, value: float) -> str:
    return f"{value:+,.0f}" if what == "tokens" else f"{value:+.2f}"


def _price(spending: SpendingFigures) -> list[Table]:
    found = [usage for role, usage in spending.roles if role == _LEARNER]
    rows = tuple(
        (_LEARNER, number(usage.requests), number(usage.tokens), share(spending.share(usage)))
        for usage in found
    )
    heads = ("who learns", "requests", "tokens", "tokens, of the workers'")
    return [Table(heads=heads, rows=rows)] if rows else []
