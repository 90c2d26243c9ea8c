"""A chart as an SVG picture inside a page: no script, no fonts, colours by class. Pure."""

from collections.abc import Iterator

from midwatch_supervisor.present.plain import as_html
from midwatch_supervisor.report.section import Bar, Chart

_WIDTH = 720
_ROW = 26
_THICK = 16
_LETTER = 7
"""Units that a letter takes at most, to leave room for labels."""
_LABEL = 260
_TOLD = 150


def drawn(chart: Chart) -> str:
    """The picture of a chart. All texts in it are escaped."""
    left = min(_LABEL, _LETTER * max((len(bar.label) for bar in chart.bars), default=0) + 12)
    room = _WIDTH - left - _TOLD
    height = _ROW * len(chart.bars) + 4
    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{as_html(chart.title)}">',
        f'<line class="axis" x1="{left}" y1="0" x2="{left}" y2="{height}"/>',
    ]
    for place, bar in enumerate(chart.bars):
        lines += _bar(bar, chart, left=left, room=room, top=_ROW * place + 4)
    lines.append("</svg>")
    return "\n".join(lines)


def _bar(bar: Bar, chart: Chart, *, left: int, room: int, top: int) -> Iterator[str]:
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
    yield f'<text class="told" x="{end + 6:.1f}" y="{middle:.0f}">{as_html(bar.told)}</text>'
