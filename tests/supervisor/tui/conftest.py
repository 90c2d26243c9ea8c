"""What holds for the tests of the console."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _fixed_heap() -> None:  # pyright: ignore[reportUnusedFunction]
    """Let collections pass over what was there before the file's tests.

    Textual collects garbage whenever a console starts: all modules again each time, otherwise.
    """
    gc.collect()
    gc.freeze()
