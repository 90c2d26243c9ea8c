"""The report on runs: its sections for people, and its lines for programs. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from midwatch_monitor.metrics.alarms import (
    OUTCOMES,
    DetectionFigures,
    DisturbanceFigures,
    Outcomes,
    RecoveryFigures,
    RetryFigures,
)
from midwatch_monitor.metrics.runs import (
    Bin,
    ConfidenceFigures,
    PlanFigures,
    Source,
    SpendingFigures,
    TaskFigures,
)
from midwatch_monitor.metrics.statistics import Distribution, Share
from midwatch_monitor.records import Lifecycle
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_supervisor.present.numbers import duration, hits, paid, rate
from midwatch_supervisor.present.numbers import share as share_text
from midwatch_supervisor.present.text_line import brief, status_text
from midwatch_supervisor.report.reading import RunReading
from midwatch_supervisor.report.section import (
    RATE,
    Bar,
    BarChart,
    FigureLine,
    ReportSection,
    ReportTable,
    count_chart,
    fields,
    line,
    rate_bar,
    rate_chart,
    rate_fields,
    role_line,
    section,
    span,
    table,
    usage_fields,
)

MAX_TASKS = 200
"""Number of tasks listed, the newest ones. `--json` has all."""
_SPANS = (*((each, each) for each in range(1, 6)), (6, 10), (11, 20), (21, None))
"""Ranges of requests until detection that are counted together, both ends included."""
_REASON = 100
"""Characters shown of a task's reason."""
_QUOTE = 200
"""Characters shown of a worker's text."""
_STATES = {
    AttemptStatus.SUBMITTED: "not begun",
    AttemptStatus.WAITING: "waiting for a person",
}
"""States with another name here, because the reader is not always the person waited for."""
_GROUPS = {"action": "action", "rule": "rule", "diagnosis": "diagnosis", "actor": "decided by"}
"""How outcomes are grouped, with the headings."""
_OUTCOMES = tuple(outcome.replace("_", " ") for outcome in OUTCOMES)
_PLAN_COUNTS = ("plans", "closed", "steps", "done", "skipped", "open", "flagged", "revisions")
_SOURCES = {
    Source.CHECKPOINT: "last checkpoint",
    Source.COMPLETION: "last claim of a plan step",
}


def run_sections(reading: RunReading) -> tuple[ReportSection, ...]:
    """Return all sections in order; empty without a task."""
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
        _spending_section(figures.spending),
    )


def _tasks(reading: RunReading) -> ReportSection:
    tasks = reading.figures.tasks
    listed = tasks[-MAX_TASKS:]
    order = sorted(tasks, key=lambda task: list(AttemptStatus).index(task.stands))
    states = Counter(map(_standing_text, order)).items()
    shortened = len(listed) < len(tasks)
    return section(
        "Tasks",
        "Interventions are those that were delivered; recovered are those that helped.",
        "The time is from a task's first attempt to its end, waiting included.",
        f"The newest {len(listed)} of {len(tasks)} tasks are listed." if shortened else "",
        charts=(count_chart("tasks", "tasks", states),),
        tables=(_per_task(tasks), _task_list(reading, listed)),
    )


def _standing_text(task: TaskFigures) -> str:
    return _STATES.get(task.stands) or status_text(task.stands, accepted=task.accepted)


def _per_task(tasks: Sequence[TaskFigures]) -> ReportTable:
    """Return sums and means over the tasks that have begun."""
    begun = [task for task in tasks if task.attempts]
    seconds = [task.seconds for task in begun if task.seconds is not None]
    time = (duration(sum(seconds)), duration(fmean(seconds))) if seconds else ("-", "-")
    rows = (
        ("attempts", *_sum_and_mean([task.attempts for task in begun])),
        ("interventions", *_sum_and_mean([task.interventions for task in begun])),
        ("time", *time),
    )
    return table(("", "total", "per task"), rows)


def _sum_and_mean(counts: Sequence[int]) -> tuple[int, str]:
    return sum(counts), f"{fmean(counts):.1f}" if counts else "-"


def _task_list(reading: RunReading, tasks: Sequence[TaskFigures]) -> ReportTable:
    heads = (
        *("task", "status", "attempts", "interventions", "recovered", "checks"),
        *("time", "requests", "tokens", "reason"),
    )
    rows = (
        (
            *(reading.name(task.task), _standing_text(task)),
            *(task.attempts, task.interventions, task.recovered),
            f"{task.passed}/{task.total}" if task.total else "-",
            "-" if task.seconds is None else duration(task.seconds),
            *(task.usage.requests, task.usage.tokens),
            "" if task.stands is AttemptStatus.COMPLETED else brief(task.reason, _REASON),
        )
        for task in tasks
    )
    return table(heads, rows, words=(0, 1, 9))


