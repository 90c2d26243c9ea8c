"""`midwatch tune`: what every threshold would have cost and found, and better thresholds if any."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.metrics.statistics import Share
from midwatch_monitor.replay.tune.choose import Comparison
from midwatch_monitor.replay.tune.labels import SPENT, Recordings, read_labels, recordings
from midwatch_monitor.replay.tune.proposal import (
    NO_SOURCE,
    changes,
    difference_text,
    is_proposed,
    lift_text,
    proposal_text,
    refusals,
    score_lines,
    share_text,
    verdict_lines,
)
from midwatch_monitor.replay.tune.runs import AlarmFigures, AlarmTarget
from midwatch_monitor.replay.tune.study import (
    MIN_TARGETS,
    Aim,
    HeldOutCheck,
    ThresholdRow,
    ThresholdStudy,
    ThresholdTrial,
    study,
)
from midwatch_monitor.traces import AUTO
from midwatch_supervisor.cli.inspect.replay import FormatOption, check_format
from midwatch_supervisor.cli.output import (
    require_absent,
    write_error,
    write_json,
    write_line,
    write_new,
)
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.report.section import interval_fields, rounded, table, table_lines

MIN_RESOLVED = 20
"""Resolved runs below which a share of them says little."""
_MAX_FOLDS = 50


def tune(
    *paths: Annotated[
        Path, Parameter(help="Traces; a folder means all known ones below it.", required=True)
    ],
    outcomes: Annotated[
        Path,
        Parameter(
            help="CSV with the columns path and outcome (resolved, unresolved, unknown), and "
            "optionally task, source and exit_status."
        ),
    ],
    format: FormatOption = AUTO,
    config: ConfigOption = None,
    max_false_alarms: Annotated[
        float, Parameter(help="Percentage of the resolved runs that may be alarmed.")
    ] = 3.0,
    folds: Annotated[int, Parameter(help="Parts for cross-validation, split by task.")] = 5,
    spent: Annotated[
        list[str] | None,
        Parameter(
            help="An exit_status that means out of budget; may be repeated. "
            f"Default: {', '.join(SPENT)}."
        ),
    ] = None,
    seed: Annotated[
        int, Parameter(help="Seed of the resampling; the same seed gives the same result.")
    ] = 1,
    output: Annotated[Path | None, Parameter(help="A new file for the proposal.")] = None,
    json: JsonOption = False,
) -> None:
    """Print what each rule's thresholds find in recorded runs and their false alarms, and propose
    better ones.

    Proposes thresholds only if they are better, beyond noise, on tasks they were not chosen on, and
    not worse on any source; otherwise prints the reason. The exit code is 0 either way.

    Only thresholds are varied: windows, weights, hold and cooldown stay as configured, as do the
    settings of single workers and tools.
    """
    check_format(format)
    aim = _check_aim(max_false_alarms, folds, seed)
    if output is not None:
        require_absent(output)
    settings = settings_in_force(config)
    found = recordings(paths, read_labels(outcomes, spent=spent or SPENT), format=format)
    result = study(found, settings, aim)
    _print_warnings(found, result)
    text = proposal_text(result)
    if output is not None:
        write_new(output, text)
    _print_study(result, text, json=json)


def _print_study(result: ThresholdStudy, text: str, *, json: bool) -> None:
    if json:
        write_json(*json_lines(result, text))
        return
    write_line(*text_lines(result))
    if is_proposed(result):
        write_line("", *text[text.index("rules:") :].splitlines())


def _check_aim(max_false_alarms: float, folds: int, seed: int) -> Aim:
    if not 0 < max_false_alarms <= 100:
        raise UsageError(f"--max-false-alarms: {max_false_alarms:g} is not a percentage above 0")
    if not 2 <= folds <= _MAX_FOLDS:
        raise UsageError(f"--folds: {folds} is not from 2 to {_MAX_FOLDS}")
    return Aim(allowed=max_false_alarms / 100, folds=folds, seed=seed)


def _print_warnings(found: Recordings, result: ThresholdStudy) -> None:
    """Print what makes the figures weaker than they look."""
    resolved = result.present.resolved.of
    if found.unlabelled:
        write_error(f"traces without an outcome, left out: {found.unlabelled}")
    if "task" in found.absent:
        write_error("no column task: every run counts as a separate task")
    if resolved < MIN_RESOLVED:
        write_error(f"resolved runs: only {resolved}, so the intervals are wide")
    if result.target is AlarmTarget.UNRESOLVED:
        few = f"fewer than {MIN_TARGETS} runs ran out of budget"
        write_error(f"{few}: thresholds are chosen to find unresolved ones")
    if HeldOutCheck.OTHER_TASKS not in result.trials:
        write_error("all tasks are in one fold: nothing can be held out")
    if len({label.source for label in found.traces.values()}) == 1:
        why = "no column source" if "source" in found.absent else "only one source"
        write_error(f"{why}: whether thresholds hold on another source is not tested")
    for source in result.untried:
        few = f"fewer than {MIN_TARGETS} runs {result.target} outside {source or NO_SOURCE}"
        write_error(f"{few}: no thresholds are chosen without it")


MAX_ROWS = 12
"""Thresholds shown for each rule; one that counts to large numbers has a hundred."""
_FOUND = {
    AlarmTarget.SPENT: "in the first 80 % of their steps",
    AlarmTarget.UNRESOLVED: "at any step",
}


def json_lines(study: ThresholdStudy, text: str) -> Iterator[dict[str, object]]:
    """Yield an object for each threshold, rule and configuration, and the proposal last."""
    target = {"target": study.target.name.lower()}
    for row in study.rows:
        named = {"rule": row.rule, "key": row.key, "threshold": row.threshold}
        marks = {"present": row.present, "chosen": row.chosen}
        yield {"type": "threshold", **named, **marks, **target, **_figure_fields(row.figures)}
    for choice in study.choices:
        decided = {"alarm": choice.level is not None, "verdict": choice.verdict.name.lower()}
        yield {"type": "choice", "rule": choice.rule, **decided}
    for what, figures in (("present", study.present), ("agreement", study.agreement)):
        yield {"type": "score", "what": what, **target, **_figure_fields(figures)}
    for check, trial in study.trials.items():
        what = check.name.lower()
        yield {"type": "score", "what": what, **target, **_figure_fields(trial.figures)}
        for each in (trial.whole, *trial.sources):
            yield {"type": "comparison", "what": what, **target, **_comparison_fields(each)}
    yield {
        "type": "proposal",
        "runs": study.runs,
        "max_false_alarms": round(100 * study.aim.allowed, 4),
        "folds": study.aim.folds,
        "seed": study.aim.seed,
        "better": is_proposed(study) if HeldOutCheck.OTHER_TASKS in study.trials else None,
        "refusals": refusals(study),
        "untried": study.untried,
        "rules": changes(study) if is_proposed(study) else {},
        "yaml": text,
    }


def text_lines(study: ThresholdStudy) -> Iterator[str]:
    """Yield a table for each rule that raised an alert, then one of the whole configurations."""
    yield from _explanation_lines(study.target)
    yield ""
    silent: list[str] = []
    verdicts = {choice.rule: choice.verdict for choice in study.choices}
    for rule, group in groupby(study.rows, key=lambda row: row.rule):
        rows = list(group)
        if not any(_has_alarms(row.figures) for row in rows):
            silent.append(rule)
            continue
        yield f"{rule} ({rows[0].key}), {verdicts[rule]}"
        yield from (f"  {line}" for line in _threshold_lines(study, rows))
        yield ""
    if silent:
        yield f"never reached: {', '.join(silent)}"
        yield ""
    yield from score_lines(study)
    for trial in study.trials.values():
        if trial.sources:
            yield ""
            yield from _source_table(trial, study.target)
    yield ""
    yield from verdict_lines(study)


def _source_table(trial: ThresholdTrial, target: AlarmTarget) -> Iterator[str]:
    """Yield a table of the sources, as configured and as chosen."""
    yield f"By source, as configured and with the chosen thresholds, {trial.check}:"
    heads = ("source", "resolved runs alarmed", f"{target} found", "")
    rows = [
        (
            each.source or NO_SOURCE,
            difference_text(each.resolved) if each.resolved.before.of else "-",
            difference_text(each.found) if each.found.before.of else "-",
            "worse" if each.worse else "",
        )
        for each in trial.sources
    ]
    yield from (f"  {line}" for line in table_lines(table(heads, rows, words=(0, 1, 2, 3))))


def _explanation_lines(target: AlarmTarget) -> Iterator[str]:
    yield "resolved: resolved runs alarmed, the false alarms, with a 95 % interval."
    yield f"found: runs {target} alarmed {_FOUND[target]}."
    if target is not AlarmTarget.UNRESOLVED:
        yield "unresolved: unresolved runs alarmed at any step."
    yield f"lift: how much likelier an alarmed run is {target} than runs of its source and length."
    yield f"when: the first alarm of runs {target}, as a share of their steps (median)."
    yield "difference: in percentage points, with a 95 % interval (paired bootstrap by task)."


def _threshold_lines(study: ThresholdStudy, rows: Sequence[ThresholdRow]) -> Iterator[str]:
    failed = "" if study.target is AlarmTarget.UNRESOLVED else "unresolved"
    heads = ("at", "resolved", f"found {study.target}", failed, "lift", "when", "")
    shown, chosen = (
        _rows_to_show(rows),
        "proposed" if is_proposed(study) else "chosen, not proposed",
    )
    cells = [heads, *(_row_cells(row, chosen) for row in shown)]
    if not failed:
        cells = [(*line[:3], *line[4:]) for line in cells]
    yield from table_lines(table(cells[0], cells[1:], words=tuple(range(len(cells[0])))))
    if len(shown) < len(rows):
        yield f"and {len(rows) - len(shown)} more thresholds, with --json"


def _rows_to_show(rows: Sequence[ThresholdRow]) -> Sequence[ThresholdRow]:
    """Return the configured and proposed thresholds, and as many others as are easy to read."""
    every = -(-len(rows) // MAX_ROWS)
    return [row for at, row in enumerate(rows) if at % every == 0 or row.present or row.chosen]


def _row_cells(row: ThresholdRow, chosen: str) -> tuple[str, ...]:
    figures = row.figures
    return (
        "on" if row.threshold is None else str(row.threshold),
        share_text(figures.resolved),
        _share_fraction(figures.found),
        _share_fraction(figures.unresolved),
        "-" if figures.lift is None else lift_text(figures.lift, figures.lift_interval),
        "-" if figures.delay is None else f"{100 * figures.delay:.0f} %",
        ("kept" if row.present else chosen) if row.chosen else "now" if row.present else "",
    )


def _figure_fields(figures: AlarmFigures) -> dict[str, object]:
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


def _comparison_fields(comparison: Comparison) -> dict[str, object]:
    found: dict[str, object] = {"source": comparison.source, "worse": comparison.worse}
    for name, each in (("resolved_alarmed", comparison.resolved), ("found", comparison.found)):
        found |= {f"{name}_before": each.before.hits, f"{name}_after": each.after.hits}
        found |= {f"{name}_of": each.after.of, f"{name}_tasks": each.tasks}
        found |= interval_fields(each.interval, f"{name}_difference_")
    return found


def _has_alarms(figures: AlarmFigures) -> bool:
    return bool(figures.resolved.hits or figures.found.hits or figures.unresolved.hits)


def _share_fraction(share: Share) -> str:
    return f"{share.hits}/{share.of}"
