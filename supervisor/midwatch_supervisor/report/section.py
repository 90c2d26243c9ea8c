"""What a section of the report consists of, and figures as people read them. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.records import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under their headings. The first column names a row, the others are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    """The columns that hold words, by place from 0; the others hold figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a chart: its parts one after the other, and where its end may as well lie."""

    label: str
    parts: tuple[float, ...]
    told: str
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


def number(value: int) -> str:
    """A whole number, with its thousands set apart."""
    return f"{value:,}"


def dollars(value: float) -> str:
    """US dollars; cents are enough, unless there is less than one."""
    return f"{value:,.2f}" if value >= 0.01 or not value else f"{value:.4f}"


def lasted(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = round(seconds)
    for size, name, below, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // below} {part}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def percent(rate: float) -> str:
    """A rate from 0 to 1, in whole percent."""
    return f"{100 * rate:.0f} %"


def share(rate: float | None) -> str:
    """A share of something else, in percent with one decimal."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def of(found: Share) -> str:
    return f"{found.hits} of {found.of}"


def rate(found: Share) -> str:
    """A share in percent with its 95 % interval; of none there is none."""
    if not found.of:
        return "-"
    spread = found.interval
    return f"{percent(found.rate)} ({100 * spread.low:.0f} to {100 * spread.high:.0f})"


ORIGIN_NAMES = {
    Origin.EXPLICIT: "a person's own",
    Origin.IMPLIED: "what a person did with it",
    Origin.AUTOMATIC: "checks and endings",
}
RATE = "rate (95 % interval)"
"""The heading of a column of `rate`."""


def rate_bar(label: str, share: Share) -> Bar:
    """A share as a bar on a scale of percent, with its 95 % interval."""
    return Bar(
        label=label,
        parts=(100 * share.rate,),
        told=f"{percent(share.rate)}, {of(share)}" if share.of else "-",
        low=100 * share.interval.low if share.of else None,
        high=100 * share.interval.high if share.of else None,
    )


def rate_chart(title: str, series: str, shares: Iterable[tuple[str, Share]]) -> Chart:
    """OutcomesByName shares on a scale of percent."""
    bars = tuple(rate_bar(name, share) for name, share in shares)
    return Chart(title=title, series=(series,), bars=bars, top=100)


def rate_table(what: str, hits: str, shares: Iterable[tuple[str, Share]]) -> Table:
    """OutcomesByName shares, as counts and as rates."""
    return Table(
        heads=(what, hits, RATE), rows=tuple((name, of(each), rate(each)) for name, each in shares)
    )


def count_chart(title: str, series: str, counts: Iterable[tuple[str, int]]) -> Chart:
    """OutcomesByName counts as bars."""
    bars = (Bar(label=name, parts=(count,), told=number(count)) for name, count in counts)
    return Chart(title=title, series=(series,), bars=tuple(bars))


def count_table(what: str, counts: Iterable[tuple[str, int]]) -> Table:
    """OutcomesByName counts."""
    return Table(heads=(what, "count"), rows=tuple((name, number(each)) for name, each in counts))
