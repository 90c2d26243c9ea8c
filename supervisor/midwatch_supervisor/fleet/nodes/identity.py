"""What a process of a fleet is called, and which start of it this is."""

import platform
import re
import secrets
from dataclasses import dataclass

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import holder_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One start of a process of a fleet."""

    name: str
    boot: str
    """Another one at every start."""

    @property
    def holder(self) -> str:
        """What stands in leases, and as whom turns are taken."""
        return holder_of(self.name, self.boot)


def identity(name: str | None) -> Identity:
    """A new start under a name, or under the machine's. Raises UsageError for a bad name."""
    if name is None:
        name = _OTHER.sub("-", platform.node()).strip("-._") or "node"
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a name may have letters, digits, dots, underscores and dashes, not {name!r}"
        )
    return Identity(name=name[:80], boot=secrets.token_hex(4))


def name_of(holder: str) -> str:
    """The name of the process that a lease or a turn names as its holder."""
    return holder.rpartition(":")[0] or holder