def _detection(figures: DetectionFigures) -> ReportSection:
    requests = figures.requests
    spans = ((span(*ends), requests.between(*ends)) for ends in _SPANS if requests.of)
    speeds = [("all", requests), *figures.rules]
    more = (
        f"{figures.unknown} more alarms have no onset: their rule watches a meter, the time or "
        "other attempts, or the steps do not say which request they came from."
    )
    return section(
        "Detection",
        "Model requests from the onset of trouble to its alarm, both included: 1 means at once.",
        "The onset is the first step that the alarm's rule counts; what a person would call the "
        "first mistake may be earlier.",
        more if figures.unknown else "",
        charts=(count_chart("alarms by requests to detection", "alarms", spans),),
        tables=(
            table(
                ("rule", "alarms", "median", "within 5", "slowest"),
                (_speed_row(name, found) for name, found in speeds if found.of),
            ),
        ),
        nothing="No alarm with an onset.",
    )


def _speed_row(name: str, requests: Distribution) -> tuple[str | int, ...]:
    within = Share(hits=requests.between(1, 5), of=requests.of)
    return name, requests.of, f"{requests.median:g}", hits(within), requests.counts[-1][0]


def _recovery(figures: RecoveryFigures) -> ReportSection:
    total = {"all": figures.total} if figures.total.delivered else {}
    named = ((head, figures.by.get(group, {})) for group, head in _GROUPS.items())
    unprompted = (
        f"{figures.unprompted} more answered no alert: what a person said, or what a worker "
        "had asked for."
    )
    refused = f"{figures.refused} decisions were refused, and had no effect."
    return section(
        "Recovery",
        "Delivered interventions that answered an alert, by what was observed afterwards.",
        "The rate covers those that were judged. It says what followed, not what would have "
        "happened otherwise. An intervention that answers several rules counts under each.",
        unprompted if figures.unprompted else "",
        refused if figures.refused else "",
        charts=(_outcome_chart(group, figures.by.get(group, {})) for group in ("action", "rule")),
        tables=(_outcome_table(head, found) for head, found in (("", total), *named)),
        nothing="No alert was answered.",
    )


def _outcome_chart(what: str, found: Mapping[str, Outcomes]) -> BarChart:
    bars = (
        Bar(label=name, parts=each.counts, text=str(each.delivered)) for name, each in found.items()
    )
    return BarChart(title=f"interventions by {what}", series=_OUTCOMES, bars=tuple(bars))


def _outcome_table(what: str, found: Mapping[str, Outcomes]) -> ReportTable:
    return table(
        (what, "delivered", *_OUTCOMES, "recovery rate (95 % interval)"),
        ((name, each.delivered, *each.counts, rate(each.rate)) for name, each in found.items()),
    )


def _disturbance(figures: DisturbanceFigures) -> ReportSection:
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
    tables = (
        table(("attempts that succeeded", "count", RATE), rates),
        table(("", "count"), counts),
    )
    return section(
        "Restraint",
        "Attempts that succeeded. In a real run, nobody knows whether one would have succeeded by "
        "itself.",
        "In vain: it succeeded although no intervention on it was judged to have helped, so it "
        "most likely needed none. Those that were helped may not have needed it: a lower bound.",
        tables=tables if figures.alarmed.of else (),
        nothing="No attempt succeeded yet.",
    )


def _retries(figures: RetryFigures) -> ReportSection:
    groups = [
        (f"{what}, {how}", found)
        for what, both in (("same act", figures.acts), ("further attempt", figures.attempts))
        for how, found in (("with an analysis", both.analysed), ("without one", both.unanalysed))
    ]
    counts = (
        *((f"analyses: {cause}", count) for cause, count in figures.causes),
        ("analyses by Midwatch, of a provider", figures.provider),
        ("calls refused until the worker reported first", figures.held_back),
    )
    retried = [(name, found) for name, found in groups if found.of]
    return section(
        "Retries",
        "A retry of an act is the same call after it failed, and succeeds if it does not fail "
        "again. A further attempt succeeds if its checks pass, and its analysis must come before "
        "its first work.",
        "Who writes an analysis is not drawn at random: a difference may have other causes.",
        charts=(rate_chart("retries that succeed, in percent", "succeed", retried),),
        tables=(
            table(("retry", "succeeded", RATE), groups if retried else ()),
            table(("", "count"), ((name, count) for name, count in counts if count)),
        ),
        nothing="Nothing was retried.",
    )


