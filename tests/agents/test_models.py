"""From a model's name to a model: every mistake is told with what to do about it."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from midwatch_agents.models import model_for, settings_for
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.errors import MissingExtraError, UsageError

KEY = "MIDWATCH_TEST_KEY"
LOCAL = "http://127.0.0.1:1/v1"


def model(spec: ModelSpec | None) -> Model | None:
    return model_for(spec, role=Role.SUPERVISOR, key="task")


@contextmanager
def environment(**values: str) -> Generator[None]:
    before = dict(os.environ)
    for name in (
        "OPENAI_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_BASE_URL",
        "OLLAMA_BASE_URL",
        "OLLAMA_HOST",
        KEY,
    ):
        os.environ.pop(name, None)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.parametrize("spec", [None, ModelSpec(name="none")])
def test_no_model_is_none(spec: ModelSpec | None) -> None:
    assert model(spec) is None


def test_a_scripted_name_is_looked_for_among_the_scripts() -> None:
    with pytest.raises(UsageError, match="scripted:no_such_script"):
        model(ModelSpec(name="scripted:no_such_script"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen3:8b", "qwen3:8b"),
        ("ollama:qwen3:8b", "qwen3:8b"),
        ("openai:gpt-oss", "gpt-oss"),
        ("openai-chat:gpt-oss", "gpt-oss"),
    ],
)
def test_a_server_gets_the_name_without_the_provider(name: str, expected: str) -> None:
    with environment():
        found = model(ModelSpec(name=name, base_url=LOCAL))
    assert isinstance(found, OpenAIChatModel)
    assert (found.model_name, found.client.api_key) == (expected, "none")
    assert found.base_url is not None
    assert found.base_url.startswith(LOCAL)


def test_a_server_gets_the_key_from_the_named_variable() -> None:
    with environment(**{KEY: "secret"}):
        found = model(ModelSpec(name="m", base_url=LOCAL, api_key_env=KEY))
    assert isinstance(found, OpenAIChatModel)
    assert found.client.api_key == "secret"


def test_a_missing_key_names_its_variable() -> None:
    with environment(), pytest.raises(UsageError, match=f"set {KEY}"):
        model(ModelSpec(name="m", base_url=LOCAL, api_key_env=KEY))


def test_a_key_without_a_server_is_refused() -> None:
    with environment(**{KEY: "secret"}), pytest.raises(UsageError, match="base_url") as caught:
        model(ModelSpec(name="openai:gpt-5", api_key_env=KEY))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("empty", [{}, {"OPENAI_API_KEY": "", "OPENROUTER_API_KEY": ""}])
@pytest.mark.parametrize(
    ("name", "key"),
    [("openai:gpt-5", "OPENAI_API_KEY"), ("openrouter:openai/gpt-5", "OPENROUTER_API_KEY")],
)
def test_a_provider_without_its_key_says_which_to_set(
    name: str, key: str, empty: dict[str, str]
) -> None:
    with environment(**empty), pytest.raises(UsageError, match=key) as caught:
        model(ModelSpec(name=name))
    assert "test" not in str(caught.value)
    assert "Provider(" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "address"),
    [({}, "http://127.0.0.1:11434/v1/"), ({"OLLAMA_HOST": "gpu:99"}, "http://gpu:99/v1/")],
)
def test_ollama_is_found_where_its_own_client_finds_it(said: dict[str, str], address: str) -> None:
    with environment(**said):
        found = model(ModelSpec(name="ollama:qwen3:8b"))
    assert found is not None
    assert (found.model_name, found.base_url) == ("qwen3:8b", address)


@pytest.mark.parametrize("name", ["gpt-5", "nobody:model"])
def test_an_unknown_name_is_told(name: str) -> None:
    with environment(), pytest.raises(UsageError, match=f"Unknown model: {name}"):
        model(ModelSpec(name=name))


def test_a_provider_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mistralai", None)  # as if it were not installed
    with environment(), pytest.raises(MissingExtraError) as caught:
        model(ModelSpec(name="mistral:large"))
    assert caught.value.extra == "mistral"


def test_a_provider_that_midwatch_has_no_extra_for_tells_its_own_remedy() -> None:
    with environment(), pytest.raises(UsageError, match="cohere") as caught:
        model(ModelSpec(name="cohere:command"))
    assert not isinstance(caught.value, MissingExtraError)


def test_the_deadline_and_the_retries_reach_a_named_model() -> None:
    spec = ModelSpec(name="openai:gpt-5", timeout_seconds=7)
    with environment(OPENAI_API_KEY="secret"):
        found = model(spec)
    assert isinstance(found, OpenAIResponsesModel)
    assert found.model_name == "gpt-5"
    assert found.settings == {"request_timeout": 7, "max_retries": 0} == settings_for(spec)


def test_the_deadline_and_the_retries_reach_a_server() -> None:
    with environment():
        found = model(ModelSpec(name="m", base_url=LOCAL, timeout_seconds=7))
    assert found is not None
    assert found.settings == {"request_timeout": 7, "max_retries": 0}
