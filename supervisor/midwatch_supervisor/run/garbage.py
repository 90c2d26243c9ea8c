"""Python's garbage collector, set for a process in which many attempts live side by side."""

import gc

YOUNG = 50_000
"""New containers before a look at the young ones; Python's own number is 700 (3.14: 2,000)."""


def calm() -> None:
    """Let the collector look at less, and less often. To be called once, after the start.

    Each attempt keeps a few thousand objects alive: its history, its agent, its rules. A full
    collection walks over all of them, and nearly all of them are still needed; with a thousand
    attempts that took a good part of the CPU. What is imported by now never becomes garbage: it is
    left out for ever. The rest is looked at once per fifty thousand new objects, which delays the
    return of at most a few tens of megabytes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
