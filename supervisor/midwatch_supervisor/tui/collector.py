"""Python's garbage collector, held back: its pauses are longer than a frame may be."""

import gc

_SELDOM = (50_000, 20, 100)
"""Objects, and rounds of the younger generations, between two looks for cycles."""


def calm_collector() -> None:
    """Leave what stands now alone, and look for cycles seldom.

    A full look at all that was imported holds up a key for 200 ms. It holds for the process.
    """
    gc.freeze()
    gc.set_threshold(*_SELDOM)
