"""The sections of the report, made of the figures. Pure."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from midwatch_monitor.metrics.figures import TaskFigures
from midwatch_monitor.records import Lifecycle
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.course import recovery, restraint
from midwatch_supervisor.report.effort import detection, retries
from midwatch_supervisor.report.outcome import plans, stated
from midwatch_supervisor.report.reading import Reading
from midwatch_supervisor.report.saying import dollars, lasted, number, share
from midwatch_supervisor.report.section import Bar, Chart, Section, Table

MAX_TASKS = 200
"""Tasks that are listed; the newest. `--json` has them all."""
_REASON = 100

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


def sections(reading: Reading) -> tuple[Section, ...]:
    """All of the report, in its order."""
    figures = reading.figures
    return (
        _tasks(reading),
        detection(figures.detection),
        recovery(figures.recovery),
        restraint(figures.restraint),
        retries(figures.retries),
        plans(figures.plans, reading.name),
        stated(figures.stated),
        _spending(reading),
    )


def _tasks(reading: Reading) -> Section:
    tasks = reading.figures.tasks
    counts = Counter(task.lifecycle for task in tasks)
    listed = tasks[-MAX_TASKS:]
    explained = [
        "Interventions are those that were delivered; recovered are those that helped.",
        "The time is from a task's first attempt to its end, waiting included.",
    ]
    if len(listed) < len(tasks):
        explained.append(f"The newest {len(listed)} of {len(tasks)} tasks are listed.")
    return Section(
        title="Tasks",
        explained=tuple(explained),
        charts=(
            Chart(
                title="tasks",
                series=("tasks",),
                bars=tuple(
                    Bar(
                        label=_NAMES.get(state, state.value),
                        parts=(counts[state],),
                        told=str(counts[state]),
                    )
                    for state in _ORDER
                    if counts[state]
                ),
            ),
        ),
        tables=(_per_task(tasks), _listed(reading, listed)),
    )


def _per_task(tasks: Sequence[TaskFigures]) -> Table:
    """Sums and means over the tasks that have begun."""
    begun = [task for task in tasks if task.attempts]
    seconds = [task.seconds for task in begun if task.seconds is not None]
    interventions = [task.interventions for task in begun]
    rows = (
        ("attempts", *_sum_and_mean([task.attempts for task in begun])),
        ("interventions", *_sum_and_mean(interventions)),
        ("time", *(map(lasted, (sum(seconds), fmean(seconds))) if seconds else ("-", "-"))),
    )
    return Table(heads=("", "in all", "a task"), rows=rows)


def _sum_and_mean(counts: Sequence[int]) -> tuple[str, str]:
    return str(sum(counts)), f"{fmean(counts):.1f}" if counts else "-"


def _listed(reading: Reading, tasks: Sequence[TaskFigures]) -> Table:
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


def _spending(reading: Reading) -> Section:
    spending = reading.figures.spending
    rows = [("workers", spending.workers), *spending.roles]
    if len(spending.roles) > 1:
        rows.append(("all but the workers", spending.around))
    table = Table(
        heads=("who", "requests", "tokens", "US dollars", "tokens, of the workers'"),
        rows=tuple(
            (
                who,
                number(usage.requests),
                number(usage.tokens),
                dollars(usage.cost_usd),
                "-" if who == "workers" else share(spending.share(usage)),
            )
            for who, usage in rows
        ),
    )
    bars = tuple(
        Bar(label=who, parts=(usage.tokens,), told=number(usage.tokens))
        for who, usage in (("workers", spending.workers), *spending.roles)
    )
    return Section(
        title="Spending",
        explained=(
            "What supervision costs beside the work: the models of the supervisor, the planner and "
            "the others, against those of the workers. The policy table uses no model.",
        ),
        charts=(Chart(title="tokens", series=("tokens",), bars=bars),),
        tables=(table,),
    )
