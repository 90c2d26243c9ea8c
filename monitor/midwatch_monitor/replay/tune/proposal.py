"""A study's proposal, or why there is none, as text and as a configuration file. Pure."""

from collections.abc import Iterator

from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.choose import Choice, Comparison, Difference
from midwatch_monitor.replay.tune.runs import AlarmFigures, AlarmTarget
from midwatch_monitor.replay.tune.study import HeldOutCheck, ThresholdRow, ThresholdStudy
from midwatch_monitor.replay.tune.threshold import changed_keys, tunable_rules

NO_SOURCE = "(no source)"
"""Name for the runs without a source when others have one."""


def changes(study: ThresholdStudy) -> dict[str, dict[str, int | str]]:
    """Return the keys that the chosen thresholds change, by rule; unchanged rules are left out."""
    rules = tunable_rules(study.before)
    found = {each.rule: changed_keys(rules[each.rule], each.level) for each in study.choices}
    return {rule: keys for rule, keys in found.items() if keys}


def refusals(study: ThresholdStudy) -> tuple[str, ...]:
    """Return why the chosen thresholds are not proposed; empty if they are or change nothing.

    Beyond noise, they must be better on tasks they were not chosen on, and must not be worse in any
    source, however they were chosen.
    """
    if not changes(study):
        return ()
    held_out = study.trials.get(HeldOutCheck.OTHER_TASKS)
    if held_out is None:
        return ("too few tasks: there are no others to judge the thresholds on",)
    whole = held_out.whole
    reasons = list(_worse_sources(study).values())
    after, allowed = whole.resolved.after.rate, study.aim.allowed
    if after > allowed and after > whole.resolved.before.rate:
        alarmed = f"{100 * after:.1f} % of the resolved runs are alarmed {held_out.check}"
        reasons.append(f"too many false alarms: {alarmed}, but only {100 * allowed:g} % may be")
    if not whole.found.after.hits:
        reasons.append(f"nothing is found {held_out.check}")
    if not (whole.better or whole.worse):
        told = f"{_resolved_text(whole)}; {_found_text(whole, study.target)}"
        reasons.append(f"within noise: {held_out.check}, {told}")
    return tuple(reasons)


def _worse_sources(study: ThresholdStudy) -> dict[str, str]:
    """Return for each source how the thresholds are worse, in the first check that shows it."""
    reasons: dict[str, str] = {}
    for check in (HeldOutCheck.OTHER_TASKS, HeldOutCheck.OTHER_SOURCES, HeldOutCheck.CHOSEN_ON):
        if trial := study.trials.get(check):
            sources = [each for each in trial.sources if each.worse]
            for each in sources or [trial.whole]:
                if each.worse:
                    told = _worse_text(each, check, study.target)
                    reasons.setdefault(each.source or "", told)
    return reasons


def is_proposed(study: ThresholdStudy) -> bool:
    return bool(changes(study)) and not refusals(study)


def proposal_text(study: ThresholdStudy) -> str:
    """Return the proposal as a configuration file that contains only the changes.

    It is passed after the file in force, whose other values still apply.
    """
    allowed = f"{100 * study.aim.allowed:g} % of the resolved ones may be alarmed"
    lines = [
        f"Proposed by `midwatch tune` from {study.runs} recorded runs; {allowed}.",
        "It contains only the changes: pass it after the configuration in force.",
        *score_lines(study),
        *verdict_lines(study),
    ]
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in lines), *_rules(study)))


def verdict_lines(study: ThresholdStudy) -> Iterator[str]:
    """Yield whether anything is proposed, and why."""
    if not changes(study):
        yield "Nothing to change: keep what you have."
    elif why := refusals(study):
        yield "Nothing is proposed: keep what you have."
        yield from (f"- {reason}" for reason in why)
    else:
        held_out = study.trials[HeldOutCheck.OTHER_TASKS]
        told = f"{_resolved_text(held_out.whole)}; {_found_text(held_out.whole, study.target)}"
        yield f"Better than what is configured, beyond noise, {held_out.check}:"
        yield f"{told}."
        lift = held_out.figures.lift_interval
        if lift is None or lift.low <= 0:
            yield "But they are not shown to find more there than by chance."


