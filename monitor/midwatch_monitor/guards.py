"""Which attempts a monitor may act on: it follows all of a run, and acts where it holds a lease."""

from typing import Protocol


class Guards(Protocol):
    """The attempts that this process looks after, and under which incarnation of their lease."""

    def holds(self, attempt: int) -> bool:
        """Whether this process may act on an attempt now."""
        ...

    def guard_of(self, attempt: int) -> int | None:
        """What a commit about an attempt is to carry; `None` where no lease is needed."""
        ...

    def now(self) -> "Guards":
        """These as they stand at this moment: to be taken before reading what is then acted on.

        Who held an attempt before may have written until the lease changed hands. What is read
        after that holds all of it, so nothing is done a second time.
        """
        ...


class Unguarded:
    """Every attempt, without a lease: one process runs them, and no other looks after them."""

    def holds(self, attempt: int) -> bool:
        """Always."""
        return True

    def guard_of(self, attempt: int) -> int | None:
        """No guard is needed."""
        return None

    def now(self) -> Guards:
        """They never change."""
        return self
