"""Which traces are tuned on: those below the given paths whose end is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import UsageError
from midwatch_monitor.replay.tune.labels import Label, Labels, label_of
from midwatch_monitor.traces import AUTO, find_traces, open_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A trace whose end is known."""

    path: Path
    format: str = AUTO
    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """What was found where one looked for traces."""

    recorded: tuple[Recorded, ...]
    unlabelled: int
    """Traces without a label; they are left out."""


def recordings(paths: Sequence[Path], labels: Labels, *, format: str = AUTO) -> Recordings:
    """The traces of the paths, each with its label; a folder means every known one below it.

    Raises TraceError for a named file in no known format, and UsageError if a path is not there,
    if there are no traces with labels that can be tuned on, or if two traces would have the same
    label: one run must not count twice.
    """
    roots = [path for path in paths if path.is_dir()]
    found: dict[Label, Path] = {}
    unlabelled = 0
    for trace in _traces(paths, format):
        label = label_of(trace, labels, roots)
        if label is None:
            unlabelled += 1
        elif label in found:
            twice = f"{found[label]} and {trace}"
            raise UsageError(f"{labels.file}: {twice} would both be {label.path}")
        else:
            found[label] = trace
    _check(labels, found, unlabelled)
    recorded = (Recorded(path=path, format=format, label=label) for label, path in found.items())
    return Recordings(recorded=tuple(recorded), unlabelled=unlabelled)


def _traces(paths: Sequence[Path], format: str) -> Iterator[Path]:
    """Every trace once, whichever of the paths it is below."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} is not there")
        for trace in find_traces(path, format) if path.is_dir() else _named(path, format):
            real = trace.resolve()
            if real not in seen:
                seen.add(real)
                yield trace


def _named(path: Path, format: str) -> tuple[Path]:
    open_trace(path, format).close()
    return (path,)


def _check(labels: Labels, found: dict[Label, Path], unlabelled: int) -> None:
    if not found:
        looked = f"{unlabelled} traces were found" if unlabelled else "no trace was found"
        raise UsageError(f"{labels.file}: none of its runs is there to be tuned on: {looked}")
    if not any(label.resolved for label in found):
        raise UsageError(f"{labels.file}: no run is resolved, so no alarm could be a false one")
    if all(label.resolved is not False and not label.spent for label in found):
        raise UsageError(f"{labels.file}: no run failed, so there is nothing to be found")
