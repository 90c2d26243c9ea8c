"""The lines of the fleet in their order. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Collection

from midwatch_supervisor.tui.state.row import Row

Group = Callable[[Row], str]
"""The name of the group that a row stands in."""


def by_task(row: Row) -> str:
    """The group of a row by its task."""
    return row.name


def by_node(row: Row) -> str:
    """The group of a row by its node."""
    return row.state.node


_Key = tuple[str, int, str, int, int]

_FEW = 16
"""Above this many and one in 20, sorting lines is cheaper than moving them one by one."""


class Order:
    """Rows by group, then by need of a person, then by name, the newest attempt first.

    The order within one need does not depend on time, so that lines do not jump. It is kept from
    change to change: a row that moves costs a search and a shift, and the others are not looked at.
    """

    def __init__(self) -> None:
        self._group: Group | None = None
        self._words: tuple[str, ...] = ()
        self._all: list[Row] = []
        self._keys: list[_Key] = []
        """Those of `_all`, in the same places."""
        self._key_of: dict[Row, _Key] = {}
        self._texts: dict[Row, str] = {}
        """What the filter looks at; made before, so that no key has to wait for it."""
        self.rows: list[Row] = []
        """What is shown: the rows that hold every word of the filter."""

    def group(self, group: Group | None) -> None:
        """Group the rows by something else, or by nothing."""
        self._group = group
        self._key_of = {row: self._key(row) for row in self._all}
        self._sort()
        self._sift()

    def filter(self, wanted: str) -> None:
        """Show the rows that hold every word, in any case and order."""
        words = tuple(wanted.lower().split())
        if words != self._words:
            self._words = words
            self._sift()

    def move(self, changed: Collection[Row], *, gone: Collection[Row] = ()) -> None:
        """Take in rows that are new or need a person more or less, and drop those that are gone."""
        moved = {row: key for row in changed if (key := self._key(row)) != self._key_of.get(row)}
        left = [row for row in gone if row in self._key_of]
        self._texts.update((row, _text(row)) for row in changed)
        for row in left:
            del self._texts[row]
        if len(moved) + len(left) > max(_FEW, len(self._all) // 20):
            for row in left:
                del self._key_of[row]
            self._key_of.update(moved)
            self._sort()
        else:
            for row in (*moved, *left):
                self._take(row)
            for row, key in moved.items():
                self._put(row, key)
        self._sift()

    def _take(self, row: Row) -> None:
        key = self._key_of.pop(row, None)
        if key is not None:
            place = bisect_left(self._keys, key)
            del self._keys[place], self._all[place]

    def _put(self, row: Row, key: _Key) -> None:
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._all.insert(place, row)
        self._key_of[row] = key

    def _sort(self) -> None:
        self._all = sorted(self._key_of, key=self._key_of.__getitem__)
        self._keys = [self._key_of[row] for row in self._all]

    def _sift(self) -> None:
        found = self._all
        for word in self._words:
            found = [row for row in found if word in self._texts[row]]
        self.rows = found

    def _key(self, row: Row) -> _Key:
        # Two runs may have the same names; the ids make every key one of a kind.
        group = "" if self._group is None else self._group(row)
        return group, row.need, row.name, -row.number, row.attempt or -row.task


def _text(row: Row) -> str:
    parts = (row.name, row.title, row.state.attempt.worker, row.state.model, row.state.node)
    return " ".join((*parts, row.status, row.health, row.rules)).lower()
