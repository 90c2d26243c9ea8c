"""The sections of the report on runs. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

from midwatch_monitor.metrics.claims import Bin, ConfidenceFigures, PlanFigures, PlanSum, Source
from midwatch_monitor.metrics.detection import DetectionFigures
from midwatch_monitor.metrics.figures import TaskFigures
from midwatch_monitor.metrics.recovery import (
    DisturbanceFigures,
    Outcomes,
    OutcomesByName,
    RecoveryFigures,
)
from midwatch_monitor.metrics.retries import RetryFigures
from midwatch_monitor.metrics.statistics import Distribution, Share
from midwatch_monitor.metrics.tasks import SpendingFigures
from midwatch_monitor.records import Lifecycle
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.reading import RunReading
from midwatch_supervisor.report.section import (
    RATE,
    Bar,
    Chart,
    Section,
    Table,
    count_chart,
    count_table,
    dollars,
    lasted,
    number,
    of,
    rate,
    rate_chart,
    rate_table,
    share,
)

MAX_TASKS = 200
"""Tasks that are listed; the newest. `--json` has them all."""
SPANS: tuple[tuple[int, int | None], ...] = (
    *((each, each) for each in range(1, 6)),
    (6, 10),
    (11, 20),
    (21, None),
)
"""Requests to detection that are counted together, both ends included."""
_REASON = 100
"""Characters of a task's reason."""
_QUOTE = 200
"""Characters of what a worker wrote."""
_ORDER = (
    Lifecycle.COMPLETED,
    Lifecycle.FAILED,
    Lifecycle.INPUT_REQUIRED,
    Lifecycle.WORKING,
    Lifecycle.SUBMITTED,
    Lifecycle.CANCELED,
    Lifecycle.REJECTED,
)
_NAMES = {Lifecycle.INPUT_REQUIRED: "waiting for a person", Lifecycle.SUBMITTED: "not begun"}
_OUTCOMES = ("recovered", "no effect", "made worse", "not judged")
_SOURCES = {
    Source.CHECKPOINT: "last checkpoint",
    Source.COMPLETION: "last claim of completion",
}


def run_sections(reading: RunReading) -> tuple[Section, ...]:
    """All sections, in their order; none without a task."""
    figures = reading.figures
    if not figures.tasks:
        return ()
    return (
        _tasks(reading),
        _detection(figures.detection),
        _recovery(figures.recovery),
        _disturbance(figures.disturbance),
        _retries(figures.retries),
        _plans(figures.plans, reading.name),
        _confidence(figures.confidence),
        _spending(figures.spending),
    )


def _tasks(reading: RunReading) -> Section:
    tasks = reading.figures.tasks
    counts = Counter(task.lifecycle for task in tasks)
    listed = tasks[-MAX_TASKS:]
    explained = [
        "Interventions are those that were delivered; recovered are those that helped.",
        "The time is from a task's first attempt to its end, waiting included.",
    ]
    if len(listed) < len(tasks):
        explained.append(f"The newest {len(listed)} of {len(tasks)} tasks are listed.")
    states = ((_NAMES.get(each, each.value), counts[each]) for each in _ORDER if counts[each])
    return Section(
        title="Tasks",
        explained=tuple(explained),
        charts=(count_chart("tasks", "tasks", states),),
        tables=(_per_task(tasks), _task_list(reading, listed)),
    )


def _per_task(tasks: Sequence[TaskFigures]) -> Table:
    """Sums and means over the tasks that have begun."""
    begun = [task for task in tasks if task.attempts]
    seconds = [task.seconds for task in begun if task.seconds is not None]
    rows = (
        ("attempts", *_sum_and_mean([task.attempts for task in begun])),
        ("interventions", *_sum_and_mean([task.interventions for task in begun])),
        ("time", *(map(lasted, (sum(seconds), fmean(seconds))) if seconds else ("-", "-"))),
    )
    return Table(heads=("", "in all", "a task"), rows=rows)


