"""Completes a task when its worker says that it is done: checks, review and verdict."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from midwatch_agents.sandbox import MARK, place
from midwatch_monitor.config.tasks import AcceptanceSpec, FileCheck
from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Claim,
    ClaimState,
    Completion,
    Ending,
    Fault,
    Feedback,
    Origin,
    Outcome,
    Plan,
    Record,
    Step,
    VerdictBasis,
)
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.task import reservations
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.numbers import checks_text
from midwatch_supervisor.present.text_line import asked_words, because
from midwatch_supervisor.run.attempt_end import Ended
from midwatch_supervisor.run.attempt_start import check_words
from midwatch_supervisor.run.context import RunResources
from midwatch_supervisor.workspaces.changes import (
    changed_tests,
    changes,
    left_by_merge,
    list_files,
)
from midwatch_supervisor.workspaces.workspace import Workspace
from midwatch_supervisor.workspaces.workspace_files import open_file

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.workspaces import Workspace as Shell

log = logging.getLogger(__name__)

_MAX_DETAIL = 4_000
_MAX_READ = 50_000
"""Characters of a file that a reviewer is shown."""


async def check_all(
    checks: Sequence[AcceptanceSpec], shell: "Shell", *, seconds: float
) -> tuple[Acceptance, ...]:
    """Run every check, even after one has failed, each for at most `seconds`."""
    return tuple([await _run_check(check, shell, seconds) for check in checks])


async def _run_check(check: AcceptanceSpec, shell: "Shell", seconds: float) -> Acceptance:
    if isinstance(check, FileCheck):
        return await _check_file(check.file, shell)
    return await _check_command(check, shell, seconds)


async def _check_file(path: str, shell: "Shell") -> Acceptance:
    from pydantic_ai.workspaces import WorkspaceError

    name = f"file {path}"
    try:
        # Only the size is read: a worker can make a file of terabytes.
        entry = await shell.stat(path)
    except FileNotFoundError:
        return Acceptance(check=name, passed=False, detail="it is missing")
    except (OSError, WorkspaceError) as error:
        return Acceptance(check=name, passed=False, detail=str(error))
    if entry.is_dir:
        return Acceptance(check=name, passed=False, detail="it is a folder")
    return Acceptance(
        check=name, passed=bool(entry.size), detail="" if entry.size else "it is empty"
    )


async def _check_command(command: str, shell: "Shell", seconds: float) -> Acceptance:
    from pydantic_ai.workspaces import WorkspaceError, WorkspaceTimeoutError

    try:
        result = await shell.run(command, shell=True, timeout=seconds)
    except WorkspaceTimeoutError:
        return Acceptance(check=command, passed=False, detail=f"not done after {seconds:g} s")
    except WorkspaceError as error:
        return Acceptance(check=command, passed=False, detail=str(error))
    said = (result.stdout + result.stderr).strip()[-_MAX_DETAIL:]
    detail = f"exit code {result.exit_code}\n{said}" if result.exit_code else ""
    return Acceptance(check=command, passed=result.exit_code == 0, detail=detail)


def summary(results: Sequence[Acceptance]) -> str:
    """Return the failing checks in one line, or an empty string if there are none."""
    return "; ".join(
        f"{result.check} ({result.detail.splitlines()[0] if result.detail else 'failed'})"
        for result in results
        if not result.passed
    )


_MAX_FILES = 50
"""Changed files that a completion lists by name."""
_MAX_TESTS = 3
"""Changed tests that a reservation names."""
_UNPROVEN = 10
"""Percentage points of confidence that each unproven claim costs."""
NOT_REVIEWED = "not reviewed"
PROVISIONAL = "checked only together with the whole task"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedWork:
    """Finished work, as its worker left it."""

    plan: Plan
    changed: Sequence[str] = ()
    """Files that differ from the start of the work."""
    stated: int | None = None
    """Confidence that the worker stated last, in percent."""
    unheard: Step | None = None
    """The report in which it last asked for help, if no answer helped and no person heard of it."""


def was_help_answered(asked: Step, delivered: Iterable[InterventionState]) -> bool:
    """Whether a person heard that a worker asked for help, or the supervisor's answer helped."""
    return any(
        _is_answer(each)
        and not each.action.of_alerts
        and (each.delivered_step or 0) >= asked.number
        for each in delivered
    )


