"""The report as one-line objects, for programs. Pure."""

from collections import Counter
from collections.abc import Iterator

from midwatch_monitor.metrics import Figures
from midwatch_monitor.metrics.distribution import Distribution
from midwatch_monitor.metrics.plans import PlanFigures, PlanSum
from midwatch_monitor.metrics.recovery import Outcomes, RecoveryFigures
from midwatch_monitor.metrics.restraint import RestraintFigures
from midwatch_monitor.metrics.retries import RetryFigures
from midwatch_monitor.metrics.spending import SpendingFigures
from midwatch_monitor.metrics.stated import StatedFigures
from midwatch_monitor.records import Lifecycle
from midwatch_monitor.replay.tune.figures import Share
from midwatch_supervisor.report.fields import Line, rate_fields, rounded, usage_fields
from midwatch_supervisor.report.reading import Reading


def json_lines(reading: Reading) -> Iterator[Line]:
    """One object for each figure; nothing where no task counts."""
    figures = reading.figures
    if not figures.tasks:
        return
    yield _tasks(figures)
    yield from _each_task(reading)
    yield from _detection(figures)
    yield from _recovery(figures.recovery)
    yield _restraint(figures.restraint)
    yield from _retries(figures.retries)
    yield from _plans(figures.plans, reading)
    yield from (_stated(each) for each in figures.stated if each.attempts)
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


def _each_task(reading: Reading) -> Iterator[Line]:
    for task in reading.figures.tasks:
        found = reading.tasks[task.task]
        yield {
            "type": "task",
            "run": found.run,
            "task": found.name,
            "title": found.title,
            "status": task.lifecycle.value,
            "reason": task.reason,
            "attempts": task.attempts,
            "interventions": task.interventions,
            "recovered": task.recovered,
            "acceptance": {"passed": task.passed, "total": task.total},
            "seconds": None if task.seconds is None else round(task.seconds, 3),
            **usage_fields(task.usage),
        }


def _detection(figures: Figures) -> Iterator[Line]:
    found = figures.detection
    if found.requests.of or found.unknown:
        yield {**_speed(None, found.requests), "unknown": found.unknown}
    for each in found.rules:
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
        "delivered": found.delivered,
        "recovered": found.recovered,
        "no_effect": found.no_effect,
        "made_worse": found.made_worse,
        "not_judged": found.not_judged,
        **rate_fields(found.rate),
    }


def _restraint(figures: RestraintFigures) -> Line:
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
            yield {
                "type": "retries",
                "of": of,
                "analysed": analysed,
                **counts,
                **rate_fields(share),
            }
    yield {
        "type": "analyses",
        "causes": {cause.value: count for cause, count in figures.causes},
        "provider": figures.provider,
        "held_back": figures.held_back,
    }


def _plans(figures: PlanFigures, reading: Reading) -> Iterator[Line]:
    for of, found in (("task", figures.tasks), ("attempt", figures.attempts)):
        yield {"type": "plans", "of": of, **_plan_sum(found)}
    yield {
        "type": "claims",
        "accepted": figures.accepted,
        "reserved": figures.reserved,
        "refused": figures.refused,
    }
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


def _plan_sum(found: PlanSum) -> Line:
    return {
        "plans": found.plans,
        "closed": found.closed,
        "plan_steps": found.steps,
        "done": found.done,
        "skipped": found.skipped,
        "open": found.open,
        "flagged": found.flagged,
        "revisions": found.revisions,
        **rate_fields(Share(hits=found.done, of=found.steps)),
    }


def _stated(figures: StatedFigures) -> Line:
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
