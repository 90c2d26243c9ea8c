"""The rules over what an attempt has used of what it was given."""

from collections.abc import Sequence

from midwatch_monitor.config.rules import BudgetBurn, StepsOnPlanStep
from midwatch_monitor.rules.act import Facet
from midwatch_monitor.rules.detector import Answer, Seen
from midwatch_monitor.rules.gauge import Gauge
from midwatch_monitor.words import AlertKey, Budget, Change, Event, Meter


class BudgetBurnDetector:
    """The budget runs out before the work is done, at the rate so far.

    Progress is what plan steps and the last checkpoint say, with the plan or without. Where nothing
    tells of progress only the share of the budget counts.
    """

    __slots__ = ("_budget", "_gauge", "_percent", "_plan_step", "_plan_steps", "_slack")
    hears = Facet.CHECKPOINT | Facet.CHANGE
    awake = False
    windowed = False
    _KEY = AlertKey(rule="budget_burn")

    def __init__(self, settings: BudgetBurn) -> None:
        self._gauge = Gauge(settings)
        self._slack = settings.slack
        self._budget = Budget()
        self._plan_step, self._plan_steps = 1, 0
        self._percent: int | None = None

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding while the tightest limit is used up to a threshold and progress lags behind."""
        if isinstance(event, Change):
            self._change(event)
        elif event.checkpoint is not None:
            self._percent = event.checkpoint.progress_percent
        name, used = _tightest(self._budget)
        done = self._done()
        if self._gauge.rests(used):
            return ()
        if done is not None and done + self._slack >= used:
            return self._gauge.clear()
        said = "" if done is None else f", and {done:.0f} % of the work is done"
        summary = f"{used:.0f} % of the {name} are used{said}"
        return self._gauge.answer(self._KEY, round(used), summary, (seen.act.number,))

    def _change(self, change: Change) -> None:
        if change.budget is not None:
            self._budget = change.budget
        if change.plan_steps is not None:
            self._plan_steps = change.plan_steps
        if change.plan_step is not None and change.plan_step != self._plan_step:
            self._plan_step, self._percent = change.plan_step, 0

    def _done(self) -> float | None:
        """Percent of the whole work, or `None` where nothing tells."""
        if not self._plan_steps:
            return self._percent
        within = min(self._percent or 0, 100) / 100
        return 100 * min(1.0, (self._plan_step - 1 + within) / self._plan_steps)

    def restart(self) -> None:
        """There is no window."""


class StepsOnPlanStepDetector:
    """How many steps of work went into the plan step in hand."""

    __slots__ = ("_count", "_first", "_gauge", "_planned")
    hears = Facet.CHANGE
    windowed = True
    _KEY = AlertKey(rule="steps_on_plan_step")

    def __init__(self, settings: StepsOnPlanStep) -> None:
        self._gauge = Gauge(settings)
        self._planned = False
        self._count = 0
        self._first = 0

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """A finding from a threshold on, where there is a plan."""
        if isinstance(event, Change):
            if event.plan_steps is not None:
                self._planned = event.plan_steps > 0
            return ()
        if not seen.act.work:
            return ()
        self._count += 1
        self._first = self._first or event.number
        if self._gauge.rests(self._count):
            return ()
        summary = f"{self._count} steps on one plan step"
        return self._gauge.answer(self._KEY, self._count, summary, (self._first, event.number))

    @property
    def awake(self) -> bool:
        """Where there is a plan, every step of work counts."""
        return self._planned

    def restart(self) -> None:
        """The next plan step begins."""
        self._count = self._first = 0
        self._gauge.restart()


def _tightest(budget: Budget) -> tuple[str, float]:
    """The resource of which most is used, with how many percent."""
    shares = [
        (_percent(meter), name)
        for name, meter in (
            ("requests", budget.requests),
            ("tokens", budget.tokens),
            ("dollars", budget.cost_usd),
            ("minutes", budget.minutes),
        )
    ]
    used, name = max(shares)
    return name, used


def _percent(meter: Meter) -> float:
    return 100 * meter.used / meter.limit if meter.limit else 0.0
