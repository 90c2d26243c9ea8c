"""The lines of the fleet: their groups and their order. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
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


def folds_done(*, rows: int, open_rows: int, done_rows: int, room: int) -> bool:
    """Whether a group of ended rows is folded unless a person has decided otherwise.

    Not if all `rows` fit into the `room` in lines, or the group is small, or nothing is open.
    """
    return rows > room and open_rows > 0 and done_rows > FEW_DONE


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


class _Placed(NamedTuple):
    key: _Key
    row: Row
    standing: RowStanding


class Order:
    """Rows by group, then sorted, then by name, the newest attempt first.

    By need, the order does not depend on time, so that lines do not jump. Each update sorts all
    rows again, which takes ten milliseconds for a thousand.
    """

    def __init__(self) -> None:
        self.grouping = BY_NEED
        self.sort = SORTS[0]
        self.count = 0
        """Number of rows, including hidden ones."""
        self.rows: list[Row] = []
        """The rows that match the filter, folded or not."""
        self.lines: list[FleetLine] = []
        """The visible lines: headings, and rows that are not folded."""
        self._groups: dict[GroupKey, list[_Placed]] = {}
        self._over = 0
        """Number of ended rows."""
        self._measures: dict[Row, float] = {}
        """What the rows are sorted by if it changes with time, as it was when last sorted."""
        self._words: tuple[str, ...] = ()
        self._folds: dict[GroupKey, bool] = {}
        """Groups that a person has folded or unfolded."""
        self._room = maxsize
        self._held: Row | None = None

    def arrange(self, *, grouping: Grouping | None = None, sort: Sort | None = None) -> None:
        """Group or sort differently from the next update on."""
        if grouping is not None:
            self.grouping = grouping
            self._folds.clear()
        self.sort = sort or self.sort
        self.resort()

    def resort(self) -> None:
        """Let rows that are sorted by something that changes with time move at the next update."""
        self._measures.clear()

    def update(
        self,
        rows: Iterable[Row],
        *,
        wanted: str = "",
        room: int = maxsize,
        held: Row | None = None,
    ) -> None:
        """Show these rows if they contain every word of `wanted`, in any case and order.

        `room` is the number of lines that fit. Somebody is reading the row `held`: it is shown even
        if it moves into a folded group.
        """
        placed = sorted(map(self._place_row, rows))
        self._groups = {
            group: [*found] for group, found in groupby(placed, lambda each: each.key[0])
        }
        self.count, self._over = len(placed), sum(map(_is_over, placed))
        self._words, self._room, self._held = tuple(wanted.lower().split()), room, held
        self._lay_out()

    def _place_row(self, row: Row) -> _Placed:
        standing, rank, measure = standing_of(row), 0, 0.0
        if self.sort.measure is not None:
            rank = _RANKS.get(standing.need, 0)
            measure = self._measures.setdefault(row, self.sort.measure(row))
        group, stands = self.grouping.key(row, standing), standing if self.sort.by_need else _ANY
        # Two runs may have the same names; the ids make every key unique.
        ids = row.name, -row.number, row.attempt or -row.task
        return _Placed((group, rank, measure, stands, *ids), row, standing)

    def _lay_out(self) -> None:
        self.rows, self.lines = [], []
        for group, members in self._groups.items():
            found = [each for each in members if self._matches(each.row)]
            rows = [each.row for each in found]
            self.rows += rows
            if found and self._has_heading(group):
                heading = self._group_heading(group, found)
                self.lines.append(heading)
                rows = [row for row in rows if not heading.folded or row is self._held]
            self.lines += rows

    def _matches(self, row: Row) -> bool:
        if not self._words:
            return True
        text = _search_text(row)
        return all(word in text for word in self._words)

    # -- headings, and what they fold away --------------------------------------------------------

    def fold(self, line: FleetLine) -> GroupHeading | None:
        """Fold or unfold a line's group; return its heading, or `None` if it has none.

        While a filter is set, nothing is folded.
        """
        group = line.group if isinstance(line, GroupHeading) else self._group_of(line)
        if self._words or group == OPEN or not self._has_heading(group, asked=True):
            return None
        self._folds[group] = not self._is_folded(group)
        self._held = None
        self._lay_out()
        return self._group_heading(group, self._groups[group])

    def _group_of(self, row: Row) -> GroupKey:
        groups = self._groups.items()
        return next(group for group, rows in groups if any(each.row is row for each in rows))

    def _group_heading(self, group: GroupKey, rows: Iterable[_Placed]) -> GroupHeading:
        counts = sorted(Counter(each.standing for each in rows).items())
        return GroupHeading(group=group, counts=tuple(counts), folded=self._is_folded(group))

    def _has_heading(self, group: GroupKey, *, asked: bool = False) -> bool:
        """Whether a group has a heading; if `asked` for, so does the group of ended rows."""
        if self.grouping is BY_NEED:
            folds = asked or group in self._folds or self._folds_over(group)
            return group == DONE and folds and not self._words
        return self.grouping.lone_heading or len(self._groups[group]) > 1

    def _is_folded(self, group: GroupKey) -> bool:
        return not self._words and self._folds.get(group, self._folds_over(group))

    def _folds_over(self, group: GroupKey) -> bool:
        rows = self._groups[group]
        return all(map(_is_over, rows)) and folds_done(
            rows=self.count,
            open_rows=self.count - self._over,
            done_rows=len(rows),
            room=self._room,
        )


def _is_over(placed: _Placed) -> bool:
    return placed.standing.need is Need.OVER


def _search_text(row: Row) -> str:
    parts = (row.name, row.title, row.state.attempt.worker, row.state.model, row.state.node)
    return " ".join((*parts, row.status, row.health, row.rules)).lower()
