"""The bus between machines: hints and liveness over an MQTT broker, which may be unavailable.

Its messages only say where to look; what happened is read from the journal.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Self

from midwatch_monitor.bus.client import (
    ClientId,
    Link,
    Login,
    OutageLog,
    connect,
    pause,
    read_password,
)
from midwatch_monitor.bus.local import (
    Audience,
    BusCounters,
    Departures,
    Mailbox,
    NodeGone,
    Subscription,
)
from midwatch_monitor.bus.payload import (
    Topics,
    decode_hints,
    decode_status,
    encode_hints,
    encode_status,
    is_topic_name,
)
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.errors import LinkError, LinkFault, UsageError
from midwatch_monitor.records import Hint, NodeState, NodeStatus

log = logging.getLogger(__name__)

FOR_ALL, FOR_US = 1, 2
"""Numbers of our subscriptions: to what everybody gets, and to what only one of a group gets."""
_STEADY = 5.0
"""Seconds. A connection lost sooner counts as a failed try, and the next pause is longer."""
_CLOSE_SECONDS = 3.0
"""Seconds allowed for sending what is waiting and leaving."""


class Receiver:
    """Passes messages on to the listeners of this process; unreadable ones are ignored."""

    def __init__(self, topics: Topics, *, limit: int) -> None:
        self._topics = topics
        self._limit = limit
        self.hints = Audience()
        self.claims = Audience()
        """Listeners for the hints that this process alone gets."""
        self.departures: list[Departures] = []
        self.holder = ""
        """Our own holder's name: our last will, from a connection that we lost, is ignored."""

    def hear(self, topic: str, payload: bytes, subscriptions: Sequence[int]) -> None:
        """Take in one message. Never raises."""
        try:
            self._take_message(topic, payload, subscriptions)
        except Exception:  # one message must not end the connection
            log.exception("a message from the broker could not be processed")

    def _take_message(self, topic: str, payload: bytes, subscriptions: Sequence[int]) -> None:
        if len(payload) > self._limit:
            return
        attempt = self._topics.attempt_of(topic)
        if attempt is not None:
            self._take_hints(decode_hints(payload, attempt or None) or [], subscriptions)
        elif node := self._topics.node_of(topic):
            self._take_status(decode_status(payload, node))

    def _take_hints(self, hints: list[Hint], subscriptions: Sequence[int]) -> None:
        if FOR_US in subscriptions:
            self.claims.offer(hints)
        if FOR_ALL in subscriptions or FOR_US not in subscriptions:
            self.hints.offer(hints)

    def _take_status(self, status: NodeStatus | None) -> None:
        if status is not None and status.state.gone and status.holder != self.holder:
            for box in self.departures:
                box.offer((NodeGone(name=status.name, boot=status.boot),))


