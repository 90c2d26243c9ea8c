"""The report on learning: its sections for people, and its lines for programs. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from midwatch_monitor.metrics.learning import QUIET, FactFigures, GuidelinesFigures, Worth
from midwatch_monitor.metrics.lessons import (
    MIN_USES,
    AcceptanceFigures,
    ComparisonFigures,
    EffortFigures,
    LessonEffect,
    LessonFigures,
    SavingFigures,
)
from midwatch_monitor.metrics.runs import SpendingFigures
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.records import KnownLesson
from midwatch_supervisor.present.learning_text import ORIGINS
from midwatch_supervisor.present.numbers import number, paid
from midwatch_supervisor.present.numbers import share as share_text
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.report.reading import LearningReading
from midwatch_supervisor.report.section import (
    RATE,
    Bar,
    BarChart,
    FigureLine,
    ReportSection,
    ReportTable,
    TableCell,
    count_chart,
    fields,
    interval_fields,
    line,
    rate_chart,
    rate_fields,
    role_line,
    rounded,
    section,
    span,
    table,
)

MAX_WEEKS = 26
"""Number of weeks drawn, the newest ones. `--json` has all."""
MAX_LESSONS = 50
"""Number of lessons listed with their effect, the most and the least useful. `--json` has all."""
_TEXT = 70
"""Characters shown of a lesson's text."""
_LEARNER = "reflector"
"""The role that writes lessons, summaries, facts and guidelines."""


def learning_sections(reading: LearningReading) -> tuple[ReportSection, ...]:
    """Return all sections; empty if nothing was judged or learned."""
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


def _acceptance(figures: Sequence[AcceptanceFigures]) -> ReportSection:
    weekly = (
        rate_chart(
            f"accepted by week, in percent: {ORIGINS[each.origin]}",
            "accepted",
            ((f"{week.begins:%Y-%m-%d}", week.accepted) for week in each.weeks[-MAX_WEEKS:]),
        )
        for each in figures
    )
    totals = ((ORIGINS[each.origin], each.accepted) for each in figures)
    return section(
        "Acceptance",
        "For each attempt, the newest verdict of each origin counts. Origins are never combined in "
        "one rate: a person, what a person did with the result, and its checks and its end.",
        "Weeks begin on Monday, in UTC, and contain what was judged in them. Attempts without a "
        "verdict do not count: silence is not acceptance.",
        charts=weekly,
        tables=(table(("verdicts", "accepted", RATE), totals),),
        nothing="No result has been judged yet.",
    )


def _curve(figures: Sequence[AcceptanceFigures]) -> ReportSection:
    charts = (
        rate_chart(
            f"accepted by attempts, in percent: {ORIGINS[each.origin]}",
            "accepted",
            ((span(part.first, part.last), part.accepted) for part in each.curve),
        )
        for each in figures
    )
    return section(
        "Learning curve",
        "The judged attempts of each origin in the order in which they began, cut into ten parts "
        "of equal size. A rising curve may also come from easier tasks or a better model: only "
        "the comparison with a control group shows what lessons are worth.",
        charts=charts,
        nothing="No result has been judged yet.",
    )


def _lessons(figures: LessonFigures, known: Mapping[int, KnownLesson]) -> ReportSection:
    effects = figures.effects
    more = len(effects) > MAX_LESSONS
    half = MAX_LESSONS // 2
    return section(
        "Lessons",
        "Failure classes are those of lessons from one rejected or failed attempt.",
        f"The effect of a lesson is shown from {MIN_USES} judged uses on, separately for each "
        "origin of verdicts. A lesson is given where it fits, not at random: hard tasks get more "
        "of them, so compare lessons with each other, not with attempts without any.",
        f"{MAX_LESSONS} of {len(effects)} lines are listed." if more else "",
        charts=(
            count_chart("lessons by failure class", "lessons", figures.classes),
            count_chart("lessons given, by how they were found", "uses", figures.methods),
        ),
        tables=(
            table(("", "count"), _lesson_counts(figures)),
            _effects((*effects[:half], *effects[-half:]) if more else effects, known),
        ),
        nothing="No lesson yet.",
    )


def _lesson_counts(figures: LessonFigures) -> Iterator[tuple[str, TableCell]]:
    if not (figures.lessons or figures.recalls):
        return
    yield "lessons", figures.lessons
    yield "of these retired or archived", figures.obsolete
    yield "of these from looking back", figures.insights
    yield "attempts that were given something, or compared", figures.recalls
    yield "of these given a lesson", figures.given
    yield "lessons given in total", figures.uses
    yield "lessons rated by a person", figures.ratings.of
    if figures.ratings.median is not None:
        yield "median rating, from 1 to 5", f"{figures.ratings.median:g}"
    if figures.seconds is not None and figures.longest is not None:
        yield "seconds to find them, median", f"{figures.seconds:.3f}"
        yield "seconds to find them, longest", f"{figures.longest:.3f}"


