"""What moved in an attempt, and when: the newest step of each kind. Folded step by step."""

from dataclasses import dataclass, field

from midwatch_monitor.records import Movement, Step
from midwatch_monitor.rules.act import Act, Check, Normaliser
from midwatch_monitor.rules.detector import BETTER, Movements


@dataclass(slots=True, kw_only=True)
class Track:
    """The course of one attempt, as far as observed evidence tells."""

    better_at: int = 0
    """The last step at which a check passed that had failed, or failed in fewer places."""
    broken_at: int = 0
    """The last step at which a check failed that had passed."""
    passing_at: int = 0
    """The last look at the work, if it went well; 0 if it failed, or before the first."""
    _acts: Normaliser = field(default_factory=Normaliser, compare=False)
    _movements: Movements = field(default_factory=Movements, compare=False)

    def take(self, step: Step) -> None:
        """Take in the next step."""
        act = self._acts.act(step)
        moved = self._movements.observe(act).kinds
        if moved & BETTER:
            self.better_at = step.number
        if Movement.CHECK_BROKEN in moved:
            self.broken_at = step.number
        self._look(act)

    def _look(self, act: Act) -> None:
        if act.check is not Check.NONE and act.failed is not None:
            self.passing_at = 0 if act.failed else act.number

    def improved_since(self, step: int) -> bool:
        """Whether the work got better after a step, and no worse again."""
        return self.better_at > step and self.better_at > self.broken_at
