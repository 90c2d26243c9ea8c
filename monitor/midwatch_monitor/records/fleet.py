"""Nodes of a fleet, leases, and snapshots of work for other nodes."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SupervisedBy(StrEnum):
    """Who judges time, escalates and decides for the attempts of a run."""

    PROCESS = "process"
    """The process that runs them, while it lives: `midwatch run`."""
    MONITOR = "monitor"
    """The `midwatch monitor` that holds the attempt's lease: fleets, embedded `Watch`, traces."""


LOST_AFTER_SECONDS = 15.0
"""Default for how long a node may be silent before it counts as lost."""


class NodeState(StrEnum):
    """The state of a node."""

    UP = "up"
    DRAINING = "draining"
    """It finishes its current work and takes nothing new."""
    DOWN = "down"
    """It left on its own, and gave back what it did not finish."""
    LOST = "lost"
    """It was silent for too long; other nodes continue its attempts."""

    @property
    def gone(self) -> bool:
        """Whether it does no more work."""
        return self in {NodeState.DOWN, NodeState.LOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One start of a node, as recorded in the journal."""

    name: str
    boot: str
    """Id of this start; the journal treats a restarted node as another one."""
    state: NodeState
    slots: int
    busy: int
    labels: tuple[str, ...]
    version: str
    """Version of Midwatch."""
    revision: str
    """Revision of the journal's tables that it was made for."""
    started_at: datetime
    beat_at: datetime
    """Time of its last heartbeat, by the clock of the journal's database."""
    doubted_at: datetime | None = None
    """When the broker reported it gone; a later heartbeat shows it only lost the broker."""
    fleet: str = "midwatch"
    """The fleet that it works for; several may share the journal."""

    @property
    def holder(self) -> str:
        """The holder's name in the leases of its attempts."""
        return holder_of(self.name, self.boot)

    @property
    def doubted(self) -> bool:
        """Whether only the broker reports it gone."""
        doubted = self.doubted_at is not None and self.doubted_at >= self.beat_at
        return doubted and not self.state.gone


def holder_of(name: str, boot: str) -> str:
    """Return the holder's name in leases for one start of a process, such as `node-a:5f3c`."""
    return f"{name}:{boot}"


def name_of(holder: str) -> str:
    """Return the name of the process that holds a lease or a turn."""
    return holder.rpartition(":")[0] or holder


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do what only one process at a time may do."""

    holder: str
    incarnation: int
    """Rises with every change of holder; a write under an older one is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The saved work of an attempt, from which another node can continue."""

    commit: str
    base: str = ""
    """The commit that it builds on; empty if the snapshot holds everything."""
    messages: int
    """Number of messages in the history before it."""
    step: int
    """The last step before it."""
    size: int = 0
    """Bytes of its bundle in the journal; 0 if it was pushed, or was too large."""
    branch: str = ""
    """The pushed branch; empty if none was pushed."""

    @property
    def kept(self) -> bool:
        """Whether it is stored outside its node; one that was too large is not."""
        return bool(self.size or self.branch)
