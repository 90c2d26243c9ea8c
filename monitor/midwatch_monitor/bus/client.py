"""One connection to the broker, and what outlives it: the client id, the log of outages.

The one module that knows the MQTT client.
"""

import asyncio
import logging
import random
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from aiomqtt import Client, Message, MqttCodeError, MqttError, ProtocolVersion, Will
from paho.mqtt.client import Client as Paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault

log = logging.getLogger(__name__)
_client_log = logging.getLogger("midwatch.mqtt")
"""For what the client itself says. Of an outage, `OutageLog` tells what matters."""
_client_log.addHandler(logging.NullHandler())  # without one it would go to stderr, bare
_PATIENCE = 5.0
"""Seconds that the broker has for one answer."""
_AT_ONCE = 64
"""Messages that wait for their acknowledgement at the same time. The client looks through all of
them at each new one."""
_REFUSED = (134, 135)
"""MQTT's reasons: bad user name or password, not authorised."""
_REFUSED_AT_ONCE = (4, 5, *_REFUSED)
"""The same of version 3 too, with which a broker answers only who comes: later on the client's own
4 says that there is no connection."""
_ENDED = 128
"""What the client says where the broker gave no reason."""
_TAKEN_OVER = 142
"""Mosquitto says so from 2.0.15 on; older ones, as that of Debian 12, give no reason."""
_ENDING = "it ended the connection"
_SOON = 5.0
"""Seconds. Some brokers end a connection without a reason when another client brings its id. Two
such ends within this time mean that the other client reconnects as well."""
_GUESSED = "so it seems: it ended two connections, one soon after the other, and said no reason"


Hear = Callable[[str, bytes, Sequence[int]], None]
"""Takes a message: its topic, its payload, and the numbers of the subscriptions that it matched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The credentials of this client."""

    client: str
    """The client id; empty for one that the broker makes up."""
    username: str
    password: str | None = field(repr=False)
    session_seconds: int
    """How long the broker keeps what comes while we are away; 0 to begin anew each time."""
    will: tuple[str, bytes] | None = None
    """The topic and the retained payload that the broker publishes once we no longer answer."""


class _Client(Client):
    """Writes at once what is to be said, and lets the loop watch the socket only for what did not
    fit.

    The client would have it watched from the next turn of the loop on and write in the one after.
    That takes time, and by then the socket may be closed, which asyncio reports as an error of
    ours, or its number belong to another.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_flight: dict[int, asyncio.Future[None]] = {}

    @property
    def accepted(self) -> bool:
        """Whether the broker has let us in, whatever came then."""
        return self._connected.done() and self._connected.exception() is None

    async def __aenter__(self) -> Self:
        """Connect. A connection that was ended as soon as it stood is none; the client would go on
        without it, and forget why."""
        ended = self._disconnected
        try:
            await super().__aenter__()
        finally:
            error = ended.exception() if ended.done() else None
        if error is not None:
            self._disconnected.set_result(None)
            raise MqttError(str(error)) from error
        return self

    def send(self, topic: str, payload: bytes) -> asyncio.Future[None]:
        """Publish (QoS 1) before this returns; its acknowledgement. The client's own way takes two
        tasks for each message, and one more turn of the loop."""
        flight: asyncio.Future[None] = self._loop.create_future()
        info = self._client.publish(topic, payload, qos=1)
        if info.rc:
            flight.set_exception(_fault(MqttCodeError(info.rc, "Could not publish message")))
            return flight
        self._in_flight[info.mid] = flight
        patience = self._loop.call_later(_PATIENCE, _time_out, flight)
        flight.add_done_callback(lambda _: patience.cancel())
        return flight

    def _on_publish(
        self,
        client: Paho,
        userdata: Any,
        mid: int,
        reason_code: ReasonCode,
        properties: Properties,
    ) -> None:
        flight = self._in_flight.pop(mid, None)
        if flight is None:
            super()._on_publish(client, userdata, mid, reason_code, properties)
        elif not flight.done():
            flight.set_result(None)

    def _on_socket_register_write(self, client: Paho, userdata: Any, sock: Any) -> None:
        def write() -> None:
            try:
                client.loop_write()
            except Exception as error:
                if not self._disconnected.done():
                    self._disconnected.set_exception(error)

        def write_all() -> None:
            write()
            if sock.fileno() >= 0 and client.want_write():
                self._loop.add_writer(sock.fileno(), write)

        try:
            asyncio.get_running_loop()
        except RuntimeError:  # it is in the thread that connects
            self._loop.call_soon_threadsafe(write_all)
        else:
            write_all()


class Link:
    """A connection that stands. Every method raises LinkError once it does not."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    async def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Say something; returns when the broker has it (QoS 1)."""
        try:
            await self._client.publish(topic, payload, qos=1, retain=retain)
        except MqttError as error:
            raise _fault(error) from error

    def send(self, topic: str, payload: bytes) -> asyncio.Future[None]:
        """Say something at once; done when the broker has it, or failed with a LinkError."""
        return self._client.send(topic, payload)

    async def subscribe(self, topic: str, *, number: int) -> None:
        """Hear what is said there; what comes by it has this number, 1 or more.

        What we say ourselves does not come back, except by a shared subscription, where the
        protocol forbids to ask for that.
        """
        options = SubscribeOptions(qos=1, noLocal=not topic.startswith("$share/"))
        properties = Properties(PacketTypes.SUBSCRIBE)
        properties.SubscriptionIdentifier = number
        try:
            await self._client.subscribe(topic, options=options, properties=properties)
        except MqttError as error:
            raise _fault(error) from error

    async def unsubscribe(self, topic: str) -> None:
        """Hear nothing more of what is said there."""
        try:
            await self._client.unsubscribe(topic)
        except MqttError as error:
            raise _fault(error) from error

    async def over(self) -> LinkError:
        """Wait until the connection has ended; why it did."""
        try:
            async for _ in self._client.messages:
                pass  # none is ever queued: what is heard is handed on at once
        except MqttError as error:
            return _fault(error)
        return LinkError(LinkFault.AWAY, "the connection ended")