def _sum_and_mean(counts: Sequence[int]) -> tuple[str, str]:
    return str(sum(counts)), f"{fmean(counts):.1f}" if counts else "-"


def _task_list(reading: RunReading, tasks: Sequence[TaskFigures]) -> Table:
    return Table(
        heads=(
            *("task", "status", "attempts", "interventions", "recovered", "checks"),
            *("time", "requests", "tokens", "reason"),
        ),
        rows=tuple(
            (
                reading.name(task.task),
                task.lifecycle.value,
                str(task.attempts),
                str(task.interventions),
                str(task.recovered),
                f"{task.passed}/{task.total}" if task.total else "-",
                "-" if task.seconds is None else lasted(task.seconds),
                number(task.usage.requests),
                number(task.usage.tokens),
                "" if task.lifecycle is Lifecycle.COMPLETED else brief(task.reason, _REASON),
            )
            for task in tasks
        ),
        words=(0, 1, 9),
    )


def _detection(figures: DetectionFigures) -> Section:
    explained = [
        "Model requests from the onset of trouble to its alarm, both counted: 1 is at once.",
        "The onset is the earliest step that the alarm rests on, from which its rule counts; what "
        "a person would call the first mistake may lie before it.",
    ]
    if figures.unknown:
        explained.append(
            f"{figures.unknown} more alarms have no onset: their rule watches a meter, the time or "
            "other attempts, or the steps do not say which request they came from."
        )
    requests = figures.requests
    spans = ((_span(low, high), requests.between(low, high)) for low, high in SPANS)
    rows = [("all", requests), *((each.rule, each.requests) for each in figures.rules)]
    table = Table(
        heads=("rule", "alarms", "median", "within 5", "slowest"),
        rows=tuple(_speed(name, found) for name, found in rows if found.of),
    )
    chart = count_chart("alarms by requests to detection", "alarms", spans)
    return Section(
        title="Detection",
        explained=tuple(explained),
        charts=(chart,) if requests.of else (),
        tables=(table,) if requests.of else (),
        nothing="No alarm with an onset.",
    )


def _span(low: int, high: int | None) -> str:
    return f"{low} or more" if high is None else str(low) if low == high else f"{low} to {high}"


def _speed(name: str, requests: Distribution) -> tuple[str, ...]:
    within = Share(hits=requests.between(1, 5), of=requests.of)
    slowest = requests.counts[-1][0]
    return name, str(requests.of), f"{requests.median:g}", of(within), str(slowest)


def _recovery(figures: RecoveryFigures) -> Section:
    explained = [
        "Delivered interventions that answered an alert, by what was observed afterwards.",
        "The rate is of those that were judged, and says what followed, not what would have been "
        "without it. An intervention that answers several rules counts under each.",
    ]
    if figures.unprompted:
        explained.append(
            f"{figures.unprompted} more answered no alert: what a person said, or what a worker "
            "had asked for."
        )
    if figures.refused:
        explained.append(f"{figures.refused} decisions were refused, and nothing came of them.")
    groups = (
        ("action", figures.by_action),
        ("rule", figures.by_rule),
        ("diagnosis", figures.by_diagnosis),
        ("decided by", figures.by_actor),
    )
    tables = (_outcome_table("", (("all", figures.total),)), *(_outcome_table(*g) for g in groups))
    any_delivered = bool(figures.total.delivered)
    return Section(
        title="Recovery",
        explained=tuple(explained),
        charts=tuple(_outcome_chart(*group) for group in groups[:2]) if any_delivered else (),
        tables=tables if any_delivered else (),
        nothing="No alert was answered.",
    )


def _counts(found: Outcomes) -> tuple[int, ...]:
    return found.recovered, found.no_effect, found.made_worse, found.not_judged


