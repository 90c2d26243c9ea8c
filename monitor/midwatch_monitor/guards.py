"""Which attempts a monitor may act on: it follows all of a run, and acts if it holds the lease."""

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
        """Return a snapshot of the guards, to be taken before reading what is then acted on.

        The previous holder of a lease may have written until the lease changed hands. A read after
        that sees all of it, so nothing is done twice.
        """
        ...


class Unguarded:
    """Allows every attempt without a lease, for a process that looks after all of them alone."""

    def holds(self, attempt: int) -> bool:
        """Return `True`."""
        return True

    def guard_of(self, attempt: int) -> int | None:
        """Return `None`, as no lease is needed."""
        return None

    def now(self) -> Guards:
        """Return the same object, as nothing ever changes."""
        return self
