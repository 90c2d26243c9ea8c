"""The lines of the fleet: their groups and their order. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from sys import maxsize
from typing import NamedTuple

from midwatch_monitor.records import Lifecycle
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.state.row import Need, Row

GroupKey = tuple[int, str]
"""A group's position among the others, and its name."""

_DONE = "done"
OPEN: GroupKey = 0, ""
"""The lines without a group."""
DONE: GroupKey = 1, _DONE
"""The group of ended rows when there is no other grouping."""
FEW_DONE = 10
"""Up to this many ended lines are not folded automatically."""

_CALM: frozenset[str] = frozenset(
    {_DONE, AttemptStatus.PAUSED, AttemptStatus.SPLIT, AttemptStatus.RESTARTED}
)


class RowStanding(NamedTuple):
    """A row's state, for sorting and counting: most urgent first."""

    need: Need
    calm: bool
    """Whether nothing is wrong with it: sorted after others with the same need."""
    word: str


def standing_of(row: Row) -> RowStanding:
    """Return a row's state, as counted in headings."""
    need = row.need
    match need:
        case Need.APPROVAL:
            word = "waits for approval"
        case Need.STUCK | Need.SUSPECT:
            word = row.health.value
        case Need.QUEUED if not row.state.idle:
            word = "queued"
        case Need.ANSWER if row.state.asks_beside is not None:
            word = AttemptStatus.WAITING.value
        case Need.OVER if row.lifecycle is Lifecycle.COMPLETED and not row.rejected:
            word = _DONE
        case _:
            word = row.status
    return RowStanding(need=need, calm=word in _CALM, word=word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    name: str
    key: Callable[[Row, RowStanding], GroupKey]
    lone_heading: bool = True
    """Whether a group of one line has a heading: a task's name is already in its line."""


def _group_by(name: Callable[[Row], str], without: str) -> Callable[[Row, RowStanding], GroupKey]:
    """Return a grouping key by name; those `without` one come last."""

    def key(row: Row, standing: RowStanding) -> GroupKey:
        del standing
        found = name(row)
        return (0, found) if found else (1, without)

    return key


def _by_need(row: Row, standing: RowStanding) -> GroupKey:
    del row
    return DONE if standing.need is Need.OVER else OPEN


def _by_state(row: Row, standing: RowStanding) -> GroupKey:
    del row
    return 2 * standing.need + standing.calm, standing.word


BY_NEED = Grouping(name="need", key=_by_need)
GROUPINGS = (
    BY_NEED,
    Grouping(name="task", key=_group_by(lambda row: row.name, ""), lone_heading=False),
    Grouping(name="state", key=_by_state),
    Grouping(name="worker", key=_group_by(lambda row: row.state.attempt.worker, "no worker yet")),
    Grouping(name="project", key=_group_by(lambda row: row.project, "no project")),
    Grouping(name="node", key=_group_by(lambda row: row.state.node, "no node yet")),
)
"""In the order of the key that changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHeading:
    """The heading of a group, above its rows."""

    group: GroupKey
    counts: tuple[tuple[RowStanding, int], ...]
    """Number of rows in each state, most urgent first."""
    folded: bool
    """Whether its rows are hidden."""

    @property
    def title(self) -> str:
        """The group with its number of rows: `▾ north (13)`."""
        total = sum(count for _, count in self.counts)
        return f"{'▸' if self.folded else '▾'} {one_line(self.group[1])} ({total})"

    @property
    def details(self) -> tuple[tuple[RowStanding, str], ...]:
        """The number of rows in each state, in words; empty if the title says it."""
        if [standing.word for standing, _ in self.counts] == [self.group[1]]:
            return ()
        return tuple((each, _counted(each.word, count)) for each, count in self.counts)


def _counted(word: str, count: int) -> str:
    return f"{count} {word if count == 1 else word.replace('waits', 'wait')}"


def group_heading(
    group: GroupKey, counts: Mapping[RowStanding, int], *, folded: bool
) -> GroupHeading:
    """Return the heading of a group with rows in these states."""
    found = sorted((standing, count) for standing, count in counts.items() if count)
    return GroupHeading(group=group, counts=tuple(found), folded=folded)


def folds_done(*, rows: int, open_rows: int, done_rows: int, room: int) -> bool:
    """Whether a group of ended rows is folded unless a person has decided otherwise.

    Not if all `rows` fit into the `room` in lines, or the group is small, or nothing is open.
    """
    return rows > room and open_rows > 0 and done_rows > FEW_DONE


class Tally:
    """Counts rows of each group by state."""

    def __init__(self) -> None:
        self.sizes: Counter[GroupKey] = Counter()
        self.counts: dict[GroupKey, dict[RowStanding, int]] = {}
        self.over = 0
        """Number of ended rows."""

    def is_over(self, group: GroupKey) -> bool:
        """Whether all rows of a group are over."""
        counts = self.counts[group]
        return all(each.need is Need.OVER or not count for each, count in counts.items())

    def add(self, group: GroupKey, standing: RowStanding, rows: int = 1) -> None:
        """Add `rows`, or remove them if negative."""
        self.sizes[group] += rows
        self.over += rows if standing.need is Need.OVER else 0
        counts = self.counts.setdefault(group, {})
        counts[standing] = counts.get(standing, 0) + rows
        if not self.sizes[group]:
            del self.sizes[group], self.counts[group]


FleetLine = Row | GroupHeading
"""One line of the fleet."""

RESORT_AFTER = timedelta(seconds=3)
"""How long lines sorted by something that changes with time keep their order, at least."""
READ_FOR = timedelta(seconds=1)
"""How long they keep it after the cursor was moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    name: str
    says: str
    """Which lines come first, in words."""
    by_need: bool = False
    measure: Callable[[Row], float] | None = None
    """The value that changes with time, smallest first; queued and ended rows come last."""


def _last_heard(row: Row) -> float:
    return row.state.last_at.timestamp() if row.state.last_at else 0.0


def _confidence_measure(row: Row) -> float:
    return 101 if row.state.confidence is None else row.state.confidence


SORTS = (
    Sort(name="need", says="what needs you first", by_need=True),
    Sort(name="name", says="from A to Z"),
    Sort(name="age", says="longest idle first", measure=_last_heard),
    Sort(name="confidence", says="lowest first", measure=_confidence_measure),
    Sort(name="budget", says="most used first", measure=lambda row: -(row.used or 0)),
)
"""In the order of the key that changes it."""


def may_resort(now: datetime, *, sorted_at: datetime, moved_at: datetime) -> bool:
    """Whether lines sorted by something that changes with time may move: nobody is reading them.

    `sorted_at` is when they were last sorted, `moved_at` when the cursor was last moved.
    """
    return now - sorted_at >= RESORT_AFTER and now - moved_at >= READ_FOR


_Key = tuple[GroupKey, int, float, RowStanding, str, int, int]
_ANY = RowStanding(need=Need.ANSWER, calm=True, word="")
"""Placeholder for an irrelevant state."""
_RANKS = {Need.QUEUED: 1, Need.OVER: 2}

_FEW = 16
"""Above this many and one in 20, sorting all lines is cheaper than moving single ones."""


class Order:
    """Rows by group, then sorted, then by name, the newest attempt first.

    By need, the order does not depend on time, so that lines do not jump. It is maintained
    incrementally: a moved row costs a search and a shift, without touching the others.
    """

    def __init__(self) -> None:
        self.grouping = BY_NEED
        self.sort = SORTS[0]
        self._words: tuple[str, ...] = ()
        self._all: list[Row] = []
        self._keys: list[_Key] = []
        """The keys of `_all`, at the same indexes."""
        self._key_of: dict[Row, _Key] = {}
        self._standing_of: dict[Row, RowStanding] = {}
        self._texts: dict[Row, str] = {}
        """Texts for filtering, made in advance, so that no key has to wait."""
        self._tally = Tally()
        self._folds: dict[GroupKey, bool] = {}
        """Groups that a person has folded or unfolded."""
        self._room = maxsize
        self._held: Row | None = None
        self._lines: Sequence[FleetLine] | None = None
        self.rows: list[Row] = []
        """The rows that match the filter, folded or not."""

    def arrange(self, *, grouping: Grouping | None = None, sort: Sort | None = None) -> None:
        if grouping is not None:
            self.grouping = grouping
            self._folds.clear()
        self.sort = sort or self.sort
        self._key_of = {row: self._row_key(row, self._standing_of[row]) for row in self._all}
        self._sort_rows()
        if grouping is not None:
            self._tally = self._tally_of(self._all)
        self._filter_rows()

    def filter(self, wanted: str) -> None:
        """Show the rows that contain every word, in any case and order."""
        words = tuple(wanted.lower().split())
        if words != self._words:
            self._words = words
            self._filter_rows()

    @property
    def count(self) -> int:
        """Number of rows, including hidden ones."""
        return len(self._all)

    def resort(self) -> None:
        """Sort again if the rows are sorted by something that changes with time."""
        if self.sort.measure is not None:
            self.arrange()

    def move(self, changed: Collection[Row], *, gone: Collection[Row] = ()) -> None:
        """Add new and changed rows, and remove those that are gone.

        Other sort values stay as they were until the rows are sorted again.
        """
        moved: dict[Row, tuple[_Key, RowStanding]] = {}
        for row in changed:
            standing = standing_of(row)
            key, before = self._row_key(row, standing, self._key_of.get(row)), self._key_of.get(row)
            if key != before or standing != self._standing_of[row]:
                moved[row] = key, standing
        left = [row for row in gone if row in self._key_of]
        self._texts.update((row, _search_text(row)) for row in changed)
        for row in left:
            del self._texts[row]
        if len(moved) + len(left) > max(_FEW, len(self._all) // 20):
            self._replace_rows(moved, left)
        else:
            for row in (*moved, *left):
                self._remove_row(row)
            for row, (key, standing) in moved.items():
                self._insert_row(row, key, standing)
        if moved or left or self._words:
            self._filter_rows()

    def _replace_rows(
        self, moved: dict[Row, tuple[_Key, RowStanding]], left: Collection[Row]
    ) -> None:
        for row in left:
            del self._key_of[row], self._standing_of[row]
        self._key_of.update((row, key) for row, (key, _) in moved.items())
        self._standing_of.update((row, standing) for row, (_, standing) in moved.items())
        self._sort_rows()
        self._tally = self._tally_of(self._all)

    def _remove_row(self, row: Row) -> None:
        key = self._key_of.pop(row, None)
        if key is not None:
            place = bisect_left(self._keys, key)
            del self._keys[place], self._all[place]
            self._tally.add(key[0], self._standing_of.pop(row), -1)

    def _insert_row(self, row: Row, key: _Key, standing: RowStanding) -> None:
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._all.insert(place, row)
        self._key_of[row], self._standing_of[row] = key, standing
        self._tally.add(key[0], standing)

    def _sort_rows(self) -> None:
        self._all = sorted(self._key_of, key=self._key_of.__getitem__)
        self._keys = [self._key_of[row] for row in self._all]

    def _tally_of(self, rows: Collection[Row]) -> Tally:
        tally = Tally()
        counts = Counter((self._key_of[row][0], self._standing_of[row]) for row in rows)
        for (group, standing), count in counts.items():
            tally.add(group, standing, count)
        return tally

    def _filter_rows(self) -> None:
        found = self._all
        for word in self._words:
            found = [row for row in found if word in self._texts[row]]
        self.rows, self._lines = found, None

    def _row_key(self, row: Row, standing: RowStanding, before: _Key | None = None) -> _Key:
        """Return a row's key; its sort value stays as it was `before`."""
        group, rank, measure = self.grouping.key(row, standing), 0, 0.0
        if self.sort.measure is not None:
            rank = _RANKS.get(standing.need, 0)
            measure = self.sort.measure(row) if before is None else before[2]
        stands = standing if self.sort.by_need else _ANY
        # Two runs may have the same names; the ids make every key unique.
        return group, rank, measure, stands, row.name, -row.number, row.attempt or -row.task

    # -- headings, and what they fold away --------------------------------------------------------

    @property
    def lines(self) -> Sequence[FleetLine]:
        """Return the visible lines: headings, and rows that are not folded."""
        if self._lines is None:
            self._lines = self._sifted_lines() if self._words else self._folded_lines()
        return self._lines

    def fit(self, room: int) -> None:
        """Set the number of lines that fit."""
        if room != self._room:
            self._room, self._lines = room, None

    def hold(self, row: Row | None) -> None:
        """Show a row even if it moves into a folded group: somebody is reading it."""
        if row is not self._held:
            self._held, self._lines = row, None

    def fold(self, line: FleetLine) -> GroupHeading | None:
        """Fold or unfold a line's group; return its heading, or `None` if it has none.

        While a filter is set, nothing is folded.
        """
        group = line.group if isinstance(line, GroupHeading) else self._key_of[line][0]
        if self._words or group == OPEN or not self._has_heading(group, asked=True):
            return None
        self._folds[group] = not self._is_folded(group)
        self._held = self._lines = None
        return self._group_heading(group)

    def _folded_lines(self) -> Sequence[FleetLine]:
        groups = sorted(group for group in self._tally.sizes if self._has_heading(group))
        if not groups:
            return self._all
        lines: list[FleetLine] = []
        done = 0
        for group in groups:
            start = bisect_left(self._keys, group, key=itemgetter(0))
            end = start + self._tally.sizes[group]
            lines += self._all[done:start]
            lines.append(self._group_heading(group))
            lines += self._seen_of(group, start, end)
            done = end
        return [*lines, *self._all[done:]]

    def _seen_of(self, group: GroupKey, start: int, end: int) -> Sequence[Row]:
        if not self._is_folded(group):
            return self._all[start:end]
        held = self._held
        there = held is not None and held in self._key_of and self._key_of[held][0] == group
        return [held] if held is not None and there else ()

    def _sifted_lines(self) -> Sequence[FleetLine]:
        if self.grouping is BY_NEED:
            return self.rows
        lines: list[FleetLine] = []
        for group, found in groupby(self.rows, key=lambda row: self._key_of[row][0]):
            rows = [*found]
            if self._has_heading(group):
                counts = self._tally_of(rows).counts[group]
                lines.append(group_heading(group, counts, folded=False))
            lines += rows
        return lines

    def _has_heading(self, group: GroupKey, *, asked: bool = False) -> bool:
        """Whether a group has a heading; if `asked` for, so does the group of ended rows."""
        if self.grouping is BY_NEED:
            return group == DONE and (asked or group in self._folds or self._folds_over(DONE))
        return self.grouping.lone_heading or self._tally.sizes[group] > 1

    def _folds_over(self, group: GroupKey) -> bool:
        rows, tally = len(self._all), self._tally
        return tally.is_over(group) and folds_done(
            rows=rows,
            open_rows=rows - tally.over,
            done_rows=tally.sizes[group],
            room=self._room,
        )

    def _is_folded(self, group: GroupKey) -> bool:
        return self._folds[group] if group in self._folds else self._folds_over(group)

    def _group_heading(self, group: GroupKey) -> GroupHeading:
        return group_heading(group, self._tally.counts[group], folded=self._is_folded(group))


def _search_text(row: Row) -> str:
    parts = (row.name, row.title, row.state.attempt.worker, row.state.model, row.state.node)
    return " ".join((*parts, row.status, row.health, row.rules)).lower()