def _is_answer(each: InterventionState) -> bool:
    asked = each.action is Action.ASK_OPERATOR or each.outcome is Outcome.RECOVERED
    return asked or each.intervention.by is Actor.OPERATOR or each.approved_by_person


async def check_in(
    resources: RunResources, workspace: Workspace, checks: Sequence[AcceptanceSpec]
) -> tuple[Acceptance, ...]:
    """Run every check in a workspace, in the sandbox that its worker has."""
    run = resources.settings.run
    # The mark is the folder, because every journal on the machine begins with the same ids.
    env = {MARK: str(workspace.folder)}
    paths = resources.sandbox_paths(workspace)
    shell = place(paths, resources.sandbox_kind, network=run.network, env=env)
    return await check_all(checks, shell, seconds=run.check_seconds)


async def finish(
    resources: RunResources,
    assignment: Assignment,
    workspace: Workspace,
    work: FinishedWork,
    reviewer: "Model | None",
) -> Ended:
    """Check finished work, have it reviewed if wanted, and return how the attempt ends."""
    if assignment.provisional:
        detail = "" if work.changed else "nothing was changed"
        passed = bool(work.changed)
        checks = (Acceptance(check="something was changed", passed=passed, detail=detail),)
    else:
        checks = await check_in(resources, workspace, assignment.task.acceptance)
    if failing := summary(checks):
        reason = f"acceptance failed: {failing}"
        done = completion(assignment, work, checks, accepted=False, doubts=(reason,))
        return Ended(ending=Ending.UNACCEPTED, reason=reason, checks=checks, findings=(done,))
    done = completion(assignment, work, checks, accepted=True)
    noted = await _noted_in_files(workspace, assignment.task.files_wanted, work.changed)
    done = replace(done, flag="; ".join(filter(None, [*noted, done.flag])))
    if not assignment.task.review:
        return _end_completed(checks, done)
    return await _review_work(resources, assignment, workspace, done, checks, reviewer)


async def _noted_in_files(
    workspace: Workspace, wanted: Sequence[str], changed: Iterable[str]
) -> list[str]:
    """Return the reservations about the files of work whose checks passed."""
    noted: list[str] = []
    if left := await left_by_merge(workspace, wanted):
        names = ", ".join(left)
        noted.append(f"a merge leaves out {names}: git ignores it; copy it, or change .gitignore")
    if tests := await changed_tests(workspace, set(changed).difference(wanted)):
        more = f" and {len(tests) - _MAX_TESTS} more" if len(tests) > _MAX_TESTS else ""
        noted.append(f"it changed existing tests: {', '.join(tests[:_MAX_TESTS])}{more}")
    return noted


async def check_unfinished(
    resources: RunResources, assignment: Assignment, workspace: Workspace, ended: Ended
) -> Ended:
    """Return the end of an attempt whose budget is spent, with the results of its checks.

    This is not a completion even if all of them pass: its worker never said that it was done.
    """
    wanted = () if assignment.provisional else assignment.task.acceptance
    try:
        checks = await check_in(resources, workspace, wanted)
    except MidwatchError as error:
        log.warning("the acceptance checks were not run: %s", error)
        return ended
    if not checks:
        return ended
    passed = sum(check.passed for check in checks)
    reason = f"{ended.reason}; {checks_text(passed, len(checks))}"
    return replace(ended, reason=reason, checks=checks)


def _end_completed(checks: tuple[Acceptance, ...], done: Completion, *more: Record) -> Ended:
    reason = "every acceptance check passed"
    if reserved := reservations(done):
        reason = f"{reason}, with reservations: {'; '.join(reserved)}"
    return Ended(ending=Ending.DONE, reason=reason, checks=checks, findings=(done, *more))


