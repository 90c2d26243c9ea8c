"""The rule over attempts that work side by side: two that change the same file."""

from collections.abc import Iterator, Sequence

from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.rules.detector import Answer, Clear
from midwatch_monitor.rules.memory import remember
from midwatch_monitor.words import AlertKey, Finding, Step, Writer

_FILES = 1_000
"""Files that are followed in one project; the one least recently edited is dropped."""

Told = tuple[int, Answer]
"""An attempt, and what is to be said of it."""


class ConflictDetector:
    """Follows who changed which file of one project, each in a workspace of its own.

    What one attempt did is no conflict with an attempt that is over: its work is merged or gone.
    """

    def __init__(self, settings: WorkspaceConflict) -> None:
        self._settings = settings
        self._editors: dict[str, dict[int, int]] = {}

    def observe(self, attempt: int, step: Step) -> Sequence[Told]:
        """The findings for all who changed a file that this step changes too."""
        paths = {edit.path for edit in step.edits if edit.writer is Writer.WORKER}
        return [told for path in sorted(paths) for told in self._edited(attempt, path, step.number)]

    def _edited(self, attempt: int, path: str, step: int) -> Iterator[Told]:
        editors = self._editors.get(path, {})
        first = attempt not in editors
        editors[attempt] = step
        remember(self._editors, path, editors, _FILES)
        if first and len(editors) > 1:
            for each in editors:
                yield each, self._finding(path, editors, each)

    def end(self, attempt: int) -> Sequence[Told]:
        """An attempt is over: who is now alone with a file is no longer in conflict."""
        return [told for path in self._editors for told in self._left(attempt, path)]

    def _left(self, attempt: int, path: str) -> Iterator[Told]:
        editors = self._editors[path]
        if editors.pop(attempt, None) is not None and len(editors) == 1:
            yield next(iter(editors)), Clear(key=_key(path))

    def _finding(self, path: str, editors: dict[int, int], attempt: int) -> Finding:
        others = len(editors) - 1
        who = "another attempt" if others == 1 else f"{others} other attempts"
        return Finding(
            key=_key(path),
            severity=self._settings.severity,
            value=others,
            summary=f"{who} at work changed {path} too",
            evidence=(editors[attempt],),
        )


def _key(path: str) -> AlertKey:
    return AlertKey(rule="workspace_conflict", subject=path)
