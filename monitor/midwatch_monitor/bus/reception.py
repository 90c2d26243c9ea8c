"""What comes from the broker: read, if it can be, and handed to those who listen for it."""

import logging
from collections.abc import Sequence

from midwatch_monitor.bus.link import Heard
from midwatch_monitor.bus.local import Audience, NodeGone
from midwatch_monitor.bus.mailbox import Listeners
from midwatch_monitor.bus.payload import read_status, unpacked
from midwatch_monitor.bus.topics import Topics
from midwatch_monitor.records import Hint, NodeState, NodeStatus

log = logging.getLogger(__name__)

FOR_ALL, FOR_US = 1, 2
"""The numbers of our subscriptions: what everybody hears, and what one of a group does."""
_GONE = (NodeState.LOST, NodeState.DOWN)


class Reception:
    """Everybody who listens in this process. What cannot be read changes nothing but a number."""

    def __init__(self, topics: Topics, *, limit: int) -> None:
        self._topics = topics
        self._limit = limit
        self.hints = Audience()
        self.claims = Audience()
        """Those who listen for what is ours alone."""
        self.departures: Listeners[NodeGone] = Listeners()
        self.holder = ""
        """Who we are: our own last will, from a connection that we lost, is no news."""
        self.received = 0
        self.malformed = 0
        self.oversize = 0

    def hear(self, heard: Heard) -> None:
        """Take one message. Never raises."""
        try:
            self._take(heard)
        except Exception:  # one message must not end the connection that all others come by
            self.malformed += 1
            log.exception("a message from the broker could not be taken")

    def _take(self, heard: Heard) -> None:
        attempt = self._topics.attempt_of(heard.topic)
        if len(heard.payload) > self._limit:
            self.oversize += 1
        elif attempt is not None:
            self._take_hints(unpacked(heard.payload, attempt or None), heard.subscriptions)
        else:
            node = self._topics.node_of(heard.topic)
            self._take_status(read_status(heard.payload, node) if node else None)

    def _take_hints(self, hints: list[Hint] | None, subscriptions: Sequence[int]) -> None:
        if hints is None:
            self.malformed += 1
            return
        if FOR_US in subscriptions:
            self.claims.offer_all(hints)
        if FOR_ALL in subscriptions or FOR_US not in subscriptions:
            self.received += len(hints)
            self.hints.offer_all(hints)

    def _take_status(self, status: NodeStatus | None) -> None:
        if status is None:
            self.malformed += 1
        elif status.state in _GONE and status.holder != self.holder:
            self.departures.offer(NodeGone(name=status.name, boot=status.boot))
