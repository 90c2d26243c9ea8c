"""A proposed version of the guidelines tried on finished tasks, adopted, and taken back.

Only with `guidelines.auto`. Whatever is missing or fails, the version is not adopted, and stays
proposed: a person may still approve it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from midwatch_agents.learning.screening import names_a_command
from midwatch_monitor.config.learning import GuidelinesSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError, MidwatchError, StaleIncarnationError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Actor,
    AttemptTransition,
    Commit,
    Draft,
    Entry,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    KnownGuidelines,
    Lifecycle,
    Origin,
    Recall,
    Record,
    Trial,
    TrialScore,
)
from midwatch_monitor.records.verdict import verdict_of
from midwatch_supervisor.learning.retrial import done_again, state_of
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.lookup import assignment_of

log = logging.getLogger(__name__)

AUTHOR = "guidelines.auto"
_RUNS = 100
"""How many of the newest runs are searched for finished tasks."""
CUT_OFF = "it was cut off before its end"
NOTHING_TO_TRY = "there is no finished task with acceptance checks to try it on"


async def try_guidelines(
    journal: Journal,
    project: str,
    *,
    settings: Settings,
    home: Path,
    now: Callable[[], datetime],
    insist: bool = False,
) -> Trial | None:
    """Try the newest proposed version of a project, and adopt it if that shows it to be better.

    Finished tasks are done again, once with the text in force and once with the new one, each
    time as a run of its own from which nothing is learned. `None` without `guidelines.auto`, and
    where no version waits that was not tried. It takes as long as these tasks take. Cancelling it
    adopts nothing, and after `learning.tries` of that it is not begun again, unless one insists.
    Raises JournalError, and nothing else.
    """
    config = settings.learning.guidelines
    learned = Learned(journal)
    if not (config.enabled and config.auto):
        return None
    versions = await learned.guidelines(project)
    new = next((each for each in versions if each.state is GuidelinesState.PROPOSED), None)
    tries = None if insist else settings.learning.tries
    if new is None or names_a_command(new.guidelines.text):
        return None  # what names a command is for a person to read
    if await _tried(journal, new, tries=tries):
        return None
    live = next((each for each in versions if each.state is GuidelinesState.LIVE), None)
    try:
        trial = await _trial(journal, new, live, settings=settings, home=home, now=now)
    except asyncio.CancelledError:
        cut = Trial(guidelines=new.id, reason=CUT_OFF)
        await asyncio.shield(_store(journal, new, (cut,), now=now))
        raise
    await _conclude(journal, new, live, trial, now=now)
    return trial


async def take_back(
    journal: Journal,
    project: str,
    *,
    settings: Settings,
    now: Callable[[], datetime],
) -> GuidelinesMark | None:
    """Roll the version in force back if the policy adopted it and it did not do well.

    That is after `guidelines.regressions` attempts under it were rejected, by a person, by the
    checks or by how they ended. A version that a person approved is left to persons. Raises
    JournalError, and nothing else.
    """
    live = await Learned(journal).live_guidelines(project)
    if live is None or not await _adopted(journal, live):
        return None
    limit = settings.learning.guidelines.regressions
    rejected = await _rejected(journal, live)
    if rejected < limit:
        return None
    comment = f"{rejected} attempts under it were rejected"
    mark = GuidelinesMark(
        guidelines=live.id,
        act=GuidelinesAct.ROLLED_BACK,
        by=Actor.POLICY,
        author=AUTHOR,
        comment=comment,
    )
    log.warning("guidelines %d of %s are rolled back", live.guidelines.version, project)
    return mark if await _store(journal, live, (mark,), now=now) else None


def judged(scores: Sequence[TrialScore], config: GuidelinesSettings) -> tuple[bool, str]:
    """Whether scores show a version to be better, and why or why not. Pure."""
    if not scores:
        return False, NOTHING_TO_TRY
    worse = [each.task for each in scores if each.after < each.before]
    gain = sum(each.after - each.before for each in scores) / len(scores)
    if worse:
        return False, f"worse at {', '.join(worse)}"
    # What is a tenth in people's words is a little less or more in a computer's.
    if round(gain - config.min_gain, 9) < 0:
        return False, f"a mean gain of {gain:.2f}, and {config.min_gain:g} is needed"
    return True, f"a mean gain of {gain:.2f} over {len(scores)} finished tasks, none worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A finished task that a version may be tried on."""

    assignment: Assignment
    source: bool
    """Whether the version was drawn from one of its attempts."""


async def held_out(
    journal: Journal, project: str, sources: Sequence[int], *, limit: int
) -> tuple[Assignment, ...]:
    """Finished tasks of a project that can be done again by themselves, the newest first.

    Those that a version was not drawn from come before the others; of tasks of the same name the
    newest counts.
    """
    found: dict[str, HeldOut] = {}
    for run in (await journal.runs())[::-1][:_RUNS]:
        for task in await journal.tasks(run.id):
            assignment = assignment_of(task) if task.project == project else None
            if assignment is None or task.name in found or not repeatable(assignment):
                continue
            state = await state_of(journal, task)
            # Without a count of checks it was not the checks that it ended by.
            if state.lifecycle in {Lifecycle.COMPLETED, Lifecycle.FAILED} and state.total:
                attempts = {each.id for each in await journal.attempts(task.id)}
                source = not attempts.isdisjoint(sources)
                found[task.name] = HeldOut(assignment=assignment, source=source)
    ordered = sorted(found.values(), key=lambda each: each.source)
    return tuple(each.assignment for each in ordered[:limit])