def _plans(figures: PlanFigures, name: Callable[[int], str]) -> ReportSection:
    both = (("tasks", figures.tasks), ("attempts", figures.attempts))
    sums = [(what, found) for what, found in both if found.plans]
    bars = (
        Bar(label=what, parts=(found.done, found.skipped, found.open), text=str(found.steps))
        for what, found in sums
    )
    claims = (
        ("accepted", figures.accepted),
        ("of these with a reservation", figures.reserved),
        ("refused", figures.refused),
    )
    heads = ("plan steps" if each == "steps" else each for each in _PLAN_COUNTS)
    plans = (
        (what, *(getattr(found, each) for each in _PLAN_COUNTS), rate(found.rate))
        for what, found in sums
    )
    reservations = (
        (
            name(each.task),
            str(each.plan_step) if each.plan_step else "whole",
            brief(each.goal, _QUOTE),
            brief(each.flag, _QUOTE),
        )
        for each in figures.reservations
    )
    return section(
        "Plans",
        "Plans as they were when their attempt ended; for a task, the plan of its last attempt.",
        "A plan step that was finished with a reservation is done, and flagged.",
        charts=(
            BarChart(title="plan steps", series=("done", "skipped", "open"), bars=tuple(bars)),
        ),
        tables=(
            table(("", *heads, "done (95 % interval)"), plans),
            table(
                ("claims that a plan step or task is done", "count"),
                claims if figures.accepted or figures.refused else (),
            ),
            table(("task", "plan step", "goal", "reservation"), reservations, words=(0, 2, 3)),
        ),
        nothing="No attempt with a plan is over.",
    )


def _confidence(figures: Sequence[ConfidenceFigures]) -> ReportSection:
    found = [each for each in figures if each.attempts]
    errors = (
        (_SOURCES[each.source], each.attempts, f"{each.error:.2f}")
        for each in found
        if each.error is not None
    )
    return section(
        "Stated confidence",
        "Attempts that are over, by the confidence that they stated last. One succeeded if every "
        "acceptance check passed, unless a person said otherwise.",
        "A claim about a plan step says that it is done. Claims about a whole task are not counted "
        "here: their confidence is made of the checks themselves.",
        "The checks are those that Midwatch ran itself, each by its last result; an attempt that "
        "ended before its checks adds none.",
        charts=(_confidence_chart(each) for each in found),
        tables=(
            table(("stated in the", "attempts", "expected calibration error"), errors),
            *(
                table(
                    (_SOURCES[each.source], "succeeded", RATE, "checks passed", "of checks"),
                    ((_range_text(bin), bin.attempts, bin.checks) for bin in each.bins),
                )
                for each in found
            ),
        ),
        nothing="No attempt that stated its confidence is over.",
    )


def _confidence_chart(figures: ConfidenceFigures) -> BarChart:
    bars = (
        rate_bar(_range_text(bin), bin.attempts, hits(bin.attempts), mark=(bin.low + bin.high) / 2)
        for bin in figures.bins
    )
    return BarChart(
        title=f"attempts that succeeded, in percent, by the {_SOURCES[figures.source]}",
        series=("succeeded",),
        bars=tuple(bars),
        top=100,
        mark="what was stated",
    )


def _range_text(bin: Bin) -> str:
    return f"{bin.low} to {bin.high} %"


def _spending_section(figures: SpendingFigures) -> ReportSection:
    users = [("workers", figures.workers), *figures.roles]
    chart = count_chart("tokens", "tokens", ((who, usage.tokens) for who, usage in users))
    if len(figures.roles) > 1:
        users.append(("all except the workers", figures.around))
    rows = (
        (
            *(who, usage.requests, usage.tokens, paid(usage.cost_usd) or "-"),
            "-" if who == "workers" else share_text(figures.share(usage)),
        )
        for who, usage in users
    )
    heads = ("who", "requests", "tokens", "cost", "share of workers' tokens")
    return section(
        "Spending",
        "What supervision costs besides the work: the models of the supervisor, the planner and "
        "others, compared with those of the workers. The policy table uses no model.",
        charts=(chart,),
        tables=(table(heads, rows),),
    )


