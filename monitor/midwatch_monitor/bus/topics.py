"""Where on the broker what is said: the topics of one fleet."""

import re
from dataclasses import dataclass

_ROOT = "midwatch/v1"
"""The version is that of the payloads: what cannot read them must not hear them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", re.ASCII)
_ATTEMPT = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one fleet."""

    fleet: str

    @property
    def statuses(self) -> str:
        """Covers the status of every node."""
        return self.status("+")

    @property
    def events(self) -> str:
        """Covers the hints of every attempt."""
        return f"{_ROOT}/{self.fleet}/attempts/+/events"

    def turns(self, group: str) -> str:
        """The same hints, each for one member of a group only."""
        return f"$share/{group}/{self.events}"

    def status(self, node: str) -> str:
        """Where a node says how it is."""
        return f"{_ROOT}/{self.fleet}/nodes/{node}/status"

    def events_of(self, attempt: int | None) -> str:
        """Where the hints of an attempt are; those of none have the number 0."""
        return f"{_ROOT}/{self.fleet}/attempts/{attempt or 0}/events"

    def node_of(self, topic: str) -> str | None:
        """Whose status is said there; `None` for another topic."""
        name = self._between(topic, "nodes", "status")
        return name if is_topic_name(name) else None

    def attempt_of(self, topic: str) -> int | None:
        """Of which attempt the hints are, 0 for those of none; `None` for another topic."""
        number = self._between(topic, "attempts", "events")
        return int(number) if _ATTEMPT.fullmatch(number) else None

    def _between(self, topic: str, kind: str, last: str) -> str:
        before, after = f"{_ROOT}/{self.fleet}/{kind}/", f"/{last}"
        if topic.startswith(before) and topic.endswith(after):
            return topic[len(before) : -len(after)]
        return ""


def is_topic_name(name: str) -> bool:
    """Whether it can stand in a topic, and in a topic of nobody else."""
    return _NAME.fullmatch(name) is not None
