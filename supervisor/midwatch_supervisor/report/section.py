"""The parts of a report's section, as text for a terminal, and figures as JSON lines. Pure."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from textwrap import wrap
from typing import Any

from midwatch_monitor.metrics.runs import SpendingFigures
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.state.usage import Usage
from midwatch_supervisor.present.numbers import hits, number, percent, rate

RATE = "rate (95 % interval)"
"""The heading of a share's second column, beside its count."""

TableCell = str | int | Share
"""The content of a table cell. A share takes two columns: its count, and its rate with interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Rows of cells under headings. The first column names the row, the others are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    """Indexes of the columns that hold words; the others hold figures."""


def table(
    heads: Sequence[str], rows: Iterable[Sequence[TableCell]], words: tuple[int, ...] = (0,)
) -> ReportTable:
    texts = (tuple(text for cell in row for text in _cell_texts(cell)) for row in rows)
    return ReportTable(heads=tuple(heads), rows=tuple(texts), words=words)


def _cell_texts(cell: TableCell) -> tuple[str, ...]:
    if isinstance(cell, Share):
        return hits(cell), rate(cell)
    return (number(cell) if isinstance(cell, int) else cell,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a chart: its parts in order, and the interval of its end."""

    label: str
    parts: tuple[float, ...]
    text: str
    """The value, for people."""
    low: float | None = None
    high: float | None = None
    mark: float | None = None
    """A value to compare it with, on the same scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars on one scale from 0."""

    title: str
    series: tuple[str, ...]
    """The meaning of each bar's parts, in order."""
    bars: tuple[Bar, ...]
    top: float | None = None
    """The end of the scale; `None` means the longest bar."""
    mark: str = ""
    """The meaning of the bars' marks."""

    @property
    def scale(self) -> float:
        """The end of the scale; never 0."""
        if self.top is not None:
            return self.top
        ends = [sum(bar.parts) for bar in self.bars]
        ends += [end for bar in self.bars for end in (bar.high, bar.mark) if end is not None]
        return max(ends, default=0.0) or 1.0


def span(low: int, high: int | None) -> str:
    """Return a range of numbers as text, both ends included; without `high`, from `low` upwards."""
    return f"{low} or more" if high is None else str(low) if low == high else f"{low} to {high}"


def rate_bar(label: str, share: Share, text: str, mark: float | None = None) -> Bar:
    """Return a share as a bar in percent, with its 95 % interval."""
    return Bar(
        label=label,
        parts=(100 * share.rate,),
        text=text,
        low=100 * share.interval.low if share.of else None,
        high=100 * share.interval.high if share.of else None,
        mark=mark,
    )


def rate_chart(title: str, series: str, shares: Iterable[tuple[str, Share]]) -> BarChart:
    """Return named shares as a chart in percent."""
    bars = (
        rate_bar(name, share, f"{percent(share.rate)}, {hits(share)}" if share.of else "-")
        for name, share in shares
    )
    return BarChart(title=title, series=(series,), bars=tuple(bars), top=100)


def count_chart(title: str, series: str, counts: Iterable[tuple[str, int]]) -> BarChart:
    bars = (Bar(label=name, parts=(count,), text=number(count)) for name, count in counts)
    return BarChart(title=title, series=(series,), bars=tuple(bars))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One subject of the report."""

    title: str
    explained: tuple[str, ...] = ()
    """What exactly is counted, one sentence each."""
    charts: tuple[BarChart, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    nothing: str = ""
    """The text if there is neither chart nor table."""


def section(
    title: str,
    *explained: str,
    charts: Iterable[BarChart] = (),
    tables: Iterable[ReportTable] = (),
    nothing: str = "",
) -> ReportSection:
    """Return a section without empty charts, tables and sentences."""
    return ReportSection(
        title=title,
        explained=tuple(filter(None, explained)),
        charts=tuple(chart for chart in charts if chart.bars),
        tables=tuple(each for each in tables if each.rows),
        nothing=nothing,
    )


_WIDTH = 100
"""Width of prose, in cells."""
_LONGEST = 40
"""Width of the longest bar, in cells."""
_FILLS = "█▒░·"
"""Fill characters that distinguish a bar's parts without colour."""


