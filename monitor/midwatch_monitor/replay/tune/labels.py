"""What is known of recorded runs from elsewhere: a CSV that says how each of them ended."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from midwatch_monitor.errors import UsageError

SPENT = ("exit_cost",)
"""The exit statuses that mean out of budget, unless others are named: SWE-agent's word for it."""

_NEEDED = ("path", "outcome")
_OUTCOMES = {"resolved": True, "unresolved": False, "unknown": None}
_ENDINGS = (".traj.json", ".traj", ".jsonl", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """How one recorded run ended."""

    path: str
    """As the file has it."""
    task: str
    """Runs of one task stay together in cross-validation; a run without one is its own."""
    source: str = ""
    """Runs are compared with runs of equal length from the same source only."""
    resolved: bool | None
    """Whether it did what was wanted; `None` where nobody knows."""
    spent: bool = False
    """Whether it ran out of its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """All labels of a file, as they are looked for."""

    file: Path
    by_path: Mapping[Path, Label]
    by_text: Mapping[str, Label]
    by_name: Mapping[str, tuple[Label, ...]]


def read_labels(file: Path, *, spent: Collection[str] = SPENT) -> Labels:
    """The labels of a CSV with the columns `path` and `outcome`, and perhaps `task`, `source`
    and `exit_status`; others are passed over.

    Raises UsageError with file and line for what cannot be read.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            missing = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise UsageError(f"{file}: there is no column {' and no column '.join(missing)}")
            read = [_label(row, f"{file}:{rows.line_num}", spent) for row in rows]
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} is no CSV in UTF-8: {error}") from error
    return _labels(file, read)


def label_of(trace: Path, labels: Labels, roots: Sequence[Path]) -> Label | None:
    """The label of a trace: by its path from the file's folder, or from one of the roots, or by
    the last two parts of its path without the ending. `None` if it has none.

    Raises UsageError if its name fits several.
    """
    found = labels.by_path.get(trace.resolve())
    for root in roots:
        if found is None and trace.is_relative_to(root):
            found = labels.by_text.get(trace.relative_to(root).as_posix())
    if found is not None:
        return found
    named = labels.by_name.get(_name(trace), ())
    if len(named) > 1:
        paths = ", ".join(label.path for label in named)
        raise UsageError(f"{labels.file}: {trace} may be any of {paths}")
    return named[0] if named else None


def _label(row: Mapping[str, str | None], place: str, spent: Collection[str]) -> Label:
    cells = {name: (row.get(name) or "").strip() for name in (*_NEEDED, *_OPTIONAL)}
    path, outcome = cells["path"], cells["outcome"]
    if not path:
        raise UsageError(f"{place}: the path is empty")
    if outcome not in _OUTCOMES:
        raise UsageError(f"{place}: outcome is {outcome!r}; it is one of {', '.join(_OUTCOMES)}")
    return Label(
        path=path,
        task=cells["task"] or _name(Path(path)),
        source=cells["source"],
        resolved=_OUTCOMES[outcome],
        spent=cells["exit_status"] in spent,
    )


_OPTIONAL = ("task", "source", "exit_status")


def _labels(file: Path, labels: Iterable[Label]) -> Labels:
    by_path: dict[Path, Label] = {}
    by_name: dict[str, tuple[Label, ...]] = defaultdict(tuple)
    for label in labels:
        path = (file.parent / label.path).resolve()
        if path in by_path:
            raise UsageError(f"{file}: {label.path} is there twice")
        by_path[path] = label
        by_name[_name(Path(label.path))] += (label,)
    by_text = {Path(label.path).as_posix(): label for label in by_path.values()}
    return Labels(file=file, by_path=by_path, by_text=by_text, by_name=dict(by_name))


def _name(path: Path) -> str:
    """The last two parts of a path without what traces end in."""
    ending = next((each for each in _ENDINGS if path.name.endswith(each)), path.suffix)
    return f"{path.parent.name}/{path.name.removesuffix(ending)}"
