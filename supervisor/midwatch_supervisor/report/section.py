"""What a section of the report consists of: charts, tables, and what they mean. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from midwatch_monitor.metrics.statistics import Share
from midwatch_supervisor.present.numbers import hits, number, percent, rate

RATE = "rate (95 % interval)"
"""The heading beside that of a share's count."""

Cell = str | int | Share
"""What a table holds. A share takes two columns: its count, and its rate with the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under their headings. The first column names a row, the others are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    """The columns that hold words, by place from 0; the others hold figures."""


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Cell]], words: tuple[int, ...] = (0,)
) -> Table:
    """A table of cells as people read them."""
    texts = (tuple(text for cell in row for text in _texts(cell)) for row in rows)
    return Table(heads=tuple(heads), rows=tuple(texts), words=words)


def _texts(cell: Cell) -> tuple[str, ...]:
    if isinstance(cell, Share):
        return hits(cell), rate(cell)
    return (number(cell) if isinstance(cell, int) else cell,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a chart: its parts one after the other, and where its end may as well lie."""

    label: str
    parts: tuple[float, ...]
    text: str
    """Its value, for people."""
    low: float | None = None
    high: float | None = None
    mark: float | None = None
    """A value to compare it with, on the same scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars on one scale from 0."""

    title: str
    series: tuple[str, ...]
    """What the parts of each bar mean, in their order."""
    bars: tuple[Bar, ...]
    top: float | None = None
    """The end of the scale; `None` is the longest bar."""
    mark: str = ""
    """What the bars' marks mean."""

    @property
    def scale(self) -> float:
        """The end of the scale; never 0."""
        if self.top is not None:
            return self.top
        ends = [sum(bar.parts) for bar in self.bars]
        ends += [end for bar in self.bars for end in (bar.high, bar.mark) if end is not None]
        return max(ends, default=0.0) or 1.0


def rate_bar(label: str, share: Share, text: str, mark: float | None = None) -> Bar:
    """A share as a bar on a scale of percent, with its 95 % interval."""
    return Bar(
        label=label,
        parts=(100 * share.rate,),
        text=text,
        low=100 * share.interval.low if share.of else None,
        high=100 * share.interval.high if share.of else None,
        mark=mark,
    )


def rate_chart(title: str, series: str, shares: Iterable[tuple[str, Share]]) -> Chart:
    """Named shares on a scale of percent."""
    bars = (
        rate_bar(name, share, f"{percent(share.rate)}, {hits(share)}" if share.of else "-")
        for name, share in shares
    )
    return Chart(title=title, series=(series,), bars=tuple(bars), top=100)


def count_chart(title: str, series: str, counts: Iterable[tuple[str, int]]) -> Chart:
    """Named counts as bars."""
    bars = (Bar(label=name, parts=(count,), text=number(count)) for name, count in counts)
    return Chart(title=title, series=(series,), bars=tuple(bars))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One subject of the report."""

    title: str
    explained: tuple[str, ...] = ()
    """What exactly is counted, a sentence each."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    nothing: str = ""
    """What is said where there is neither chart nor table."""


def section(
    title: str,
    *explained: str,
    charts: Iterable[Chart] = (),
    tables: Iterable[Table] = (),
    nothing: str = "",
) -> Section:
    """A section without the charts and tables that hold nothing, and without empty sentences."""
    return Section(
        title=title,
        explained=tuple(filter(None, explained)),
        charts=tuple(chart for chart in charts if chart.bars),
        tables=tuple(each for each in tables if each.rows),
        nothing=nothing,
    )
