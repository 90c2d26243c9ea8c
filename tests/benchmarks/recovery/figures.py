"""The sums of an arm, from what came of its tasks. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from facts import Facts
from scene import Nature


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """One arm, or one fault in it."""

    tasks: int
    completed: int
    recoverable: int
    recovered: int
    healthy: int
    disturbed: int
    """Healthy ones that were told anything at all."""
    alarmed: int
    """Healthy ones with an alarm, delivered or not."""
    spoiled: int
    """Healthy ones that were not completed."""
    unrecoverable: int
    handed_over_in_time: int
    """Parked with a question, or ended with the true reason, before half of the budget was used."""
    found: int
    median_steps_to_find: float | None
    """From the onset of a fault until somebody was told."""
    steps: int
    requests: int
    tokens: int
    """Of the workers."""
    supervision_tokens: int
    interventions: int
    diagnosis_named: int
    diagnosis_known: int
    """Faulty ones about which something was decided; the fault of each is known."""


def sums(facts: Sequence[Facts], *, half: int) -> Sums:
    """Add up tasks; `half` is half of the requests that each may take."""
    recoverable = [each for each in facts if each.nature is Nature.RECOVERABLE]
    hopeless = [each for each in facts if each.nature is Nature.UNRECOVERABLE]
    healthy = [each for each in facts if each.nature is Nature.HEALTHY]
    faulty = [*recoverable, *hopeless]
    found = [each.found_after for each in faulty if each.found_after is not None]
    return Sums(
        tasks=len(facts),
        completed=sum(each.completed for each in facts),
        recoverable=len(recoverable),
        recovered=sum(each.completed for each in recoverable),
        healthy=len(healthy),
        disturbed=sum(bool(each.actions) for each in healthy),
        alarmed=sum(each.alarms > 0 for each in healthy),
        spoiled=sum(not each.completed for each in healthy),
        unrecoverable=len(hopeless),
        handed_over_in_time=sum(in_time(each, half=half) for each in hopeless),
        found=len(found),
        median_steps_to_find=statistics.median(found) if found else None,
        steps=sum(each.steps for each in facts),
        requests=sum(each.requests for each in facts),
        tokens=sum(each.tokens for each in facts),
        supervision_tokens=sum(each.supervision_tokens for each in facts),
        interventions=sum(len(each.actions) for each in facts),
        diagnosis_named=sum(each.named is True for each in faulty),
        diagnosis_known=sum(each.named is not None for each in faulty),
    )


def in_time(facts: Facts, *, half: int) -> bool:
    """Whether a task was given to somebody before half of its budget was used."""
    return facts.handed_over_at is not None and facts.handed_over_at < half


def missed(facts: Facts, *, half: int) -> str:
    """Which goal a task missed under the full ladder; empty if none."""
    if facts.nature is Nature.RECOVERABLE and not facts.completed:
        return "not recovered"
    if facts.nature is Nature.HEALTHY and facts.actions:
        return "disturbed"
    if facts.nature is Nature.HEALTHY and not facts.completed:
        return "not completed"
    if facts.nature is Nature.UNRECOVERABLE and not in_time(facts, half=half):
        return "not handed over in time"
    return ""


def fields(each: Sums) -> dict[str, object]:
    """The sums as JSON takes them."""
    return asdict(each)
