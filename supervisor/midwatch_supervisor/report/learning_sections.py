"""The sections of the report on what is learned. Pure."""

from collections.abc import Mapping, Sequence

from midwatch_monitor.metrics.knowledge import QUIET, FactFigures, GuidelinesFigures, Worth
from midwatch_monitor.metrics.lessons import (
    MIN_USES,
    AcceptanceFigures,
    ComparedGroup,
    ComparisonFigures,
    Effect,
    EffortFigures,
    LessonFigures,
    SavingFigures,
)
from midwatch_monitor.metrics.tasks import SpendingFigures
from midwatch_monitor.records import KnownLesson
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.reading import LearningReading
from midwatch_supervisor.report.section import (
    ORIGIN_NAMES,
    RATE,
    Bar,
    Chart,
    Section,
    Table,
    count_chart,
    count_table,
    dollars,
    number,
    of,
    rate,
    rate_chart,
    rate_table,
    share,
)

MAX_WEEKS = 26
"""Weeks that are drawn; the newest. `--json` has them all."""
MAX_LESSONS = 50
"""Lessons whose effect is listed; the most and the least useful. `--json` has them all."""
_TEXT = 70
"""Characters of a lesson's text."""
_LEARNER = "reflector"
"""The role under which lessons, summaries, facts and guidelines are written."""


def learning_sections(reading: LearningReading) -> tuple[Section, ...]:
    """All of it; nothing where nothing was judged and nothing was learned."""
    figures = reading.figures
    if not figures:
        return ()
    return (
        _acceptance(figures.acceptance),
        _curve(figures.acceptance),
        _lessons(figures.lessons, reading.lessons),
        _comparison(figures.comparisons),
        _effort(figures.efforts, figures.savings, figures.spending),
        _facts(figures.facts),
        _guidelines(figures.guidelines),
    )


def _acceptance(figures: Sequence[AcceptanceFigures]) -> Section:
    totals = ((ORIGIN_NAMES[each.origin], each.accepted) for each in figures)
    weekly = (
        rate_chart(
            f"accepted by week, in percent: {ORIGIN_NAMES[each.origin]}",
            "accepted",
            ((f"{week.begins:%Y-%m-%d}", week.accepted) for week in each.weeks[-MAX_WEEKS:]),
        )
        for each in figures
    )
    return Section(
        title="Acceptance",
        explained=(
            "Of an attempt the newest verdict of each origin counts, and verdicts of two origins "
            "never stand in one rate: a person's own, what a person did with merged work, and the "
            "checks with how the attempt ended.",
            "Weeks begin on Monday, in UTC, and hold what was judged in them. Without a verdict "
            "there is nothing: silence is no acceptance.",
        ),
        charts=tuple(weekly),
        tables=(rate_table("verdicts", "accepted", totals),) if figures else (),
        nothing="No result was judged yet.",
    )


