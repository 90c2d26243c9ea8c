"""Times without a connection: what is logged of them, and how long each try waits."""

import logging
import time
from collections.abc import Callable

from midwatch_monitor.bus.link import Address
from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault

log = logging.getLogger(__name__)


class Outage:
    """Logs each outage once, with what a person must do to end it, and how long it lasted."""

    def __init__(
        self,
        address: Address,
        settings: BrokerSettings,
        username: str,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._address = address
        self._seconds = seconds
        self._began = 0.0
        self._source = settings.password_file or f"${settings.password_env}"
        self._username = username
        self._told: LinkFault | None = None

    def tell(self, error: LinkError) -> None:
        """There is no connection, for this reason."""
        if error.fault is self._told:
            return
        if self._told is None:
            self._began = self._seconds()
        self._told = error.fault
        if error.fault is LinkFault.REFUSED:
            log.warning(
                "the broker at %s does not let %r in: check that it has this account, and its "
                "password in %s; until then hints are late",
                self._address,
                self._username,
                self._source,
            )
        elif error.fault is LinkFault.TAKEN_OVER:
            log.warning(
                "another process comes to the broker at %s by the name of this one (%s): this one "
                "goes on by an id of its own, for which the broker keeps no hints while it is "
                "away; start each with a --name of its own",
                self._address,
                error,
            )
        else:
            log.warning(
                "no connection to the broker at %s (%s): hints are late until it is back",
                self._address,
                error,
            )

    def end(self) -> None:
        """There is a connection."""
        if self._told is not None:
            lasted = self._seconds() - self._began
            log.info("connected to the broker at %s again after %.0f s", self._address, lasted)
        self._told = None


def pause(tries: int, longest: float) -> float:
    """Seconds until the next try to connect, by chance: when a broker comes back, not all come to
    it at the same moment. Up to 0.2 after the first try, up to twice as long after each other."""
    import tenacity  # dear, and only an outage needs it

    state = tenacity.RetryCallState(tenacity.AsyncRetrying(), None, (), {})
    state.attempt_number = tries
    wait: Callable[[tenacity.RetryCallState], float] = tenacity.wait_random_exponential(
        multiplier=0.2, max=longest
    )
    return wait(state)
