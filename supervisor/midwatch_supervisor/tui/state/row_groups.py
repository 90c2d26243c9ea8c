"""What the lines of the fleet are grouped by, and the headings of the groups. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from midwatch_monitor.records import Lifecycle
from midwatch_monitor.state.attempt_status import AttemptStatus
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.tui.state.row import Need, Row

GroupKey = tuple[int, str]
"""Where a group stands among the others, and its name."""

_DONE = "done"
OPEN: GroupKey = 0, ""
"""The lines that stand in no group."""
DONE: GroupKey = 1, _DONE
"""What is over, where nothing else is grouped."""
FEW_DONE = 10
"""So many lines that are over are never folded away by themselves."""

_CALM: frozenset[str] = frozenset(
    {_DONE, AttemptStatus.PAUSED, AttemptStatus.SPLIT, AttemptStatus.RESTARTED}
)


class Standing(NamedTuple):
    """Where a row stands, as it is sorted and counted: the most urgent first."""

    need: Need
    calm: bool
    """Whether there is nothing wrong with it: after those of the same need where there is."""
    word: str


def standing_of(row: Row) -> Standing:
    """Where a row stands, as headings count it."""
    need = row.need
    match need:
        case Need.APPROVAL:
            word = "waits for approval"
        case Need.STUCK | Need.SUSPECT:
            word = row.health.value
        case Need.QUEUED:
            word = "queued"
        case Need.OVER if row.lifecycle is Lifecycle.COMPLETED and not row.rejected:
            word = _DONE
        case _:
            word = row.status
    return Standing(need=need, calm=word in _CALM, word=word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """One way to group the lines."""

    name: str
    key: Callable[[Row, Standing], GroupKey]
    lone_heading: bool = True
    """Whether a group of a single line has a heading: a task's name stands in its line."""


def _by(name: Callable[[Row], str], without: str) -> Callable[[Row, Standing], GroupKey]:
    """By a name; those `without` one come last."""

    def key(row: Row, standing: Standing) -> GroupKey:
        del standing
        found = name(row)
        return (0, found) if found else (1, without)

    return key


def _by_need(row: Row, standing: Standing) -> GroupKey:
    del row
    return DONE if standing.need is Need.OVER else OPEN


def _by_state(row: Row, standing: Standing) -> GroupKey:
    del row
    return 2 * standing.need + standing.calm, standing.word


BY_NEED = Grouping(name="need", key=_by_need)
GROUPINGS = (
    BY_NEED,
    Grouping(name="task", key=_by(lambda row: row.name, ""), lone_heading=False),
    Grouping(name="state", key=_by_state),
    Grouping(name="worker", key=_by(lambda row: row.state.attempt.worker, "no worker yet")),
    Grouping(name="project", key=_by(lambda row: row.project, "no project")),
    Grouping(name="node", key=_by(lambda row: row.state.node, "no node yet")),
)
"""In the order of the key that changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The line of a group, above its rows."""

    group: GroupKey
    counts: tuple[tuple[Standing, int], ...]
    """How many rows stand where, the most urgent first."""
    folded: bool
    """Whether its rows are not shown."""

    @property
    def title(self) -> str:
        """The group with how many rows it has: `▾ north (13)`."""
        total = sum(count for _, count in self.counts)
        return f"{'▸' if self.folded else '▾'} {one_line(self.group[1])} ({total})"

    @property
    def details(self) -> tuple[tuple[Standing, str], ...]:
        """How many rows stand where, in words; nothing where the title says it."""
        if [standing.word for standing, _ in self.counts] == [self.group[1]]:
            return ()
        return tuple((each, f"{count} {each.word}") for each, count in self.counts)


def heading(group: GroupKey, counts: Mapping[Standing, int], *, folded: bool) -> Heading:
    """The heading of a group whose rows stand there."""
    found = sorted((standing, count) for standing, count in counts.items() if count)
    return Heading(group=group, counts=tuple(found), folded=folded)


def folds_done(*, rows: int, open_rows: int, done_rows: int, room: int) -> bool:
    """Whether a group that is over is folded away while nobody has said otherwise.

    It is not while all `rows` fit into the `room` in lines, or it is small, or nothing is open.
    """
    return rows > room and open_rows > 0 and done_rows > FEW_DONE


class Tally:
    """How many rows of each group stand where."""

    def __init__(self) -> None:
        self.sizes: Counter[GroupKey] = Counter()
        self.counts: dict[GroupKey, dict[Standing, int]] = {}
        self.over = 0
        """How many rows are over."""

    def is_over(self, group: GroupKey) -> bool:
        """Whether all rows of a group are over."""
        counts = self.counts[group]
        return all(each.need is Need.OVER or not count for each, count in counts.items())

    def add(self, group: GroupKey, standing: Standing, rows: int = 1) -> None:
        """Count `rows` more, or less if negative."""
        self.sizes[group] += rows
        self.over += rows if standing.need is Need.OVER else 0
        counts = self.counts.setdefault(group, {})
        counts[standing] = counts.get(standing, 0) + rows
        if not self.sizes[group]:
            del self.sizes[group], self.counts[group]
