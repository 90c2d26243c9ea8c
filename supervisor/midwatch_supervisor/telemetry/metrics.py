"""Metrics of a journal in Prometheus' text format."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Clock
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.need import needs_person
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import interventions
from midwatch_monitor.state.usage import Usage, spent_usage
from midwatch_supervisor.present.text_line import visible

MetricLabels = tuple[str, ...]
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_WORKER = "worker"


class JournalMetrics:
    """The metrics of all runs of a journal. Each call reads only new entries."""

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._state = RunState()
        self._after = 0
        self._turn = asyncio.Lock()

    async def text(self) -> str:
        """Return all metrics as text. Raises JournalError."""
        async with self._turn:
            async for entry in self._journal.all_entries(self._after):
                self._state.fold(entry)
                self._after = entry.id
            return metrics_text(self._state, self._clock())


def metrics_text(state: RunState, now: datetime) -> str:
    """Return the metrics of a folded state as text."""
    attempts = [each for task in state.tasks.values() for each in task.attempts.values()]
    needing = [each for each in attempts if needs_person(each)]
    waiting = [each.needed_since for each in needing if each.needed_since is not None]
    oldest = max([0.0, *((now - each).total_seconds() for each in waiting)])
    stands = Counter[MetricLabels]((each.status,) for each in attempts)
    firing = Counter[MetricLabels](
        (a.key.rule, a.severity) for each in attempts for a in each.firing
    )
    steps = sum(each.last_step for each in attempts)
    lines = [
        *_metric_lines("attempts", "Attempts by state.", stands, "state"),
        *_metric_lines("alerts_firing", "Alerts that are firing.", firing, "rule", "severity"),
        *_metric_lines("steps_total", "Steps of workers.", {(): steps}),
        *_usage_families(state),
        *_intervention_families(attempts),
        *_metric_lines("waiting_for_person", "Attempts that need a person.", {(): len(needing)}),
        *_metric_lines(
            "waiting_oldest_seconds", "Longest of these waits so far, in seconds.", {(): oldest}
        ),
    ]
    return "\n".join([*lines, ""])


def _usage_families(state: RunState) -> Iterator[str]:
    used = {_WORKER: Usage()}
    for task in state.tasks.values():
        used[_WORKER] += task.used
        for spent in task.spent.values():
            used[spent.role] = used.get(spent.role, Usage()) + spent_usage(spent)
    for name, help, field in (
        ("model_requests_total", "Requests to models.", "requests"),
        ("model_tokens_total", "Input and output tokens of models.", "tokens"),
        ("model_cost_dollars_total", "US dollars, if a price is known.", "cost_usd"),
    ):
        sums = {(role,): getattr(each, field) for role, each in used.items()}
        yield from _metric_lines(name, help, sums, "role")


def _intervention_families(attempts: list[AttemptState]) -> Iterator[str]:
    all = list(interventions(attempts))
    issued = Counter[MetricLabels]((each.action,) for each in all)
    judged = Counter[MetricLabels]((e.action, e.outcome) for e in all if e.outcome is not None)
    yield from _metric_lines(
        "interventions_total", "Interventions that were issued.", issued, "action"
    )
    yield from _metric_lines(
        *("intervention_outcomes_total", "Interventions that were judged.", judged),
        *("action", "outcome"),
    )


def _metric_lines(
    name: str, help: str, values: Mapping[MetricLabels, float], *labels: str
) -> Iterator[str]:
    """Yield one metric with a line for each value, ordered by labels."""
    kind = "counter" if name.endswith("_total") else "gauge"
    yield f"# HELP midwatch_{name} {help}"
    yield f"# TYPE midwatch_{name} {kind}"
    for key, value in sorted(values.items()):
        pairs = zip(labels, key, strict=True)
        said = ",".join(f'{label}="{visible(each).translate(_ESCAPES)}"' for label, each in pairs)
        yield f"midwatch_{name}{{{said}}} {value}" if said else f"midwatch_{name} {value}"
