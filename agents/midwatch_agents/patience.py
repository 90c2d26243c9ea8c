"""Retries of model requests that failed for a passing reason, with the provider's own advice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import tenacity
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP codes after which the same request may succeed later."""

_LONGEST = 60.0
"""Seconds; a provider that asks for more is waited for this long, then asked again."""

Sleep = Callable[[float], Awaitable[None]]


def passing(error: BaseException) -> bool:
    """Whether a failed request may succeed unchanged: overload, rate limits, lost connections."""
    if isinstance(error, ModelHTTPError):
        return error.status_code in PASSING
    return isinstance(error, ModelAPIError | TimeoutError | ConnectionError)


class PatientModel(WrapperModel):
    """A model that is asked again, `tries` times in all, before its error ends an attempt."""

    def __init__(self, wrapped: Model, *, tries: int, sleep: Sleep = asyncio.sleep) -> None:
        super().__init__(wrapped)
        self._retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(passing),
            stop=tenacity.stop_after_attempt(tries),
            wait=advised,
            reraise=True,
            sleep=sleep,
        )

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask, and ask again after a passing failure."""

        async def ask() -> ModelResponse:
            return await super(PatientModel, self).request(
                messages, model_settings, model_request_parameters
            )

        return await self._retrying(ask)


_backoff = tenacity.wait_random_exponential(multiplier=0.5, max=_LONGEST)


def advised(state: tenacity.RetryCallState) -> float:
    """Seconds to wait: what the provider's `retry-after` says, else a random exponential."""
    error = state.outcome.exception() if state.outcome else None
    headers: dict[str, Any] = getattr(error, "headers", None) or {}
    try:
        return min(float(headers.get("retry-after", "")), _LONGEST)
    except ValueError:  # absent, or a date, which local clocks may not agree about
        return _backoff(state)
