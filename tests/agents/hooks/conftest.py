"""A folder for a socket: its path is short, as those of pytest's are not always."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as made:
        yield Path(made)