def text_lines(sections: Sequence[ReportSection]) -> Iterator[str]:
    for at, section in enumerate(sections):
        if at:
            yield ""
        yield section.title
        yield "─" * len(section.title)
        if not (section.charts or section.tables):
            yield section.nothing
            continue
        for chart in section.charts:
            yield from _chart_lines(chart)
            yield ""
        for table in section.tables:
            yield from table_lines(table)
            yield ""
        for sentence in section.explained:
            yield from wrap(sentence, _WIDTH)


def _chart_lines(chart: BarChart) -> Iterator[str]:
    legend = [f"{fill} {name}" for fill, name in zip(_FILLS, chart.series, strict=False)]
    legend = legend if len(legend) > 1 else []
    if chart.mark:
        legend.append(f"│ {chart.mark}")
    yield "  ".join([chart.title, *([f"({', '.join(legend)})"] if legend else [])])
    widest = max((len(bar.label) for bar in chart.bars), default=0)
    for bar in chart.bars:
        yield f"  {bar.label:<{widest}}  {_draw_bar(bar, chart.scale)} {bar.text}"


def _draw_bar(bar: Bar, scale: float) -> str:
    """Return a bar in whole cells; rounding the running sum keeps the total exact."""
    cells, total = "", 0.0
    for fill, part in zip(_FILLS, bar.parts, strict=False):
        total += part
        end = round(_LONGEST * min(1.0, total / scale))
        # Even the smallest part is visible.
        end = max(end, len(cells) + 1) if part else end
        cells += fill * (end - len(cells))
    if bar.mark is None:
        return cells
    at = min(_LONGEST - 1, round(_LONGEST * bar.mark / scale))
    cells = cells.ljust(at + 1)
    return f"{cells[:at]}│{cells[at + 1 :]}"


def table_lines(table: ReportTable) -> Iterator[str]:
    """Return a table in columns: words left-aligned, figures right-aligned."""
    lines = (table.heads, *table.rows)
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.heads))]
    for line in lines:
        cells = (
            cell.ljust(width) if at in table.words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


FigureLine = dict[str, Any]


def line(type: str, figures: object, **more: object) -> FigureLine:
    """Return one JSON line: the given values, then every figure under its field's name.

    Collections are left out; they have lines of their own.
    """
    found: FigureLine = {"type": type, **more}
    for field in dataclasses.fields(figures):  # pyright: ignore[reportArgumentType]
        found |= _figure_fields(field.name, getattr(figures, field.name))
    return found | more


def _figure_fields(name: str, value: object) -> FigureLine:
    match value:
        case Share():
            return {"judged": value.of, name: value.hits, **rate_fields(value)}
        case Usage():
            return usage_fields(value)
        case Enum():
            return {name: value.value}
        case float():
            return {name: rounded(value)}
        case str() | int() | None:
            return {name: value}
        case _:
            return {}


def fields(figures: object, *names: str) -> FigureLine:
    """Return the attributes of these names."""
    return {name: getattr(figures, name) for name in names}


def rounded(value: float | None) -> float | None:
    """Round to four decimals, more than any count of attempts supports."""
    return None if value is None else round(value, 4)


def rate_fields(share: Share) -> FigureLine:
    """Return a rate from 0 to 1 with its 95 % interval; empty if nothing was counted."""
    rate, spread = (share.rate, share.interval) if share.of else (None, None)
    return {"rate": rounded(rate), **interval_fields(spread)}


def interval_fields(spread: Interval | None, prefix: str = "") -> FigureLine:
    """Return the ends of an interval; `None` if there is none."""
    low, high = (spread.low, spread.high) if spread else (None, None)
    return {f"{prefix}low": rounded(low), f"{prefix}high": rounded(high)}


def usage_fields(usage: Usage) -> FigureLine:
    return {**fields(usage, "requests", "tokens"), "cost_usd": round(usage.cost_usd, 6)}


def role_line(figures: SpendingFigures, role: str, usage: Usage) -> FigureLine:
    """Return what one role used, with its tokens as a share of the workers'."""
    share = rounded(figures.share(usage))
    return {"type": "spending", "role": role, **usage_fields(usage), "share": share}
