"""Where an intervention stands, in one word."""

from enum import StrEnum


class InterventionState(StrEnum):
    """Where an intervention stands: what the journal says in several entries, as one word."""

    ISSUED = "issued"
    HELD = "held"
    """Waits until an operator approves it."""
    APPROVED = "approved"
    REJECTED = "rejected"
    DELIVERED = "delivered"
    EXPIRED = "expired"

    @property
    def under_way(self) -> bool:
        """Whether it can still arrive."""
        return self in _UNDER_WAY


_UNDER_WAY = frozenset(
    {InterventionState.ISSUED, InterventionState.HELD, InterventionState.APPROVED}
)