@asynccontextmanager
async def connect(settings: BrokerSettings, login: Login, hear: Hear) -> AsyncGenerator[Link]:
    """Connect, and disconnect in the end. Raises LinkError where that cannot be done.

    `hear` is called with every message and must not raise; its work keeps the connection waiting,
    so that no more is read than it can follow.
    """
    try:
        tls = await asyncio.to_thread(_tls, settings) if settings.url.startswith("mqtts:") else None
    except OSError as error:
        why = f"the certificate {settings.ca_file} cannot be used: {error}"
        raise LinkError(LinkFault.AWAY, why) from error
    client = _client(settings, login, hear, tls)
    try:
        await _connect(client)
    except MqttError as error:
        raise _fault(error, stood=client.accepted) from error
    try:
        yield Link(client)
    finally:
        with suppress(MqttError):  # it was lost already, for whatever reason
            await client.__aexit__(None, None, None)


async def _connect(client: Client) -> None:
    """Connect. The client does that in a thread which cannot be stopped, so who is cancelled
    waits for it, a few seconds at most: else a connection would stay that nobody closes."""
    entering = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        await asyncio.wait({entering})
        if not entering.cancelled() and entering.exception() is None:
            with suppress(MqttError):
                await client.__aexit__(None, None, None)
        raise


def _time_out(flight: asyncio.Future[None]) -> None:
    if not flight.done():
        flight.set_exception(LinkError(LinkFault.AWAY, "a message was not acknowledged"))


