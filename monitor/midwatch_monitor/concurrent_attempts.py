"""Alerts about attempts that work on the same project at the same time."""

import json
from collections.abc import Collection

from midwatch_monitor.alerts import Moment
from midwatch_monitor.config.rules import WorkspaceConflict
from midwatch_monitor.records import Alert, AlertKey, AlertState, Change, Plan, Step, Task
from midwatch_monitor.rules.conflict import AttemptAnswer, ConflictDetector
from midwatch_monitor.rules.detector import Clear, RuleAnswer
from midwatch_monitor.silence import Alerts, follow


class ConcurrentAttempts:
    """Follows the running attempts of each project, and their conflicts over files."""

    def __init__(self, settings: WorkspaceConflict) -> None:
        self._settings = settings
        self._projects: dict[int, str] = {}
        self._conflicts: dict[str, ConflictDetector] = {}
        self._standing: dict[int, dict[AlertKey, RuleAnswer]] = {}
        self._since: dict[tuple[int, AlertKey], Moment] = {}

    def join(self, attempt: int, project: str, name: str = "") -> None:
        """Add an attempt that begins; an attempt without a project has no conflicts.

        `name` is how the alerts of other attempts refer to it.
        """
        if project and self._settings.enabled:
            self._projects[attempt] = project
            self._conflict_detector(project).meet(attempt, name)

    def observe(self, attempt: int, event: Step | Change | Plan) -> Collection[int]:
        """Return the attempts whose alerts may change after an event or a plan."""
        project = self._projects.get(attempt)
        if project is None:
            return ()
        if not isinstance(event, Step):
            files = _planned_files(event)
            if files is None:
                return ()
            return self._store_answers(self._conflict_detector(project).plan(attempt, files))
        # A condition that already holds may now fire: its hold and its cooldown count steps.
        standing = {attempt} if self._standing.get(attempt) else set[int]()
        if not event.edits:
            return standing
        return standing | self._store_answers(
            self._conflict_detector(project).observe(attempt, event)
        )

    def _conflict_detector(self, project: str) -> ConflictDetector:
        return self._conflicts.setdefault(project, ConflictDetector(self._settings))

    def end(self, attempt: int) -> Collection[int]:
        """Remove an attempt that is over, and return those whose alerts may change as a result."""
        project = self._projects.pop(attempt, "")
        for key in self._standing.pop(attempt, {}):
            self._since.pop((attempt, key), None)
        detector = self._conflicts.get(project)
        return () if detector is None else self._store_answers(detector.end(attempt))

    def look(self, attempt: int, alerts: Alerts, now: Moment) -> tuple[Alert, ...]:
        """Return the alerts of an attempt that have begun, risen or ended by now."""
        answers = self._standing.get(attempt, {})
        for key, answer in list(answers.items()):
            before = alerts.get(key)
            if isinstance(answer, Clear) and (before is None or not before.firing):
                del answers[key]
        since = {key: self._begin_time(attempt, key, alerts, now) for key in answers}
        return tuple(follow(answers.values(), since, self._settings, alerts, now))

    def _begin_time(self, attempt: int, key: AlertKey, alerts: Alerts, now: Moment) -> Moment:
        known = self._since.get((attempt, key))
        if known is None:
            before = alerts.get(key)
            known = now
            if before is not None and before.state is AlertState.PENDING:  # from before a restart
                known = Moment(step=before.since_step, at=before.since_at)
            self._since[(attempt, key)] = known
        return known

    def _store_answers(self, told: Collection[AttemptAnswer]) -> set[int]:
        for attempt, answer in told:
            self._standing.setdefault(attempt, {})[answer.key] = answer
            if isinstance(answer, Clear):
                self._since.pop((attempt, answer.key), None)
        return {attempt for attempt, _ in told}


def _planned_files(event: Change | Plan) -> Collection[str] | None:
    """Return the files of the current plan step, or `None` if the event does not name them."""
    if isinstance(event, Change):
        return event.plan_step_files
    return () if event.in_hand is None else event.in_hand.files


def project_of(task: Task) -> str:
    """Return the repository or folder that a task works on, or an empty string if it names none."""
    try:
        spec: object = json.loads(task.spec)
    except (ValueError, RecursionError):
        return ""
    found: object = spec.get("workspace") if isinstance(spec, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found if isinstance(found, str) else ""
