"""Sections as text for a terminal and as a page; figures as people read them."""

import re
from html.parser import HTMLParser

import pytest

from midwatch_supervisor.report.html import page, svg
from midwatch_supervisor.report.section import Bar, BarChart, ReportSection, ReportTable, text_lines

EVIL = "<script>alert('&')</script>"
TABLE = ReportTable(heads=("task", "count"), rows=(("a", "1"), ("long", "20")))
CHART = BarChart(
    title="parts",
    series=("good", "bad"),
    bars=(
        Bar(label="x", parts=(3, 1), text="4"),
        Bar(label="yy", parts=(0, 0.001), text="0.001"),
        Bar(label="none", parts=(0, 0), text="0"),
    ),
)


def test_a_section_is_a_title_its_charts_its_tables_and_what_they_mean() -> None:
    section = ReportSection(title="Some", explained=("Why.",), charts=(CHART,), tables=(TABLE,))
    empty = ReportSection(title="None", nothing="No alarm.")
    assert list(text_lines((section, empty))) == [
        "Some",
        "────",
        "parts  (█ good, ▒ bad)",
        f"  x     {'█' * 30}{'▒' * 10} 4",
        "  yy    ▒ 0.001",
        "  none   0",
        "",
        "task  count",
        "a         1",
        "long     20",
        "",
        "Why.",
        "",
        *("None", "────", "No alarm."),
    ]


@pytest.mark.parametrize(
    ("parts", "mark", "line"),
    [
        ((50,), 95, f"{'█' * 20}{' ' * 18}│"),
        ((100,), 25, f"{'█' * 10}│{'█' * 29}"),
        ((0,), 100, f"{' ' * 39}│"),
    ],
)
def test_a_mark_stands_on_the_scale_of_its_bar(
    parts: tuple[float, ...], mark: float, line: str
) -> None:
    bar = Bar(label="x", parts=parts, text="!", mark=mark)
    chart = BarChart(title="t", series=("s",), bars=(bar,), top=100, mark="said")
    assert list(text_lines((ReportSection(title="S", charts=(chart,)),)))[2:4] == [
        "t  (│ said)",
        f"  x  {line} !",
    ]


def test_the_parts_of_a_bar_follow_each_other_on_one_scale() -> None:
    found = re.findall(r'class="(part\d)" x="([\d.]+)" y="(\d+)" width="([\d.]+)"', svg(CHART))
    assert found == [
        ("part0", "40.0", "4", "397.5"),
        ("part1", "437.5", "4", "132.5"),
        ("part1", "40.0", "30", "0.1"),
    ]


class Reader(HTMLParser):
    """Reads a page: its tags, their attributes, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_every_text_on_the_page_is_escaped_and_it_needs_nothing_from_elsewhere() -> None:
    bar = Bar(label=EVIL, parts=(1, 2), text=EVIL, low=0, high=3, mark=1)
    chart = BarChart(title=EVIL, series=(EVIL, EVIL), bars=(bar,), mark=EVIL)
    table = ReportTable(heads=(EVIL,), rows=((EVIL,),))
    section = ReportSection(title=EVIL, explained=(EVIL,), charts=(chart, CHART), tables=(table,))
    text = page(EVIL, EVIL, (section, ReportSection(title=EVIL, nothing=EVIL)))
    read = Reader(text)
    assert "<script" not in text
    assert sum(EVIL in each for each in read.texts) >= 12
    assert read.attributes.isdisjoint({"src", "href", "onload", "onclick", "style"})
    assert read.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert [each for each in ("http:", "https:", "url(") if each in text] == []
    assert "prefers-color-scheme: dark" in text
