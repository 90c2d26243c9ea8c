"""The report as a self-contained HTML page. Pure."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256

from midwatch_supervisor.present.text_line import as_html
from midwatch_supervisor.report.section import Bar, BarChart, ReportSection, ReportTable

_STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --text: #1c2330; --dim: #5c6675;
  --line: #d5dae2; --part0: #2f7d4f; --part1: #b8860b; --part2: #b3382c; --part3: #9aa3b0; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181f; --text: #e3e7ee; --dim: #9aa5b5; --line: #343c49;
    --part0: #58b880; --part1: #d9a93a; --part2: #e0695c; --part3: #6b7686; }
}
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
h3 { font-size: .95rem; font-weight: 600; margin: 1.2rem 0 .3rem; }
p, figcaption { color: var(--dim); margin: .2rem 0; max-width: 46rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .8rem .2rem 0; text-align: right;
  vertical-align: top; }
th.words, td.words { text-align: left; overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 600; }
figure { margin: .5rem 0; } svg { max-width: 720px; width: 100%; }
svg text { fill: var(--text); font-size: 12px; dominant-baseline: central; }
svg .label { text-anchor: end; } svg .axis { stroke: var(--line); }
svg .spread { stroke: var(--text); fill: none; } svg .mark { stroke: var(--text); stroke-width: 3; }
.part0 { fill: var(--part0); background: var(--part0); }
.part1 { fill: var(--part1); background: var(--part1); }
.part2 { fill: var(--part2); background: var(--part2); }
.part3 { fill: var(--part3); background: var(--part3); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
"""


def page(title: str, whose: str, sections: Sequence[ReportSection]) -> str:
    """Return the whole page. All texts are escaped."""
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_content_policy()}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{as_html(title)}</title>",
        f"<style>{_STYLE}</style></head>",
        "<body>",
        f"<h1>{as_html(title)}</h1>",
        f"<p>{as_html(whose)}</p>",
        *(line for section in sections for line in _section(section)),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _content_policy() -> str:
    """Return a content policy without fetching, scripts and sending, in case escaping fails."""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _section(section: ReportSection) -> Iterator[str]:
    yield "<section>"
    yield f"<h2>{as_html(section.title)}</h2>"
    yield from (f"<p>{as_html(sentence)}</p>" for sentence in section.explained)
    if not (section.charts or section.tables):
        yield f"<p><strong>{as_html(section.nothing)}</strong></p>"
    for chart in section.charts:
        yield from _figure(chart)
    for table in section.tables:
        yield from _table(table)
    yield "</section>"


def _figure(chart: BarChart) -> Iterator[str]:
    yield f"<figure><h3>{as_html(chart.title)}</h3>"
    yield svg(chart)
    keys = [
        f'<span class="key part{number}"></span>{as_html(name)}'
        for number, name in enumerate(chart.series)
        if len(chart.series) > 1
    ]
    if any(bar.low is not None for bar in chart.bars):
        keys.append("the thin line is the 95 % interval")
    if chart.mark:
        keys.append(f"the thick stroke is {as_html(chart.mark)}")
    if keys:
        yield f"<figcaption>{' '.join(keys)}</figcaption>"
    yield "</figure>"


def _table(table: ReportTable) -> Iterator[str]:
    yield '<div class="wide"><table>'
    yield f"<thead><tr>{''.join(_cells('th', table.heads, table))}</tr></thead>"
    yield "<tbody>"
    yield from (f"<tr>{''.join(_cells('td', row, table))}</tr>" for row in table.rows)
    yield "</tbody></table></div>"


def _cells(tag: str, cells: Sequence[str], table: ReportTable) -> Iterator[str]:
    for at, cell in enumerate(cells):
        kind = ' class="words"' if at in table.words else ""
        yield f"<{tag}{kind}>{as_html(cell)}</{tag}>"


_WIDTH = 720
_ROW = 26
_THICK = 16
_LETTER = 7
"""Largest width of a letter in units, to leave room for labels."""
_LABEL = 260
_TOLD = 150


def svg(chart: BarChart) -> str:
    """Return a chart as SVG. All texts in it are escaped."""
    left = min(_LABEL, _LETTER * max((len(bar.label) for bar in chart.bars), default=0) + 12)
    room = _WIDTH - left - _TOLD
    height = _ROW * len(chart.bars) + 4
    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{as_html(chart.title)}">',
        f'<line class="axis" x1="{left}" y1="0" x2="{left}" y2="{height}"/>',
    ]
    for place, bar in enumerate(chart.bars):
        lines += _svg_bar(bar, chart, left=left, room=room, top=_ROW * place + 4)
    lines.append("</svg>")
    return "\n".join(lines)


def _svg_bar(bar: Bar, chart: BarChart, *, left: int, room: int, top: int) -> Iterator[str]:
    middle = top + _THICK / 2
    label = bar.label if len(bar.label) * _LETTER < _LABEL else f"{bar.label[:34]}…"
    yield f'<text class="label" x="{left - 8}" y="{middle:.0f}">{as_html(label)}</text>'
    at = float(left)
    for number, part in enumerate(bar.parts):
        width = room * min(1.0, part / chart.scale)
        if width:
            title = as_html(f"{bar.label}, {chart.series[number]}: {part:g}")
            yield (
                f'<rect class="part{number}" x="{at:.1f}" y="{top}" width="{width:.1f}" '
                f'height="{_THICK}"><title>{title}</title></rect>'
            )
        at += width
    end = at
    if bar.low is not None and bar.high is not None:
        low, high = (left + room * value / chart.scale for value in (bar.low, bar.high))
        yield (
            f'<path class="spread" d="M{low:.1f} {middle - 4:.0f}v8M{low:.1f} {middle:.0f}'
            f'H{high:.1f}M{high:.1f} {middle - 4:.0f}v8"/>'
        )
        end = max(end, high)
    if bar.mark is not None:
        x = left + room * bar.mark / chart.scale
        yield f'<line class="mark" x1="{x:.1f}" y1="{top - 2}" x2="{x:.1f}" y2="{top + 18}"/>'
        end = max(end, x)
    yield f'<text class="told" x="{end + 6:.1f}" y="{middle:.0f}">{as_html(bar.text)}</text>'