def figures_text(figures: AlarmFigures, target: AlarmTarget) -> str:
    """Return in one line what alarms cost and found."""
    parts = [f"{share_text(figures.resolved)} of the resolved runs alarmed"]
    when = " in time" if target is AlarmTarget.SPENT else ""
    parts.append(f"{_share_text(figures.found)} {target}{when}")
    if figures.lift is not None:
        parts.append(f"lift {lift_text(figures.lift, figures.lift_interval)}")
    return ", ".join(parts)


def share_text(share: Share) -> str:
    """Return a share as counts and percent, with the 95 % interval."""
    low, high = (f"{100 * end:.1f}" for end in (share.interval.low, share.interval.high))
    return f"{_share_text(share)} ({100 * share.rate:.1f} %, {low} to {high})"


def lift_text(lift: float, interval: Interval | None) -> str:
    """Return a lift with its 95 % interval, if there is one."""
    ends = f" ({interval.low:+.2f} to {interval.high:+.2f})" if interval else ""
    return f"{lift:+.2f}{ends}"


_NAMES = {
    HeldOutCheck.CHOSEN_ON: "as chosen, on the same runs",
    HeldOutCheck.OTHER_TASKS: "chosen the same way without the task judged",
    HeldOutCheck.OTHER_SOURCES: "chosen the same way without the source judged",
}


def score_lines(study: ThresholdStudy) -> Iterator[str]:
    """Yield lines that compare whole configurations, by name."""
    yield f"agreement of notices alone: {figures_text(study.agreement, study.target)}"
    yield f"as configured: {figures_text(study.present, study.target)}"
    for check, trial in study.trials.items():
        yield f"{_NAMES[check]}: {figures_text(trial.figures, study.target)}"


def difference_text(difference: Difference) -> str:
    """Return a share before and after, with the 95 % interval of the difference in percentage
    points.
    """
    before, after = (100 * share.rate for share in (difference.before, difference.after))
    told = f"{before:.1f} % to {after:.1f} % of {difference.after.of}"
    if difference.interval is None:
        return told
    low, high = 100 * difference.interval.low, 100 * difference.interval.high
    return f"{told} (difference {low:+.1f} to {high:+.1f})"


def _resolved_text(comparison: Comparison) -> str:
    return f"resolved runs alarmed {difference_text(comparison.resolved)}"


def _found_text(comparison: Comparison, target: AlarmTarget) -> str:
    return f"{target} found {difference_text(comparison.found)}"


def _worse_text(comparison: Comparison, check: HeldOutCheck, target: AlarmTarget) -> str:
    where = "" if comparison.source is None else f" on {comparison.source or NO_SOURCE}"
    parts: list[str] = []
    if comparison.resolved.rises:
        parts.append(_resolved_text(comparison))
    if comparison.found.falls:
        parts.append(_found_text(comparison, target))
    return f"worse{where}, {check}: {'; '.join(parts)}"


def _rules(study: ThresholdStudy) -> Iterator[str]:
    if not is_proposed(study):
        return
    yield "rules:"
    changed = changes(study)
    for choice in study.choices:
        if choice.rule in changed:
            yield from _rule_lines(study, choice, changed[choice.rule])


def _rule_lines(study: ThresholdStudy, choice: Choice, keys: dict[str, int | str]) -> Iterator[str]:
    """Yield the lines of one rule; each changed value is explained."""
    row = _row(study, choice)
    reason = "Never an alarm in these runs."
    if row is not None:
        at = "As it was" if choice.level is None else "From here on"
        reason = f"{at}: {figures_text(row.figures, study.target)}."
    yield f"  {choice.rule}:"
    if choice.level is None:
        yield f"    # {choice.verdict.value[0].upper()}{choice.verdict.value[1:]}."
    for key, value in keys.items():
        yield f"    # {_key_reason(key, keys, reason)}"
        yield f"    {key}: {value}"


def _key_reason(key: str, keys: dict[str, int | str], reason: str) -> str:
    if key == "notice_after":
        return "A notice would come no sooner than the alarm."
    if key == "critical_after" and "warn_after" in keys and keys[key]:
        return "Not measured by itself: keeps its distance from the warning."
    return reason


def _row(study: ThresholdStudy, choice: Choice) -> ThresholdRow | None:
    """Return the chosen threshold's row; for a rule that no longer alarms, its present one."""
    for row in study.rows:
        if row.rule == choice.rule and (row.present if choice.level is None else row.chosen):
            return row
    return None


def _share_text(share: Share) -> str:
    return f"{share.hits}/{share.of}"