def _outcome_chart(what: str, found: OutcomesByName) -> Chart:
    bars = (Bar(label=name, parts=_counts(each), told=str(each.delivered)) for name, each in found)
    return Chart(title=f"interventions by {what}", series=_OUTCOMES, bars=tuple(bars))


def _outcome_table(what: str, found: OutcomesByName) -> Table:
    return Table(
        heads=(what, "delivered", *_OUTCOMES, "recovery rate (95 % interval)"),
        rows=tuple(
            (name, str(each.delivered), *map(str, _counts(each)), rate(each.rate))
            for name, each in found
        ),
    )


def _disturbance(figures: DisturbanceFigures) -> Section:
    rates = (
        ("alarmed", figures.alarmed),
        ("disturbed by an intervention", figures.disturbed),
        ("disturbed in vain", figures.in_vain),
        ("with an alarm diagnosed as false", figures.false_alarms),
    )
    counts = (
        ("interventions on them", figures.interventions),
        ("of these in vain", figures.interventions_in_vain),
    )
    tables = (rate_table("attempts that succeeded", "count", rates), count_table("", counts))
    return Section(
        title="Restraint",
        explained=(
            "Of attempts that succeeded. Whether one would have succeeded by itself, nobody knows "
            "of a real run.",
            "In vain: it succeeded though no intervention on it was judged to have helped, so most "
            "likely it needed none. Those that were helped may have needed none either: a lower "
            "bound.",
        ),
        tables=tables if figures.alarmed.of else (),
        nothing="No attempt succeeded yet.",
    )


def _retries(figures: RetryFigures) -> Section:
    groups = [
        (f"{what}, {how}", found)
        for what, both in (("same act", figures.acts), ("further attempt", figures.attempts))
        for how, found in (("with an analysis", both.analysed), ("without one", both.unanalysed))
    ]
    counts = [
        *((f"analyses: {cause}", count) for cause, count in figures.causes),
        ("analyses by Midwatch, of a provider", figures.provider),
        ("calls held back until something was said", figures.held_back),
    ]
    analyses = [(name, count) for name, count in counts if count]
    retried = [(name, found) for name, found in groups if found.of]
    chart = rate_chart("retries that succeed, in percent", "succeed", retried)
    tables = [rate_table("retry", "succeeded", groups)] if retried else []
    return Section(
        title="Retries",
        explained=(
            "A retry of an act is the same call after it failed, and succeeds if it does not fail "
            "again. A further attempt succeeds if its checks pass, and its analysis must come "
            "before its first work.",
            "Nobody drew lots for who writes an analysis: a difference need not come from it.",
        ),
        charts=(chart,) if retried else (),
        tables=(*tables, *([count_table("", analyses)] if analyses else ())),
        nothing="Nothing was tried again.",
    )


def _plans(figures: PlanFigures, name: Callable[[int], str]) -> Section:
    both = (("tasks", figures.tasks), ("attempts", figures.attempts))
    sums = [(what, found) for what, found in both if found.plans]
    tables = [_plan_table(sums)] if sums else []
    if figures.accepted or figures.refused:
        claims = (
            ("accepted", figures.accepted),
            ("of these with a reservation", figures.reserved),
            ("refused", figures.refused),
        )
        tables.append(count_table("claims that something is done", claims))
    if figures.reservations:
        tables.append(_reservations(figures, name))
    return Section(
        title="Plans",
        explained=(
            "Plans as they stood when their attempt was over; of tasks, that of the last attempt.",
            "A plan step that was finished with a reservation is done, and flagged.",
        ),
        charts=(_plan_chart(sums),) if sums else (),
        tables=tuple(tables),
        nothing="No plan has come to its end.",
    )


def _plan_chart(sums: Sequence[tuple[str, PlanSum]]) -> Chart:
    bars = tuple(
        Bar(label=what, parts=(found.done, found.skipped, found.open), told=str(found.steps))
        for what, found in sums
    )
    return Chart(title="plan steps", series=("done", "skipped", "open"), bars=bars)


