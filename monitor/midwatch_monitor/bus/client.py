"""A connection to the broker, and what outlives it: the client id and the log of outages.

The only module that uses the MQTT client.
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

from aiomqtt import Client, Message, MqttError, ProtocolVersion, Will
from paho.mqtt.client import Client as Paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault

log = logging.getLogger(__name__)
_client_log = logging.getLogger("midwatch.mqtt")
"""Messages of the MQTT client itself; `OutageLog` logs what matters about an outage."""
_client_log.addHandler(logging.NullHandler())  # without a handler they would go to stderr
_PATIENCE = 5.0
"""Seconds to wait for an answer from the broker."""
_AT_ONCE = 64
"""Maximum messages awaiting acknowledgement; the client scans all of them for each new one."""
_REFUSED = (134, 135)
"""MQTT reason codes: bad user name or password, not authorised."""
_REFUSED_AT_ONCE = (4, 5, *_REFUSED)
"""Codes that refuse a new connection, including those of MQTT 3.

Once a connection was established, 4 is the client's own code for having none.
"""
_ENDED = 128
"""The client's code if the broker gave no reason."""
_TAKEN_OVER = 142
"""Sent by Mosquitto 2.0.15 and later; older versions, such as Debian 12's, give no reason."""
_ENDING = "it ended the connection"
_SOON = 5.0
"""If two connections end without a reason within these seconds, another client uses our id.

Some brokers give no reason when they end a connection because another client connects with the same
id. A second such end this soon shows that the other client is reconnecting as well.
"""
_GUESSED = "probably: the broker closed two connections in quick succession without a reason"


Hear = Callable[[str, bytes, Sequence[int]], None]
"""Called with a message: its topic, its payload, and the numbers of the matching subscriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Credentials, session and last will of this client."""

    client: str
    """The client id; empty if the broker should assign one."""
    username: str
    password: str | None = field(repr=False)
    session_seconds: int
    """How long the broker keeps messages while this client is away; 0 to start fresh each time."""
    will: tuple[str, bytes] | None = None
    """Topic and retained payload that the broker publishes once this client no longer answers."""


class _Client(Client):
    """Writes messages at once; the loop watches the socket only for what did not fit.

    With the base class, the loop would watch the socket first and write an iteration later. That
    takes time, and by then the socket may be closed, which asyncio reports as our error, or its
    number may belong to another socket.
    """

    @property
    def accepted(self) -> bool:
        """Whether the broker accepted the connection, whatever happened after that."""
        return self._connected.done() and self._connected.exception() is None

    async def __aenter__(self) -> Self:
        """Connect, and raise MqttError if the connection ended as soon as it was established.

        The base class would continue without the connection, and forget why it ended.
        """
        ended = self._disconnected
        try:
            await super().__aenter__()
        finally:
            error = ended.exception() if ended.done() else None
        if error is not None:
            self._disconnected.set_result(None)
            raise MqttError(str(error)) from error
        return self

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
        except RuntimeError:  # called by the thread that connects
            self._loop.call_soon_threadsafe(write_all)
        else:
            write_all()


class Link:
    """An established connection. Every method raises LinkError once it is lost."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    async def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish a message, and return once the broker has it (QoS 1)."""
        try:
            await self._client.publish(topic, payload, qos=1, retain=retain)
        except MqttError as error:
            raise _link_error(error) from error

    async def subscribe(self, topic: str, *, number: int) -> None:
        """Subscribe to a topic; its messages carry `number`, which must be 1 or more.

        Our own messages do not come back, except through a shared subscription, for which the
        protocol forbids that option.
        """
        options = SubscribeOptions(qos=1, noLocal=not topic.startswith("$share/"))
        properties = Properties(PacketTypes.SUBSCRIBE)
        properties.SubscriptionIdentifier = number
        try:
            await self._client.subscribe(topic, options=options, properties=properties)
        except MqttError as error:
            raise _link_error(error) from error

    async def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        try:
            await self._client.unsubscribe(topic)
        except MqttError as error:
            raise _link_error(error) from error

    async def over(self) -> LinkError:
        """Wait until the connection has ended, and return the reason."""
        try:
            async for _ in self._client.messages:
                pass  # nothing is queued: `hear` gets messages at once
        except MqttError as error:
            return _link_error(error)
        return LinkError(LinkFault.AWAY, "the connection ended")


