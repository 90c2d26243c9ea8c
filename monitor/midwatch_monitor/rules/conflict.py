"""The rule about concurrent attempts: two that change the same file, or plan to."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from posixpath import normpath

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.records import AlertKey, Edit, Finding, Step, Writer
from midwatch_monitor.rules.detector import Clear, RuleAnswer
from midwatch_monitor.rules.memory import remember

_FILES = 1_000
"""Number of files tracked in one project; the least recently mentioned one is dropped."""
_NAMED = 3
"""Number of others named in a summary; for more, only the number is given."""
_PATTERN = frozenset("*?[")
"""Characters that make a path a pattern, which does not name a particular file."""

AttemptAnswer = tuple[int, RuleAnswer]
"""An attempt, and the answer about it."""


class _Stage(IntEnum):
    """The stage of an attempt's conflict over one file."""

    NONE = 0
    PLANNED = 1
    """At least one of the attempts only plans to change it."""
    CHANGED = 2
    """This attempt changed the file, and so did another."""


_Stages = Mapping[int, _Stage]


@dataclass(slots=True, kw_only=True)
class _File:
    """Who changed a file, and in which step last; who plans to change it."""

    changed: dict[int, int] = field(default_factory=dict[int, int])
    origins: dict[int, str] = field(default_factory=dict[int, str])
    """The digest each of them found; empty if there was no file or if it is unknown."""
    meant: set[int] = field(default_factory=set[int])

    @property
    def stages(self) -> _Stages:
        """The stage of every attempt concerned."""
        involved = self.changed.keys() | self.meant
        if len(involved) < 2:
            return dict.fromkeys(involved, _Stage.NONE)
        several = len(self.changed) > 1
        return {
            each: _Stage.CHANGED if several and each in self.changed else _Stage.PLANNED
            for each in involved
        }


class ConflictDetector:
    """Tracks who changes which files of a project, each attempt in its own workspace.

    An attempt plans to change the files of its current plan step. An ended attempt cannot conflict:
    its work is merged or gone.
    """

    def __init__(self, settings: WorkspaceConflict) -> None:
        self._settings = settings
        self._names: dict[int, str] = {}
        self._files: dict[str, _File] = {}

    def meet(self, attempt: int, name: str) -> None:
        """Set an attempt's name as shown to the others, such as `task fix`."""
        self._names[attempt] = name

    def observe(self, attempt: int, step: Step) -> Sequence[AttemptAnswer]:
        """Return the findings for all attempts affected by this step's edits."""
        edits = {edit.path: edit for edit in step.edits if edit.writer is Writer.WORKER}
        return [
            told
            for _, edit in sorted(edits.items())
            for told in self._take_edit(attempt, edit, step.number)
        ]

    def _take_edit(self, attempt: int, edit: Edit, step: int) -> Iterator[AttemptAnswer]:
        file = self._file_state(edit.path)
        if attempt not in file.changed:
            file.changed[attempt] = step
            file.origins[attempt] = edit.before
            yield from self._findings(edit.path, file)
        elif _undoes(edit, file.origins[attempt]):
            yield from self._leave(attempt, edit.path, meant=False)
        else:
            file.changed[attempt] = step

    def plan(self, attempt: int, files: Collection[str]) -> Sequence[AttemptAnswer]:
        """Set the files that an attempt plans to change; return the resulting findings."""
        meant = {normpath(each) for each in files if each and not _PATTERN & set(each)}
        known = self._files.items()
        left = [path for path, file in known if attempt in file.meant and path not in meant]
        told = [each for path in left for each in self._leave(attempt, path, changed=False)]
        return [
            *told,
            *(each for path in sorted(meant) for each in self._take_intention(attempt, path)),
        ]

    def _take_intention(self, attempt: int, path: str) -> Iterator[AttemptAnswer]:
        file = self._file_state(path)
        known = attempt in file.changed or attempt in file.meant
        file.meant.add(attempt)
        if not known:
            yield from self._findings(path, file)

    def end(self, attempt: int) -> Sequence[AttemptAnswer]:
        """Note that an attempt ended; those now alone with a file are no longer in conflict."""
        files = tuple(self._files)
        told = [each for path in files for each in self._leave(attempt, path)]
        self._names.pop(attempt, None)
        return [(who, answer) for who, answer in told if who != attempt]

    def _leave(
        self, attempt: int, path: str, *, changed: bool = True, meant: bool = True
    ) -> Iterator[AttemptAnswer]:
        """Forget that an attempt changed a file or means to.

        Yields clears for attempts whose conflict is over or has become a lesser one.
        """
        file = self._files[path]
        before = file.stages
        if changed:
            file.changed.pop(attempt, None)
            file.origins.pop(attempt, None)
        if meant:
            file.meant.discard(attempt)
        after = file.stages
        if not after:
            del self._files[path]
        for each in sorted(before):
            if after.get(each, _Stage.NONE) < before[each]:
                yield each, Clear(key=_alert_key(path))

    def _file_state(self, path: str) -> _File:
        file = self._files.get(path) or _File()
        remember(self._files, path, file, _FILES)
        return file

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
            key=_alert_key(path),
            severity=self._settings.severity if collided else self._settings.planned,
            value=len(others),
            summary=_summary(path, _list_names(names), collided=collided, changed=bool(changers)),
            evidence=(file.changed[attempt],) if attempt in file.changed else (),
        )


def _undoes(edit: Edit, origin: str) -> bool:
    """Whether the edit restores the file to what the attempt found."""
    return edit.deleted if not origin else edit.digest == origin


def _summary(path: str, who: str, *, collided: bool, changed: bool) -> str:
    """Return what others do to a file, from the view of one attempt."""
    if collided:
        return f"{who}, still in progress, also changed {path}"
    if changed:
        return f"{who}, still in progress, changed {path}, which this attempt plans to change"
    return f"{who}, still in progress, also plans to change {path}"


def _list_names(names: Sequence[str]) -> str:
    """Return names for a sentence; only their number if one is unknown or there are too many."""
    if all(names) and len(names) <= _NAMED:
        return " and ".join(names)
    return "another attempt" if len(names) == 1 else f"{len(names)} other attempts"


def _alert_key(path: str) -> AlertKey:
    return AlertKey(rule="workspace_conflict", subject=path)
