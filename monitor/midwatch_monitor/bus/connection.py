"""What outlives one connection to the broker: the client id, the login, and the log of outages."""

import logging
import random
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault

log = logging.getLogger(__name__)
_SOON = 5.0
"""Seconds. Some brokers end a connection without a reason when another client brings its id. Two
such ends within this time mean that the other client reconnects as well."""
_GUESSED = "so it seems: it ended two connections, one soon after the other, and said no reason"


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

    def lost(self, error: LinkError, *, after: float) -> LinkError:
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

    def failed(self, error: LinkError) -> None:
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

    def connected(self) -> None:
        """There is a connection."""
        if self._reported is not None:
            lasted = self._seconds() - self._began
            log.info("connected to the broker at %s again after %.0f s", self._address, lasted)
        self._reported = None
