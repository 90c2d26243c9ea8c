"""The cases of a matrix: the first by `uv run pytest`, all of them where `CI` is set."""

from typing import Any

import pytest


def matrix(first: object, *more: object) -> list[Any]:
    """Parameters, of which those after the first have the mark `matrix`; a tuple is several."""
    cases = [each if isinstance(each, tuple) else (each,) for each in more]
    return [first, *(pytest.param(*each, marks=pytest.mark.matrix) for each in cases)]


DATABASES = matrix("file", "postgresql")
"""Where a journal can be, as the fixture `location` takes it."""
