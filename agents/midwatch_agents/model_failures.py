"""What a failed model request says about the provider: whether waiting helps, and its message."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelTimeoutError,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_core import ErrorDetails

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.problem import error_line
from midwatch_monitor.errors import ProviderRefusedError

FIRST_TRIES = 3
"""After a server has failed this many first requests with its own error, that is a refusal."""

_BUSY = frozenset({408, 409, 425, 429, 502, 503, 504, 529})
_NO_ADDRESS = frozenset({404, 405})
_UNCONNECTED = frozenset({"ConnectError", "ConnectTimeout", "UnsupportedProtocol"})
"""Errors that HTTP clients raise before anything is sent, by name: there are several libraries."""
_EMPTY = frozenset({"", "Connection error."})
"""Messages that say nothing; their causes say more."""
_LONGEST = 300
"""Number of characters of the provider's message that are kept."""
_LONGEST_FAULT = 600


class Failure(StrEnum):
    BUSY = "busy"
    """Overload, a rate limit, no answer in time: waiting helps."""
    BROKEN = "broken"
    """The server failed, cut off the answer or returned no JSON: may be temporary or permanent."""
    UNREACHABLE = "unreachable"
    """No connection: unknown host, nothing listening, or TLS failed."""
    REFUSED = "refused"
    """No key, a wrong key, or one without permission."""
    UNPAID = "unpaid"
    """The quota is used up."""
    NOT_FOUND = "not found"
    """Unknown model or address."""
    REJECTED = "rejected"
    """The provider rejects this one request."""


def failure_of(error: BaseException) -> Failure | None:
    """Return the kind of a failed request; `None` if the error is not a provider's failure."""
    if not isinstance(error, ModelAPIError | TimeoutError | ConnectionError):
        return None
    if isinstance(error, ModelQuotaExceededError):
        return Failure.UNPAID
    if isinstance(error, ModelHTTPError):
        return _by_status(error.status_code)
    if isinstance(error, ModelRequestRejectedError):
        return Failure.REJECTED
    if any(_is_unconnected(each) for each in _error_chain(error)):
        return Failure.UNREACHABLE
    late = isinstance(error, ModelTimeoutError | ModelRequestTimeout | TimeoutError)
    return Failure.BUSY if late else Failure.BROKEN


def passing(error: BaseException) -> bool:
    """Whether the same request may succeed later: overload, rate limits, lost connections."""
    return failure_of(error) in {Failure.BUSY, Failure.BROKEN, Failure.UNREACHABLE}


def reason_of(error: BaseException) -> str:
    """Return what happened to a request, in one line: "HTTP 429: …", "Connection refused"."""
    if isinstance(error, ModelHTTPError):
        said = _provider_words(error.body)
        return f"HTTP {error.status_code}" + (f": {said}" if said else "")
    if failure_of(error) is Failure.BUSY:
        return "no answer in time"
    causes = [*_error_chain(error)]
    for each in reversed(causes):
        if said := _system_words(each):
            return said
    told = (" ".join(str(each).split()) for each in causes)
    return next((said for said in told if said not in _EMPTY), type(error).__name__)[:_LONGEST]


def model_fault(error: Exception, *, requests: int) -> str:
    """Return in one line why there is no usable answer, for a caller that continues without it.

    `requests` is the number of requests that the model was allowed for its answer.
    """
    if isinstance(error, ProviderRefusedError):  # its advice is for a run that it ends
        return f"{error.reason} ({error.url})"
    if isinstance(error, UnexpectedModelBehavior) and error.__cause__ is not None:
        return f"no usable answer: {_answer_fault(error.__cause__)}"[:_LONGEST_FAULT]
    if isinstance(error, UsageLimitExceeded):
        return f"no usable answer within its request limit of {requests}"
    return f"{type(error).__name__}: {error}"[:_LONGEST_FAULT]


def _answer_fault(cause: BaseException) -> str:
    """Return what was wrong with the last answer; the error above it only says "too often"."""
    if isinstance(cause, ValidationError):
        return error_line(cause.errors(include_url=False))
    content = cause.tool_retry.content if isinstance(cause, ToolRetryError) else str(cause)
    if isinstance(content, list):  # in a retry, always the details of a ValidationError
        return error_line(cast("list[ErrorDetails]", content))
    return " ".join(str(content).split())


def refusal(error: BaseException, *, who: str, url: str = "") -> ProviderRefusedError:
    """Return the error that ends a run whose first request failed in this way, with a remedy.

    `who` asked, such as "the worker's model gpt-4o". Without a `url`, the request's own is named.
    """
    url, reason = url or url_of(error) or "its provider", reason_of(error)
    happened, remedy = _REFUSALS[failure_of(error) or Failure.BROKEN]
    remedy = remedy.format(resume=command("resume"))
    return ProviderRefusedError(
        f"{who} got no answer: {url} {happened}: {reason.rstrip('.')}. {remedy}",
        url=url,
        reason=reason,
    )


_REPAIRED = "then continue with `{resume}`"
_CORRECTED = "and run it again"
_REFUSALS = {
    Failure.UNREACHABLE: (
        "cannot be reached",
        f"Start the server, {_REPAIRED}; or correct the address {_CORRECTED}. "
        "`--wait-for-provider` waits for it",
    ),
    Failure.REFUSED: ("refuses the key", f"Set the right one, {_REPAIRED}"),
    Failure.UNPAID: ("has no quota left", f"Get more, {_REPAIRED}"),
    Failure.NOT_FOUND: (
        "knows no such model or address",
        f"Correct the model's `name` or `base_url` {_CORRECTED}",
    ),
    Failure.BROKEN: (
        f"failed the first {FIRST_TRIES} requests",
        f"Check the server's log, {_REPAIRED}. `--wait-for-provider` keeps trying",
    ),
}


def _by_status(status: int) -> Failure:
    if status in _BUSY:
        return Failure.BUSY
    if status == 500:
        return Failure.BROKEN
    if status in {401, 403, 407}:
        return Failure.REFUSED
    if status == 402:
        return Failure.UNPAID
    return Failure.NOT_FOUND if status in _NO_ADDRESS else Failure.REJECTED


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_unconnected(error: BaseException) -> bool:
    if isinstance(error, ConnectionRefusedError | socket.gaierror | ssl.SSLError):
        return True
    return type(error).__name__ in _UNCONNECTED


def _system_words(error: BaseException) -> str:
    """Return the system's message for its own errors, without numbers and addresses."""
    if isinstance(error, ssl.SSLWantReadError):
        return "no TLS handshake in time"
    if isinstance(error, ssl.SSLError | socket.gaierror):
        return str(error.strerror or error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return "no connection in time" if type(error).__name__ == "ConnectTimeout" else ""


def _provider_words(body: object) -> str:
    """Return the provider's message in the body of an error; empty for an HTML page."""
    while isinstance(body, Mapping):
        known = cast("Mapping[str, Any]", body)
        keys = ("message", "error", "detail")
        body = next((known[key] for key in keys if known.get(key)), None)
    said = "" if body is None else " ".join(str(body).split())
    return "" if said.startswith("<") else said[:_LONGEST]


def url_of(error: BaseException) -> str:
    """Return the address in a client's error."""
    for each in _error_chain(error):
        url = getattr(getattr(each, "request", None), "url", None)
        if url is not None:
            return str(url)
    return ""
