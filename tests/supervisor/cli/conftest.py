"""What commands find around them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_agents.model_choice import PROVIDERS
from midwatch_tests.command import Cli, midwatch

Say = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider's key is set, and no Ollama runs."""
    for provider in PROVIDERS:
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process, and answers what they print."""
    return Cli(capsys)


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command in an empty folder; the exit code, and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIDWATCH_JOURNAL", raising=False)

    async def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code, said = await midwatch(*words), capsys.readouterr()
        return code, said.out, said.err

    return run