def _curve(figures: Sequence[AcceptanceFigures]) -> Section:
    charts = (
        rate_chart(
            f"accepted by attempts, in percent: {ORIGIN_NAMES[each.origin]}",
            "accepted",
            ((_span(part.first, part.last), part.accepted) for part in each.curve),
        )
        for each in figures
    )
    return Section(
        title="Learning curve",
        explained=(
            "The judged attempts of each origin in the order in which they began, cut into ten "
            "parts of equal size. A rising curve may as well come from easier tasks or a better "
            "model: only the comparison with a control group tells what lessons are worth.",
        ),
        charts=tuple(charts),
        nothing="No result was judged yet.",
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _lessons(figures: LessonFigures, known: Mapping[int, KnownLesson]) -> Section:
    explained = [
        "Failure classes are those of lessons from one rejected or failed attempt.",
        f"What a lesson did is told from {MIN_USES} judged uses on, each origin of verdicts by "
        "itself. A lesson is given where it fits, not by lot: hard tasks are given more of them, "
        "so compare lessons with each other, not with attempts without any.",
    ]
    tables: list[Table] = []
    if figures.lessons or figures.recalls:
        tables.append(_lesson_counts(figures))
    if figures.effects:
        tables.append(_effects(figures.effects, known))
        if len(figures.effects) > MAX_LESSONS:
            explained.append(f"Of {len(figures.effects)} lines {MAX_LESSONS} are listed.")
    charts = (
        count_chart("lessons by failure class", "lessons", figures.classes),
        count_chart("lessons given, by why they were found", "uses", figures.methods),
    )
    return Section(
        title="Lessons",
        explained=tuple(explained),
        charts=tuple(chart for chart in charts if chart.bars),
        tables=tuple(tables),
        nothing="No lesson yet.",
    )


def _lesson_counts(figures: LessonFigures) -> Table:
    median = figures.ratings.median
    rows = [
        ("lessons", str(figures.lessons)),
        ("of these retired or archived", str(figures.obsolete)),
        ("of these from a look back", str(figures.insights)),
        ("attempts that were given something, or compared", str(figures.recalls)),
        ("of these given a lesson", str(figures.given)),
        ("lessons given in all", str(figures.uses)),
        ("lessons rated by a person", str(figures.ratings.of)),
    ]
    if median is not None:
        rows.append(("median rating, from 1 to 5", f"{median:g}"))
    if figures.seconds is not None and figures.longest is not None:
        rows.append(("seconds to find them, median", f"{figures.seconds:.3f}"))
        rows.append(("seconds to find them, longest", f"{figures.longest:.3f}"))
    return Table(heads=("", "count"), rows=tuple(rows))


def _effects(effects: tuple[Effect, ...], known: Mapping[int, KnownLesson]) -> Table:
    half = MAX_LESSONS // 2
    listed = effects if len(effects) <= MAX_LESSONS else (*effects[:half], *effects[-half:])
    texts = {id: brief(each.lesson.text, _TEXT) for id, each in known.items()}
    return Table(
        heads=("lesson", "verdicts", "accepted", RATE, "text"),
        rows=tuple(
            (
                str(effect.lesson),
                ORIGIN_NAMES[effect.origin],
                of(effect.accepted),
                rate(effect.accepted),
                texts.get(effect.lesson, "-"),
            )
            for effect in listed
        ),
        words=(0, 1, 4),
    )


def _comparison(figures: Sequence[ComparisonFigures]) -> Section:
    charts = (
        rate_chart(
            f"first attempts accepted, in percent: {ORIGIN_NAMES[each.origin]}",
            "accepted",
            ((name, group.accepted) for name, group in _groups(each)),
        )
        for each in figures
    )
    return Section(
        title="Control group",
        explained=(
            "Only the first attempt of a task counts: whether there is a second depends on the "
            "first. A task of the treatment group counts also where no lesson was found for it.",
            "The difference is treatment minus control in percentage points, with Newcombe's 95 % "
            "interval. Nothing is concluded with fewer than 10 different tasks in a group (the "
            "same task in several runs is one), or where the interval holds 0.",
            "Each origin is a look of its own: the more one looks, the likelier one of them is "
            "luck.",
        ),
        charts=tuple(charts),
        tables=_comparison_tables(figures) if figures else (),
        nothing="Nothing is compared: learning.lessons.control_share is 0, or nothing of a "
        "group was judged yet.",
    )


def _comparison_tables(figures: Sequence[ComparisonFigures]) -> tuple[Table, ...]:
    groups = Table(
        heads=("verdicts", "group", "tasks", "accepted", RATE),
        rows=tuple(
            (
                ORIGIN_NAMES[each.origin],
                name,
                str(group.tasks),
                of(group.accepted),
                rate(group.accepted),
            )
            for each in figures
            for name, group in _groups(each)
        ),
        words=(0, 1),
    )
    answers = Table(
        heads=("verdicts", "difference (95 % interval)", "what it says"),
        rows=tuple(
            (ORIGIN_NAMES[each.origin], _difference(each), each.answer.value) for each in figures
        ),
        words=(0, 2),
    )
    return groups, answers


def _groups(figures: ComparisonFigures) -> tuple[tuple[str, ComparedGroup], ...]:
    return ("treatment", figures.treatment), ("control", figures.control)


def _difference(figures: ComparisonFigures) -> str:
    if figures.difference is None:
        return "-"
    apart = figures.treatment.accepted.rate - figures.control.accepted.rate
    spread = figures.difference
    return f"{100 * apart:+.0f} ({100 * spread.low:+.0f} to {100 * spread.high:+.0f})"


def _effort(
    efforts: Sequence[EffortFigures],
    savings: Sequence[SavingFigures],
    spending: SpendingFigures,
) -> Section:
    bars = tuple(
        Bar(label=each.cohort, parts=(each.attempts,), told=f"{each.attempts:.2f}")
        for each in efforts
    )
    chart = Chart(title="attempts of a task", series=("attempts",), bars=bars)
    return Section(
        title="Effort",
        explained=(
            "Of tasks that are over and were not cancelled, by what their first attempt was given. "
            "Tokens are the workers'. What the reflector's model used is the price of learning.",
            "Only treatment and control were drawn by lot: elsewhere a difference need not come "
            "from lessons. Retries are saved where the difference of attempts lies below 0.",
        ),
        charts=(chart,) if efforts else (),
        tables=_effort_tables(efforts, savings, spending) if efforts else (),
        nothing="No task is over yet.",
    )


def _effort_tables(
    efforts: Sequence[EffortFigures],
    savings: Sequence[SavingFigures],
    spending: SpendingFigures,
) -> tuple[Table, ...]:
    cohorts = Table(
        heads=("tasks", "count", "attempts a task", "tokens a task"),
        rows=tuple(
            (each.cohort, str(each.tasks), f"{each.attempts:.2f}", number(round(each.tokens)))
            for each in efforts
        ),
    )
    saved = Table(
        heads=("treatment minus control", "a task (95 % interval)", "what it says"),
        rows=tuple((each.what, _saving(each), each.answer.value) for each in savings),
        words=(0, 2),
    )
    learner = Table(
        heads=("who learns", "requests", "tokens", "tokens, of the workers'"),
        rows=tuple(
            (role, number(usage.requests), number(usage.tokens), share(spending.share(usage)))
            for role, usage in spending.roles
            if role == _LEARNER
        ),
    )
    return (cohorts, *(each for each in (saved, learner) if each.rows))


def _saving(figures: SavingFigures) -> str:
    def signed(value: float) -> str:
        return f"{value:+,.0f}" if figures.what == "tokens" else f"{value:+.2f}"

    spread = figures.interval
    interval = f"{signed(spread.low)} to {signed(spread.high)}" if spread else "-"
    return f"{signed(figures.difference)} ({interval})"


def _facts(figures: FactFigures) -> Section:
    standing = figures.facts - figures.ended
    states = (
        ("reviewed", standing - figures.unreviewed - figures.pending),
        ("shared unreviewed", figures.unreviewed),
        ("waiting for a review", figures.pending),
        ("replaced, removed or retired", figures.ended),
    )
    reviews = (
        ("reviews that worked", figures.reviews),
        ("reviews that failed", figures.fallbacks),
        ("reviews that were skipped", figures.skipped),
        ("facts looked at", figures.looked_at),
        ("modified", figures.modified),
        ("removed", figures.removed),
        ("missed, and added", figures.missed),
        ("conflicts settled", figures.conflicts),
        ("left out by the answer, and kept", figures.unanswered),
    )
    any_fact = figures.facts or figures.reviews or figures.fallbacks or figures.skipped
    return Section(
        title="Facts",
        explained=(
            "A review that failed kept every fact, and one that was skipped looked at none: "
            "neither counts as one that found nothing to change.",
            f"After {QUIET} reviews in a row that changed nothing, reviewing is said to change "
            "little. The cost is that of the models that reviewed.",
        ),
        charts=(count_chart("facts", "facts", states),) if figures.facts else (),
        tables=(count_table("", reviews), _review_worth(figures)) if any_fact else (),
        nothing="No fact yet.",
    )


def _review_worth(figures: FactFigures) -> Table:
    cost = figures.cost
    rows = [
        ("is it worth it?", figures.worth.value),
        ("tokens", number(cost.tokens)),
        ("US dollars", dollars(cost.cost_usd)),
    ]
    if figures.changes and figures.worth is not Worth.NONE:
        rows.append(("tokens a change", number(round(cost.tokens / figures.changes))))
    return Table(heads=("the review", ""), rows=tuple(rows))


def _guidelines(figures: GuidelinesFigures) -> Section:
    counts = (
        ("looks back", figures.reflections),
        ("of these skipped, with too little to ask about", figures.skipped),
        ("of these failed in part or whole", figures.failed),
        ("insights, stored as lessons", figures.insights),
        ("versions proposed", figures.versions),
        ("approved", figures.approved),
        ("rejected", figures.rejected),
        ("rolled back", figures.rolled_back),
    )
    under = Table(
        heads=("attempts under", "verdicts", "accepted", RATE),
        rows=tuple(
            (
                f"version {each.version or '?'} ({each.guidelines})",
                ORIGIN_NAMES[each.origin],
                of(each.accepted),
                rate(each.accepted),
            )
            for each in figures.under
        ),
        words=(0, 1),
    )
    tables = [count_table("", counts)] if figures.reflections or figures.versions else []
    return Section(
        title="Guidelines",
        explained=(
            "The attempts under a version came at another time than those under the one before: "
            "more than the text has changed.",
        ),
        tables=(*tables, under) if under.rows else tuple(tables),
        nothing="Nobody has looked back yet.",
    )