def _client(
    settings: BrokerSettings, login: Login, hear: Hear, tls: ssl.SSLContext | None
) -> _Client:
    host, port = address_of(settings)
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = login.session_seconds
    client = _Client(
        host,
        port,
        identifier=login.client,
        username=login.username,
        password=login.password,
        protocol=ProtocolVersion.V5,
        clean_start=not login.session_seconds,
        properties=properties,
        will=login.will and Will(*login.will, qos=1, retain=True),
        keepalive=settings.keepalive_seconds,
        logger=_client_log,
        timeout=_PATIENCE,
        tls_context=tls,
        queue_type=_ear(hear),
        max_inflight_messages=_AT_ONCE,
        max_concurrent_outgoing_calls=_AT_ONCE,
        # Else a message that follows another waits until the first was confirmed by the peer's
        # kernel, which takes its time: 40 ms.
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
    client.pending_calls_threshold = 2 * _AT_ONCE
    return client


def _ear(hear: Hear) -> type[asyncio.Queue[Message]]:
    """A queue that hands everything on at once: none that grows, and no task for each message."""

    class Ear(asyncio.Queue[Message]):
        def put_nowait(self, item: Message) -> None:
            numbers: list[int] = getattr(item.properties, "SubscriptionIdentifier", [])
            hear(item.topic.value, item.payload, numbers)

    return Ear


def _tls(settings: BrokerSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_file)
    context.sslsocket_class = _TlsSocket
    return context


class _TlsSocket(ssl.SSLSocket):
    """The client leaves a socket open whose other end it does not trust."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _fault(error: MqttError, *, stood: bool = True) -> LinkError:
    source = error.__cause__ or error
    code = getattr(source, "rc", None)
    value = getattr(code, "value", code)
    if value in (_REFUSED if stood else _REFUSED_AT_ONCE):
        return LinkError(LinkFault.REFUSED, str(error))
    if value == _TAKEN_OVER:
        return LinkError(LinkFault.TAKEN_OVER, str(source))
    if value == _ENDED and stood:
        return LinkError(LinkFault.ENDED, _ENDING)
    return LinkError(LinkFault.AWAY, str(source))


def address_of(settings: BrokerSettings) -> tuple[str, int]:
    """The broker's host and port; the port defaults to 1883, with TLS to 8883."""
    parts = urlsplit(settings.url)
    return parts.hostname or "", parts.port or (8883 if parts.scheme == "mqtts" else 1883)


def read_password(settings: BrokerSettings, environ: Mapping[str, str]) -> str | None:
    """The password from its file, else from its environment variable; `None` if there is none.

    Raises LinkError for a file that cannot be read; the error never quotes the file.
    """
    file = settings.password_file
    if file is None:
        return environ.get(settings.password_env) or None
    try:
        return file.read_text("utf-8").strip("\r\n") or None
    except OSError as error:
        raise LinkError(LinkFault.AWAY, f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LinkError(LinkFault.AWAY, f"{file} is no text in UTF-8") from None


def pause(tries: int, longest: float) -> float:
    """Seconds until the next try to connect, at most `longest`.

    Drawn at random, so that not all clients come back at once: up to 0.2 s after the first try, up
    to twice as long after each further one.
    """
    return random.uniform(0, min(longest, 0.2 * 2.0 ** min(tries - 1, 30)))


class ClientId:
    """The client id in use.

    A broker ends the connection of a client whose id another one brings. If both reconnected by
    that id, each would end the other's connection for ever, so this process gives the id up as soon
    as another one uses it, and never takes it again.
    """

    def __init__(self, client: str, *, own: str) -> None:
        """Begin with `client`; `own` is an id that no other process has.

        An empty `client` lets the broker assign ids, which are unique as well.
        """
        self.client = client
        self.kept = bool(client)
        """Whether the broker should keep messages while this process is away. For an id that ends
        with the process nobody would collect them."""
        self._own = own
        self._ended = False

    def classify_loss(self, error: LinkError, *, after: float) -> LinkError:
        """Classify a connection, or an attempt to connect, that ended `after` so many seconds.

        The result says AWAY, REFUSED or, once, TAKEN_OVER: another process has the given id.
        """
        ended = error.fault is LinkFault.ENDED
        guessed = ended and self._ended and after < _SOON
        self._ended = ended
        if self.kept and (guessed or error.fault is LinkFault.TAKEN_OVER):
            self.client, self.kept = self._own, False
            return LinkError(LinkFault.TAKEN_OVER, _GUESSED if guessed else str(error))
        if error.fault is LinkFault.REFUSED:
            return error
        return LinkError(LinkFault.AWAY, str(error))


class OutageLog:
    """Logs each outage once, with what a person must do to end it, and how long it lasted."""

    def __init__(
        self,
        settings: BrokerSettings,
        username: str,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is a clock that never goes back."""
        host, port = address_of(settings)
        self._address = f"{host}:{port}"
        self._source = settings.password_file or f"${settings.password_env}"
        self._username = username
        self._seconds = seconds
        self._began = 0.0
        self._reported: LinkFault | None = None

    def note_failure(self, error: LinkError) -> None:
        """There is no connection, for this reason."""
        if error.fault is self._reported:
            return
        if self._reported is None:
            self._began = self._seconds()
        self._reported = error.fault
        if error.fault is LinkFault.REFUSED:
            advice = (
                f"does not let {self._username!r} in: check that it has this account, and its "
                f"password in {self._source}; until then hints are late"
            )
            log.warning("the broker at %s %s", self._address, advice)
        elif error.fault is LinkFault.TAKEN_OVER:
            log.warning(
                "another process comes to the broker at %s by the name of this one (%s): this one "
                "goes on by an id of its own, for which the broker keeps no hints while it is "
                "away; start each with a --name of its own",
                self._address,
                error,
            )
        else:
            message = "no connection to the broker at %s (%s): hints are late until it is back"
            log.warning(message, self._address, error)

    def note_connection(self) -> None:
        """There is a connection."""
        if self._reported is not None:
            lasted = self._seconds() - self._began
            log.info("connected to the broker at %s again after %.0f s", self._address, lasted)
        self._reported = None
