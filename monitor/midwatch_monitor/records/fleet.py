"""Several machines: who looks after what, the nodes, and the work that others can go on with."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Keeper(StrEnum):
    """Who judges time, escalates and decides for the attempts of a run."""

    PROCESS = "process"
    """The process that runs them, as long as it lives: `midwatch run`."""
    MONITOR = "monitor"
    """Whichever `midwatch monitor` holds the attempt's lease: fleets, embedded `Watch`, traces."""


LOST_AFTER_SECONDS = 15.0
"""How long a node may be silent where nothing else is configured."""


class NodeState(StrEnum):
    """What a node is doing."""

    UP = "up"
    DRAINING = "draining"
    """It ends what it has and takes nothing more."""
    DOWN = "down"
    """It has left by itself, and has given back what it did not end."""
    LOST = "lost"
    """It was not heard in time: others go on with its attempts."""

    @property
    def gone(self) -> bool:
        """Whether it does nothing more."""
        return self in {NodeState.DOWN, NodeState.LOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One start of a node, as the journal knows it."""

    name: str
    boot: str
    """Which start of it this is: a node that comes back is another one to the journal."""
    state: NodeState
    slots: int
    busy: int
    labels: tuple[str, ...]
    version: str
    """Of Midwatch."""
    revision: str
    """Of the journal's tables that it was made for."""
    started_at: datetime
    beat_at: datetime
    """When it was last heard, by the clock of the journal's database."""
    doubted_at: datetime | None = None
    """When the broker said that it is gone; a later beat shows that only its broker was."""
    fleet: str = "midwatch"
    """Which of those that share the journal it works for."""

    @property
    def holder(self) -> str:
        """What stands in the leases of its attempts."""
        return holder_of(self.name, self.boot)

    @property
    def doubted(self) -> bool:
        """Whether only the broker says that it is gone."""
        doubted = self.doubted_at is not None and self.doubted_at >= self.beat_at
        return doubted and not self.state.gone


def holder_of(name: str, boot: str) -> str:
    """What stands in a lease for one start of a process: `node-a:5f3c`."""
    return f"{name}:{boot}"


def name_of(holder: str) -> str:
    """The name of the process that a lease or a turn names as its holder."""
    return holder.rpartition(":")[0] or holder


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who holds something that one process at a time may do."""

    holder: str
    incarnation: int
    """Rises with every change of the holder; a write under an older one is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The work of an attempt as it was saved, so that another node can go on with it."""

    commit: str
    base: str = ""
    """The commit that it builds on; empty where the snapshot holds everything."""
    messages: int
    """How many messages of the history it follows."""
    step: int
    """The last step before it."""
    size: int = 0
    """Bytes of its bundle in the journal; 0 where it was pushed, or was too large for it."""
    branch: str = ""
    """The pushed branch; empty where none was pushed."""

    @property
    def kept(self) -> bool:
        """Whether it is anywhere but on its node: what was too large is not."""
        return bool(self.size or self.branch)
