"""One ended attempt as input for lessons and summaries. Pure."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from midwatch_monitor.records import (
    Acceptance,
    Alert,
    Analysis,
    Ending,
    Feedback,
    Origin,
    VerdictBasis,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_tools.data_blocks import DataBlocks, fold_lines

_NO_COMMENT = "No reason was given."
_LINE = 500
"""Longest line, in characters: a reason, a message, an analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything about one ended attempt that goes into a lesson or a summary.

    All its texts are untrusted: they come from the task's owner, workers, tools and files.
    """

    project: str = ""
    task: str = ""
    """The task's name."""
    title: str = ""
    goal: str = ""
    kind: str = ""
    """The kind of worker: `coder` or `task`."""
    tags: tuple[str, ...] = ()
    """The task's tags."""
    files: tuple[str, ...] = ()
    """Changed files, relative to the workspace."""
    verdict: Feedback | None = None
    """The verdict that a lesson explains; `None` if no lesson is wanted."""
    verdict_id: int | None = None
    """The verdict's journal id: that of a Feedback or of the attempt's end."""
    ending: str = ""
    """A value of Ending."""
    reason: str = ""
    """Why it ended."""
    analyses: tuple[Analysis, ...] = ()
    """The worker's own analyses, oldest first."""
    alarms: tuple[Alert, ...] = ()
    """Its alerts of severity warning or higher."""
    interventions: tuple[InterventionState, ...] = ()
    """The interventions delivered to it, oldest first."""
    turns: int = 0
    """How often its model answered."""
    steps: int = 0
    """The number of its last step."""
    notes: str = ""
    """The notes of its last checkpoint."""
    checks: tuple[Acceptance, ...] = ()
    transcript: str = ""
    """An excerpt of its last steps, each with its number."""
    shown: tuple[int, ...] = ()
    """The step numbers in the excerpt; empty if unknown."""
    known: tuple[str, ...] = ()
    """Texts of earlier lessons of the same task."""
    sources: tuple[int, ...] = ()
    """The attempts it is about, by journal id."""

    @property
    def citable(self) -> frozenset[int]:
        """The numbers of the steps that are shown, so that a lesson may cite them."""
        named = {step for alarm in self.alarms for step in alarm.evidence}
        named |= {each.about for each in self.analyses}
        numbers = named | set(self.shown) if self.shown else set(range(1, self.steps + 1))
        return frozenset(each for each in numbers if 1 <= each <= self.steps)

    def named_files(self, text: str) -> tuple[str, ...]:
        """Return its files that a text names, by path or by file name."""
        return tuple(path for path in self.files if path.rpartition("/")[2] in text)


