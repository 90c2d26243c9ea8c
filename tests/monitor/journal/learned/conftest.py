"""What is learned is the same in a file and in PostgreSQL: each test runs on both."""

from pathlib import Path

import pytest

from midwatch_tests.matrix import DATABASES


@pytest.fixture(params=DATABASES)
def location(request: pytest.FixtureRequest, journal_file: Path) -> str:
    wanted = request.param == "postgresql"
    return request.getfixturevalue("postgres_journal") if wanted else str(journal_file)
