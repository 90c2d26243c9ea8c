"""One ended attempt, as whoever draws a lesson or a summary from it sees it. Pure."""

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
    Sign,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_tools.data_blocks import DataBlocks, fold_lines

_NO_COMMENT = "No reason was given."
_LINE = 500
"""Characters of one line of it: a reason, a message, an analysis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything about one ended attempt that a lesson or a summary is made from.

    All of it is text of others: of the task's owner, of workers, tools and files.
    """

    project: str = ""
    task: str = ""
    """The name of the task."""
    title: str = ""
    goal: str = ""
    kind: str = ""
    """The kind of the worker: `coder` or `task`."""
    tags: tuple[str, ...] = ()
    """Of the task."""
    files: tuple[str, ...] = ()
    """Files that were changed, relative to the workspace."""
    verdict: Feedback | None = None
    """What a lesson explains; `None` where none is asked for."""
    verdict_id: int | None = None
    """Its journal id: a Feedback, or the end of the attempt."""
    ending: str = ""
    """A value of Ending."""
    reason: str = ""
    """Why it ended so."""
    analyses: tuple[Analysis, ...] = ()
    """The worker's own, oldest first."""
    alarms: tuple[Alert, ...] = ()
    """The alerts that fired in it, from a warning on."""
    interventions: tuple[InterventionState, ...] = ()
    """Those that reached the attempt, oldest first."""
    turns: int = 0
    """How often its model answered."""
    steps: int = 0
    """The number of its last step."""
    notes: str = ""
    """Of its last checkpoint."""
    checks: tuple[Acceptance, ...] = ()
    transcript: str = ""
    """An excerpt of its last steps, each with its number."""
    shown: tuple[int, ...] = ()
    """The numbers of the steps in the excerpt; empty where that is not known."""
    known: tuple[str, ...] = ()
    """Texts of earlier lessons of the same task."""
    sources: tuple[int, ...] = ()
    """The attempts that it is about, by journal id."""

    @property
    def citable(self) -> frozenset[int]:
        """The numbers of the steps that are seen in it, on which a lesson may rest."""
        named = {step for alarm in self.alarms for step in alarm.evidence}
        named |= {each.about for each in self.analyses}
        numbers = named | set(self.shown) if self.shown else set(range(1, self.steps + 1))
        return frozenset(each for each in numbers if 1 <= each <= self.steps)

    def named_files(self, text: str) -> tuple[str, ...]:
        """Those of its files that a text names, by path or by their own name."""
        return tuple(path for path in self.files if path.rpartition("/")[2] in text)


def case_text(case: Case, max_chars: int, data: DataBlocks) -> str:
    """The case for a prompt: data blocks of about `max_chars` characters together.

    A block that has nothing to say is left out. Half of the room is the transcript's.
    """
    verdict = case.verdict
    blocks = [
        ("task", _task(case), max_chars // 8),
        ("result", _result(case), max_chars // 8),
        ("what a person changed afterwards", verdict.diff if verdict else "", max_chars // 8),
        ("alarms", "\n".join(map(_alarm, case.alarms)), max_chars // 16),
        ("the worker's own analyses", "\n".join(map(_analysis, case.analyses)), max_chars // 16),
        ("interventions", "\n".join(map(_help, case.interventions)), max_chars // 16),
        ("the worker's last notes", case.notes, max_chars // 16),
        ("last steps", case.transcript, max_chars // 2),
        ("lessons that are known already", "\n".join(map(_item, case.known)), max_chars // 16),
    ]
    return "\n\n".join(data.quote(name, text, room) for name, text, room in blocks if text.strip())


def rejecter(verdict: Feedback) -> str:
    """Who does not accept a result, and what shows it."""
    match verdict.origin, verdict.sign:
        case Origin.EXPLICIT, _:
            return "A person rejected the result"
        case Origin.IMPLIED, Sign.REVERTED:
            return "The merged result was taken back"
        case Origin.IMPLIED, _:
            return "A person changed the merged result afterwards"
        case _, Sign.REVIEWED:
            return "The reviewer refused the result"
        case _:
            return "The attempt did not reach its goal"


def stands_in(passage: str, text: str) -> bool:
    """Whether a passage stands in a text, but for case and white space."""
    return fold_lines(passage) in fold_lines(text)


def line(text: str, max_chars: int = _LINE) -> str:
    """The text on one line, cut at its end where it is too long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_chars else f"{flat[: max_chars - 1]}…"


def _task(case: Case) -> str:
    lines = [
        case.title or case.task,
        f"Goal: {case.goal.strip()}" if case.goal.strip() else "",
        f"Kind of work: {case.kind}" if case.kind else "",
        f"Tags: {', '.join(case.tags)}" if case.tags else "",
        f"Files that were changed: {', '.join(case.files)}" if case.files else "",
    ]
    return "\n".join(filter(None, lines))


def _result(case: Case) -> str:
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


def _alarm(alarm: Alert) -> str:
    steps = f" (steps {', '.join(map(str, alarm.evidence))})" if alarm.evidence else ""
    return f"- {alarm.severity} {alarm.key.rule}: {line(alarm.summary)}{steps}"


def _analysis(each: Analysis) -> str:
    about = f" (step {each.about})" if each.about else ""
    return f"- {line(each.what)}{about}; cause: {line(each.root)}; next: {line(each.remedy)}"


def _help(each: InterventionState) -> str:
    issued = each.intervention
    outcome = each.outcome or "not judged"
    reason = f" ({line(each.reason)})" if each.reason else ""
    return f"- {issued.action} by {issued.by}: {line(issued.message)} → {outcome}{reason}"


def _item(text: str) -> str:
    return f"- {line(text)}"


OTHER = "other"
"""Something failed in a way that is in no class."""
UNKNOWN = "unknown"
"""Nothing tells what failed."""

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
    """The configured class that the end of an attempt, its alarms and its checks speak for."""
    found = [
        "budget" if ending == Ending.OUT_OF_BUDGET else "",
        *(_BY_RULE.get(rule, "") for rule in rules),
        "loop" if ending == Ending.STUCK else "",
        "wrong_result" if check_failed else "",
    ]
    return next((name for name in found if name in classes), UNKNOWN)


def named_class(name: str, classes: Collection[str]) -> str:
    """A class that somebody named, in the spelling of the configuration; else `other`."""
    known = {_plain(each): each for each in (*classes, UNKNOWN)}
    return known.get(_plain(name), OTHER)


def _plain(name: str) -> str:
    return "_".join(re.split(r"[\s_-]+", name.strip().casefold()))
