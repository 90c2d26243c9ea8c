"""The report for a terminal: tables, and charts of characters. Pure."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from midwatch_supervisor.report.section import Bar, Chart, Section, Table

_WIDTH = 100
"""Cells of a line of prose."""
_LONGEST = 40
"""Cells of the longest bar."""
_FILLS = "█▒░·"
"""The parts of a bar, told apart without colour."""


def text_lines(sections: Sequence[Section]) -> Iterator[str]:
    """The lines of all sections."""
    for at, section in enumerate(sections):
        if at:
            yield ""
        yield section.title
        yield "─" * len(section.title)
        if not (section.charts or section.tables):
            yield section.nothing
            continue
        for chart in section.charts:
            yield from _chart(chart)
            yield ""
        for table in section.tables:
            yield from table_lines(table)
            yield ""
        for sentence in section.explained:
            yield from wrap(sentence, _WIDTH)


def _chart(chart: Chart) -> Iterator[str]:
    legend = [f"{fill} {name}" for fill, name in zip(_FILLS, chart.series, strict=False)]
    legend = legend if len(legend) > 1 else []
    if chart.mark:
        legend.append(f"│ {chart.mark}")
    yield "  ".join([chart.title, *([f"({', '.join(legend)})"] if legend else [])])
    widest = max((len(bar.label) for bar in chart.bars), default=0)
    for bar in chart.bars:
        yield f"  {bar.label:<{widest}}  {_drawn(bar, chart.scale)} {bar.text}"


def _drawn(bar: Bar, scale: float) -> str:
    """A bar in whole cells: its parts end where their sum does, so that rounding adds nothing."""
    cells, total = "", 0.0
    for fill, part in zip(_FILLS, bar.parts, strict=False):
        total += part
        end = round(_LONGEST * min(1.0, total / scale))
        # What is there is seen, however little it is.
        end = max(end, len(cells) + 1) if part else end
        cells += fill * (end - len(cells))
    if bar.mark is None:
        return cells
    at = min(_LONGEST - 1, round(_LONGEST * bar.mark / scale))
    cells = cells.ljust(at + 1)
    return f"{cells[:at]}│{cells[at + 1 :]}"


def table_lines(table: Table) -> Iterator[str]:
    """A table in columns: words to the left, figures to the right."""
    lines = (table.heads, *table.rows)
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.heads))]
    for line in lines:
        cells = (
            cell.ljust(width) if at in table.words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
