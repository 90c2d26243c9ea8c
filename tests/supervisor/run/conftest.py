"""What the tests of runs share."""

from pathlib import Path

import pytest

from midwatch_tests.fake_agents import Fake, fake_in


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A task file for a fake agent that does these acts."""
    return fake_in(tmp_path)