def _effects(effects: Iterable[LessonEffect], known: Mapping[int, KnownLesson]) -> ReportTable:
    texts = {id: brief(each.lesson.text, _TEXT) for id, each in known.items()}
    return table(
        ("lesson", "verdicts", "accepted", RATE, "text"),
        (
            (
                str(effect.lesson),
                ORIGINS[effect.origin],
                effect.accepted,
                texts.get(effect.lesson, "-"),
            )
            for effect in effects
        ),
        words=(0, 1, 4),
    )


def _comparison(figures: Sequence[ComparisonFigures]) -> ReportSection:
    charts = (
        rate_chart(
            f"first attempts accepted, in percent: {ORIGINS[each.origin]}",
            "accepted",
            _groups(each),
        )
        for each in figures
    )
    groups = (
        (ORIGINS[each.origin], name, accepted)
        for each in figures
        for name, accepted in _groups(each)
    )
    answers = (
        (ORIGINS[each.origin], _rate_difference(each), each.answer.value) for each in figures
    )
    return section(
        "Control group",
        "Only the first attempt of a task counts: whether there is a second depends on the first. "
        "Of a task in several runs, the newest counts: its group is drawn once. A task of the "
        "treatment group counts even if no lesson was found for it.",
        "The difference is treatment minus control in percentage points, with Newcombe's 95 % "
        "interval. Nothing is concluded with fewer than 10 different tasks in a group, if none "
        "was given a lesson, or if the interval contains 0.",
        "Each origin is a separate test: the more tests, the likelier one succeeds by chance.",
        charts=charts,
        tables=(
            table(("verdicts", "group", "tasks accepted", RATE), groups, words=(0, 1)),
            table(
                ("verdicts", "difference (95 % interval)", "what it says"), answers, words=(0, 2)
            ),
        ),
        nothing="Nothing is compared: learning.lessons.control_share is 0, or no attempt of a "
        "group has been judged yet.",
    )


def _groups(figures: ComparisonFigures) -> tuple[tuple[str, Share], ...]:
    return ("treatment", figures.treatment), ("control", figures.control)


def _rate_difference(figures: ComparisonFigures) -> str:
    apart = figures.treatment.rate - figures.control.rate
    return (
        _difference_text(100 * apart, figures.difference, "+.0f", scale=100)
        if figures.difference
        else "-"
    )


def _difference_text(value: float, spread: Interval | None, form: str, scale: float = 1) -> str:
    ends = f"{scale * spread.low:{form}} to {scale * spread.high:{form}}" if spread else "-"
    return f"{value:{form}} ({ends})"


def _effort(
    efforts: Sequence[EffortFigures],
    savings: Sequence[SavingFigures],
    spending: SpendingFigures,
) -> ReportSection:
    bars = (
        Bar(label=each.cohort, parts=(each.attempts,), text=f"{each.attempts:.2f}")
        for each in efforts
    )
    return section(
        "Effort",
        "Tasks that are over and were not canceled, by what their first attempt was given. "
        "Tokens are the workers'. What the reflector's model used is the price of learning.",
        "Only treatment and control were drawn at random: elsewhere a difference may have other "
        "causes than lessons. Retries are saved if the difference in attempts is below 0.",
        charts=(BarChart(title="attempts of a task", series=("attempts",), bars=tuple(bars)),),
        tables=_effort_tables(efforts, savings, spending) if efforts else (),
        nothing="No task is over yet.",
    )


def _effort_tables(
    efforts: Sequence[EffortFigures],
    savings: Sequence[SavingFigures],
    spending: SpendingFigures,
) -> Iterator[ReportTable]:
    yield table(
        ("tasks", "count", "attempts per task", "tokens per task"),
        (
            (each.cohort.value, each.tasks, f"{each.attempts:.2f}", round(each.tokens))
            for each in efforts
        ),
    )
    yield table(
        ("treatment minus control", "per task (95 % interval)", "what it says"),
        ((each.what, _saving_section(each), each.answer.value) for each in savings),
        words=(0, 2),
    )
    yield table(
        ("who learns", "requests", "tokens", "share of workers' tokens"),
        (
            (role, usage.requests, usage.tokens, share_text(spending.share(usage)))
            for role, usage in spending.roles
            if role == _LEARNER
        ),
    )


def _saving_section(figures: SavingFigures) -> str:
    form = "+,.0f" if figures.what == "tokens" else "+.2f"
    return _difference_text(figures.difference, figures.interval, form)


