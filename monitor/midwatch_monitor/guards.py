"""Which attempts of a run a monitor may act on: it follows all, and acts where it has the lease."""

from typing import Protocol


class Guards(Protocol):
    """The attempts that this process may act on, with the incarnations of their leases."""

    def holds(self, attempt: int) -> bool:
        """Return whether this process may act on an attempt now."""
        ...

    def guard_of(self, attempt: int) -> int | None:
        """Return the incarnation that a commit must carry; `None` if it needs no lease."""
        ...

    def now(self) -> "Guards":
        """Return a snapshot of the guards; take it before reading what is then acted on.

        The previous holder of a lease may write until the lease changes hands. A read after that
        sees all of it, so nothing is done twice.
        """
        ...


class Unguarded:
    """Allows every attempt without a lease, for a process that is the only one to monitor them."""

    def holds(self, attempt: int) -> bool:
        """Return `True`."""
        return True

    def guard_of(self, attempt: int) -> int | None:
        """Return `None`, since no lease is needed."""
        return None

    def now(self) -> Guards:
        """Return the same object, since nothing ever changes."""
        return self
