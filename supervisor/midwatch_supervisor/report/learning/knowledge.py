"""What became of facts and of the guidelines. Pure."""

from midwatch_monitor.metrics.reviews import QUIET, FactFigures, Worth
from midwatch_monitor.metrics.versions import GuidelinesFigures
from midwatch_supervisor.report.learning.bars import NAMES, count_bar
from midwatch_supervisor.report.saying import dollars, number, of, rate
from midwatch_supervisor.report.section import Chart, Section, Table


def facts(figures: FactFigures) -> Section:
    """Facts, and whether their review is worth what it costs."""
    explained = (
        "A review that failed kept every fact, and one that was skipped looked at none: neither "
        "counts as one that found nothing to change.",
        f"After {QUIET} reviews in a row that changed nothing, reviewing is said to change little. "
        "The cost is that of the models that reviewed.",
    )
    if not (figures.facts or figures.reviews or figures.fallbacks or figures.skipped):
        return Section(title="Facts", explained=explained, nothing="No fact yet.")
    stand = figures.facts - figures.ended
    states = Chart(
        title="facts",
        series=("facts",),
        bars=(
            count_bar("reviewed", stand - figures.unreviewed - figures.pending),
            count_bar("shared unreviewed", figures.unreviewed),
            count_bar("waiting for a review", figures.pending),
            count_bar("replaced, removed or retired", figures.ended),
        ),
    )
    return Section(
        title="Facts",
        explained=explained,
        charts=(states,) if figures.facts else (),
        tables=(_reviews(figures), _worth(figures)),
    )


def _reviews(figures: FactFigures) -> Table:
    counts = (
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
    return Table(heads=("", "count"), rows=tuple((name, number(count)) for name, count in counts))


def _worth(figures: FactFigures) -> Table:
    cost = figures.cost
    rows = [
        ("is it worth it?", figures.worth.value),
        ("tokens", number(cost.tokens)),
        ("US dollars", dollars(cost.cost_usd)),
    ]
    if figures.changes and figures.worth is not Worth.NONE:
        rows.append(("tokens a change", number(round(cost.tokens / figures.changes))))
    return Table(heads=("the review", ""), rows=tuple(rows))


def guidelines(figures: GuidelinesFigures) -> Section:
    """Looks back, versions, trials, and the attempts under each version."""
    explained = (
        "A trial does finished tasks again with the old and the new text; its gain is from -1 to "
        "1. The attempts under a version came at another time than those under the one before: "
        "more than the text has changed.",
    )
    if not (figures.reflections or figures.versions or figures.under):
        return Section(
            title="Guidelines", explained=explained, nothing="Nobody has looked back yet."
        )
    counts = (
        ("looks back", figures.reflections),
        ("of these skipped, with too little to ask about", figures.skipped),
        ("of these failed in part or whole", figures.failed),
        ("insights, stored as lessons", figures.insights),
        ("versions proposed", figures.versions),
        ("approved", figures.approved),
        ("rejected", figures.rejected),
        ("rolled back", figures.rolled_back),
        ("trials", figures.trials),
        ("of these adopted", figures.adopted),
    )
    rows = [(name, str(count)) for name, count in counts]
    if figures.gain is not None:
        rows.append(("mean gain of a tried task", f"{figures.gain:+.2f}"))
    tables = [Table(heads=("", "count"), rows=tuple(rows))]
    if figures.under:
        tables.append(_under(figures))
    return Section(title="Guidelines", explained=explained, tables=tuple(tables))


def _under(figures: GuidelinesFigures) -> Table:
    return Table(
        heads=("attempts under", "verdicts", "accepted", "rate (95 % interval)"),
        rows=tuple(
            (
                f"version {each.version or '?'} ({each.guidelines})",
                NAMES[each.origin],
                of(each.accepted),
                rate(each.accepted),
            )
            for each in figures.under
        ),
        words=(0, 1),
    )
