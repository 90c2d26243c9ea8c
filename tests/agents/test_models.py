"""Which model a name means, and which one is chosen if none is named."""

import json
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, get_args

import pytest
from pydantic_ai.models import KnownModelName, Model
from pydantic_ai.models.openai import OpenAIChatModel

from midwatch_agents.model_choice import PROVIDERS, choose_model, ollama_address, ollama_has
from midwatch_agents.models import model_for
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.errors import MissingExtraError, UsageError

KEY = "MIDWATCH_TEST_KEY"
LOCAL = "http://127.0.0.1:1/v1"


def model(spec: ModelSpec | None) -> Model | None:
    return model_for(spec, role=Role.SUPERVISOR, key="task")


@contextmanager
def environment(**values: str) -> Generator[None]:
    keys = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", KEY)
    addresses = ("OPENAI_BASE_URL", "OLLAMA_BASE_URL", "OLLAMA_HOST")
    before = dict(os.environ)
    for name in (*keys, *addresses):
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
    ("name", "more", "expected"),
    [
        ("qwen3:8b", {}, ("qwen3:8b", "none")),
        ("ollama:qwen3:8b", {}, ("qwen3:8b", "none")),
        ("openai-chat:gpt-oss", {"api_key_env": KEY}, ("gpt-oss", "secret")),
    ],
)
def test_a_server_gets_the_name_without_the_provider_the_key_and_the_deadline(
    name: str, more: dict[str, Any], expected: tuple[str, str]
) -> None:
    with environment(**{KEY: "secret"}):
        found = model(ModelSpec(name=name, base_url=LOCAL, timeout_seconds=7, **more))
    assert isinstance(found, OpenAIChatModel)
    assert (found.model_name, found.client.api_key) == expected
    assert str(found.base_url).startswith(LOCAL)
    assert found.settings == {"request_timeout": 7, "max_retries": 0}


def test_a_key_without_a_server_is_refused() -> None:
    with environment(**{KEY: "secret"}), pytest.raises(UsageError, match="base_url") as caught:
        model(ModelSpec(name="openai:gpt-5", api_key_env=KEY))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "key", "empty"),
    [
        ({"name": "openai:gpt-5"}, "OPENAI_API_KEY", {}),
        ({"name": "openrouter:openai/gpt-5"}, "OPENROUTER_API_KEY", {"OPENROUTER_API_KEY": ""}),
        ({"name": "m", "base_url": LOCAL, "api_key_env": KEY}, f"set {KEY}", {}),
    ],
)
def test_a_missing_key_is_named(spec: dict[str, str], key: str, empty: dict[str, str]) -> None:
    with environment(**empty), pytest.raises(UsageError, match=key) as caught:
        model(ModelSpec.model_validate(spec))
    assert "test" not in str(caught.value).replace(KEY, "")
    assert "Provider(" not in str(caught.value)


def test_ollama_is_found_where_its_own_client_finds_it() -> None:
    with environment(OLLAMA_HOST="gpu:99"):
        found = model(ModelSpec(name="ollama:qwen3:8b"))
    assert found is not None
    assert (found.model_name, found.base_url) == ("qwen3:8b", "http://gpu:99/v1/")


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


CLOSED = {"OLLAMA_HOST": "127.0.0.1:1"}
"""Nobody may listen there."""


@contextmanager
def ollama(models: Mapping[str, list[str] | None]) -> Generator[dict[str, str]]:
    """A server with these models and what each says that it can do; the environment it takes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"models": [{"name": name} for name in models]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
            if asked not in models:
                self._answer({"error": f"model '{asked}' not found"})
                return
            can = models[asked]
            self._answer({} if can is None else {"capabilities": can})

        def _answer(self, fields: dict[str, object]) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(fields).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield {"OLLAMA_HOST": f"127.0.0.1:{server.server_port}"}
        finally:
            server.shutdown()
            thread.join()


def test_a_key_whose_package_is_installed_chooses_its_model() -> None:
    found = choose_model({"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"})
    assert (found.name, found.why) == ("openai:gpt-5.2", "OPENAI_API_KEY is set")


def test_the_extra_of_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"GROQ_API_KEY is set.*midwatch\[groq\]"):
        choose_model({"GROQ_API_KEY": "k", **CLOSED})


def test_without_a_key_the_latest_model_of_ollama_that_calls_tools_is_taken() -> None:
    can = {"embedder": ["embedding"], "talker": ["completion"], "qwen3:8b": ["completion", "tools"]}
    with ollama(can) as environ:
        found = choose_model(environ)
    assert found.name == "ollama:qwen3:8b"
    assert found.why.startswith("Ollama runs at http://127.0.0.1:")
    with ollama({"embedder": ["embedding"]}) as environ, pytest.raises(UsageError) as caught:
        choose_model(environ)
    assert "has no model that calls tools" in str(caught.value)


def test_an_ollama_that_does_not_say_what_a_model_can_do_is_believed() -> None:
    with ollama({"nomic-embed-text": None, "llama3": None}) as environ:
        assert choose_model(environ).name == "ollama:llama3"


def test_without_anything_one_sentence_says_what_to_set() -> None:
    with pytest.raises(UsageError) as caught:
        choose_model({**CLOSED, "OPENAI_API_KEY": ""})
    said = str(caught.value)
    assert all(provider.keys[0] in said for provider in PROVIDERS)
    assert "--model" in said
    assert "Ollama at http://127.0.0.1:1 is not running" in said


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({"OLLAMA_HOST": ""}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "gpu"}, "http://gpu:11434"),
        ({"OLLAMA_HOST": ":99"}, "http://127.0.0.1:99"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "[::1]:5"}, "http://[::1]:5"),
        ({"OLLAMA_HOST": "https://gpu"}, "https://gpu"),
        ({"OLLAMA_HOST": "gpu:none"}, "http://gpu:11434"),
        ({"OLLAMA_BASE_URL": "http://gpu:1/v1/", "OLLAMA_HOST": "other"}, "http://gpu:1"),
    ],
)
def test_ollama_is_looked_for_where_its_own_client_looks(
    environ: dict[str, str], address: str
) -> None:
    assert ollama_address(environ) == address


def test_every_model_of_the_table_is_known_to_pydantic_ai() -> None:
    known = set(get_args(KnownModelName.__value__))
    models = [each.model for each in PROVIDERS if not each.model.startswith("openrouter:")]
    assert [model for model in models if model not in known] == []


def test_ollama_says_whether_it_has_a_model() -> None:
    with ollama({"qwen3": ["tools"]}) as environ:
        address = ollama_address(environ)
        assert [ollama_has(address, each) for each in ("qwen3", "llama")] == [True, False]
    assert ollama_has(ollama_address(CLOSED), "qwen3") is None
