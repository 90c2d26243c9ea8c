"""Whether there is evidence for what a worker claims about the current plan step. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from midwatch_monitor.config.settings import CompletionSettings, Unproven
from midwatch_monitor.records import (
    Acceptance,
    Claim,
    ClaimState,
    Completion,
    Entry,
    Plan,
    Record,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.act import runs_tests
from midwatch_monitor.rules.failure_text import failure_lines, has_failed
from midwatch_monitor.rules.identity import NO_WORK, command
from midwatch_tools.tools.proof import shows_claim

FILE = re.compile(r"[\w./-]*\w\.\w{1,8}\b")
"""Matches what may be a file name."""
_NOTHING = (
    "nothing was observed that proves it: no file was changed or read, and no command or other "
    "tool succeeded since this plan step began"
)
_UNTOUCHED = "it was neither changed nor read in this plan step"
_UNSHOWN = "no test or program that shows it was run and passed after the last edit"
GOAL = "the goal"
"""Name of the claim that says whether the plan step achieved its purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepClaim:
    """What a worker claims about the plan step that it calls finished."""

    goal: str
    files: tuple[str, ...] = ()
    structural: tuple[Claim, ...] = ()
    functional: tuple[Claim, ...] = ()
    confidence: int
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePresence:
    """Whether a file, or any file that matches a pattern, exists; `fault` says why not."""

    path: str
    fault: str = ""
    known: bool = True
    """False if nobody can look, so that nothing is known about the file."""


WORK: tuple[type[Record], ...] = (Step, Plan)
"""The records that show the work."""
_MASKING = re.compile(r"(?<!&)&(?![&>\d])|[|;\n]")
"""Matches where an exit code may hide a command's own: `pytest | tail`, `pytest; date`."""


@dataclass(slots=True, kw_only=True)
class PlanStepWork:
    """What the worker did within one plan step. Steps must be taken in order."""

    edited: set[str] = field(default_factory=set[str])
    """The files that it changed."""
    gone: set[str] = field(default_factory=set[str])
    """The changed files that are now deleted."""
    seen: set[str] = field(default_factory=set[str])
    """The files that it named in successful acts."""
    used: set[str] = field(default_factory=set[str])
    """The tools that succeeded."""
    passed: dict[str, None] = field(default_factory=dict[str, None])
    """The commands and test tools that succeeded after the last edit, oldest first."""

    def take(self, step: Step) -> None:
        if step.kind is not StepKind.TOOL or step.tool in NO_WORK:
            return
        edits = [edit for edit in step.edits if edit.writer is Writer.WORKER]
        for edit in edits:
            self.edited.add(edit.path)
            (self.gone.add if edit.deleted else self.gone.discard)(edit.path)
        if edits:
            self.passed.clear()
        line = command(step)
        name = line or step.tool
        self.passed.pop(name, None)
        if has_failed(step) is not False:
            return
        self.used.add(step.tool)
        if step.path:
            self.seen.add(step.path)
        self.seen.update(FILE.findall(line))
        if ((line and step.exit_code == 0) or runs_tests(step.tool, line)) and not _hides_failure(
            step, line
        ):
            self.passed[name] = None


def _hides_failure(step: Step, line: str) -> bool:
    """Whether a successful command's output shows a failure that its exit code may hide."""
    return _MASKING.search(line) is not None and bool(failure_lines(step.output))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStepEvidence:
    """What is known about the work on a plan step."""

    files: tuple[FilePresence, ...] = ()
    """The files that the claim names or the plan step expects."""
    planned: frozenset[str] = frozenset()
    """The files that the plan step expects."""
    deeds: PlanStepWork = field(default_factory=PlanStepWork)
    """What the worker did within the plan step."""
    acceptance: tuple[Acceptance, ...] = ()
    """The plan step's own checks that were run."""
    unrun: tuple[str, ...] = ()
    """Its checks that were not run."""

    @property
    def none(self) -> bool:
        """Whether there is no evidence at all of the work."""
        there = any(
            each.known and not each.fault for each in self.files if each.path in self.planned
        )
        proved = any(each.passed for each in self.acceptance)
        done = self.deeds
        return not (there or proved or done.edited or done.seen or done.used or done.passed)

    def touched(self, path: str) -> bool:
        """Whether a file, or any that matches a pattern, was changed or read in the plan step."""
        return any(_matches_file(path, known) for known in self.deeds.edited | self.deeds.seen)


def judge_completion(
    plan_step: int, said: StepClaim, evidence: PlanStepEvidence, settings: CompletionSettings
) -> Completion:
    """Return the verdict on a claim: accepted, accepted with a flag, or refused with the doubts."""
    behaviour = [
        *_acceptance(evidence),
        *(_behaviour(claim, evidence) for claim in said.functional),
    ]
    claims = [
        *_files(evidence),
        *(_structure(claim, evidence) for claim in said.structural),
        *behaviour,
    ]
    goal = _goal(claims, shown=any(each.state is ClaimState.PASSED for each in behaviour))
    unproven = [claim for claim in claims if claim.state is ClaimState.UNPROVEN]
    confidence = _lower_confidence(said.confidence, len(unproven), len(claims))
    refusals = [_claim_words(claim) for claim in claims if claim.state is ClaimState.FAILED]
    if not refusals and evidence.none:
        refusals.append(_NOTHING)
    doubts = [_claim_words(claim) for claim in unproven]
    if not refusals and settings.unproven is Unproven.REFUSE:
        refusals += doubts
    if not doubts and goal.state is ClaimState.UNPROVEN:
        doubts = [_claim_words(goal)]
    return Completion(
        plan_step=plan_step,
        goal=said.goal,
        claims=(goal, *claims),
        confidence=confidence,
        accepted=not refusals,
        flag=""
        if refusals
        else _doubt_text(said.flag, doubts, confidence, settings.min_confidence),
        doubts=tuple(refusals or doubts),
    )


