"""The report on runs as one-line objects, for programs. Pure."""

from collections import Counter
from collections.abc import Iterator

from midwatch_monitor.metrics import Figures
from midwatch_monitor.metrics.claims import ConfidenceFigures, PlanFigures
from midwatch_monitor.metrics.detection import DetectionFigures
from midwatch_monitor.metrics.recovery import DisturbanceFigures, Outcomes, RecoveryFigures
from midwatch_monitor.metrics.retries import RetryFigures
from midwatch_monitor.metrics.statistics import Distribution, Share
from midwatch_monitor.metrics.tasks import SpendingFigures, Usage
from midwatch_monitor.records import Lifecycle
from midwatch_supervisor.report.reading import RunReading

Line = dict[str, object]
_OUTCOMES = ("recovered", "no_effect", "made_worse", "not_judged")


def usage_fields(usage: Usage) -> Line:
    return {**integers(usage, "requests", "tokens"), "cost_usd": round(usage.cost_usd, 6)}


def rate_fields(share: Share) -> Line:
    """A rate from 0 to 1 with the ends of its 95 % interval; nothing of nothing."""
    if not share.of:
        return {"rate": None, "low": None, "high": None}
    spread = share.interval
    return {
        "rate": rounded(share.rate),
        "low": rounded(spread.low),
        "high": rounded(spread.high),
    }


def rounded(value: float | None) -> float | None:
    """Four decimals, which no count of attempts bears out anyway."""
    return None if value is None else round(value, 4)


def integers(figures: object, *names: str) -> Line:
    """Fields that are called as their attributes."""
    return {name: getattr(figures, name) for name in names}


def run_lines(reading: RunReading) -> Iterator[Line]:
    """One object for each figure; nothing where no task counts."""
    figures = reading.figures
    if not figures.tasks:
        return
    yield _tasks(figures)
    yield from _each_task(reading)
    yield from _detection(figures.detection)
    yield from _recovery(figures.recovery)
    yield _restraint(figures.disturbance)
    yield from _retries(figures.retries)
    yield from _plans(figures.plans, reading)
    yield from (_confidence(each) for each in figures.confidence if each.attempts)
    yield from _spending(figures.spending)


def _tasks(figures: Figures) -> Line:
    counts = Counter(task.lifecycle for task in figures.tasks)
    return {
        "type": "tasks",
        "tasks": len(figures.tasks),
        **{state.value: counts[state] for state in Lifecycle},
        "attempts": sum(task.attempts for task in figures.tasks),
        "interventions": sum(task.interventions for task in figures.tasks),
        "recovered": sum(task.recovered for task in figures.tasks),
    }


def _each_task(reading: RunReading) -> Iterator[Line]:
    for task in reading.figures.tasks:
        found = reading.tasks[task.task]
        yield {
            "type": "task",
            "run": found.run,
            "task": found.name,
            "title": found.title,
            "status": task.lifecycle.value,
            "reason": task.reason,
            **integers(task, "attempts", "interventions", "recovered"),
            "acceptance": integers(task, "passed", "total"),
            "seconds": None if task.seconds is None else round(task.seconds, 3),
            **usage_fields(task.usage),
        }


def _detection(figures: DetectionFigures) -> Iterator[Line]:
    if figures.requests.of or figures.unknown:
        yield {**_speed(None, figures.requests), "unknown": figures.unknown}
    for each in figures.rules:
        yield _speed(each.rule, each.requests)


def _speed(rule: str | None, requests: Distribution) -> Line:
    return {
        "type": "detection",
        "rule": rule,
        "alarms": requests.of,
        "median": requests.median,
        "requests": [{"requests": value, "alarms": count} for value, count in requests.counts],
    }


def _recovery(figures: RecoveryFigures) -> Iterator[Line]:
    yield {
        **_outcomes("all", None, figures.total),
        "unprompted": figures.unprompted,
        "refused": figures.refused,
    }
    for by, found in (
        ("rule", figures.by_rule),
        ("action", figures.by_action),
        ("diagnosis", figures.by_diagnosis),
        ("actor", figures.by_actor),
    ):
        yield from (_outcomes(by, name, each) for name, each in found)


def _outcomes(by: str, name: str | None, found: Outcomes) -> Line:
    return {
        "type": "recovery",
        "by": by,
        "name": name,
        **integers(found, "delivered", *_OUTCOMES),
        **rate_fields(found.rate),
    }


def _restraint(figures: DisturbanceFigures) -> Line:
    return {
        "type": "restraint",
        "succeeded": figures.alarmed.of,
        "alarmed": figures.alarmed.hits,
        "disturbed": figures.disturbed.hits,
        "in_vain": figures.in_vain.hits,
        "false_alarms": figures.false_alarms.hits,
        "interventions": figures.interventions,
        "interventions_in_vain": figures.interventions_in_vain,
    }


def _retries(figures: RetryFigures) -> Iterator[Line]:
    for of, found in (("act", figures.acts), ("attempt", figures.attempts)):
        for analysed, share in ((True, found.analysed), (False, found.unanalysed)):
            counts = {"retries": share.of, "succeeded": share.hits}
            kind = {"type": "retries", "of": of, "analysed": analysed}
            yield {**kind, **counts, **rate_fields(share)}
    yield {
        "type": "analyses",
        "causes": {cause.value: count for cause, count in figures.causes},
        "provider": figures.provider,
        "held_back": figures.held_back,
    }


def _plans(figures: PlanFigures, reading: RunReading) -> Iterator[Line]:
    for of, found in (("task", figures.tasks), ("attempt", figures.attempts)):
        yield {
            "type": "plans",
            "of": of,
            **integers(found, "plans", "closed"),
            "plan_steps": found.steps,
            **integers(found, "done", "skipped", "open", "flagged", "revisions"),
            **rate_fields(Share(hits=found.done, of=found.steps)),
        }
    yield {"type": "claims", **integers(figures, "accepted", "reserved", "refused")}
    for each in figures.reservations:
        found = reading.tasks[each.task]
        yield {
            "type": "reservation",
            "run": found.run,
            "task": found.name,
            "plan_step": each.plan_step or None,
            "goal": each.goal,
            "flag": each.flag,
        }


def _confidence(figures: ConfidenceFigures) -> Line:
    return {
        "type": "confidence",
        "source": figures.source.value,
        "attempts": figures.attempts,
        "error": rounded(figures.error),
        "bins": [
            {
                "low": each.low,
                "high": each.high,
                "attempts": each.attempts.of,
                "succeeded": each.attempts.hits,
                "checks": each.checks.of,
                "passed": each.checks.hits,
            }
            for each in figures.bins
        ],
    }


def _spending(figures: SpendingFigures) -> Iterator[Line]:
    yield {"type": "spending", "role": "worker", **usage_fields(figures.workers), "share": None}
    for role, usage in (*figures.roles, ("all", figures.around)):
        share = rounded(figures.share(usage))
        yield {"type": "spending", "role": role, **usage_fields(usage), "share": share}
