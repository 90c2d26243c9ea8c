"""One list of what is learned, and where a line of it comes from."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.filtered import Filtered, holds


class Known(Protocol):
    """Anything learned, known by its journal id."""

    @property
    def id(self) -> int:
        """The journal id."""
        ...


class Sourced(Protocol):
    """Something learned that comes from an attempt."""

    @property
    def id(self) -> int:
        """The journal id."""
        ...

    @property
    def at(self) -> datetime:
        """When it was written."""
        ...

    @property
    def project(self) -> str:
        """Where it holds."""
        ...

    @property
    def task(self) -> str:
        """The name of the task that it comes from."""
        ...

    @property
    def attempt(self) -> int:
        """The attempt that it comes from, by journal id."""
        ...


K = TypeVar("K", bound=Known)


class Part(Filtered[K]):
    """A filtered list of what was last read; the cursor stays on what it was on."""

    def __init__(
        self,
        columns: Sequence[Column[K]],
        *,
        name: str,
        hint: str,
        nothing: str,
        text: Callable[[K], str],
    ) -> None:
        """A list called `name`; `text` is what the filter looks at."""
        super().__init__(columns, name=name, hint=hint, nothing=nothing)
        self._items: Sequence[K] = ()
        self._text = text

    def take(self, items: Sequence[K]) -> None:
        """These are the items now."""
        self._items = items
        self.refresh_board()

    def refresh_board(self) -> None:
        """Show what the filter lets through."""
        before = self.current
        wanted = self.wanted
        self.lines = [each for each in self._items if holds(self._text(each), wanted)]
        self.show(None if before is None else self._place(before.id))

    def see(self, id: int) -> None:
        """Put the cursor on one."""
        place = self._place(id)
        if place is not None:
            self.roll.go(place)

    def _place(self, id: int) -> int | None:
        return next((n for n, each in enumerate(self.lines) if each.id == id), None)


def source(known: Sourced, sources: Sequence[int]) -> tuple[str, str]:
    """Where something learned comes from."""
    others = ", ".join(str(each) for each in sources if each != known.attempt)
    also = f"; also from attempts {others}" if others else ""
    where = f"task {known.task}, attempt {known.attempt}{also}, in {known.project}"
    return "where it comes from", f"{where}; entry {known.id}"
