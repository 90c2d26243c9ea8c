"""What a section of the report consists of, however it is drawn."""

from dataclasses import dataclass


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
