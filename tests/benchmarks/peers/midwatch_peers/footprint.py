"""What the judge remembers of a long run."""

import gc
import pickle
import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_peers.seeded import healthy_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """The state of one judge after so many different steps."""

    steps: int
    kilobytes: float
    """Memory that it holds, by tracemalloc, without the rules that all judges share."""
    pickled: int | None
    """Bytes when pickled; `None` where it cannot be."""


def footprints(marks: Sequence[int]) -> list[Footprint]:
    """The judge with the built-in rules at each mark; no step is kept by anyone else."""
    rng, rules = random.Random(0), Rules()
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        judge, at, found = Judge(rules), 0, list[Footprint]()
        for mark in marks:
            for number in range(at + 1, mark + 1):
                judge.observe(healthy_step(rng, number))
            at = mark
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            found.append(
                Footprint(steps=mark, kilobytes=(held - before) / 1000, pickled=_pickled(judge))
            )
        return found
    finally:
        tracemalloc.stop()


def _pickled(judge: Judge) -> int | None:
    try:
        return len(pickle.dumps(judge))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