class Outbox(Mailbox[Hint]):
    """Hints that wait to be sent."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put_back(self, hints: Sequence[Hint]) -> None:
        """Requeue hints that could not be sent; they are older than all others."""
        surplus = max(0, len(hints) + len(self) - self._capacity)
        self.dropped += surplus
        self._waiting.extendleft(reversed(hints[surplus:]))
        self.ring()

    def ring(self) -> None:
        """Wake the sender, even if there is nothing to send."""
        self._news.set()


class MqttBus:
    """Carries hints to every process of the fleet, and reports which nodes are gone.

    Belongs to the thread of one event loop. Entering returns at once: it connects and reconnects in
    the background, and hints published in the meantime wait, up to `max_waiting`.
    """

    def __init__(
        self,
        settings: FleetSettings,
        *,
        name: str,
        status: NodeStatus | None = None,
        environ: Mapping[str, str],
        share: str = "",
        session: bool = True,
    ) -> None:
        """Create a bus; with a `status` this process is a node, and the fleet is told if it dies.

        `share` names a group whose members each get a part of the hints as `claims`. Without a
        `session` the broker keeps nothing for this process while it is away: this is for consoles,
        several of which may have the same name. Raises UsageError if a topic cannot contain the
        name.
        """
        if not is_topic_name(name) or (status and status.name != name):
            raise UsageError(
                f"{name!r} is not a valid node name: use letters (a-z, A-Z), digits and . _ -"
            )
        self._settings = settings.broker
        self._topics = Topics(settings.name)
        self._name = name
        self._username = settings.broker.username or name
        self._environ = environ
        self._share = share
        role = "monitor" if share else "node"
        client = f"midwatch-{settings.name}-{role}-{name}"
        self._client_id = ClientId(client if session else "", own=f"{client}-{token_hex(4)}")
        self._status: NodeStatus | None = None
        self._said: NodeStatus | None = None
        self._outbox = Outbox(settings.broker.max_waiting)
        self._receiver = Receiver(self._topics, limit=settings.broker.max_payload_bytes)
        self._outage = OutageLog(settings.broker, self._username)
        self._connected = False
        self._sent = 0
        self._under_way = 0
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        if status is not None:
            self.announce(status)

    @property
    def counters(self) -> BusCounters:
        """Numbers of hints that went through it."""
        return BusCounters(
            sent=self._sent,
            waiting=len(self._outbox) + self._under_way,
            dropped=self._outbox.dropped,
            connected=self._connected,
        )

    def publish(self, hint: Hint) -> None:
        """Pass a hint on, in this process at once, to all others soon. Never blocks or raises."""
        self._receiver.hints.offer((hint,))
        self._outbox.offer((hint,))

    def subscribe(self, attempt: int | None = None) -> Subscription:
        """Return a new queue that gets every hint of all processes, until it is closed.

        With an attempt, it gets only the hints about that attempt or about none.
        """
        return self._receiver.hints.listen(attempt, capacity=self._settings.max_waiting)

    def claims(self) -> Subscription:
        """Return a queue as in the protocol; it stays empty without a `share`."""
        return self._receiver.claims.listen(capacity=self._settings.max_waiting)

    def departures(self) -> Departures:
        """Return a new queue of the nodes that the broker reports gone.

        On every connection, the broker reports again those that left and did not come back.
        """
        open_ = [box for box in self._receiver.departures if not box.closed]
        self._receiver.departures = [*open_, departures := Departures()]
        return departures

    def announce(self, status: NodeStatus) -> None:
        """Have the broker keep and announce this status, now and on every connection."""
        self._status = status
        self._receiver.holder = status.holder
        self._outbox.ring()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._stay_connected(), name="mqtt bus")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is waiting and leave, within `_CLOSE_SECONDS`."""
        task, self._task = self._task, None
        self._leaving.set()
        self._outbox.ring()
        if task is None:
            return
        try:
            await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _stay_connected(self) -> None:
        """Connect, and reconnect, until it is time to leave."""
        clock = asyncio.get_running_loop().time
        tries = 0
        while not self._leaving.is_set():
            began = clock()
            fault = await self._use_connection()
            lasted = clock() - began
            tries = 1 if lasted > _STEADY else tries + 1
            if fault is not None:
                self._outage.note_failure(self._client_id.classify_loss(fault, after=lasted))
                await self._pause(pause(tries, self._settings.max_wait_seconds))

    async def _use_connection(self) -> LinkError | None:
        """Use one connection until it ends, and return why it did; `None` if we left."""
        try:
            login = await asyncio.to_thread(self._login)
            async with connect(self._settings, login, self._receiver.hear) as link:
                return await self._exchange_messages(link)
        except LinkError as error:
            return error
        except Exception:  # work continues without hints
            log.exception("the bus failed, trying again")
            return LinkError(LinkFault.AWAY, "the bus failed")
        finally:
            self._connected = False

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._leaving.wait()
        except TimeoutError:
            return

    def _login(self) -> Login:
        return Login(
            client=self._client_id.client,
            username=self._username,
            password=read_password(self._settings, self._environ),
            session_seconds=self._settings.session_seconds if self._client_id.kept else 0,
            will=self._status and self._message(self._status, NodeState.LOST),
        )

    def _message(self, status: NodeStatus, state: NodeState) -> tuple[str, bytes]:
        return self._topics.status(self._name), encode_status(replace(status, state=state))

    async def _exchange_messages(self, link: Link) -> LinkError | None:
        """Send and receive until the connection ends or it is time to leave."""
        over = asyncio.create_task(link.over())
        sending = asyncio.create_task(self._send(link))
        try:
            await asyncio.wait({over, sending}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                return over.result()
            error = sending.exception()
            if isinstance(error, LinkError) and over.done():
                return over.result()  # it has the reason
            return sending.result()
        finally:
            over.cancel()
            sending.cancel()
            await asyncio.wait({over, sending})

    async def _announce_arrival(self, link: Link) -> None:
        """Publish the status, then subscribe.

        The status comes first, because it replaces the one that the broker kept from an earlier
        start of this node.
        """
        self._said = None
        await self._publish_status(link)
        await link.subscribe(self._topics.statuses, number=FOR_ALL)
        await link.subscribe(self._topics.events, number=FOR_ALL)
        if self._share:
            await link.subscribe(self._topics.turns(self._share), number=FOR_US)
        self._connected = True
        self._outage.note_connection()

    async def _send(self, link: Link) -> None:
        """Send what is waiting; hints that arrive in the meantime form the next batch."""
        await self._announce_arrival(link)
        while not self._leaving.is_set() or len(self._outbox):
            await self._send_batch(link, await self._outbox.wait())
            await self._publish_status(link)
        await self._announce_leaving(link)

    async def _send_batch(self, link: Link, hints: Sequence[Hint]) -> None:
        """Send hints, and return once the broker has them.

        If that fails, all of them wait again: sent twice is better than lost.
        """
        self._under_way = len(hints)
        messages = list(self._messages(hints))
        try:
            await asyncio.gather(*(link.publish(topic, body) for topic, body, _ in messages))
        except BaseException:
            self._outbox.put_back(hints)
            raise
        finally:
            self._under_way = 0
        sent = sum(count for _, _, count in messages)
        self._sent += sent
        self._outbox.dropped += len(hints) - sent  # hints that fit into no message

    def _messages(self, hints: Sequence[Hint]) -> Iterator[tuple[str, bytes, int]]:
        """Yield topic, payload and number of hints of each message, attempt by attempt."""
        groups: dict[int | None, list[Hint]] = defaultdict(list)
        for hint in hints:
            groups[hint.attempt].append(hint)
        for attempt, group in groups.items():
            topic = self._topics.events_of(attempt)
            for payload, part in encode_hints(group, self._settings.max_payload_bytes):
                yield topic, payload, len(part)

    async def _publish_status(self, link: Link) -> None:
        status = self._status
        if status is not None and status != self._said:
            await link.publish(*self._message(status, status.state), retain=True)
            self._said = status

    async def _announce_leaving(self, link: Link) -> None:
        """Announce that this process is leaving.

        It leaves its group first, so that the group's hints go to the remaining members.
        """
        if self._share:
            await link.unsubscribe(self._topics.turns(self._share))
        if self._status is not None:
            self._status = replace(self._status, state=NodeState.DOWN, busy=0)
            await self._publish_status(link)
