"""The model of whoever names none: by the keys that are set, else of an Ollama that runs."""

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import get_args

import pytest
from pydantic_ai.models import KnownModelName

from midwatch_agents.model_choice import PROVIDERS, choose_model, ollama_address, ollama_has
from midwatch_monitor.errors import MissingExtraError, UsageError

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


def test_of_a_provider_whose_package_is_missing_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=r"GROQ_API_KEY is set.*midwatch\[groq\]"):
        choose_model({"GROQ_API_KEY": "k", **CLOSED})


def test_without_a_key_the_latest_model_of_ollama_that_calls_tools_is_taken() -> None:
    can = {"embedder": ["embedding"], "talker": ["completion"], "qwen3:8b": ["completion", "tools"]}
    with ollama(can) as environ:
        found = choose_model(environ)
    assert found.name == "ollama:qwen3:8b"
    assert found.why.startswith("Ollama runs at http://127.0.0.1:")


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


def test_an_ollama_without_a_model_for_work_is_told_from_none() -> None:
    with ollama({"embedder": ["embedding"]}) as environ, pytest.raises(UsageError) as caught:
        choose_model(environ)
    assert "has no model that calls tools" in str(caught.value)


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("gpu", "http://gpu:11434"),
        (":99", "http://127.0.0.1:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::1]:5", "http://[::1]:5"),
        ("https://gpu", "https://gpu"),
        ("gpu:none", "http://gpu:11434"),
    ],
)
def test_ollama_is_looked_for_where_its_own_client_looks(said: str, address: str) -> None:
    assert ollama_address({"OLLAMA_HOST": said}) == address


def test_the_address_that_pydantic_ai_reads_comes_first() -> None:
    environ = {"OLLAMA_BASE_URL": "http://gpu:1/v1/", "OLLAMA_HOST": "other"}
    assert ollama_address(environ) == "http://gpu:1"


def test_every_model_of_the_table_is_known_to_pydantic_ai() -> None:
    known = set(get_args(KnownModelName.__value__))
    models = [each.model for each in PROVIDERS if not each.model.startswith("openrouter:")]
    assert [model for model in models if model not in known] == []


def test_ollama_says_whether_it_has_a_model() -> None:
    with ollama({"qwen3": ["tools"]}) as environ:
        address = ollama_address(environ)
        assert [ollama_has(address, each) for each in ("qwen3", "llama")] == [True, False]
    assert ollama_has(ollama_address(CLOSED), "qwen3") is None