def repeatable(assignment: Assignment) -> bool:
    """Whether a task can be done again by itself."""
    task, folder = assignment.task, assignment.workspace
    alone = not (task.depends_on or assignment.parent or assignment.provisional)
    return alone and (folder is None or folder.is_dir())


async def _trial(
    journal: Journal,
    new: KnownGuidelines,
    live: KnownGuidelines | None,
    *,
    settings: Settings,
    home: Path,
    now: Callable[[], datetime],
) -> Trial:
    config = settings.learning.guidelines
    try:
        tasks = await held_out(journal, new.project, new.guidelines.sources, limit=config.held_out)
        texts = (live.guidelines.text if live else "", new.guidelines.text)
        scores = await done_again(
            journal,
            tasks,
            texts,
            source=f"trial of guidelines {new.guidelines.version}",
            settings=settings,
            home=home,
            clock=now,
        )
    except JournalError:
        raise
    except MidwatchError as error:
        # No model, no key, no workspace: nothing was shown.
        return Trial(guidelines=new.id, reason=f"it could not be tried: {error}")
    adopted, reason = judged(scores, config)
    return Trial(guidelines=new.id, scores=scores, adopted=adopted, reason=reason)


async def _conclude(
    journal: Journal,
    new: KnownGuidelines,
    live: KnownGuidelines | None,
    trial: Trial,
    *,
    now: Callable[[], datetime],
) -> None:
    """Store the trial, and with it that the version is in force if it was adopted."""
    mark = GuidelinesMark(
        guidelines=new.id,
        act=GuidelinesAct.APPROVED,
        by=Actor.POLICY,
        author=AUTHOR,
        comment=trial.reason,
        over=live.id if live else 0,
    )
    records = (trial, mark) if trial.adopted else (trial,)
    version, project = new.guidelines.version, new.project
    if not await _store(journal, new, records, now=now):
        log.warning("guidelines %d of %s were decided on meanwhile", version, project)
        return
    said = "adopted" if trial.adopted else "not adopted"
    log.info("guidelines %d of %s are %s after %d tasks", version, project, said, len(trial.scores))


async def _store(
    journal: Journal,
    about: KnownGuidelines,
    records: Sequence[Record],
    *,
    now: Callable[[], datetime],
) -> bool:
    """Commit records with the task of a version; whether nobody decided otherwise meanwhile."""
    task = (await _entry(journal, about)).task
    at = now()
    drafts = tuple(Draft(record=record, at=at, task=task) for record in records)
    try:
        await journal.commit(Commit(drafts=drafts))
    except StaleIncarnationError:
        return False
    return True


async def _entry(journal: Journal, version: KnownGuidelines) -> Entry:
    entries = await journal.entries(version.id - 1, kinds=(Guidelines,), limit=1)
    return entries[0]


async def _tried(journal: Journal, version: KnownGuidelines, *, tries: int | None) -> bool:
    """Whether a version was tried to the end, or cut off so often that it is left alone."""
    reasons = [
        record.reason
        for _, record in await _after(journal, version, (Trial,))
        if isinstance(record, Trial) and record.guidelines == version.id
    ]
    cut = reasons.count(CUT_OFF)
    return cut < len(reasons) or (tries is not None and cut >= tries)


async def _adopted(journal: Journal, version: KnownGuidelines) -> bool:
    """Whether the policy, and no person, put a version in force."""
    marks = [
        record
        for _, record in await _after(journal, version, (GuidelinesMark,))
        if isinstance(record, GuidelinesMark) and record.guidelines == version.id
    ]
    approved = [each for each in marks if each.act is GuidelinesAct.APPROVED]
    return bool(approved) and approved[-1].by is Actor.POLICY


async def _rejected(journal: Journal, version: KnownGuidelines) -> int:
    """How many attempts under a version were rejected; a person's last word on one counts."""
    under: set[int] = set()
    accepted: dict[int, tuple[bool, bool]] = {}
    for attempt, record in await _after(journal, version, (Recall, AttemptTransition, Feedback)):
        if attempt is None:
            continue
        if isinstance(record, Recall):
            under |= {attempt} if record.guidelines == version.id else set()
            continue
        verdict = verdict_of(record)
        if verdict is None or verdict.origin is Origin.IMPLIED:
            continue
        spoken = verdict.origin is Origin.EXPLICIT
        if spoken or not accepted.get(attempt, (False, False))[0]:
            accepted[attempt] = (spoken, verdict.accepted)
    return sum(not accepted[each][1] for each in under & accepted.keys())


async def _after(
    journal: Journal, version: KnownGuidelines, kinds: Sequence[type[Record]]
) -> list[tuple[int | None, Record]]:
    """All records of some kinds since a version was proposed, with their attempts."""
    entries = journal.all_entries(version.id, kinds=kinds)
    return [(entry.attempt, entry.record) async for entry in entries]