def completion(
    assignment: Assignment,
    work: FinishedWork,
    checks: Sequence[Acceptance],
    *,
    accepted: bool,
    doubts: tuple[str, ...] = (),
) -> Completion:
    """Summarize the task as a whole. Pure.

    Each acceptance check is a claim about its behaviour, each changed file one about its shape;
    each open plan step is an unproven claim. The confidence is what the worker stated last, or else
    the share of the checks that passed, less ten points for each open plan step.
    """
    # A task without a plan is its own only plan step, which the checks prove.
    unproven = [
        Claim(
            what=f"plan step: {title}",
            state=ClaimState.UNPROVEN,
            reason="it was never completed",
        )
        for title in (work.plan.open_titles if len(work.plan.steps) > 1 else ())
    ]
    passed = round(100 * sum(check.passed for check in checks) / max(len(checks), 1))
    sure = passed if work.stated is None else work.stated
    flags = [PROVISIONAL] if assignment.provisional else []
    if unproven:
        flags.append(f"still open: {', '.join(work.plan.open_titles)}")
    if work.unheard is not None and work.unheard.checkpoint is not None:
        said = asked_words(work.unheard.checkpoint)
        flags.append(f"no person heard that it asked for help{because(said)}")
    return Completion(
        plan_step=0,
        goal=assignment.task.goal,
        claims=(*map(_proven_claim, checks), *_file_claims(work.changed), *unproven),
        confidence=max(0, sure - _UNPROVEN * len(unproven)),
        accepted=accepted,
        flag="; ".join(flags),
        doubts=(*doubts, *work.plan.flags),
    )


def _proven_claim(check: Acceptance) -> Claim:
    state = ClaimState.PASSED if check.passed else ClaimState.FAILED
    reason = check.detail.splitlines()[0] if check.detail else "Midwatch ran it"
    return Claim(what=check.check, state=state, reason=reason)


def _file_claims(changed: Sequence[str]) -> tuple[Claim, ...]:
    claims = [
        Claim(what=f"file {name}", state=ClaimState.PASSED, reason="it was changed")
        for name in changed[:_MAX_FILES]
    ]
    if len(changed) > _MAX_FILES:
        what = f"{len(changed) - _MAX_FILES} more files"
        claims.append(Claim(what=what, state=ClaimState.PASSED, reason="they were changed"))
    return tuple(claims)


async def _review_work(
    resources: RunResources,
    assignment: Assignment,
    workspace: Workspace,
    done: Completion,
    checks: tuple[Acceptance, ...],
    reviewer: "Model | None",
) -> Ended:
    """Have work reviewed that passed its checks. If the reviewer fails, the checks alone count."""
    from midwatch_agents.consultation import spent_before
    from midwatch_agents.reviewer import review

    if reviewer is None:
        return _without_review(done, checks, "there is no model for the reviewer")
    masked = resources.journal.masker.text
    try:
        reviewed = await review(
            reviewer,
            goal=assignment.task.goal,
            acceptance=check_words(assignment.task),
            diff=masked(await changes(workspace) or ""),
            claims=done.claims,
            read=lambda path: asyncio.to_thread(_read_text, workspace.folder, path, masked),
            listing=await list_files(workspace),
            settings=resources.settings,
        )
    except MidwatchError as error:
        return _without_review(done, checks, str(error), *spent_before(error))
    verdict = reviewed.answer
    told = "; ".join([verdict.comment.strip(), *(f"missing: {each}" for each in verdict.missing)])
    feedback = Feedback(
        accepted=verdict.approved,
        comment=told,
        origin=Origin.AUTOMATIC,
        author=reviewer.model_name,
        sign=VerdictBasis.REVIEWED,
    )
    if verdict.approved:
        return _end_completed(checks, done, feedback, reviewed.spending)
    reason = f"the reviewer refused: {told}"
    refused = replace(done, accepted=False, doubts=(*done.doubts, reason))
    return Ended(
        ending=Ending.UNACCEPTED,
        reason=reason,
        checks=checks,
        findings=(refused, feedback, reviewed.spending),
    )


def _without_review(
    done: Completion, checks: tuple[Acceptance, ...], error: str, *spent: Record
) -> Ended:
    log.warning("accepted without a review: %s", error)
    flag = "; ".join(filter(None, [done.flag, NOT_REVIEWED]))
    fault = Fault(part="reviewer", error=error)
    return _end_completed(checks, replace(done, flag=flag), *spent, fault)


def _read_text(folder: Path, path: str, masked: Callable[[str], str]) -> str:
    """Return the text of a file below a folder, or why it cannot be read."""
    try:
        with open_file(folder, path) as opened:
            content = opened.read(_MAX_READ * 4)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return masked(content.decode(errors="replace"))[:_MAX_READ]
