"""What recorded runs said of thresholds, as a table for people and as lines for programs."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.replay.tune.runs import AlarmFigures, Target
from midwatch_monitor.replay.tune.study import (
    Row,
    Study,
    changes,
    figures_text,
    lift_text,
    score_lines,
    share_text,
    verdict_text,
)
from midwatch_supervisor.report.lines import interval_fields, rounded
from midwatch_supervisor.report.section import table
from midwatch_supervisor.report.text import table_lines

MAX_ROWS = 12
"""Thresholds of a rule that are shown; a rule that counts far has a hundred."""
_FOUND = {
    Target.SPENT: "in the first 80 % of their steps",
    Target.UNRESOLVED: "at whatever step",
}
_MARKS = {(True, True): "kept", (True, False): "now", (False, True): "proposed"}


def json_lines(study: Study, text: str) -> Iterator[dict[str, object]]:
    """One object for each threshold, rule and whole configuration, and last the proposal."""
    target = {"target": study.target.name.lower()}
    for row in study.rows:
        named = {"rule": row.rule, "key": row.key, "threshold": row.threshold}
        marks = {"present": row.present, "chosen": row.chosen}
        yield {"type": "threshold", **named, **marks, **target, **_fields(row.figures)}
    for choice in study.choices:
        decided = {"alarm": choice.level is not None, "verdict": choice.verdict.name.lower()}
        yield {"type": "choice", "rule": choice.rule, **decided}
    scores = study.scores
    for what in ("present", "proposal", "held_out", "agreement"):
        figures: AlarmFigures | None = getattr(scores, what)
        if figures is not None:
            yield {"type": "score", "what": what, **target, **_fields(figures)}
    yield {
        "type": "proposal",
        "runs": study.runs,
        "max_false_alarms": round(100 * study.aim.allowed, 4),
        "folds": study.aim.folds,
        "seed": study.aim.seed,
        "better": scores.better,
        "rules": changes(study),
        "yaml": text,
    }


def text_lines(study: Study) -> Iterator[str]:
    """A table for each rule that said anything, then the whole configurations."""
    yield from _explained(study.target)
    yield ""
    silent: list[str] = []
    verdicts = {choice.rule: choice.verdict for choice in study.choices}
    for rule, group in groupby(study.rows, key=lambda row: row.rule):
        rows = list(group)
        if not any(_spoke(row.figures) for row in rows):
            silent.append(rule)
            continue
        yield f"{rule} ({rows[0].key}), {verdicts[rule]}"
        yield from (f"  {line}" for line in _table(study, rows))
        yield ""
    if silent:
        yield f"never reached: {', '.join(silent)}"
        yield ""
    for name, figures in score_lines(study):
        yield f"{name}: {figures_text(figures, study.target)}"
    yield verdict_text(study)


def _explained(target: Target) -> Iterator[str]:
    yield "resolved: resolved runs alarmed, the false alarms, with a 95 % interval."
    yield f"found: runs {target} alarmed {_FOUND[target]}."
    if target is not Target.UNRESOLVED:
        yield "unresolved: unresolved runs alarmed at whatever step."
    yield f"lift: how much likelier an alarmed run is {target} than runs of its source as long."
    yield f"when: the first alarm of runs {target}, as a share of their steps; the median."


def _table(study: Study, rows: Sequence[Row]) -> Iterator[str]:
    failed = "" if study.target is Target.UNRESOLVED else "unresolved"
    heads = ("at", "resolved", f"found {study.target}", failed, "lift", "when", "")
    shown = _shown(rows)
    cells = [heads, *(_cells(row) for row in shown)]
    if not failed:
        cells = [(*line[:3], *line[4:]) for line in cells]
    yield from table_lines(table(cells[0], cells[1:], words=tuple(range(len(cells[0])))))
    if len(shown) < len(rows):
        yield f"and {len(rows) - len(shown)} more thresholds, with --json"


def _shown(rows: Sequence[Row]) -> Sequence[Row]:
    """What is configured and proposed, and of the others so many as are easily read."""
    every = -(-len(rows) // MAX_ROWS)
    return [row for at, row in enumerate(rows) if at % every == 0 or row.present or row.chosen]


def _cells(row: Row) -> tuple[str, ...]:
    figures = row.figures
    return (
        "on" if row.threshold is None else str(row.threshold),
        share_text(figures.resolved),
        _of(figures.found),
        _of(figures.unresolved),
        "-" if figures.lift is None else lift_text(figures.lift, figures.lift_interval),
        "-" if figures.delay is None else f"{100 * figures.delay:.0f} %",
        _MARKS.get((row.present, row.chosen), ""),
    )


def _fields(figures: AlarmFigures) -> dict[str, object]:
    return {
        "resolved_alarmed": figures.resolved.hits,
        "resolved": figures.resolved.of,
        "share": rounded(figures.resolved.rate),
        **interval_fields(figures.resolved.interval, "share_"),
        "found": figures.found.hits,
        "targets": figures.found.of,
        "unresolved_alarmed": figures.unresolved.hits,
        "unresolved": figures.unresolved.of,
        "lift": rounded(figures.lift),
        **interval_fields(figures.lift_interval, "lift_"),
        "lift_unresolved": rounded(figures.lift_unresolved),
        "delay": rounded(figures.delay),
    }


def _spoke(figures: AlarmFigures) -> bool:
    return bool(figures.resolved.hits or figures.found.hits or figures.unresolved.hits)


def _of(share: Share) -> str:
    return f"{share.hits}/{share.of}"
