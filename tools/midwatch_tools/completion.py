"""Whether a plan step is done, by what was observed and not by what is said. Pure.

**Files** that are named, and those that the plan step expects, must be there and not be empty.

**Acceptance commands** of the plan step must pass. Where they could not be run, the last run of the
very same command counts, if it came after the last edit.

**Structure**: a claim stands if it is about a file that the worker changed or read within this plan
step, or that the plan step expects and left behind. A claim that names files is about these, any
other about all of them.

**Behaviour**: a claim stands if an acceptance command passed, or if a command succeeded in this
plan step after its last edit that means it: the very command that stands in backquotes in the claim
or its reason; else one that runs tests or a program of the work, or that shares a word with the
claim. What only prints proves nothing.

**Confidence**: what the worker states, less its half where every claim is unproven, and in
proportion where some are: two of four unproven make 80 into 60.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from midwatch_monitor.config.protocol import CompletionSettings, Unproven
from midwatch_monitor.rules.programs import runs, tests
from midwatch_monitor.words import Acceptance, Claim, ClaimState, Completion

_PRINTS = re.compile(
    r"\s*(?:cd \S+\s*(?:&&|;)\s*)*"
    r"(?:echo|printf|true|:|cat|head|tail|less|ls|pwd|sleep|find|grep)\b"
)
_QUOTED = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w./-]*\w\.\w{1,8}\b")
"""What may be the name of a file."""
_WORD = re.compile(r"[a-z]{4,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a worker claims of the plan step that it calls finished."""

    goal: str
    files: tuple[str, ...] = ()
    structural: tuple[Claim, ...] = ()
    functional: tuple[Claim, ...] = ()
    confidence: int
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Whether a file, or any of a pattern, is there; `fault` says why it is not."""

    path: str
    fault: str = ""
    known: bool = True
    """Off where nobody can look: then nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of the work on a plan step."""

    files: tuple[Presence, ...] = ()
    """Those that are named and those that the plan step expects."""
    edited: frozenset[str] = frozenset()
    """What the worker changed within the plan step."""
    seen: frozenset[str] = frozenset()
    """What it read within the plan step."""
    passed: tuple[str, ...] = ()
    """Commands, or tools that test, which succeeded in the plan step after its last edit."""
    acceptance: tuple[Acceptance, ...] = ()
    """The plan step's own checks that were run."""
    unrun: tuple[str, ...] = ()
    """Those that were not."""

    @property
    def none(self) -> bool:
        """Whether nothing at all speaks for the work."""
        there = any(each.known and not each.fault for each in self.files)
        proved = any(each.passed for each in self.acceptance)
        return not (there or proved or self.edited or self.passed)


def judge_completion(
    plan_step: int, said: Said, evidence: Evidence, settings: CompletionSettings
) -> Completion:
    """What is made of a claim: accepted, accepted with a flag, or refused with the doubts."""
    claims = (
        *_files(evidence),
        *_acceptance(evidence),
        *(_structure(claim, evidence) for claim in said.structural),
        *(_behaviour(claim, evidence) for claim in said.functional),
    )
    unproven = [claim for claim in claims if claim.state is ClaimState.UNPROVEN]
    confidence = _lowered(said.confidence, len(unproven), len(claims))
    refusals = [_told(claim) for claim in claims if claim.state is ClaimState.FAILED]
    if not refusals and evidence.none:
        refusals.append(
            "nothing was observed that proves it: no file, no edit and no command that passed "
            "since this plan step began"
        )
    doubts = [_told(claim) for claim in unproven]
    if not refusals and settings.unproven is Unproven.REFUSE:
        refusals += doubts
    return Completion(
        plan_step=plan_step,
        goal=said.goal,
        claims=claims,
        confidence=confidence,
        accepted=not refusals,
        flag="" if refusals else _flag(said.flag, doubts, confidence, settings.min_confidence),
        doubts=tuple(refusals or doubts),
    )


