"""Turns the name of a model in a task file into a model."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from midwatch_agents.model_choice import OLLAMA, PROVIDERS, ollama_address
from midwatch_monitor.config.section import has_right_port
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    # Providers' packages are slow to import, and a run without a model must not need them.
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

NONE = "none"
SCRIPTED = "scripted:"

EXTRAS = frozenset({"openai", "anthropic", "google", "bedrock", "groq", "mistral"})
"""The providers that Midwatch has an extra for, by pydantic-ai's names."""

_FOR_PROGRAMS = re.compile(r" or pass it via `[^`]*`")
_EXTRA = re.compile(r"pydantic-ai-slim\[([\w-]+)")
_ADDRESS = re.compile(r"https?://[^\s/:?#]|https?://\[")
_OPENAI_PREFIXES = ("openai:", "openai-chat:", OLLAMA)


def model_for(spec: ModelSpec | None, *, role: Role, key: str) -> "Model | None":
    """Return the model of a role, or `None` if the specification is absent or says `none`.

    A provider's model gives up a request after `timeout_seconds`, and its client is told not to
    retry if possible, because Midwatch itself retries. `key` selects the script of a scripted
    model. Raises UsageError for an unknown name or a missing key, and MissingExtraError if the
    provider's package is not installed.
    """
    if spec is None or spec.name == NONE:
        return None
    if spec.name.startswith(SCRIPTED):
        from midwatch_agents.scripted import scripted_model

        return scripted_model(spec.name.removeprefix(SCRIPTED), role=role, key=key)
    check_model(spec)
    if spec.base_url is not None:
        return _compatible_model(spec, spec.base_url)
    return _named_model(spec)


def check_model(spec: ModelSpec) -> None:
    """Raise UsageError for errors that do not depend on the machine, as a missing key does.

    A script's module is imported.
    """
    if spec.name == NONE:
        return
    if spec.name.startswith(SCRIPTED):
        from midwatch_agents.scripted import find_script

        find_script(spec.name.removeprefix(SCRIPTED))
        return
    if not spec.name.strip():
        raise UsageError("a model needs a name")
    if spec.base_url is not None:
        _check_address(spec.name, spec.base_url)
    elif spec.api_key_env is not None:
        raise UsageError(
            f"model {spec.name}: `api_key_env` goes with `base_url`; without it, set the "
            "environment variable that the provider itself reads"
        )
    elif not _is_known(spec.name):
        _named_model(spec)  # its error suggests what may have been meant


def has_price(spec: ModelSpec) -> bool:
    """Whether a price is published for a model; needs neither its key nor its provider's package.

    A scripted model counts as one that has a price: there is nothing to pay.
    """
    from pydantic_ai.messages import ModelResponse

    from midwatch_tools.observation import known_cost

    if spec.name == NONE or spec.name.startswith(SCRIPTED):
        return True
    provider, _, name = spec.name.removeprefix("gateway/").partition(":")
    if spec.base_url is not None:
        provider, name = "openai", _without_prefix(spec.name)
    found = ModelResponse(
        parts=[], model_name=name, provider_name=provider, provider_url=spec.base_url
    )
    return known_cost(found) is not None


def _check_address(name: str, url: str) -> None:
    if not (_ADDRESS.match(url) and has_right_port(url)):
        raise UsageError(f"model {name}: `base_url` must be like http://HOST:PORT/v1; is {url!r}")


def _is_known(name: str) -> bool:
    """Whether a model's name begins with a known provider."""
    from pydantic_ai.providers import infer_provider_class

    provider, named, _ = name.partition(":")
    try:
        return name == "test" or bool(named and infer_provider_class(provider))
    except ImportError:
        return True  # it is not installed here
    except ValueError:
        return False


def settings_for(spec: ModelSpec) -> "ModelSettings":
    """Return settings with the deadline of one request and without retries by the client."""
    return {"request_timeout": spec.timeout_seconds, "max_retries": 0}


def _compatible_model(spec: ModelSpec, base_url: str) -> "Model":
    key = _server_key(spec)
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError as error:
        raise MissingExtraError(f"model {spec.name} with a base_url", "openai") from error
    provider = OpenAIProvider(base_url=base_url, api_key=key)
    name = _without_prefix(spec.name)
    return OpenAIChatModel(name, provider=provider, settings=settings_for(spec))


def _without_prefix(name: str) -> str:
    """Return the name that a server with the protocol of OpenAI knows a model by."""
    for prefix in _OPENAI_PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _server_key(spec: ModelSpec) -> str:
    """Return the server's key; many local servers need none, but their clients need some text."""
    if spec.api_key_env is None:
        return "none"
    key = os.environ.get(spec.api_key_env, "")
    if not key:
        raise UsageError(f"model {spec.name}: set {spec.api_key_env} to the key of {spec.base_url}")
    return key


def _named_model(spec: ModelSpec) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    for key in [key for each in PROVIDERS for key in each.keys if os.environ.get(key) == ""]:
        del os.environ[key]  # for some, pydantic-ai only checks that they exist
    try:
        known = not spec.name.startswith(OLLAMA) or os.environ.get("OLLAMA_BASE_URL")
        model = infer_model(spec.name) if known else infer_model(spec.name, _ollama)
    except ImportError as error:
        raise _missing_extra(spec, error) from error
    except (UserError, ValueError) as error:
        raise UsageError(f"model {spec.name}: {_advice_in(error)}") from error
    return _with_settings(model, spec)


def _ollama(_: str) -> "Provider[Any]":
    """Return Ollama's provider, with the address that Ollama's own client would use."""
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaProvider(base_url=f"{ollama_address(os.environ)}/v1")


def _missing_extra(spec: ModelSpec, error: ImportError) -> UsageError:
    found = _EXTRA.search(str(error))
    if found is not None and found[1] in EXTRAS:
        return MissingExtraError(f"model {spec.name}", found[1])
    return UsageError(f"model {spec.name}: {error}")


def _advice_in(error: Exception) -> str:
    """Return an error's advice for a person with a task file, without that for programmers."""
    return _FOR_PROGRAMS.sub("", str(error).split(" To try ", maxsplit=1)[0])


def _with_settings(model: "Model", spec: ModelSpec) -> "Model":
    """Rebuild the model with our settings, which only its constructor takes."""
    if model.provider is None:
        return model
    settings = settings_for(spec)
    if "max_retries" in model.unsupported_settings:
        settings.pop("max_retries", None)
    return _build_model(type(model), spec.name.partition(":")[2], model.provider, settings)


def _build_model(
    kind: "Callable[..., Model]", name: str, provider: object, settings: "ModelSettings"
) -> "Model":
    # All model classes take these arguments, but their base class does not declare them.
    return kind(name, provider=provider, settings=settings)
