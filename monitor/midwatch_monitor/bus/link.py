"""What a connection to the broker needs."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from midwatch_monitor.config.fleet import BrokerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the broker is."""

    host: str
    port: int
    secure: bool
    ca_file: Path | None
    keepalive: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """As whom we come to it."""

    client: str
    """The client id; empty for one that the broker makes up."""
    username: str
    password: str | None = field(repr=False)
    session_seconds: int
    """How long the broker keeps what comes while we are away; 0 to begin anew each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Will:
    """What the broker says of us, and keeps, once we no longer answer."""

    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One message."""

    topic: str
    payload: bytes
    subscriptions: tuple[int, ...] = ()
    """The numbers of our subscriptions that it came by."""


def address_of(settings: BrokerSettings) -> Address:
    """Where the broker of the settings is: 1883 and, with TLS, 8883 unless its URL says it."""
    parts = urlsplit(settings.url)
    secure = parts.scheme == "mqtts"
    return Address(
        host=parts.hostname or "",
        port=parts.port or (8883 if secure else 1883),
        secure=secure,
        ca_file=settings.ca_file,
        keepalive=settings.keepalive_seconds,
    )
