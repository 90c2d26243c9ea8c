"""What a worker is told at the start of an attempt. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.config.tasks import FileCheck, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An earlier attempt at the same task, and why it did not do."""

    number: int
    reason: str
    advice: str = ""
    """What a supervisor or an operator said when it was restarted."""
    last_notes: str = ""
    """The worker's own last notes."""


def opening(task: TaskSpec, plan: str, *, number: int, past: Sequence[Past]) -> str:
    """The first prompt of an attempt: the goal, the plan, the checks, and what was tried."""
    checks = "\n".join(
        f"- the file {check.file} exists" if isinstance(check, FileCheck) else f"- `{check}`"
        for check in task.acceptance
    )
    parts = [
        f"# Task: {task.label}\n\n{task.goal.strip()}",
        f"## Plan\n\n{plan}",
        "## Acceptance\n\nYour work counts as done when these checks pass; they are run after "
        f"you end, so run them yourself first where you can:\n{checks}",
    ]
    if past:
        tried = "\n".join(_tried(each) for each in past)
        parts.append(
            f"This is attempt {number} of this task.\n\n## What was tried before\n\n{tried}\n\n"
            "You start from a clean workspace. Do not repeat what failed; say first what you will "
            "do differently."
        )
    return "\n\n".join(parts)


def _tried(past: Past) -> str:
    lines = [f"- Attempt {past.number}: {past.reason}"]
    if past.last_notes:
        lines.append(f"  Its last notes: {past.last_notes}")
    if past.advice:
        lines.append(f"  Advice for you: {past.advice}")
    return "\n".join(lines)