def case_text(case: Case, max_chars: int, data: DataBlocks) -> str:
    """Return the case for a prompt: data blocks of about `max_chars` characters in total.

    Empty blocks are left out. Half of the room is for the transcript.
    """
    verdict = case.verdict
    blocks = [
        ("task", _task_section(case), max_chars // 8),
        ("result", _result_section(case), max_chars // 8),
        ("what a person changed afterwards", verdict.diff if verdict else "", max_chars // 8),
        ("alarms", "\n".join(map(_alarm_line, case.alarms)), max_chars // 16),
        (
            "the worker's own analyses",
            "\n".join(map(_analysis_line, case.analyses)),
            max_chars // 16,
        ),
        ("interventions", "\n".join(map(_intervention_line, case.interventions)), max_chars // 16),
        ("the worker's last notes", case.notes, max_chars // 16),
        ("last steps", case.transcript, max_chars // 2),
        ("lessons that are known already", "\n".join(map(_item, case.known)), max_chars // 16),
    ]
    return "\n\n".join(data.quote(name, text, room) for name, text, room in blocks if text.strip())


def rejecter(verdict: Feedback) -> str:
    """Return in words who rejected a result, and how."""
    match verdict.origin, verdict.sign:
        case Origin.EXPLICIT, _:
            return "A person rejected the result"
        case Origin.IMPLIED, VerdictBasis.REVERTED:
            return "The merged result was taken back"
        case Origin.IMPLIED, _:
            return "A person changed the merged result afterwards"
        case _, VerdictBasis.REVIEWED:
            return "The reviewer refused the result"
        case _:
            return "The attempt did not reach its goal"


def contains_passage(passage: str, text: str) -> bool:
    """Whether a text contains a passage, ignoring case and white space."""
    return fold_lines(passage) in fold_lines(text)


def line(text: str, max_chars: int = _LINE) -> str:
    """Return the text on one line, cut if it is too long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_chars else f"{flat[: max_chars - 1]}…"


def _task_section(case: Case) -> str:
    lines = [
        case.title or case.task,
        f"Goal: {case.goal.strip()}" if case.goal.strip() else "",
        f"Kind of work: {case.kind}" if case.kind else "",
        f"Tags: {', '.join(case.tags)}" if case.tags else "",
        f"Files that were changed: {', '.join(case.files)}" if case.files else "",
    ]
    return "\n".join(filter(None, lines))


def _result_section(case: Case) -> str:
    verdict = case.verdict
    lines = [f"Ended: {case.ending or 'unknown'}, after step {case.steps}"]
    if case.reason:
        lines.append(f"Reason: {line(case.reason)}")
    if verdict is not None:
        who = "The result was accepted" if verdict.accepted else rejecter(verdict)
        lines.append(f"Verdict: {who}. {line(verdict.comment, 2000) or _NO_COMMENT}")
    lines += [
        f"Check {'passed' if each.passed else 'failed'}: {line(f'{each.check} {each.detail}')}"
        for each in case.checks
    ]
    return "\n".join(lines)


def _alarm_line(alarm: Alert) -> str:
    steps = f" (steps {', '.join(map(str, alarm.evidence))})" if alarm.evidence else ""
    return f"- {alarm.severity} {alarm.key.rule}: {line(alarm.summary)}{steps}"


def _analysis_line(each: Analysis) -> str:
    about = f" (step {each.about})" if each.about else ""
    return f"- {line(each.what)}{about}; cause: {line(each.root)}; next: {line(each.remedy)}"


def _intervention_line(each: InterventionState) -> str:
    issued = each.intervention
    outcome = each.outcome or "not judged"
    reason = f" ({line(each.reason)})" if each.reason else ""
    return f"- {issued.action} by {issued.by}: {line(issued.message)} → {outcome}{reason}"


def _item(text: str) -> str:
    return f"- {line(text)}"


OTHER = "other"
"""The failure is in none of the classes."""
UNKNOWN = "unknown"
"""Nothing shows what failed."""

_BY_RULE = {
    "blocked_environment": "environment",
    "budget_burn": "budget",
    "unsupported_claim": "untested",
    **dict.fromkeys(
        ("cycle", "repeated_call", "repeated_edits", "redundant_steps", "revert_churn"), "loop"
    ),
}


def observed_class(
    classes: Collection[str], *, ending: str, rules: Iterable[str], check_failed: bool
) -> str:
    """Return the configured class that the attempt's end, alarms and checks indicate."""
    found = [
        "budget" if ending == Ending.OUT_OF_BUDGET else "",
        *(_BY_RULE.get(rule, "") for rule in rules),
        "loop" if ending == Ending.STUCK else "",
        "wrong_result" if check_failed else "",
    ]
    return next((name for name in found if name in classes), UNKNOWN)


def named_class(name: str, classes: Collection[str]) -> str:
    """Return a named class in the configuration's spelling, else `other`."""
    known = {_plain_name(each): each for each in (*classes, UNKNOWN)}
    return known.get(_plain_name(name), OTHER)


def _plain_name(name: str) -> str:
    return "_".join(re.split(r"[\s_-]+", name.strip().casefold()))
