"""Retries model requests that fail for a temporary reason, following the provider's advice.

A circuit breaker, shared by the models of a run, spares a provider that keeps failing.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import tenacity
from pydantic_ai.exceptions import ModelRequestTimeout
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.tools import RunContext

from midwatch_agents.model_failures import (
    FIRST_TRIES,
    Failure,
    failure_of,
    passing,
    reason_of,
    refusal,
)
from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.config.tasks import Role
from midwatch_tools.pauses import Pause, tell_pause

_SLOW = 20.0
"""Seconds after which a first answer is reported as slow. The rule `silence` covers later ones."""
_LOOK_AGAIN = 1.0
"""Seconds between two checks by other requests on the one that tries the provider."""


class Breaker:
    """The circuit breaker of one provider. Its methods do not await, so they never interleave."""

    def __init__(
        self,
        settings: ProviderSettings,
        seconds: Callable[[], float] = time.monotonic,
        *,
        refusing: bool = False,
    ) -> None:
        """`seconds` is a monotonic clock; `refusing` is explained at `Breakers`."""
        self._settings = settings
        self._seconds = seconds
        self._refusing = refusing
        self._reached = False
        """Whether the provider has ever answered."""
        self._served: set[str] = set()
        """The names of callers whose requests it has accepted."""
        self._broken: Counter[str] = Counter()
        """For each other caller, how often it failed with an error of its own."""
        self.failures = 0
        """Consecutive failed requests."""
        self.reason = ""
        """Why the last request failed."""
        self._opens_at: float | None = None
        """When the provider may be asked again; `None` while the circuit is closed."""
        self._tried_until: float | None = None
        """While half-open, one request tries the provider; after this time, it counts as lost."""

    def ask(self) -> float:
        """Return the seconds to wait; 0 permits a request, whose outcome must be reported."""
        if self._opens_at is None:
            return 0.0
        now = self._seconds()
        if self._tried_until is not None and now < self._tried_until:
            return min(_LOOK_AGAIN, self._tried_until - now)
        if now < self._opens_at:
            return self._opens_at - now
        self._tried_until = now + self._settings.breaker_seconds
        return 0.0

    def refuses(self, failure: Failure, who: str) -> bool:
        """Whether a failed request is a refusal, so that waiting would not help.

        `who` is the caller: a server may serve a model without tools but fail every request with
        them.
        """
        unreached, new = not self._reached, who not in self._served
        self._reached = self._reached or failure is not Failure.UNREACHABLE
        if not self._refusing:
            return False
        match failure:
            case Failure.UNREACHABLE:
                return unreached
            case Failure.BROKEN:
                self._broken[who] += 1
                return new and self._broken[who] >= FIRST_TRIES
            case Failure.REFUSED | Failure.UNPAID | Failure.NOT_FOUND:
                return new
            case _:
                return False

    def serves(self, who: str) -> bool:
        """Whether the provider has ever accepted a request from this caller."""
        return who in self._served

    def note_success(self, who: str = "") -> None:
        """Report that the provider answered, even if only to reject this one request."""
        self._reached = True
        self._served.add(who)
        self.failures, self._opens_at, self._tried_until = 0, None, None

    def note_failure(self, reason: str = "") -> None:
        """Report that the provider could not serve the request."""
        self.failures += 1
        self.reason = reason
        most = self._settings.breaker_failures
        opens = bool(most) and self.failures >= most
        self._opens_at = self._seconds() + self._settings.breaker_seconds if opens else None
        self._tried_until = None

    def release(self) -> None:
        """Report a request whose outcome is unknown: it was canceled, or failed in our own code."""
        self._tried_until = None


class Breakers:
    """The breakers of a run: one for each provider, shared by all models and attempts."""

    def __init__(self, settings: ProviderSettings, *, refusing: bool = False) -> None:
        """If `refusing`, runs do not wait for a provider that has never answered."""
        self._settings = settings
        self._refusing = refusing
        self._known: dict[str, Breaker] = {}

    def of(self, model: Model) -> Breaker:
        """Return the breaker for a model: by its address or, without one, by its provider's name.

        A model without a provider shares nothing with others, so it has its own breaker, which
        never refuses.
        """
        if model.base_url is None and model.provider is None:
            return Breaker(self._settings)
        new = Breaker(self._settings, refusing=self._refusing)
        return self._known.setdefault(model.base_url or model.system, new)


_LONGEST = 60.0
"""Longest wait, in seconds, even if the provider asks for a longer one."""

Sleep = Callable[[float], Awaitable[None]]


class PatientModel(WrapperModel):
    """A model that is asked up to `tries` times before its error ends an attempt.

    Raises ProviderRefusedError if its breaker considers a failed first request a refusal. The
    model's `request_timeout` applies to each try separately. While the breaker of its provider is
    open, it waits without using up a try.
    """

    def __init__(
        self,
        wrapped: Model,
        *,
        tries: int,
        breaker: Breaker,
        role: Role = Role.WORKER,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(wrapped)
        self._who = f"the {role}'s model {wrapped.model_name}"
        self._url = (wrapped.base_url or wrapped.system).rstrip("/")
        self._breaker = breaker
        self._sleep = sleep
        self._retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(passing),
            stop=tenacity.stop_after_attempt(tries),
            wait=wait_seconds,
            before_sleep=self._report_pause,
            reraise=True,
            sleep=sleep,
        )

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, and ask again after a temporary failure."""
        settings = merge_model_settings(self.settings, model_settings) or {}
        seconds = settings.get("request_timeout")

        async def ask() -> ModelResponse:
            async with self._spoken_of(seconds):
                return await self.wrapped.request(
                    messages, model_settings, model_request_parameters
                )

        response: ModelResponse = await self._retrying(self._ask_through_breaker, ask)
        await tell_pause(None)
        return response

    @asynccontextmanager
    async def _spoken_of(self, seconds: float | None) -> AsyncGenerator[None]:
        """Bound one request by `seconds`, and report a first request that takes long."""
        slow = None
        if not self._breaker.serves(self._who):
            slow = asyncio.create_task(self._tell_slow(seconds))
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except TimeoutError:
            if seconds is None or not deadline.expired():
                raise
            raise ModelRequestTimeout(self.model_name, seconds) from None
        finally:
            if slow is not None:
                slow.cancel()

    async def _ask_through_breaker(
        self, ask: Callable[[], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Ask once the breaker permits it, and report the outcome to the breaker."""
        await self._await_admission()
        try:
            response = await ask()
        except Exception as error:
            self._note_failure(error)
            raise
        except BaseException:  # canceled: another request may try the provider
            self._breaker.release()
            raise
        self._breaker.note_success(self._who)
        return response

    def _note_failure(self, error: Exception) -> None:
        """Report a failed request to the breaker. Raises ProviderRefusedError for a refusal."""
        failure, breaker = failure_of(error), self._breaker
        if failure is None:
            breaker.release()
        elif breaker.refuses(failure, self._who):
            breaker.release()
            raise refusal(error, who=self._who, url=self._url) from error
        elif passing(error):
            breaker.note_failure(reason_of(error))
        else:
            breaker.note_success(self._who)

    async def _await_admission(self) -> None:
        told = False
        while seconds := self._breaker.ask():
            if not told:
                reason = self._breaker.reason
                await tell_pause(Pause(url=self._url, reason=reason, seconds=seconds))
                told = True
            await self._sleep(seconds)

    async def _tell_slow(self, seconds: float | None) -> None:
        """Report that the first answer takes a long time; it may take up to `seconds`."""
        left = (seconds or 0) - _SLOW
        if left > 0:
            await self._sleep(_SLOW)
            said = "the first request is still under way"
            await tell_pause(Pause(url=self._url, reason=said, seconds=left, asked=_SLOW))

    async def _report_pause(self, state: tenacity.RetryCallState) -> None:
        """Report that the attempt is waiting, so that its silence is not misjudged."""
        if state.next_action is not None:
            error = state.outcome.exception() if state.outcome else None
            reason = reason_of(error) if error else ""
            await tell_pause(Pause(url=self._url, reason=reason, seconds=state.next_action.sleep))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Return the whole answer as one stream: a stream that breaks off could not be retried."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(
            response, model_request_parameters=model_request_parameters, replay_events=True
        )

    def _start_request_deadline(self, model_settings: ModelSettings | None) -> None:
        # The agent's own deadline would span all tries and the pauses between them.
        return None


_backoff = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST)


def wait_seconds(state: tenacity.RetryCallState) -> float:
    """Return the seconds to wait: the provider's `retry-after`, else a random exponential."""
    error = state.outcome.exception() if state.outcome else None
    headers: dict[str, Any] = getattr(error, "headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:  # absent, or a date, on which clocks may disagree
        return _backoff(state)
    return min(seconds, _LONGEST) if math.isfinite(seconds) and seconds >= 0 else _backoff(state)