def _facts(figures: FactFigures) -> ReportSection:
    states = (
        ("reviewed", figures.facts - figures.ended - figures.unreviewed - figures.pending),
        ("shared unreviewed", figures.unreviewed),
        ("waiting for a review", figures.pending),
        ("replaced, removed or retired", figures.ended),
    )
    reviews = (
        ("reviews that worked", figures.reviews),
        ("reviews that failed", figures.fallbacks),
        ("reviews that were skipped", figures.skipped),
        ("facts reviewed", figures.looked_at),
        ("modified", figures.modified),
        ("removed", figures.removed),
        ("missed, and added", figures.missed),
        ("conflicts settled", figures.conflicts),
        ("left out by the answer, and kept", figures.unanswered),
    )
    any_fact = figures.facts or figures.reviews or figures.fallbacks or figures.skipped
    return section(
        "Facts",
        "A failed review kept every fact, and a skipped one looked at none: neither counts as one "
        "that found nothing to change.",
        f"After {QUIET} reviews in a row without a change, reviewing is said to change little. "
        "The cost is that of the reviewing models.",
        charts=(count_chart("facts", "facts", states if figures.facts else ()),),
        tables=(table(("", "count"), reviews), table(("the review", ""), _review_worth(figures)))
        if any_fact
        else (),
        nothing="No fact yet.",
    )


def _review_worth(figures: FactFigures) -> Iterator[tuple[str, str]]:
    cost = figures.cost
    yield "is it worth it?", figures.worth.value
    yield "tokens", number(cost.tokens)
    yield "cost", paid(cost.cost_usd) or "-"
    if figures.changes and figures.worth is not Worth.NONE:
        yield "tokens per change", number(round(cost.tokens / figures.changes))


def _guidelines(figures: GuidelinesFigures) -> ReportSection:
    counts = (
        ("reflections", figures.reflections),
        ("of these skipped, for lack of material", figures.skipped),
        ("of these failed in part or whole", figures.failed),
        ("insights, stored as lessons", figures.insights),
        ("versions proposed", figures.versions),
        ("approved", figures.approved),
        ("rejected", figures.rejected),
        ("rolled back", figures.rolled_back),
    )
    under = (
        (
            f"version {each.version or '?'} ({each.guidelines})",
            ORIGINS[each.origin],
            each.accepted,
        )
        for each in figures.under
    )
    any_look = figures.reflections or figures.versions
    return section(
        "Guidelines",
        "The attempts under a version came at a different time than those under the previous one: "
        "more than the text has changed.",
        tables=(
            table(("", "count"), counts if any_look else ()),
            table(("attempts under", "verdicts", "accepted", RATE), under, words=(0, 1)),
        ),
        nothing="No reflection yet.",
    )


def learning_lines(reading: LearningReading) -> Iterator[FigureLine]:
    """Yield one object for each figure; none if nothing was judged or learned."""
    figures = reading.figures
    if not figures:
        return
    for each in figures.acceptance:
        yield line("acceptance", each)
        yield from (
            line("week", week, origin=each.origin.value, begins=week.begins.isoformat())
            for week in each.weeks
        )
        yield from (
            line("curve", part, origin=each.origin.value, part=place)
            for place, part in enumerate(each.curve, 1)
        )
    yield from _lesson_lines(figures.lessons, reading)
    for each in figures.comparisons:
        groups = {name: _group_fields(group) for name, group in _groups(each)}
        answer = each.answer.name.lower()
        spread = interval_fields(each.difference, "difference_")
        yield line("comparison", each, answer=answer, **groups, **spread)
    yield from (line("effort", each, tokens=round(each.tokens)) for each in figures.efforts)
    for each in figures.savings:
        answer = each.answer.name.lower()
        yield line("saving", each, answer=answer, **interval_fields(each.interval, "difference_"))
    yield _fact_line(figures.facts)
    yield line("guidelines", figures.guidelines)
    yield from (
        line("under", each, version=each.version or None) for each in figures.guidelines.under
    )
    for role, usage in figures.spending.roles:
        yield role_line(figures.spending, role, usage)


def _group_fields(accepted: Share) -> FigureLine:
    counts = {"tasks": accepted.of, "accepted": accepted.hits}
    return {**counts, **rate_fields(accepted)}


def _lesson_lines(figures: LessonFigures, reading: LearningReading) -> Iterator[FigureLine]:
    yield {
        "type": "lessons",
        **fields(figures, "lessons", "obsolete", "insights", "uses"),
        "attempts": figures.recalls,
        "attempts_given": figures.given,
        "methods": {method.value: count for method, count in figures.methods},
        "ratings": {str(rating): count for rating, count in figures.ratings.counts},
        "seconds": {"median": rounded(figures.seconds), "max": rounded(figures.longest)},
    }
    for name, count in figures.classes:
        yield {"type": "failure_class", "failure_class": name, "lessons": count}
    for effect in figures.effects:
        known = reading.lessons.get(effect.lesson)
        yield line("effect", effect, text=known.lesson.text if known else None)


def _fact_line(figures: FactFigures) -> FigureLine:
    states = {"ok": figures.reviews, "fallback": figures.fallbacks, "skipped": figures.skipped}
    found = line("facts", figures, reviews=states, worth=figures.worth.name.lower())
    return {name: value for name, value in found.items() if name not in ("fallbacks", "skipped")}