def _files(evidence: Evidence) -> Iterable[Claim]:
    for each in evidence.files:
        what = f"file {each.path}"
        if each.fault:
            yield Claim(what=what, state=ClaimState.FAILED, reason=each.fault)
        elif each.known:
            yield Claim(what=what, state=ClaimState.PASSED)
        else:
            yield Claim(what=what, state=ClaimState.UNPROVEN, reason="nobody can look at it")


def _acceptance(evidence: Evidence) -> Iterable[Claim]:
    for check in evidence.acceptance:
        state = ClaimState.PASSED if check.passed else ClaimState.FAILED
        yield Claim(what=f"`{check.check}`", state=state, reason=_first_line(check))
    for command in evidence.unrun:
        ran = _plain(command) in {_plain(each) for each in evidence.passed}
        yield Claim(
            what=f"`{command}`",
            state=ClaimState.PASSED if ran else ClaimState.UNPROVEN,
            reason="" if ran else "it was not run after the last edit",
        )


def _structure(claim: Claim, evidence: Evidence) -> Claim:
    known = evidence.edited | evidence.seen
    known |= {each.path for each in evidence.files if each.known and not each.fault}
    named = FILE.findall(f"{claim.what} {claim.reason}")
    if any(_same(path, name) for path in known for name in named):
        proved = True
    else:  # a dotted word without a slash may be no file at all: `Order.total`
        proved = bool(known) and not any("/" in name for name in named)
    return _as_proved(
        claim, "none of the files that it is about was read or changed", proved=proved
    )


def _behaviour(claim: Claim, evidence: Evidence) -> Claim:
    text = f"{claim.what} {claim.reason}"
    proved = any(each.passed for each in evidence.acceptance)
    proved = proved or any(_means(command, text) for command in evidence.passed)
    return _as_proved(claim, "no command that shows it passed after the last edit", proved=proved)


def _as_proved(claim: Claim, reason: str, *, proved: bool) -> Claim:
    """A claim that says `passed` keeps that only with evidence; others stay as they are."""
    if claim.state is not ClaimState.PASSED or proved:
        return claim
    return Claim(what=claim.what, state=ClaimState.UNPROVEN, reason=reason)


def _means(command: str, claim: str) -> bool:
    """Whether a command that passed shows what a claim says."""
    if _PRINTS.match(command) and not re.search(r"[&;|]", command):
        return False
    quoted = [_plain(each) for each in _QUOTED.findall(claim) if _checks(each)]
    if quoted:
        return any(each in _plain(command) for each in quoted)
    if _checks(command):
        return True
    return bool(set(_WORD.findall(command.lower())) & set(_WORD.findall(claim.lower())))


def _checks(command: str) -> bool:
    """Whether a command, or a tool by its name, runs tests or a program of the work."""
    return tests("", command) or tests(command, "") or runs(f"{command} ")


def _same(path: str, name: str) -> bool:
    name = name.removeprefix("./")
    return path == name or path.endswith(f"/{name}")


def _plain(command: str) -> str:
    return " ".join(command.split())


def _first_line(check: Acceptance) -> str:
    """Why a check failed, in one line: what it printed first, with its exit code."""
    if check.passed:
        return ""
    lines = [line.strip() for line in check.detail.splitlines() if line.strip()]
    return ": ".join(lines[:2])[:300] if lines else "it failed"


def _lowered(stated: int, unproven: int, claims: int) -> int:
    return round(stated * (1 - unproven / (2 * claims))) if claims else stated


def _flag(own: str, doubts: Sequence[str], confidence: int, least: int) -> str:
    parts = [own.strip()] if own.strip() else []
    parts += [f"unproven: {'; '.join(doubts)}"] if doubts else []
    if confidence < least:
        parts.append(f"confidence is only {confidence} %")
    return "; ".join(parts)


def _told(claim: Claim) -> str:
    return f"{claim.what}: {claim.reason}" if claim.reason else f"{claim.what} {claim.state}"
