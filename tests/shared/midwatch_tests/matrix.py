"""The cases of a matrix: the first by `uv run pytest`, all of them where `CI` is set."""

from typing import Any

import pytest


def matrix(first: object, *more: object) -> list[Any]:
    """Parameters, of which those after the first have the mark `matrix`."""
    return [first, *(pytest.param(each, marks=pytest.mark.matrix) for each in more)]


DATABASES = matrix("file", "postgresql")
"""Where a journal can be, as the fixture `location` takes it."""
