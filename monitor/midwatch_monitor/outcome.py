"""Whether an intervention helped. Pure: judged once, from what was observed since its delivery.

An alert that begins to fire or rises counts against an intervention only if all its evidence, that
is, every step that it names, is later than the delivery. A window of checkpoints, a series of calls
or a count of edits that began earlier says nothing about the intervention; such an alert is
escalated separately.

For three rules, the steps that they name do not decide. Silence always comes after its step. For an
unsupported claim, only the last step counts, since the failure that it denies may be older. The
budget is used from the first step on, so its alert counts only if the delivery came before the
whole attempt.

A grant of budget is judged by the work alone, since the grant itself ends the budget's alert.

An obstacle in the environment counts as still there only if it was met again, since its alert fires
for many steps after the last time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch_monitor.records import (
    Alert,
    AlertKey,
    Ending,
    Movement,
    Outcome,
    Resolution,
    Severity,
)
from midwatch_monitor.rules.detector import BETTER

FORWARD = frozenset(
    {
        Movement.CHECK_PASSED,
        Movement.FEWER_FAILURES,
        Movement.NEW_FAILURE,
        Movement.NEW_CONTENT,
    }
)
"""Movements that prove a recovery. A finished plan step does not: only the worker claims it."""

PROOF = FORWARD - {Movement.NEW_CONTENT}
"""The evidence that counts where new content is not enough: any worker writes some."""

_IN_WORDS = {
    Movement.CHECK_PASSED: "a check passed",
    Movement.FEWER_FAILURES: "a check failed in fewer places",
    Movement.NEW_FAILURE: "a check failed in a new way",
    Movement.NEW_CONTENT: "new content was written",
}


@dataclass(slots=True, kw_only=True)
class InterventionTrial:
    """A delivered intervention whose outcome is being judged by the events that follow."""

    intervention: int
    answers: tuple[AlertKey, ...]
    severities: Mapping[AlertKey, Severity]
    """Severities of the alerts that fired at the delivery; for a restart, the unanswered ones."""
    delivered_step: int
    unchecked: bool = False
    """Whether edits before the delivery are still unchecked: a check may fail because of them."""
    grant: bool = False
    """Whether it granted more budget."""
    fresh: bool = False
    """Whether no answered alert could fire at the delivery: new attempt or silent escalation."""
    movements: set[Movement] = field(default_factory=set[Movement])
    moved_paths: set[str] = field(default_factory=set[str])
    met: set[str] = field(default_factory=set[str])
    """Obstacles of the environment that the worker met."""
    worse: str = ""
    """The first thing that got worse, in words; empty if nothing did."""
    again: str = ""
    """A rule of an answered alert that now fires about something else; empty if none does."""
    settled: tuple[Outcome, str] | None = None
    """The verdict, once later events no longer count."""
    settled_step: int | None = None

    @property
    def late(self) -> bool:
        """Whether all answered alerts had ended before the delivery."""
        return not self.fresh and not any(key in self.severities for key in self.answers)

    def see_movement(
        self,
        movements: frozenset[Movement],
        paths: tuple[str, ...],
        *,
        checked: bool = False,
        obstacle: str = "",
    ) -> None:
        """Take in the movements of one step, the obstacle it met, and whether it was a check."""
        if obstacle:
            self.met.add(obstacle)
        self.movements |= movements
        if len(self.moved_paths) < 100:
            self.moved_paths.update(paths)
        if Movement.CHECK_BROKEN in movements and not self.unchecked and not self.worse:
            self.worse = "a check that passed now fails"
        self.unchecked = self.unchecked and not checked

    def see_alert(self, alert: Alert) -> None:
        """Take in a change of one of the attempt's alerts."""
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
            self.worse = f"then {alert.key.rule} fired as well"

    def _all_after(self, alert: Alert) -> bool:
        """Return whether all evidence of an alert is later than the delivery."""
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
        """Fix the verdict after this step of the attempt, unless it is fixed already."""
        if self.settled is None:
            self.settled, self.settled_step = self.verdict(alerts), step

    def verdict(
        self, alerts: Mapping[AlertKey, Alert], ending: Ending | None = None
    ) -> tuple[Outcome, str]:
        """Return the outcome with its reason, given the attempt's current alerts.

        `ending` is why the attempt ended, if it did before the verdict was due.
        """
        if self.settled is None and self.grant and ending is Ending.OUT_OF_BUDGET:
            return Outcome.NO_EFFECT, "what was granted ran out too"
        return self.settled or self._judge_outcome(alerts)

    def _judge_outcome(self, alerts: Mapping[AlertKey, Alert]) -> tuple[Outcome, str]:
        asked = [key for key in self.answers if not (self.grant and key.rule == "budget_burn")]
        known = [alerts[key] for key in asked if key in alerts]
        standing = [alert.key.rule for alert in known if self._still_fires(alert)]
        still = [*dict.fromkeys([*standing, *filter(None, [self.again])])]
        if self.worse:
            return Outcome.MADE_WORSE, self.worse
        if still:
            fire = "fires" if len(still) == 1 else "fire"
            return Outcome.NO_EFFECT, f"{', '.join(still)} still {fire}"
        if self.fresh and all(key.rule == "workspace_conflict" for key in self.answers):
            return Outcome.RECOVERED, "the conflict is gone"
        if self.late:
            return Outcome.NO_EFFECT, "its alerts had ended before it was delivered"
        ended = [alert.key.rule for alert in known if alert.resolution is Resolution.ENDED]
        if ended and not self.fresh:
            names = ", ".join(ended) if len(ended) < len(known) else "its alerts"
            return Outcome.NO_EFFECT, f"{names} ended without being cleared"
        emptied = self.fresh or self.grant or any(map(_proves_nothing, known))
        proof = self._proving_movements(emptied=emptied)
        if not proof:
            nothing = "no check has shown anything new" if emptied else "no progress was observed"
            nothing = "no check went better" if self.grant else nothing
            return Outcome.NO_EFFECT, f"{nothing} since"
        fires = any(alert.firing for alert in known)
        how = "the obstacle was not met again" if fires else "its alerts resolved"
        how = how if known or not self.grant else "the work went on"
        moved = ", ".join(words for each, words in _IN_WORDS.items() if each in proof)
        return Outcome.RECOVERED, f"{how}; {moved}"

    def _still_fires(self, alert: Alert) -> bool:
        """Return whether an answered alert fires; an obstacle must have been met again."""
        met = alert.key.rule != "blocked_environment" or alert.key.subject in self.met
        return alert.firing and met

    def _proving_movements(self, *, emptied: bool) -> set[Movement]:
        """Return the movements that prove a recovery; more edits of the same file prove nothing."""
        found = self.movements & (BETTER if self.grant else PROOF if emptied else FORWARD)
        stuck_on = {key.subject for key in self.answers if key.subject}
        if found == {Movement.NEW_CONTENT} and stuck_on and not self.moved_paths - stuck_on:
            return set()
        return found


def _proves_nothing(alert: Alert) -> bool:
    """Whether an alert may end although the work goes on as before.

    Its window was emptied, or the budget was raised.
    """
    return alert.resolution is Resolution.RESTARTED or alert.key.rule == "budget_burn"
