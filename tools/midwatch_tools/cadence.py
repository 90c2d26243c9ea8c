"""How often a worker is reminded to reflect: less often while all goes well. Pure."""

from collections.abc import Sequence

from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.records import Checkpoint


def steady(
    checkpoints: Sequence[Checkpoint], *, firing: bool, min_gain: int, settings: ReflectSettings
) -> bool:
    """Whether the last two checkpoints gained, are confident, and nothing fires."""
    if firing or len(checkpoints) < 2:
        return False
    before, last = checkpoints[-2:]
    return (
        last.progress_percent - before.progress_percent >= min_gain
        and last.confidence >= settings.steady_confidence
    )


def next_interval(interval: int, *, is_steady: bool, settings: ReflectSettings) -> int:
    """The interval after a checkpoint: doubled while steady, up to its cap; else from the start."""
    if settings.remind_every == 0 or not is_steady:
        return settings.remind_every
    return min(interval * 2, settings.remind_every * 2**settings.steady_doublings)


def reminder_due(request: int, last_checkpoint: int, interval: int) -> bool:
    """Whether the worker is reminded with this model request (the first is number 1).

    It has made `request - 1` requests; the reminder comes after each full interval of them, and
    depends on nothing that a crash could lose.
    """
    made = request - 1 - last_checkpoint
    return interval > 0 and made > 0 and made % interval == 0
