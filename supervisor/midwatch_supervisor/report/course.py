"""What interventions did, and to whom they should not have come. Pure."""

from midwatch_monitor.metrics.recovery import Named, Outcomes, RecoveryFigures
from midwatch_monitor.metrics.restraint import RestraintFigures
from midwatch_supervisor.report.saying import of, rate
from midwatch_supervisor.report.section import Bar, Chart, Section, Table

_OUTCOMES = ("recovered", "no effect", "made worse", "not judged")


def recovery(figures: RecoveryFigures) -> Section:
    """What came of interventions, by what they answered and what they were."""
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
    if not figures.total.delivered:
        return Section(
            title="Recovery", explained=tuple(explained), nothing="No alert was answered."
        )
    groups = (
        ("action", figures.by_action),
        ("rule", figures.by_rule),
        ("diagnosis", figures.by_diagnosis),
        ("decided by", figures.by_actor),
    )
    return Section(
        title="Recovery",
        explained=tuple(explained),
        charts=tuple(_chart(what, found) for what, found in groups[:2]),
        tables=(
            _table("", (("all", figures.total),)),
            *(_table(what, found) for what, found in groups),
        ),
    )


def _counts(found: Outcomes) -> tuple[int, ...]:
    return found.recovered, found.no_effect, found.made_worse, found.not_judged


def _chart(what: str, found: Named) -> Chart:
    bars = (Bar(label=name, parts=_counts(each), told=str(each.delivered)) for name, each in found)
    return Chart(title=f"interventions by {what}", series=_OUTCOMES, bars=tuple(bars))


def _table(what: str, found: Named) -> Table:
    return Table(
        heads=(what, "delivered", *_OUTCOMES, "recovery rate (95 % interval)"),
        rows=tuple(
            (name, str(each.delivered), *map(str, _counts(each)), rate(each.rate))
            for name, each in found
        ),
    )


def restraint(figures: RestraintFigures) -> Section:
    """How often attempts that succeeded were disturbed."""
    explained = (
        "Of attempts that succeeded. Whether one would have succeeded by itself, nobody knows of a "
        "real run.",
        "In vain: it succeeded though no intervention on it was judged to have helped, so most "
        "likely it needed none. Those that were helped may have needed none either: a lower bound.",
    )
    if not figures.alarmed.of:
        return Section(title="Restraint", explained=explained, nothing="No attempt succeeded yet.")
    rows = (
        ("alarmed", figures.alarmed),
        ("disturbed by an intervention", figures.disturbed),
        ("disturbed in vain", figures.in_vain),
        ("with an alarm diagnosed as false", figures.false_alarms),
    )
    interventions = (
        ("interventions on them", str(figures.interventions)),
        ("of these in vain", str(figures.interventions_in_vain)),
    )
    return Section(
        title="Restraint",
        explained=explained,
        tables=(
            Table(
                heads=("attempts that succeeded", "count", "rate (95 % interval)"),
                rows=tuple((name, of(found), rate(found)) for name, found in rows),
            ),
            Table(heads=("", "count"), rows=interventions),
        ),
    )
