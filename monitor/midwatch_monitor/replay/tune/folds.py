"""Runs parted by task, so that thresholds are judged on tasks that they were not chosen on."""

from collections.abc import Sequence
from hashlib import sha256

from midwatch_monitor.replay.tune.run import Run


def fold_of(task: str, folds: int) -> int:
    """The fold of a task, from 0: by its name alone, so that it is the same in every study."""
    digest = sha256(task.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % folds


def parted(runs: Sequence[Run], folds: int) -> list[tuple[int, ...]]:
    """The places of the runs of each fold; folds that got no task are left out."""
    parts: list[list[int]] = [[] for _ in range(folds)]
    for at, run in enumerate(runs):
        parts[fold_of(run.label.task, folds)].append(at)
    return [tuple(part) for part in parts if part]
