"""Whether an intervention helped. Pure: judged once, from what was observed since its delivery.

An alert that begins to fire, or rises, counts against an intervention only if all that it rests on
came after the delivery: every step that it names is a later one. A window of checkpoints, a row of
calls or a count of edits that began before says nothing of what the intervention did; such an alert
stays what it is, and is escalated by itself.

Three rules rest on something else than the steps that they name. Silence comes after its step. An
unsupported claim is the last of its steps: the failure that it denies may be older. The budget was
used from the first step on, so its alert counts only where the whole attempt came afterwards.

Likewise an obstacle of the environment still stands in the way only if it was met again: its alert
fires for many steps after the last time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch_monitor.records import (
    Alert,
    AlertKey,
    Movement,
    Outcome,
    Resolution,
    Severity,
)

FORWARD = frozenset(
    {
        Movement.CHECK_PASSED,
        Movement.FEWER_FAILURES,
        Movement.NEW_FAILURE,
        Movement.NEW_CONTENT,
    }
)
"""Movements that count as evidence for a recovery. A finished plan step is the worker's word."""

PROOF = FORWARD - {Movement.NEW_CONTENT}
"""What counts where a window was only emptied: after that, anybody writes something new."""


@dataclass(slots=True, kw_only=True)
class InterventionTrial:
    """One delivered intervention on its way to an outcome; fed with what happens meanwhile."""

    intervention: int
    answers: tuple[AlertKey, ...]
    severities: Mapping[AlertKey, Severity]
    """Of every alert that fired at the delivery, answered or not; of a restart, not answered."""
    delivered_step: int
    unchecked: bool = False
    """Whether edits from before the delivery were not checked yet: what broke may be theirs."""
    fresh: bool = False
    """Whether the alerts that it answers cannot fire: on a new attempt, or silent all along."""
    movements: set[Movement] = field(default_factory=set[Movement])
    moved_paths: set[str] = field(default_factory=set[str])
    met: set[str] = field(default_factory=set[str])
    """The obstacles of the environment that the worker met."""
    worse: str = ""
    """The first thing that got worse, in words."""
    again: str = ""
    """A rule that was answered and fires about something else."""
    settled: tuple[Outcome, str] | None = None
    """The verdict, once nothing that comes later counts any more."""
    settled_step: int | None = None

    @property
    def late(self) -> bool:
        """Whether all that it answers had ended before it arrived."""
        return not self.fresh and not any(key in self.severities for key in self.answers)

    def see_movement(
        self,
        movements: frozenset[Movement],
        paths: tuple[str, ...],
        *,
        checked: bool = False,
        obstacle: str = "",
    ) -> None:
        """Take in what one step moved, what stood in its way, and whether it was a check."""
        if obstacle:
            self.met.add(obstacle)
        self.movements |= movements
        if len(self.moved_paths) < 100:
            self.moved_paths.update(paths)
        if Movement.CHECK_BROKEN in movements and not self.unchecked and not self.worse:
            self.worse = "a check that passed now fails"
        self.unchecked = self.unchecked and not checked

    def see_alert(self, alert: Alert) -> None:
        """Take in a change of an alert of the attempt."""
        if not alert.firing or not alert.severity.alarm or self.worse:
            return
        if not self._all_after(alert):
            return
        before = self.severities.get(alert.key)
        if before is not None:
            if alert.severity.rank > before.rank:
                self.worse = f"{alert.key.rule} rose to {alert.severity}"
        elif alert.key.rule in {key.rule for key in self.answers}:
            self.again = alert.key.rule
        else:
            self.worse = f"{alert.key.rule} fires as well"

    def _all_after(self, alert: Alert) -> bool:
        """Whether all that an alert rests on came after the delivery."""
        match alert.key.rule:
            case "silence":
                return True
            case "budget_burn":
                return self.delivered_step == 0
            case "unsupported_claim":
                return alert.evidence[-1:] > (self.delivered_step,)
            case _:
                return all(step > self.delivered_step for step in alert.evidence)

    def settle(self, alerts: Mapping[AlertKey, Alert], step: int) -> None:
        """Let it stand as it is by now, after that step of the attempt."""
        if self.settled is None:
            self.settled, self.settled_step = self.verdict(alerts), step

    def verdict(self, alerts: Mapping[AlertKey, Alert]) -> tuple[Outcome, str]:
        """The outcome with its reason, given the attempt's alerts as they stand now."""
        return self.settled or self._judge(alerts)

    def _judge(self, alerts: Mapping[AlertKey, Alert]) -> tuple[Outcome, str]:
        known = [alerts[key] for key in self.answers if key in alerts]
        still = [alert.key.rule for alert in known if self._stands(alert)]
        still += [self.again] if self.again else []
        if self.worse:
            return Outcome.MADE_WORSE, self.worse
        if still:
            fire = "fires" if len(still) == 1 else "fire"
            return Outcome.NO_EFFECT, f"{', '.join(still)} still {fire}"
        if self.fresh and all(key.rule == "workspace_conflict" for key in self.answers):
            return Outcome.RECOVERED, "the conflict is gone"
        if self.late:
            return Outcome.NO_EFFECT, "what it answers had ended before it arrived"
        ended = [alert.key.rule for alert in known if alert.resolution is Resolution.ENDED]
        if ended and not self.fresh:
            return Outcome.NO_EFFECT, f"{', '.join(ended)} ended without being cleared"
        emptied = self.fresh or any(each.resolution is Resolution.RESTARTED for each in known)
        proof = self._proof(emptied=emptied)
        if not proof:
            nothing = "no check told anything new" if emptied else "nothing observed moved"
            return Outcome.NO_EFFECT, f"{nothing} since"
        fires = any(alert.firing for alert in known)
        how = "the obstacle was not met again" if fires else "resolved"
        return Outcome.RECOVERED, f"{how}, with {', '.join(sorted(proof))}"

    def _stands(self, alert: Alert) -> bool:
        """Whether an answered alert fires, on more than what was before the delivery."""
        met = alert.key.rule != "blocked_environment" or alert.key.subject in self.met
        return alert.firing and met

    def _proof(self, *, emptied: bool) -> set[Movement]:
        """What moved; a file that was edited too often is no proof by being edited again."""
        found = self.movements & (PROOF if emptied else FORWARD)
        stuck_on = {key.subject for key in self.answers if key.subject}
        if found == {Movement.NEW_CONTENT} and stuck_on and not self.moved_paths - stuck_on:
            return set()
        return found
