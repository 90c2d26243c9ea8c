"""Whether an intervention helped. Pure: judged once, from what was observed since its delivery."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch_monitor.words import (
    Alert,
    AlertKey,
    Movement,
    Outcome,
    Resolution,
    Severity,
)

FORWARD = frozenset(
    {Movement.CHECK_PASSED, Movement.NEW_FAILURE, Movement.NEW_CONTENT, Movement.PLAN_STEP}
)
"""Movements that count as evidence for a recovery."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """One delivered intervention on its way to an outcome; fed with what happens meanwhile."""

    intervention: int
    answers: tuple[AlertKey, ...]
    severities: Mapping[AlertKey, Severity]
    """Of every alert that fired at the delivery, answered or not."""
    delivered_step: int
    fresh: bool = False
    """Whether it is judged on a new attempt, where the old alerts cannot fire any more."""
    movements: set[Movement] = field(default_factory=set[Movement])
    moved_paths: set[str] = field(default_factory=set[str])
    worse: str = ""
    """The first thing that got worse, in words."""
    again: str = ""
    """A rule that was answered and fires about something else."""

    def see_movement(self, movements: frozenset[Movement], paths: tuple[str, ...]) -> None:
        """Take in what one step moved."""
        self.movements |= movements
        if len(self.moved_paths) < 100:
            self.moved_paths.update(paths)
        if Movement.CHECK_BROKEN in movements and not self.worse:
            self.worse = "a check that passed now fails"

    def see_alert(self, alert: Alert) -> None:
        """Take in a change of an alert of the attempt."""
        if not alert.firing or not alert.severity.alarm or self.worse:
            return
        before = self.severities.get(alert.key)
        if before is not None:
            if alert.severity.rank > before.rank:
                self.worse = f"{alert.key.rule} rose to {alert.severity}"
        elif alert.key.rule in {key.rule for key in self.answers}:
            self.again = alert.key.rule
        else:
            self.worse = f"{alert.key.rule} fires as well"

    def verdict(self, alerts: Mapping[AlertKey, Alert]) -> tuple[Outcome, str]:
        """The outcome with its reason, given the attempt's alerts as they stand now."""
        still = [key.rule for key in self.answers if _fires(alerts.get(key))]
        still += [self.again] if self.again else []
        unproven = [key.rule for key in self.answers if not self._cleared(alerts.get(key))]
        if self.worse:
            return Outcome.MADE_WORSE, self.worse
        if still:
            return Outcome.NO_EFFECT, f"{', '.join(still)} still fires"
        if unproven:
            return Outcome.NO_EFFECT, f"{', '.join(unproven)} ended without being cleared"
        if not self._moved():
            return Outcome.NO_EFFECT, "nothing observed moved since"
        moved = ", ".join(sorted(self.movements & FORWARD))
        return Outcome.RECOVERED, f"resolved, with {moved}"

    def _cleared(self, alert: Alert | None) -> bool:
        # A restarted window shows no finding, but it is no proof: then only movement counts.
        return self.fresh or alert is None or alert.resolution is not Resolution.ENDED

    def _moved(self) -> bool:
        """Whether the work moved; a file that was edited too often is no proof by itself."""
        found = self.movements & FORWARD
        stuck_on = {key.subject for key in self.answers if key.subject}
        if found == {Movement.NEW_CONTENT} and stuck_on:
            return bool(self.moved_paths - stuck_on)
        return bool(found)


def _fires(alert: Alert | None) -> bool:
    return alert is not None and alert.firing
