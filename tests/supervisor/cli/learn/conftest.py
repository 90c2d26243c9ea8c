"""What the commands for what was learned say."""

import pytest

from midwatch_tests.command import Cli


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process, and answers what they print."""
    return Cli(capsys)
