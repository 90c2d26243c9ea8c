"""The rule over attempts that work side by side: two that change the same file, or mean to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from posixpath import normpath

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.records import AlertKey, Edit, Finding, Step, Writer
from midwatch_monitor.rules.detector import Clear, RuleAnswer
from midwatch_monitor.rules.memory import remember

_FILES = 1_000
"""Files that are followed in one project; the one least recently heard of is dropped."""
_NAMED = 3
"""How many others a summary names; of more it says only how many they are."""
_PATTERN = frozenset("*?[")
"""What makes a path a pattern: it names no file that one could mean to change."""

AttemptAnswer = tuple[int, RuleAnswer]
"""An attempt, and what is to be said of it."""


class _Stage(IntEnum):
    """How far the conflict of one attempt over one file has come."""

    NONE = 0
    PLANNED = 1
    """One of them at least only means to change it."""
    CHANGED = 2
    """It changed the file, and so did another."""


_Stages = Mapping[int, _Stage]


@dataclass(slots=True, kw_only=True)
class _File:
    """Who changed a file, at which step last, and who means to change it."""

    changed: dict[int, int] = field(default_factory=dict[int, int])
    origins: dict[int, str] = field(default_factory=dict[int, str])
    """The digest that each of them found; empty where there was no file, or it is not known."""
    meant: set[int] = field(default_factory=set[int])

    @property
    def stages(self) -> _Stages:
        """Where everybody stands whom it concerns."""
        involved = self.changed.keys() | self.meant
        if len(involved) < 2:
            return dict.fromkeys(involved, _Stage.NONE)
        several = len(self.changed) > 1
        return {
            each: _Stage.CHANGED if several and each in self.changed else _Stage.PLANNED
            for each in involved
        }


class ConflictDetector:
    """Follows who changes which file of one project, each in a workspace of its own.

    The files of the plan step in hand are those that an attempt means to change. What one attempt
    did is no conflict with an attempt that is over: its work is merged or gone.
    """

    def __init__(self, settings: WorkspaceConflict) -> None:
        self._settings = settings
        self._names: dict[int, str] = {}
        self._files: dict[str, _File] = {}

    def meet(self, attempt: int, name: str) -> None:
        """What an attempt is called where the others are told of it, such as `task fix`."""
        self._names[attempt] = name

    def observe(self, attempt: int, step: Step) -> Sequence[AttemptAnswer]:
        """The findings for all whom the files concern that this step changes."""
        edits = {edit.path: edit for edit in step.edits if edit.writer is Writer.WORKER}
        return [
            told
            for _, edit in sorted(edits.items())
            for told in self._take_edit(attempt, edit, step.number)
        ]

    def _take_edit(self, attempt: int, edit: Edit, step: int) -> Iterator[AttemptAnswer]:
        file = self._file(edit.path)
        if attempt not in file.changed:
            file.changed[attempt] = step
            file.origins[attempt] = edit.before
            yield from self._findings(edit.path, file)
        elif _undoes(edit, file.origins[attempt]):
            before = file.stages
            del file.changed[attempt], file.origins[attempt]
            yield from self._clears(edit.path, file, before)
        else:
            file.changed[attempt] = step

    def plan(self, attempt: int, files: Collection[str]) -> Sequence[AttemptAnswer]:
        """What follows from the files that an attempt means to change from here on."""
        meant = {normpath(each) for each in files if each and not _PATTERN & set(each)}
        known = self._files.items()
        left = [path for path, file in known if attempt in file.meant and path not in meant]
        told = [each for path in left for each in self._given_up(attempt, path)]
        return [
            *told,
            *(each for path in sorted(meant) for each in self._take_intention(attempt, path)),
        ]

    def _take_intention(self, attempt: int, path: str) -> Iterator[AttemptAnswer]:
        file = self._file(path)
        known = attempt in file.changed or attempt in file.meant
        file.meant.add(attempt)
        if not known:
            yield from self._findings(path, file)

    def _given_up(self, attempt: int, path: str) -> Iterator[AttemptAnswer]:
        file = self._files[path]
        before = file.stages
        file.meant.discard(attempt)
        yield from self._clears(path, file, before)

    def end(self, attempt: int) -> Sequence[AttemptAnswer]:
        """An attempt is over: who is now alone with a file is no longer in conflict."""
        files = tuple(self._files)
        told = [each for path in files for each in self._forget(attempt, path)]
        self._names.pop(attempt, None)
        return [(who, answer) for who, answer in told if who != attempt]

    def _forget(self, attempt: int, path: str) -> Iterator[AttemptAnswer]:
        file = self._files[path]
        before = file.stages
        file.changed.pop(attempt, None)
        file.origins.pop(attempt, None)
        file.meant.discard(attempt)
        yield from self._clears(path, file, before)

    def _file(self, path: str) -> _File:
        file = self._files.get(path) or _File()
        remember(self._files, path, file, _FILES)
        return file

    def _clears(self, path: str, file: _File, before: _Stages) -> Iterator[AttemptAnswer]:
        """Who is no longer in conflict, or no longer in one that has come as far."""
        after = file.stages
        if not after:
            del self._files[path]
        for each in sorted(before):
            if after.get(each, _Stage.NONE) < before[each]:
                yield each, Clear(key=_key(path))

    def _findings(self, path: str, file: _File) -> Iterator[AttemptAnswer]:
        stages = file.stages
        for each in sorted(stages):
            if stages[each] is not _Stage.NONE:
                yield each, self._make_finding(path, file, each, stages)

    def _make_finding(self, path: str, file: _File, attempt: int, stages: _Stages) -> Finding:
        others, changers = stages.keys() - {attempt}, file.changed.keys() - {attempt}
        collided = stages[attempt] is _Stage.CHANGED
        names = [self._names.get(each, "") for each in sorted(changers or others)]
        return Finding(
            key=_key(path),
            severity=self._settings.severity if collided else self._settings.planned,
            value=len(others),
            summary=_summary(path, _list_names(names), collided=collided, changed=bool(changers)),
            evidence=(file.changed[attempt],) if attempt in file.changed else (),
        )


def _undoes(edit: Edit, origin: str) -> bool:
    """Whether the file is again what the attempt found."""
    return edit.deleted if not origin else edit.digest == origin


def _summary(path: str, who: str, *, collided: bool, changed: bool) -> str:
    """What others do to a file, as one of them is told."""
    if collided:
        return f"{who} at work changed {path} too"
    if changed:
        return f"{who} at work changed {path}, which this one means to change"
    return f"{who} at work means to change {path} too"


def _list_names(names: Sequence[str]) -> str:
    """Names for a sentence; where one is not known, or they are too many, only how many."""
    if all(names) and len(names) <= _NAMED:
        return " and ".join(names)
    return "another attempt" if len(names) == 1 else f"{len(names)} other attempts"


def _key(path: str) -> AlertKey:
    return AlertKey(rule="workspace_conflict", subject=path)
