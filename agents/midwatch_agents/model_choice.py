"""Chooses a model if none is named: by the API keys in the environment, else from Ollama."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from typing import Any, cast
from urllib.parse import urlsplit

from midwatch_monitor.errors import MissingExtraError, UsageError

OLLAMA = "ollama:"
_SECONDS = 1.0
"""Time limit for each answer of Ollama."""
_ASKED = 20
"""How many of Ollama's models are asked whether they call tools, latest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider that is recognised by its API key."""

    keys: tuple[str, ...]
    """The environment variables that pydantic-ai reads, in its order."""
    package: str
    """The package needed to ask the provider."""
    extra: str
    model: str
    """The default model: for code, of medium size and price."""


PROVIDERS = (
    # Names from pydantic-ai 2.62's `KnownModelName`; a test compares them.
    Provider(
        keys=("ANTHROPIC_API_KEY",),
        package="anthropic",
        extra="anthropic",
        model="anthropic:claude-sonnet-4-6",
    ),
    Provider(keys=("OPENAI_API_KEY",), package="openai", extra="openai", model="openai:gpt-5.2"),
    Provider(
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        package="google.genai",
        extra="google",
        model="google:gemini-3.5-flash",
    ),
    # Not in that list; the name comes from OpenRouter's page about pydantic-ai.
    Provider(
        keys=("OPENROUTER_API_KEY",),
        package="openai",
        extra="openai",
        model="openrouter:anthropic/claude-sonnet-4.6",
    ),
    Provider(
        keys=("MISTRAL_API_KEY",),
        package="mistralai",
        extra="mistral",
        model="mistral:mistral-large-latest",
    ),
    Provider(
        keys=("GROQ_API_KEY",), package="groq", extra="groq", model="groq:openai/gpt-oss-120b"
    ),
)
"""If several keys are set, the first provider is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A chosen model, and the reason."""

    name: str
    why: str


def choose_model(environ: Mapping[str, str]) -> ModelChoice:
    """Return the model to ask. If no key is set, asks Ollama, at most a second for each answer.

    Raises UsageError, which says what to set, or MissingExtraError if only a package is missing.
    """
    named = [(key, provider) for provider in PROVIDERS for key in provider.keys if environ.get(key)]
    for key, provider in named:
        if installed(provider.package):
            return ModelChoice(name=provider.model, why=f"{key} is set")
    address = ollama_address(environ)
    models = _ollama_models(address) if installed("openai") else None
    for model in models or ():
        return ModelChoice(name=OLLAMA + model, why=f"Ollama runs at {address}")
    if named:
        key, provider = named[0]
        raise MissingExtraError(f"{key} is set, but asking {provider.model}", provider.extra)
    keys = ", ".join(provider.keys[0] for provider in PROVIDERS)
    state = "is not running" if models is None else "has no model that calls tools"
    raise UsageError(
        f"no model is available: set one of {keys}, or name one with --model "
        f"(Ollama at {address} {state})"
    )


def ollama_address(environ: Mapping[str, str]) -> str:
    """Return Ollama's address: OLLAMA_BASE_URL as pydantic-ai reads it, else the one that Ollama's
    own client uses.
    """
    if base := environ.get("OLLAMA_BASE_URL"):
        return base.rstrip("/").removesuffix("/v1")
    said = environ.get("OLLAMA_HOST", "").strip()
    parts = urlsplit(said if "://" in said else f"http://{said}")
    try:
        port = parts.port or (11434 if "://" not in said else None)
    except ValueError:
        port = 11434
    host = parts.hostname or "127.0.0.1"
    # The server then listens on all addresses; a client needs one of them.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def ollama_has(address: str, model: str) -> bool | None:
    """Whether Ollama has a model; `None` if it does not answer within a second."""
    said = _ask_ollama(address, "POST", "/api/show", {"model": model})
    return None if said is None else "error" not in said


def installed(package: str) -> bool:
    """Whether a package can be found, without running any of it; also for a subpackage."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _ollama_models(address: str) -> Iterator[str] | None:
    """Return the models that can call tools, latest first; `None` if nothing answers."""
    listed = _ask_ollama(address, "GET", "/api/tags")
    if listed is None:
        return None
    models = [str(each.get("name", "")) for each in listed.get("models") or ()]
    return (name for name in models[:_ASKED] if name and _calls_tools(address, name))


def _calls_tools(address: str, model: str) -> bool:
    """Whether a model calls tools; assumed, except of embeddings, if Ollama is too old to say."""
    said = (_ask_ollama(address, "POST", "/api/show", {"model": model}) or {}).get("capabilities")
    return "embed" not in model if said is None else "tools" in said


def _ask_ollama(
    address: str, method: str, path: str, body: Mapping[str, object] | None = None
) -> dict[str, Any] | None:
    """Return Ollama's answer; `None` if nothing or something other than Ollama answers."""
    parts = urlsplit(address)
    if parts.scheme != "http":
        return None
    # Without a proxy: the address is this machine's or was given explicitly.
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_SECONDS)
    try:
        connection.request(method, path, body=None if body is None else json.dumps(body))
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None