def run_lines(reading: RunReading) -> Iterator[FigureLine]:
    """Yield one object for each figure; none if no task counts."""
    figures = reading.figures
    if not figures.tasks:
        return
    yield from _task_lines(reading)
    yield from _detection_lines(figures.detection)
    yield from _recovery_lines(figures.recovery)
    done = figures.disturbance
    shares = {name: getattr(done, name).hits for name in ("alarmed", "disturbed", "in_vain")}
    yield {
        "type": "restraint",
        "succeeded": done.alarmed.of,
        **shares,
        "false_alarms": done.false_alarms.hits,
        **fields(done, "interventions", "interventions_in_vain"),
    }
    yield from _retry_lines(figures.retries)
    yield from _plan_lines(figures.plans, reading)
    yield from (_confidence_line(each) for each in figures.confidence if each.attempts)
    workers = usage_fields(figures.spending.workers)
    yield {"type": "spending", "role": "worker", **workers, "share": None}
    for role, usage in (*figures.spending.roles, ("all", figures.spending.around)):
        yield role_line(figures.spending, role, usage)


def _task_lines(reading: RunReading) -> Iterator[FigureLine]:
    tasks = reading.figures.tasks
    counts = Counter(task.lifecycle for task in tasks)
    yield {
        "type": "tasks",
        "tasks": len(tasks),
        **{state.value: counts[state] for state in Lifecycle},
        **{
            name: sum(getattr(task, name) for task in tasks)
            for name in ("attempts", "interventions", "recovered")
        },
    }
    for task in tasks:
        found = reading.tasks[task.task]
        seconds = None if task.seconds is None else round(task.seconds, 3)
        yield {
            "type": "task",
            **fields(found, "run", "title"),
            "task": found.name,
            "status": task.lifecycle.value,
            **fields(task, "stands", "accepted"),
            **fields(task, "reason", "attempts", "interventions", "recovered"),
            "acceptance": fields(task, "passed", "total"),
            "seconds": seconds,
            **usage_fields(task.usage),
        }


def _detection_lines(figures: DetectionFigures) -> Iterator[FigureLine]:
    found = [(None, figures.requests), *figures.rules]
    for rule, requests in found if figures.requests.of or figures.unknown else ():
        yield {
            "type": "detection",
            "rule": rule,
            "alarms": requests.of,
            "median": requests.median,
            "requests": [{"requests": value, "alarms": count} for value, count in requests.counts],
            **({"unknown": figures.unknown} if rule is None else {}),
        }


def _recovery_lines(figures: RecoveryFigures) -> Iterator[FigureLine]:
    groups = {"all": {None: figures.total}, **figures.by}
    for by, outcomes in groups.items():
        for name, found in outcomes.items():
            more = fields(figures, "unprompted", "refused") if name is None else {}
            rates = {"delivered": found.delivered, **rate_fields(found.rate)}
            yield line("recovery", found, by=by, name=name, **rates, **more)


def _retry_lines(figures: RetryFigures) -> Iterator[FigureLine]:
    for of, both in (("act", figures.acts), ("attempt", figures.attempts)):
        for analysed, share in ((True, both.analysed), (False, both.unanalysed)):
            counts = {"retries": share.of, "succeeded": share.hits}
            kind = {"type": "retries", "of": of, "analysed": analysed}
            yield {**kind, **counts, **rate_fields(share)}
    causes = {cause.value: count for cause, count in figures.causes}
    yield {"type": "analyses", "causes": causes, **fields(figures, "provider", "held_back")}


def _plan_lines(figures: PlanFigures, reading: RunReading) -> Iterator[FigureLine]:
    for of, found in (("task", figures.tasks), ("attempt", figures.attempts)):
        yield line("plans", found, of=of, plan_steps=found.steps, **rate_fields(found.rate))
    yield line("claims", figures)
    for each in figures.reservations:
        task = reading.tasks[each.task]
        where = {"run": task.run, "task": task.name, "plan_step": each.plan_step or None}
        yield line("reservation", each, **where)


def _confidence_line(figures: ConfidenceFigures) -> FigureLine:
    bins = [
        {
            **fields(each, "low", "high"),
            "attempts": each.attempts.of,
            "succeeded": each.attempts.hits,
            "checks": each.checks.of,
            "passed": each.checks.hits,
        }
        for each in figures.bins
    ]
    return line("confidence", figures, bins=bins)
