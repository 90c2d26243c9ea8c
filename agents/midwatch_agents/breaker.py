"""The circuit breaker that spares a provider which keeps failing, shared by a run's models."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic_ai.models import Model

from midwatch_monitor.config.protocol import ProviderSettings

_LOOK_AGAIN = 1.0
"""Seconds; while one request tries the provider, the others look so often what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """Where a breaker stands. Moments are seconds of a clock that never goes back."""

    failures: int = 0
    """Failed requests in a row."""
    opens_at: float | None = None
    """When the provider may be asked again; `None` while the circuit is closed."""
    tried_until: float | None = None
    """Half-open: one request tries the provider, and counts as lost after this moment."""

    def wait(self, now: float) -> float:
        """Seconds until the provider may be asked, as far as that is known; 0 for now."""
        if self.opens_at is None:
            return 0.0
        if self.tried_until is not None and now < self.tried_until:
            return min(_LOOK_AGAIN, self.tried_until - now)
        return max(0.0, self.opens_at - now)

    def asked(self, now: float, seconds: float) -> "Circuit":
        """One request goes out; of an open circuit it is the one that tries."""
        return self if self.opens_at is None else replace(self, tried_until=now + seconds)

    def failed(self, now: float, settings: ProviderSettings) -> "Circuit":
        """After a request that the provider could not serve."""
        failures = self.failures + 1
        opens = bool(settings.breaker_failures) and failures >= settings.breaker_failures
        return Circuit(
            failures=failures, opens_at=now + settings.breaker_seconds if opens else None
        )

    def released(self) -> "Circuit":
        """After a request of which nothing is known: cancelled, or failed in our own code."""
        return replace(self, tried_until=None)


CLOSED = Circuit()


class Breaker:
    """The breaker of one provider. All that it does happens between two awaits."""

    def __init__(
        self, settings: ProviderSettings, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._seconds = seconds
        self.circuit = CLOSED

    def ask(self) -> float:
        """Seconds to wait; 0 lets a request out, which must tell how it went."""
        now = self._seconds()
        wait = self.circuit.wait(now)
        if not wait:
            self.circuit = self.circuit.asked(now, self._settings.breaker_seconds)
        return wait

    def succeeded(self) -> None:
        """The provider answered, if only that it does not want such a request."""
        self.circuit = CLOSED

    def failed(self) -> None:
        """The provider could not serve the request."""
        self.circuit = self.circuit.failed(self._seconds(), self._settings)

    def released(self) -> None:
        """Nothing is known of the request."""
        self.circuit = self.circuit.released()


class Breakers:
    """The breakers of a run: one for each provider, however many models and attempts ask it."""

    def __init__(
        self, settings: ProviderSettings, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._seconds = seconds
        self._known: dict[str, Breaker] = {}

    def of(self, model: Model) -> Breaker:
        """The breaker for a model: that of its address or, without one, of its provider's name.

        A model without a provider asks nobody that another asks, so its breaker is its own.
        """
        if model.base_url is None and model.provider is None:
            return Breaker(self._settings, self._seconds)
        key = model.base_url or model.system
        return self._known.setdefault(key, Breaker(self._settings, self._seconds))