def _goal(claims: Sequence[Claim], *, shown: bool) -> Claim:
    """Return whether the plan step achieved its purpose, judging by all claims about it."""
    for state in (ClaimState.FAILED, ClaimState.UNPROVEN):
        if short := [claim.what for claim in claims if claim.state is state]:
            return Claim(what=GOAL, state=state, reason=f"{state}: {', '.join(short)}")
    if shown:
        return Claim(what=GOAL, state=ClaimState.PASSED)
    reason = "nothing was run that shows it"
    return Claim(what=GOAL, state=ClaimState.UNPROVEN, reason=reason)


def _files(evidence: PlanStepEvidence) -> Iterable[Claim]:
    for each in evidence.files:
        what = f"file {each.path}"
        if each.fault:
            yield Claim(what=what, state=ClaimState.FAILED, reason=each.fault)
        elif not each.known:
            yield Claim(what=what, state=ClaimState.UNPROVEN, reason="nobody can look at it")
        elif each.path in evidence.planned or evidence.touched(each.path):
            yield Claim(what=what, state=ClaimState.PASSED)
        else:
            yield Claim(what=what, state=ClaimState.UNPROVEN, reason=_UNTOUCHED)


def _acceptance(evidence: PlanStepEvidence) -> Iterable[Claim]:
    for check in evidence.acceptance:
        state = ClaimState.PASSED if check.passed else ClaimState.FAILED
        yield Claim(what=f"`{check.check}`", state=state, reason=_first_line(check))
    for line in evidence.unrun:
        ran = _single_spaced(line) in {_single_spaced(each) for each in evidence.deeds.passed}
        yield Claim(
            what=f"`{line}`",
            state=ClaimState.PASSED if ran else ClaimState.UNPROVEN,
            reason="" if ran else "it was not run after the last edit",
        )


def _structure(claim: Claim, evidence: PlanStepEvidence) -> Claim:
    known = evidence.deeds.edited | evidence.deeds.seen
    named = FILE.findall(f"{claim.what} {claim.reason}")
    if any(_same_file(path, name) for path in known for name in named):
        proved = True
    else:  # a dotted word without a slash may not be a file at all: `Order.total`
        proved = bool(known) and not any("/" in name for name in named)
    return _as_proved(
        claim, "none of the files that it is about was read or changed", proved=proved
    )


def _behaviour(claim: Claim, evidence: PlanStepEvidence) -> Claim:
    text = f"{claim.what} {claim.reason}"
    proved = any(each.passed for each in evidence.acceptance)
    proved = proved or any(shows_claim(command, text) for command in evidence.deeds.passed)
    return _as_proved(claim, _UNSHOWN, proved=proved)


def _as_proved(claim: Claim, reason: str, *, proved: bool) -> Claim:
    """Return the claim, as unproven if it says `passed` without evidence."""
    if claim.state is not ClaimState.PASSED or proved:
        return claim
    return Claim(what=claim.what, state=ClaimState.UNPROVEN, reason=reason)


def _matches_file(named: str, known: str) -> bool:
    """Whether a named file or pattern matches a file that was worked on."""
    named, known = named.removeprefix("./"), known.removeprefix("./")
    if fnmatchcase(known, named) or named == known:
        return True
    # A command may name a file relative to its folder, a tool by an absolute path.
    return named.endswith(f"/{known}") or (known[:1] == "/" and known.endswith(f"/{named}"))


def _same_file(path: str, name: str) -> bool:
    name = name.removeprefix("./")
    return path == name or path.endswith(f"/{name}")


def _single_spaced(command: str) -> str:
    return " ".join(command.split())


def _first_line(check: Acceptance) -> str:
    """Return why a check failed in one line: its exit code and the first line it printed."""
    if check.passed:
        return ""
    lines = [line.strip() for line in check.detail.splitlines() if line.strip()]
    return ": ".join(lines[:2])[:300] if lines else "it failed"


def _lower_confidence(stated: int, unproven: int, claims: int) -> int:
    return round(stated * (1 - unproven / (2 * claims))) if claims else stated


def _doubt_text(own: str, doubts: Sequence[str], confidence: int, least: int) -> str:
    parts = [own.strip()] if own.strip() else []
    parts += [f"unproven: {'; '.join(doubts)}"] if doubts else []
    if confidence < least:
        parts.append(f"confidence is only {confidence} %")
    return "; ".join(parts)


def _claim_words(claim: Claim) -> str:
    return f"{claim.what}: {claim.reason}" if claim.reason else f"{claim.what} {claim.state}"


def plan_step_work(entries: Iterable[Entry]) -> PlanStepWork:
    """Return the work on the current plan step; the entries are those of one attempt, in order.

    It starts afresh with another plan step, even if a revision puts that in the same place.
    """
    found, in_hand = PlanStepWork(), None
    for entry in entries:
        if isinstance(entry.record, Step):
            found.take(entry.record)
        elif isinstance(entry.record, Plan):
            step = entry.record.in_hand
            now = (entry.record.current, "" if step is None else step.title)
            if in_hand not in (None, now):
                found = PlanStepWork()
            in_hand = now
    return found
