"""What commands find around them."""

import pytest

from midwatch_agents.model_choice import PROVIDERS


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is set, and no Ollama runs."""
    for provider in PROVIDERS:
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
