"""What of an attempt is only read where it is looked at closely. Pure."""

from dataclasses import dataclass, field

from midwatch_monitor.records import (
    Acceptance,
    Alert,
    AlertKey,
    Analysis,
    BudgetRequest,
    Completion,
    Decision,
    Fault,
    PlanCheck,
    Record,
    Snapshot,
)


@dataclass(slots=True, kw_only=True)
class AttemptDetails:
    """Texts, checks and histories of one attempt. They grow with it."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    analyses: list[Analysis] = field(default_factory=list[Analysis])
    plan_checks: dict[int, PlanCheck] = field(default_factory=dict[int, PlanCheck])
    """By journal id, as `requests` are."""
    requests: dict[int, BudgetRequest] = field(default_factory=dict[int, BudgetRequest])
    completions: list[Completion] = field(default_factory=list[Completion])
    checks: dict[str, Acceptance] = field(default_factory=dict[str, Acceptance])
    """The newest result of each acceptance check."""
    faults: list[Fault] = field(default_factory=list[Fault])
    history: dict[AlertKey, list[Alert]] = field(default_factory=dict[AlertKey, list[Alert]])
    """Every change of each alert, oldest first."""
    saved: Snapshot | None = None
    """The work as it was saved last, for another node to go on with."""

    def fold(self, id: int, record: Record) -> None:
        """Take in a record of the attempt, with its journal id."""
        match record:
            case Decision():
                self.decisions.append(record)
            case Analysis():
                self.analyses.append(record)
            case PlanCheck():
                self.plan_checks[id] = record
            case BudgetRequest():
                self.requests[id] = record
            case Completion():
                self.completions.append(record)
            case Acceptance():
                self.checks[record.check] = record
            case Fault():
                self.faults.append(record)
            case Alert():
                self.history.setdefault(record.key, []).append(record)
            case Snapshot():
                self.saved = record
            case _:
                pass
