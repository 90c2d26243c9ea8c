"""The thresholds that recorded runs speak for, as YAML that says why."""

from collections.abc import Iterator

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.figures import AlarmFigures
from midwatch_monitor.replay.tune.run import Target
from midwatch_monitor.replay.tune.study import Choice, Row, Study
from midwatch_monitor.replay.tune.threshold import changed_keys, tunable_rules


def changes(study: Study) -> dict[str, dict[str, int | str]]:
    """The keys of each rule that the proposal changes; rules without any are left out."""
    rules = tunable_rules(study.before)
    found = {each.rule: changed_keys(rules[each.rule], each.level) for each in study.choices}
    return {rule: keys for rule, keys in found.items() if keys}


def proposal_text(study: Study) -> str:
    """The proposal as a configuration file that holds only what it changes.

    What is configured now stays below it: it is given after the file in force.
    """
    lines = [f"# {line}" for line in _head(study)]
    changed = changes(study)
    if not changed:
        return "\n".join((*lines, "# Nothing to change.", ""))
    lines.append("rules:")
    for choice in study.choices:
        if choice.rule in changed:
            lines += _rule(study, choice, changed[choice.rule])
    return "\n".join((*lines, ""))


def verdict_text(study: Study) -> str:
    """Whether to take the proposal, by what it did on tasks that it was not chosen on."""
    if not changes(study):
        return "Nothing to change: keep what you have."
    held_out = study.scores.held_out
    if held_out is None:
        return "There are too few tasks to judge it on others than it was chosen on."
    if study.scores.better:
        sure = held_out.lift_interval is not None and held_out.lift_interval.low > 0
        doubt = "" if sure else " But there it is not shown to find more than chance does."
        return f"Better than what is configured, on tasks that it was not chosen on.{doubt}"
    return "Not better than what is configured, on tasks not chosen on: keep what you have."


def figures_text(figures: AlarmFigures, target: Target) -> str:
    """What alarms cost and found, in a line."""
    parts = [f"{share_text(figures.resolved)} of the resolved runs alarmed"]
    when = " in time" if target is Target.SPENT else ""
    parts.append(f"{_of(figures.found)} {target}{when}")
    if figures.lift is not None:
        parts.append(f"lift {lift_text(figures.lift, figures.lift_interval)}")
    return ", ".join(parts)


def share_text(share: Share) -> str:
    """So many of so many, in percent, with the 95 % interval."""
    low, high = (f"{100 * end:.1f}" for end in (share.interval.low, share.interval.high))
    return f"{_of(share)} ({100 * share.rate:.1f} %, {low} to {high})"


def lift_text(lift: float, interval: Interval | None) -> str:
    """A lift with its 95 % interval, where there is one."""
    ends = f" ({interval.low:+.2f} to {interval.high:+.2f})" if interval else ""
    return f"{lift:+.2f}{ends}"


def score_lines(study: Study) -> Iterator[tuple[str, AlarmFigures]]:
    """The whole configurations that are compared, by name."""
    scores = study.scores
    yield "agreement of notices alone", scores.agreement
    yield "as configured", scores.present
    yield "as proposed, on the runs it was chosen on", scores.proposal
    if scores.held_out is not None:
        yield "chosen the same way without the task judged", scores.held_out


def _head(study: Study) -> Iterator[str]:
    allowed = f"{100 * study.aim.allowed:g} % of the resolved ones may be alarmed"
    yield f"Proposed by `midwatch tune` from {study.runs} recorded runs; {allowed}."
    yield "It holds only what changes: give it after the configuration in force."
    for name, figures in score_lines(study):
        yield f"{name}: {figures_text(figures, study.target)}"
    yield verdict_text(study)


def _rule(study: Study, choice: Choice, keys: dict[str, int | str]) -> Iterator[str]:
    """One rule; every changed value has a line that says why."""
    row = _row(study, choice)
    reason = "Never an alarm in these runs."
    if row is not None:
        at = "As it was" if choice.level is None else "From here on"
        reason = f"{at}: {figures_text(row.figures, study.target)}."
    yield f"  {choice.rule}:"
    if choice.level is None:
        yield f"    # {choice.verdict.value[0].upper()}{choice.verdict.value[1:]}."
    for key, value in keys.items():
        yield f"    # {_why(key, keys, reason)}"
        yield f"    {key}: {value}"


def _why(key: str, keys: dict[str, int | str], reason: str) -> str:
    if key == "notice_after":
        return "A notice would come no sooner than the alarm."
    if key == "critical_after" and "warn_after" in keys and keys[key]:
        return "Not measured by itself: keeps its distance from the warning."
    return reason


def _row(study: Study, choice: Choice) -> Row | None:
    """The threshold that is chosen; of a rule that is no alarm any more, the one it had."""
    for row in study.rows:
        if row.rule == choice.rule and (row.present if choice.level is None else row.chosen):
            return row
    return None


def _of(share: Share) -> str:
    return f"{share.hits}/{share.of}"
