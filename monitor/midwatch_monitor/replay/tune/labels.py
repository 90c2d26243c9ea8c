"""Labels of recorded runs: a CSV that says how each of them ended."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import UsageError
from midwatch_monitor.traces import AUTO, find_traces, open_trace

SPENT = ("exit_cost",)
"""The exit statuses that mean "out of budget" by default: SWE-agent's."""

_NEEDED = ("path", "outcome")
_OPTIONAL = ("task", "source", "exit_status")
_OUTCOMES = {"resolved": True, "unresolved": False, "unknown": None}
_ENDINGS = (".traj.json", ".traj", ".jsonl", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """How one recorded run ended."""

    path: str
    """As written in the file."""
    task: str
    """Runs of one task stay together in cross-validation; a run without one is its own task."""
    source: str = ""
    """Runs are only compared with runs of equal length from the same source."""
    resolved: bool | None
    """Whether it reached its goal; `None` if unknown."""
    spent: bool = False
    """Whether it ran out of its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """All labels of a file, indexed for lookup."""

    file: Path
    by_path: Mapping[Path, Label]
    by_name: Mapping[str, tuple[Label, ...]]
    absent: tuple[str, ...]
    """Optional columns that are missing."""


def read_labels(file: Path, *, spent: Collection[str] = SPENT) -> Labels:
    """Read a CSV with the columns `path` and `outcome`, and optionally `task`, `source` and
    `exit_status`; other columns are ignored.

    Raises UsageError with the file and line that cannot be read.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            missing = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise UsageError(f"{file}: missing column: {', '.join(missing)}")
            absent = tuple(name for name in _OPTIONAL if name not in (rows.fieldnames or ()))
            read = [_read_label(row, f"{file}:{rows.line_num}", spent) for row in rows]
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} is not a CSV file in UTF-8: {error}") from error
    return _index_labels(file, read, absent)


def label_of(trace: Path, labels: Labels, roots: Sequence[Path]) -> Label | None:
    """Return the label of a trace, or `None`. Its path is looked up relative to the file's folder
    or a root; failing that, the last two parts of the path without the ending.

    Raises UsageError if its name matches several labels.
    """
    below = (trace.relative_to(root) for root in roots if trace.is_relative_to(root))
    for path in (trace, *(labels.file.parent / each for each in below)):
        if found := labels.by_path.get(path.resolve()):
            return found
    named = labels.by_name.get(_trace_name(trace), ())
    if len(named) > 1:
        paths = ", ".join(label.path for label in named)
        raise UsageError(f"{labels.file}: {trace} matches several labels: {paths}")
    return named[0] if named else None


def _read_label(row: Mapping[str, str | None], place: str, spent: Collection[str]) -> Label:
    cells = {name: (row.get(name) or "").strip() for name in (*_NEEDED, *_OPTIONAL)}
    path, outcome = cells["path"], cells["outcome"]
    if not path:
        raise UsageError(f"{place}: the path is empty")
    if outcome not in _OUTCOMES:
        raise UsageError(f"{place}: outcome is {outcome!r}, not one of {', '.join(_OUTCOMES)}")
    return Label(
        path=path,
        task=cells["task"] or _trace_name(Path(path)),
        source=cells["source"],
        resolved=_OUTCOMES[outcome],
        spent=cells["exit_status"] in spent,
    )


def _index_labels(file: Path, labels: Iterable[Label], absent: tuple[str, ...]) -> Labels:
    by_path: dict[Path, Label] = {}
    by_name: dict[str, tuple[Label, ...]] = defaultdict(tuple)
    for label in labels:
        path = (file.parent / label.path).resolve()
        if path in by_path:
            raise UsageError(f"{file}: {label.path} is listed twice")
        by_path[path] = label
        by_name[_trace_name(Path(label.path))] += (label,)
    return Labels(file=file, by_path=by_path, by_name=dict(by_name), absent=absent)


def _trace_name(path: Path) -> str:
    """Return the last two parts of a path without a trace's ending."""
    ending = next((each for each in _ENDINGS if path.name.endswith(each)), path.suffix)
    return f"{path.parent.name}/{path.name.removesuffix(ending)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """The result of a search for traces."""

    traces: Mapping[Path, Label]
    """The labelled traces."""
    format: str = AUTO
    unlabelled: int
    """Number of traces without a label, which are left out."""
    absent: tuple[str, ...] = ()
    """Optional columns that are missing."""


def recordings(paths: Sequence[Path], labels: Labels, *, format: str = AUTO) -> Recordings:
    """Return the traces of the paths with their labels; a folder means every known one below it.

    Raises TraceError for a named file in no known format, and UsageError if a path does not exist,
    if no trace has a usable label, or if two traces have the same label: no run may count twice.
    """
    roots = [path for path in paths if path.is_dir()]
    found: dict[Label, Path] = {}
    unlabelled = 0
    for trace in _list_traces(paths, format):
        label = label_of(trace, labels, roots)
        if label is None:
            unlabelled += 1
        elif label in found:
            twice = f"{found[label]} and {trace}"
            raise UsageError(f"{labels.file}: {twice} both match {label.path}")
        else:
            found[label] = trace
    _check_found(labels, found, unlabelled)
    traces = {path: label for label, path in found.items()}
    return Recordings(traces=traces, format=format, unlabelled=unlabelled, absent=labels.absent)


def _list_traces(paths: Sequence[Path], format: str) -> Iterator[Path]:
    """Yield every trace once, even if several paths contain it."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
        if path.is_file():
            open_trace(path, format).close()
        for trace in find_traces(path, format) if path.is_dir() else (path,):
            real = trace.resolve()
            if real not in seen:
                seen.add(real)
                yield trace


def _check_found(labels: Labels, found: dict[Label, Path], unlabelled: int) -> None:
    if not found:
        looked = f"{unlabelled} traces found" if unlabelled else "no trace found"
        raise UsageError(f"{labels.file}: none of its runs was found ({looked})")
    if not any(label.resolved for label in found):
        raise UsageError(f"{labels.file}: no run is resolved, so no alarm could be false")
    if all(label.resolved is not False and not label.spent for label in found):
        raise UsageError(f"{labels.file}: no run failed, so there is nothing to find")
