"""The prompt for a worker at the start of an attempt. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.config.tasks import FileCheck, TaskSpec
from midwatch_tools.data_blocks import EVIDENCE, DataBlocks, plain, readable

_OF_IT = (
    "Your work counts as done when these checks pass; they are run after you end, so run them "
    "yourself first where you can"
)
_OF_THE_WHOLE = (
    "Your part has no check of its own. When all parts are put together, these checks of the "
    "whole are run; they need not pass before"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """An earlier attempt at the same task, and why it was not enough."""

    number: int
    reason: str
    advice: str = ""
    """The advice of a supervisor or an operator who restarted it."""
    last_notes: str = ""
    """The worker's last notes."""
    analyses: tuple[str, ...] = ()
    """The worker's own analyses of its failures, newest last."""
    tried: tuple[str, ...] = ()
    """The interventions delivered to it, each with its outcome."""
    kept: tuple[str, ...] = ()
    """Files of its work that are kept in the workspace of the next attempt."""
    completed: bool = False
    """Whether its work was accepted and a person still wants another attempt."""


def first_prompt(
    task: TaskSpec,
    plan: str,
    *,
    number: int,
    past: Sequence[PastAttempt],
    blocks: DataBlocks,
    learned: str = "",
    board: str = "",
    precedents: str = "",
    provisional: bool = False,
) -> str:
    """Return the first prompt of an attempt: the goal, the plan, the checks, and what was tried.

    `learned` contains the guidelines, lessons and facts for the attempt, with its own headings;
    `board` says what others on the same files report, and `precedents` how similar tasks went. The
    checks of a provisional task are those of the whole task it belongs to. Text from workers, their
    tools or files is marked as data; the goal, the checks and advice are not.
    """
    checks = "\n".join(
        f"- the file {check.file} exists" if isinstance(check, FileCheck) else f"- `{check}`"
        for check in task.acceptance
    )
    parts = [
        f"# Task: {task.label}\n\n{task.goal.strip()}",
        f"## Plan\n\n{readable(plan)}",
        f"## Acceptance\n\n{_OF_THE_WHOLE if provisional else _OF_IT}:\n{checks}",
    ]
    if learned:
        # Below the goal and the checks, which it must never overrule, and above reported text.
        parts.append(learned.strip())
    if precedents:
        went = blocks.frame("how similar tasks went", precedents.strip(), note=EVIDENCE)
        parts.append(f"## How similar tasks went\n\n{went}")
    if board:
        parts.append(board.strip())
    if past:
        parts.append(_past_attempts_section(number, past, blocks))
    return "\n\n".join(parts)


def _past_attempts_section(number: int, past: Sequence[PastAttempt], blocks: DataBlocks) -> str:
    tried = blocks.frame(
        "the attempts before", "\n".join(map(_past_attempt_lines, past)), note=EVIDENCE
    )
    advice = "\n".join(f"Advice for you: {plain(each.advice)}" for each in past if each.advice)
    parts = [
        f"This is attempt {number} of this task.",
        f"## What was tried before\n\n{tried}",
        advice,
        _kept_files_section(past[-1], blocks),
        _WANTED_AGAIN if past[-1].completed else _FAILED,
    ]
    return "\n\n".join(filter(None, parts))


_WANTED_AGAIN = "The work of the attempt before was accepted; do it again as you are advised."
_FAILED = (
    "Do not repeat what failed: begin with `report_error`, and say in it why the attempt before "
    "failed and what you will do differently."
)


def _kept_files_section(last: PastAttempt, blocks: DataBlocks) -> str:
    if not last.kept:
        return "You start from a clean workspace: nothing of that work is in it, on purpose."
    files = blocks.frame("files that were kept", "\n".join(map(plain, last.kept)))
    return f"Of that work these stand in your workspace, the rest was dropped on purpose:\n{files}"


def attempt_lines(past: PastAttempt) -> str:
    """Return an earlier attempt in plain lines: why it ended, what was tried, what was advised."""
    advice = f"\n  Advice after it: {plain(past.advice)}" if past.advice else ""
    return f"{_past_attempt_lines(past)}{advice}"


def _past_attempt_lines(past: PastAttempt) -> str:
    lines = [f"- Attempt {past.number}: {plain(past.reason)}"]
    lines += [f"  Its own analysis: {plain(analysis)}" for analysis in past.analyses]
    lines += [f"  Intervention: {plain(tried)}" for tried in past.tried]
    if past.last_notes:
        lines.append(f"  Its last notes: {plain(past.last_notes)}")
    return "\n".join(lines)