@asynccontextmanager
async def connect(settings: BrokerSettings, login: Login, hear: Hear) -> AsyncGenerator[Link]:
    """Connect, and disconnect at the end of the block. Raises LinkError if that fails.

    `hear` is called with every message and must not raise. The connection waits for it, so no more
    is read than it can process.
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
        raise _link_error(error, stood=client.accepted) from error
    try:
        yield Link(client)
    finally:
        with suppress(MqttError):  # already lost
            await client.__aexit__(None, None, None)


async def _connect(client: Client) -> None:
    """Connect.

    The client connects in a thread that cannot be stopped, so a canceled caller waits for it, a
    few seconds at most; otherwise nobody would close the connection.
    """
    entering = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        await asyncio.wait({entering})
        if not entering.cancelled() and entering.exception() is None:
            with suppress(MqttError):
                await client.__aexit__(None, None, None)
        raise


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
        queue_type=_queue_class(hear),
        max_inflight_messages=_AT_ONCE,
        max_concurrent_outgoing_calls=_AT_ONCE,
        # Otherwise a message waits until the peer's kernel has acknowledged the previous one, which
        # takes 40 ms.
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
    client.pending_calls_threshold = 2 * _AT_ONCE
    return client


def _queue_class(hear: Hear) -> type[asyncio.Queue[Message]]:
    """Return a queue class that passes messages on at once, without a task for each of them."""

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
    """Closes the socket if the handshake fails; the client would leave it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _link_error(error: MqttError, *, stood: bool = True) -> LinkError:
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
    """Return the broker's host and port; the port defaults to 1883, with TLS to 8883."""
    parts = urlsplit(settings.url)
    return parts.hostname or "", parts.port or (8883 if parts.scheme == "mqtts" else 1883)


def read_password(settings: BrokerSettings, environ: Mapping[str, str]) -> str | None:
    """Return the password from its file, or else from its environment variable; `None` without one.

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
        raise LinkError(LinkFault.AWAY, f"{file} is not valid UTF-8 text") from None


def pause(tries: int, longest: float) -> float:
    """Return the seconds until the next try to connect, at most `longest`.

    They are random, so that clients do not all come back at once: up to 0.2 s after the first try,
    up to twice as long after each further one.
    """
    return random.uniform(0, min(longest, 0.2 * 2.0 ** min(tries - 1, 30)))


class ClientId:
    """The client id in use.

    A broker ends a client's connection when another client connects with the same id. If both
    reconnected with that id, they would end each other's connections forever. So this process gives
    up the id as soon as another one uses it, and never takes it back.
    """

    def __init__(self, client: str, *, own: str) -> None:
        """Begin with `client`; `own` is an id that no other process has.

        With an empty `client` the broker assigns ids, which are unique as well.
        """
        self.client = client
        self.kept = bool(client)
        """Whether the broker should keep messages while this process is away.

        Not with an id that only this process uses, because nobody would collect them.
        """
        self._own = own
        self._ended = False

    def classify_loss(self, error: LinkError, *, after: float) -> LinkError:
        """Return why a connection, or a try to connect, ended after `after` seconds.

        The fault is AWAY, REFUSED or, once, TAKEN_OVER if another process uses the given id.
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


def refusal_text(settings: BrokerSettings, username: str) -> str:
    """Return what a person must do if the broker refuses this user."""
    source = settings.password_file or f"${settings.password_env}"
    return f"refuses the user {username!r}: check the account, and its password in {source}"


class OutageLog:
    """Logs each outage once, with what a person must do to end it, and how long it lasted."""

    def __init__(
        self,
        settings: BrokerSettings,
        username: str,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without an outage; `seconds` is a monotonic clock."""
        host, port = address_of(settings)
        self._address = f"{host}:{port}"
        self._refusal = refusal_text(settings, username)
        self._seconds = seconds
        self._began = 0.0
        self._reported: LinkFault | None = None

    def note_failure(self, error: LinkError) -> None:
        """Log that there is no connection and why, unless that was logged before."""
        if error.fault is self._reported:
            return
        if self._reported is None:
            self._began = self._seconds()
        self._reported = error.fault
        if error.fault is LinkFault.REFUSED:
            log.warning(
                "the broker at %s %s; until then hints are delayed", self._address, self._refusal
            )
        elif error.fault is LinkFault.TAKEN_OVER:
            log.warning(
                "another process uses the same client id at the broker %s (%s); continuing with a "
                "unique id, for which the broker keeps no hints while this process is away; give "
                "each process its own --name",
                self._address,
                error,
            )
        else:
            message = "no connection to the broker at %s (%s): hints are delayed until it is back"
            log.warning(message, self._address, error)

    def note_connection(self) -> None:
        """Log that the outage is over, if there was one."""
        if self._reported is not None:
            lasted = self._seconds() - self._began
            log.info("connected to the broker at %s again after %.0f s", self._address, lasted)
        self._reported = None
