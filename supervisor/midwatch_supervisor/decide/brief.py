"""All that is known of an attempt and its task when something about it is decided."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import Alert, AlertKey, Attempt
from midwatch_monitor.state.intervention import WorkerRequest
from midwatch_supervisor.decide.concurrent_attempts import rivals
from midwatch_supervisor.decide.diagnosis import diagnose
from midwatch_supervisor.decide.dossier import Dossier
from midwatch_supervisor.decide.evidence import Case
from midwatch_supervisor.decide.history import History
from midwatch_supervisor.decide.means import means_of
from midwatch_supervisor.decide.standing import Means, Rival, Standing
from midwatch_supervisor.decide.worker_requests import Plea
from midwatch_supervisor.present.lookup import assignment_of

_LAG = 4
"""Steps until what is decided now has arrived, and until its verdict has become an act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """One attempt with its task, as they stood when the journal was read."""

    task: TaskSpec
    dossier: Dossier
    history: History
    means: Means
    rivals: tuple[Rival, ...]
    settings: Settings

    @classmethod
    async def read(
        cls, journal: Journal, attempt: Attempt, task: TaskSpec, settings: Settings
    ) -> "Brief":
        """Read what the journal says of both."""
        dossier = await Dossier.read(journal, attempt)
        history = await History.read(journal, attempt.task)
        attempts = await journal.attempts(attempt.task)
        means = means_of(
            task,
            assignment_of(await journal.task(attempt.task)),
            [each for each in attempts if each.id <= attempt.id],
            history,
            model=dossier.model,
            policy=settings.policy,
        )
        fought = {key.subject for key in dossier.view.alerts if key.rule == "workspace_conflict"}
        return cls(
            task=task,
            dossier=dossier,
            history=history,
            means=means,
            rivals=await rivals(journal, attempt, fought),
            settings=settings,
        )

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire now."""
        return self.dossier.view.firing

    def standing(self, escalation: int, alerts: Iterable[AlertKey]) -> Standing:
        """What a decision about some of the attempt's alerts depends on."""
        keys, view = set(alerts), self.dossier.view
        asked = tuple(alert for key, alert in view.alerts.items() if key in keys)
        asked = asked or self._earlier(keys)
        attempt = self.dossier.attempt.id
        before = self.history.tried(before=attempt)
        here = self.history.tried(attempt=attempt)
        conflict = any(each.elder for each in self.rivals)
        return Standing(
            escalation=escalation,
            alerts=asked,
            reading=diagnose(self.dossier.signs(asked, (*before, *here), conflict=conflict)),
            interventions=here,
            before=before,
            observed=self.dossier.observed & keys,
            rejected=self.history.rejected(attempt),
            escalations=max(0, view.raised - 1),
            means=self.means,
            plan=self.dossier.plan,
            budget=self.dossier.budget,
            then_used=self.dossier.then_used(self.settings.monitor.outcome_after + _LAG),
            rivals=self.rivals,
            asked=self.history.asked(attempt),
            policy=self.settings.policy,
        )

    def _earlier(self, keys: set[AlertKey]) -> tuple[Alert, ...]:
        """Alerts of an attempt before this one; its steps are not this one's."""
        found = [alert for key, alert in self.history.alerts.items() if key in keys]
        return tuple(replace(alert, evidence=(), step=0, since_step=0) for alert in found)

    async def case(self, standing: Standing, calibration: Calibration | None = None) -> Case:
        """The attempt as the supervisor's model is shown it at first."""
        case = await self.dossier.case(self.task, calibration)
        return replace(
            case,
            # Of a question about alerts that fell silent, or about an attempt before, none fires.
            alerts=case.alerts or standing.alerts,
            before=standing.before,
            rivals=self.rivals,
            reading=standing.reading,
        )

    def plea(self, id: int, petition: WorkerRequest) -> Plea:
        """What the worker asks for, with what was said to it so far."""
        left = self.settings.plan.max_revisions - self.history.approved
        return Plea(
            id=id,
            petition=petition,
            revisions_left=max(0, left),
            turned_down=self.history.turned_down(id),
            done=self.dossier.done,
            slack=self.settings.rules.budget_burn.slack,
        )
