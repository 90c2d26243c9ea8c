"""The rules about the budget and the plan."""

from collections.abc import Sequence

from midwatch_monitor.budget import done_percent, outlook
from midwatch_monitor.config.rules import BudgetBurn, StepsOnPlanStep
from midwatch_monitor.records import Budget, Change, Event
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import EvidenceKind, GradedDetector, RuleAnswer, Seen


class BudgetBurnDetector(GradedDetector):
    """At the current rate, the budget runs out before the work is done.

    Progress comes from the plan steps and the last checkpoint. If it is unknown, only the share of
    the budget used counts. The worker is told the same numbers.
    """

    __slots__ = ("_budget", "_percent", "_plan_step", "_plan_steps", "_slack")
    rule = "budget_burn"
    evidence = EvidenceKind.ALLOWANCE
    hears = Facet.CHECKPOINT | Facet.CHANGE

    def __init__(self, settings: BudgetBurn) -> None:
        super().__init__(settings)
        self._slack = settings.slack
        self._budget: Budget | None = None
        self._plan_step, self._plan_steps = 1, 0
        self._percent: int | None = None

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding while usage of the tightest limit is at a threshold and progress lags
        behind.
        """
        if isinstance(event, Change):
            self._apply_change(event)
        elif event.checkpoint is not None:
            self._percent = event.checkpoint.progress_percent
        if self._budget is None:
            return ()
        done = done_percent(self._plan_step, self._plan_steps, self._percent)
        ahead = outlook(self._budget, done, slack=self._slack)
        if ahead is None or (done is not None and ahead.enough):
            return self.clear()
        used = ahead.percent
        if self.rests(used):
            return ()
        said = "" if done is None else f", and {done:.0f} % of the work is done"
        summary = f"{used:.0f} % of the {ahead.resource} are used{said}"
        return self.find(round(used), summary, (seen.act.number,))

    @property
    def awake(self) -> bool:
        """Steps of work neither raise nor end its finding."""
        return False

    def _apply_change(self, change: Change) -> None:
        if change.budget is not None:
            self._budget = change.budget
        if change.plan_steps is not None:
            self._plan_steps = change.plan_steps
        if change.plan_step is not None and change.plan_step != self._plan_step:
            self._plan_step, self._percent = change.plan_step, 0


class StepsOnPlanStepDetector(GradedDetector):
    """How many steps of work were spent on the current plan step.

    Its planned share of the requests can lower the thresholds but never raise them. A new plan step
    or a revision without a share clears the previous one.
    """

    __slots__ = ("_configured", "_count", "_first", "_planned", "_share")
    rule = "steps_on_plan_step"
    evidence = EvidenceKind.ALLOWANCE
    hears = Facet.CHANGE
    windowed = True

    def __init__(self, settings: StepsOnPlanStep) -> None:
        super().__init__(settings)
        self._configured = settings
        self._share: int | None = None
        self._planned = False
        self._count = 0
        self._first = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return a finding once the count reaches a threshold, if there is a plan."""
        if isinstance(event, Change):
            self._apply_change(event)
            return ()
        if not seen.act.work:
            return ()
        self._count += 1
        self._first = self._first or event.number
        if self.rests(self._count):
            return ()
        given = "" if self._share is None else f", which was given {self._share} requests"
        summary = f"{self._count} steps on one plan step{given}"
        return self.find(self._count, summary, (self._first, event.number))

    def _apply_change(self, change: Change) -> None:
        if change.plan_steps is not None:
            self._planned = change.plan_steps > 1  # without a plan, the task is the only step
        anew = change.plan_step is not None or change.revision is not None
        share = change.plan_step_requests
        if share != self._share and (anew or share is not None):
            self._share = share
            self.use(_lower_thresholds(self._configured, share))

    @property
    def awake(self) -> bool:
        """With a plan, every step of work counts."""
        return self._planned

    def restart(self) -> None:
        super().restart()
        self._count = self._first = 0


def _lower_thresholds(settings: StepsOnPlanStep, share: int | None) -> StepsOnPlanStep:
    """Return the thresholds for a plan step, lowered to its share of the requests if it has one."""
    if share is None:
        return settings
    least = max(share, settings.lowered_to)
    return settings.model_copy(
        update={
            # 0 means off.
            "notice_after": min(settings.notice_after, least),
            "warn_after": min(settings.warn_after, 2 * least),
        }
    )