def _plan_table(sums: Sequence[tuple[str, PlanSum]]) -> Table:
    counts = ("plans", "closed", "steps", "done", "skipped", "open", "flagged", "revisions")
    heads = ("plan steps" if each == "steps" else each for each in counts)
    return Table(
        heads=("", *heads, "done (95 % interval)"),
        rows=tuple(
            (
                what,
                *(str(getattr(found, each)) for each in counts),
                rate(Share(hits=found.done, of=found.steps)),
            )
            for what, found in sums
        ),
    )


def _reservations(figures: PlanFigures, name: Callable[[int], str]) -> Table:
    return Table(
        heads=("task", "plan step", "goal", "reservation"),
        rows=tuple(
            (
                name(each.task),
                str(each.plan_step) if each.plan_step else "whole",
                brief(each.goal, _QUOTE),
                brief(each.flag, _QUOTE),
            )
            for each in figures.reservations
        ),
        words=(0, 2, 3),
    )


def _confidence(figures: Sequence[ConfidenceFigures]) -> Section:
    found = [each for each in figures if each.attempts]
    errors = tuple(
        (_SOURCES[each.source], str(each.attempts), f"{each.error:.2f}")
        for each in found
        if each.error is not None
    )
    summary = Table(heads=("stated in the", "attempts", "expected calibration error"), rows=errors)
    return Section(
        title="Stated confidence",
        explained=(
            "Attempts that are over, by the confidence that they stated last. One succeeded if "
            "every acceptance check passed, unless a person said otherwise.",
            "The checks are those that Midwatch ran itself, each by its last result; an attempt "
            "that ended before its checks adds none.",
        ),
        charts=tuple(_confidence_chart(each) for each in found),
        tables=(summary, *(_confidence_table(each) for each in found)) if found else (),
        nothing="No attempt that stated its confidence is over.",
    )


def _confidence_chart(figures: ConfidenceFigures) -> Chart:
    return Chart(
        title=f"attempts that succeeded, in percent, by the {_SOURCES[figures.source]}",
        series=("succeeded",),
        bars=tuple(
            Bar(
                label=_range(each),
                parts=(100 * each.attempts.rate,),
                told=of(each.attempts),
                low=100 * each.attempts.interval.low,
                high=100 * each.attempts.interval.high,
                mark=(each.low + each.high) / 2,
            )
            for each in figures.bins
        ),
        top=100,
        mark="what was stated",
    )


def _confidence_table(figures: ConfidenceFigures) -> Table:
    return Table(
        heads=(_SOURCES[figures.source], "succeeded", RATE, "checks passed", "of checks"),
        rows=tuple(
            (_range(bin), *(cell for each in (bin.attempts, bin.checks) for cell in _cells(each)))
            for bin in figures.bins
        ),
    )


def _cells(share: Share) -> tuple[str, str]:
    return of(share), rate(share)


def _range(each: Bin) -> str:
    return f"{each.low} to {each.high} %"


def _spending(figures: SpendingFigures) -> Section:
    rows = [("workers", figures.workers), *figures.roles]
    chart = count_chart("tokens", "tokens", ((who, usage.tokens) for who, usage in rows))
    if len(figures.roles) > 1:
        rows.append(("all but the workers", figures.around))
    table = Table(
        heads=("who", "requests", "tokens", "US dollars", "tokens, of the workers'"),
        rows=tuple(
            (
                who,
                number(usage.requests),
                number(usage.tokens),
                dollars(usage.cost_usd),
                "-" if who == "workers" else share(figures.share(usage)),
            )
            for who, usage in rows
        ),
    )
    return Section(
        title="Spending",
        explained=(
            "What supervision costs beside the work: the models of the supervisor, the planner and "
            "the others, against those of the workers. The policy table uses no model.",
        ),
        charts=(chart,),
        tables=(table,),
    )
