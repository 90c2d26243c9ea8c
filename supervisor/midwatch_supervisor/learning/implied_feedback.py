"""Implied verdicts, from what a person did with merged work.

A successful attempt in git is followed from its end: its merge is awaited for `watched_for`, and
then its work is watched for the same time again. Work that is not merged, or was merged too
recently to judge, gets no verdict: silence is not one.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.errors import StaleIncarnationError, WorkspaceError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Entry,
    Feedback,
    Origin,
    VerdictBasis,
)
from midwatch_supervisor.learning.merge_outcome import (
    BRANCH_LOG,
    LOG,
    RAW,
    BranchHistory,
    BranchWork,
    MergeJudgement,
    agents,
    branch,
    branch_history,
    changes,
    judge,
    merge_point,
    revisions,
    span,
)
from midwatch_supervisor.present.assignment import BRANCHES, branch_of
from midwatch_supervisor.present.lookup import NamedAttempt, assignment_of, named_attempts
from midwatch_supervisor.present.numbers import list_names
from midwatch_supervisor.workspaces.changes import begin_commit
from midwatch_supervisor.workspaces.workspace import TRACES
from midwatch_tools.data_blocks import cut
from midwatch_tools.git import ask_git, is_repository

log = logging.getLogger(__name__)

_AUTHOR = "midwatch"
_SLACK = timedelta(days=2)
"""How far commit clocks and the journal's clock may differ, and how long an attempt may last."""
_BATCH = 500
"""Number of attempts read at a time."""
_NAMED = 5
"""Number of files and commits that a comment names."""
MAX_DIFF = 4_000
"""Characters kept of a person's diff: what a prompt can hold."""
MAX_COMMITS = 5_000
"""Number of a branch's newest commits that are read; work merged before them gets no verdict."""
_SECONDS = 60.0
"""Time limit for one git command; 5,000 commits of 60 files take one or two seconds."""
_MAX_SHOWN = 20
"""Number of a person's commits whose diff is read."""
_BRANCHES = f"refs/heads/{BRANCHES}"
_HEAD = "HEAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedVerdict:
    """An implied verdict that is not in the journal yet."""

    place: NamedAttempt
    feedback: Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    place: NamedAttempt
    at: datetime
    done: bool
    stored: VerdictBasis | None
    """The last implied verdict on the attempt."""

    @property
    def open(self) -> bool:
        """Whether an implied verdict may still be found."""
        return self.done and self.stored is not VerdictBasis.REVERTED

    @property
    def branch(self) -> str:
        return branch_of(Path(self.place.attempt.workspace))


async def scan(journal: Journal, *, settings: FeedbackSettings, now: datetime) -> list[Entry]:
    """Find implied verdicts and store them, unless that is disabled.

    An unreadable repository is skipped with a warning. Raises JournalError.
    """
    if not settings.implied:
        return []
    stored: list[Entry] = []
    for each in await find_implied(journal, settings=settings, now=now):
        task, attempt = each.place.task.id, each.place.attempt.id
        draft = Draft(record=each.feedback, at=now, task=task, attempt=attempt)
        with suppress(StaleIncarnationError):  # another process has stored it meanwhile
            stored += await journal.commit(Commit(drafts=(draft,)))
    return stored


async def find_implied(
    journal: Journal, *, settings: FeedbackSettings, now: datetime
) -> list[ImpliedVerdict]:
    """Return the implied verdicts to store, by repository and attempt."""
    watched = span(settings.watched_for.seconds)
    if not watched:
        return []
    ended = await _ended_attempts(journal, now - 2 * watched - _SLACK)
    homes = await asyncio.to_thread(_by_home, ended)
    found: list[ImpliedVerdict] = []
    for home, ended in homes.items():
        if not any(each.open for each in ended):
            continue
        try:
            found += await _judge_repository(home, ended, settings=settings, now=now)
        except (WorkspaceError, OSError) as error:
            log.warning("cannot find implied verdicts in %s: %s", home, error)
    return found


# -- the journal ---------------------------------------------------------------------------


async def _ended_attempts(journal: Journal, since: datetime) -> list[_Ended]:
    """Return the attempts that ended since a moment, oldest first."""
    endings: dict[int, tuple[datetime, Ending]] = {}
    signs: dict[int, VerdictBasis] = {}
    after = await _last_before(journal, since)
    async for entry in journal.all_entries(after, kinds=(AttemptTransition, Feedback)):
        match entry.record:
            case AttemptTransition(ending=Ending() as ending) if entry.attempt is not None:
                endings[entry.attempt] = (entry.at, ending)
            case Feedback(origin=Origin.IMPLIED, sign=sign) if entry.attempt is not None:
                signs[entry.attempt] = sign
            case _:
                pass
    found, ids = list[_Ended](), sorted(endings)
    for start in range(0, len(ids), _BATCH):
        places = await named_attempts(journal, ids[start : start + _BATCH])
        for id, place in places.items():
            at, ending = endings[id]
            done = ending is Ending.DONE
            found.append(_Ended(place=place, at=at, done=done, stored=signs.get(id)))
    return found


async def _last_before(journal: Journal, since: datetime) -> int:
    """Return an id up to which every entry is older than a moment; ids rise with time."""
    low, high = 0, await journal.last_id()
    while low < high:
        middle = (low + high) // 2
        page = await journal.entries(middle, limit=1)
        if page and page[0].at < since:
            low = page[0].id
        else:
            high = middle
    return low


def _by_home(ended: Iterable[_Ended]) -> dict[Path, list[_Ended]]:
    """Group attempts by the worktree their work is merged into; leave out those outside git."""
    homes: dict[Path, list[_Ended]] = {}
    for each in ended:
        assignment = assignment_of(each.place.task)
        home = assignment.workspace if assignment else None
        if home is not None and (is_repository(home) or not home.exists()):
            homes.setdefault(home, []).append(each)
    return homes


# -- a repository --------------------------------------------------------------------------


async def _judge_repository(
    home: Path, ended: Sequence[_Ended], *, settings: FeedbackSettings, now: datetime
) -> list[ImpliedVerdict]:
    """Return the verdicts on work in one repository.

    Raises WorkspaceError or TimeoutError.
    """
    if not await asyncio.to_thread(home.is_dir):
        raise WorkspaceError("the folder is gone")
    works, takers = await _branch_works(home, ended)
    began = min((each.place.attempt.started_at for each in ended), default=now)
    found: list[ImpliedVerdict] = []
    for into, open_ones in takers.items():
        base = await base_of(home, into)
        history = await read_history(home, base, began - _SLACK)
        judged = await asyncio.to_thread(
            _judgements, open_ones, works, history, settings=settings, now=now
        )
        for each, judgement in judged:
            diff = await diff_of(home, judgement)
            into = base.removeprefix("refs/heads/")
            feedback = verdict(judgement, into=into, diff=diff, settings=settings)
            found.append(ImpliedVerdict(place=each.place, feedback=feedback))
    return found


async def _branch_works(
    home: Path, ended: Iterable[_Ended]
) -> tuple[dict[int, BranchWork], dict[str, list[_Ended]]]:
    """Return the work of attempts by id, and the attempts still to be judged by target branch."""
    known = await refs(home)
    works: dict[int, BranchWork] = {}
    takers: dict[str, list[_Ended]] = {}
    for each in ended:
        if (ref := known.get(each.branch)) is None:
            continue
        work = await work_of(home, each.place.attempt, ref, ended=each.at)
        if work is not None:
            works[each.place.attempt.id] = work
            if each.open:
                takers.setdefault(ref.into, []).append(each)
    return works, takers


def _judgements(
    ended: Iterable[_Ended],
    works: Mapping[int, BranchWork],
    history: BranchHistory,
    *,
    settings: FeedbackSettings,
    now: datetime,
) -> list[tuple[_Ended, MergeJudgement]]:
    merges = {
        id: merge for id, work in works.items() if (merge := merge_point(work, history)) is not None
    }
    judged = partial(judge, agents=agents(works.values(), merges, history), now=now)
    found: list[tuple[_Ended, MergeJudgement]] = []
    for each in ended:
        id, stored = each.place.attempt.id, each.stored
        if id in merges and (
            judgement := judged(works[id], merges[id], history, stored=stored, settings=settings)
        ):
            found.append((each, judgement))
    return found


def verdict(
    judgement: MergeJudgement, *, into: str, diff: str, settings: FeedbackSettings
) -> Feedback:
    """Return a judgement as feedback, with a comment that names files and commits. Pure."""
    files = list_names(judgement.files, _NAMED)
    commits = list_names([each.id[:12] for each in judgement.revisions], _NAMED)
    authors = ", ".join(dict.fromkeys(each.author for each in judgement.revisions))
    said = "; ".join(dict.fromkeys(each.said for each in judgement.revisions[:_NAMED] if each.said))
    if judgement.sign is VerdictBasis.KEPT:
        span = settings.kept_after.text
        comment = f"unchanged on {into} for at least {span} since it was merged: {files}"
    else:
        what = "reverted" if judgement.sign is VerdictBasis.REVERTED else "changed"
        comment = f"{what} on {into} after it was merged, in {commits}: {files}"
        comment = f"{said} ({comment})" if said else comment
    return Feedback(
        accepted=judgement.sign is VerdictBasis.KEPT,
        comment=comment,
        origin=Origin.IMPLIED,
        author=authors or _AUTHOR,
        sign=judgement.sign,
        diff=diff,
    )


# -- git -----------------------------------------------------------------------------------
# Read-only. A repository costs one command for its branches, one for the history of the target
# branch, and three short ones for each attempt. Long output is parsed in a thread, because workers,
# heartbeats and the console share the event loop. Each function raises TimeoutError if git does
# not answer in time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """An attempt's branch, or the trace of its merge, in a repository."""

    tip: str
    begun: str = ""
    """The commit it began with; empty if only the branch's own reflog has it."""
    into: str = ""
    """The branch it was merged into by `midwatch merge`."""
    merged_at: datetime | None = None


async def refs(home: Path) -> Mapping[str, Ref]:
    """Return the attempts' branches that a repository has, or had merged, by name.

    Raises WorkspaceError if it is broken or its history is incomplete.
    """
    if (await _git(home, "rev-parse", "--is-shallow-repository")).strip() == "true":
        raise WorkspaceError("it is a shallow clone, so its history is incomplete")
    told = await _git(
        *(home, "for-each-ref", _BRANCHES, TRACES),
        "--format=%(refname)%00%(objectname)%00%(parent)%00%(committerdate:unix)%00%(subject)",
    )
    found: dict[str, Ref] = {}
    for line in told.splitlines():  # sorted by name: the traces come last, and they have more
        name, id, parents, seconds, subject = line.split("\0", 4)
        if name.startswith(_BRANCHES):
            found[name.removeprefix("refs/heads/")] = Ref(tip=id)
        elif len(ends := parents.split()) == 2:
            branch = BRANCHES + name.removeprefix(TRACES)
            found[branch] = Ref(
                begun=ends[0],
                tip=ends[1],
                into=subject.removeprefix(f"{branch} into "),
                merged_at=datetime.fromtimestamp(int(seconds), UTC),
            )
    return found


async def base_of(home: Path, into: str = "") -> str:
    """Return the full name of the branch that takes finished work: `into`, else the checked-out
    one.
    """
    try:
        if into:
            await _git(home, "rev-parse", "--verify", "--quiet", f"refs/heads/{into}")
            return f"refs/heads/{into}"
        return (await _git(home, "symbolic-ref", "--quiet", _HEAD)).strip()
    except WorkspaceError:  # it is gone, or no branch is checked out
        return await base_of(home) if into else _HEAD


async def read_history(home: Path, base: str, since: datetime) -> BranchHistory:
    """Return the history of a branch since a moment, at most its newest `MAX_COMMITS` commits.

    Raises WorkspaceError.
    """
    head = (await _git(home, "rev-parse", base)).strip()
    log = await _git(
        *(home, *LOG, f"--since={since.isoformat()}", f"--max-count={MAX_COMMITS}", head, "--")
    )
    arrivals = await _branch_moves(home, base)
    try:
        return await asyncio.to_thread(lambda: branch_history(revisions(log), head, arrivals))
    except ValueError as error:
        raise WorkspaceError(f"git log cannot be read: {error}") from error


async def _branch_moves(home: Path, base: str) -> Iterable[tuple[str, datetime]]:
    """Return the commits that the branch moved to, and when, oldest first; none without reflog."""
    try:
        log = await _git(
            home, "log", "--walk-reflogs", "--date=unix", "--format=%H %gd", base, "--"
        )
    except WorkspaceError:
        return ()
    entries = (line.partition(" ") for line in reversed(log.splitlines()))
    # A selector looks like `refs/heads/main@{1763755200}`.
    seconds = ((id, at.rpartition("@{")[2].rstrip("}")) for id, _, at in entries)
    return [(id, datetime.fromtimestamp(int(at), UTC)) for id, at in seconds]


async def work_of(home: Path, attempt: Attempt, ref: Ref, *, ended: datetime) -> BranchWork | None:
    """Return the work of an attempt on its branch until it ended.

    `None` if there is none or nothing is known. Raises WorkspaceError.
    """
    begun = ref.begun or await _branch_start(home, branch_of(Path(attempt.workspace)))
    if not begun or begun == ref.tip:
        return None
    log_text = await _git(home, *BRANCH_LOG, f"{begun}..{ref.tip}", "--")
    made = branch(log_text, ref.tip, ended)
    if made.tip == begun:
        return None
    diff = await _git(home, *RAW, begun, made.tip, "--")
    found = await asyncio.to_thread(lambda: list(changes(diff)))
    return BranchWork(
        attempt=attempt.id,
        tip=made.tip,
        begun=begun,
        own=made.own,
        fixes=made.fixes,
        before={each.path: each.before for each in found},
        after={each.path: each.after for each in found},
        merged_at=ref.merged_at,
    )


async def _branch_start(home: Path, branch: str) -> str:
    try:
        known = await _git(
            home, "log", "--walk-reflogs", "--format=%H %gs", f"refs/heads/{branch}", "--"
        )
    except WorkspaceError:
        return ""
    return begin_commit(known.splitlines())


async def diff_of(home: Path, judgement: MergeJudgement) -> str:
    """Return a person's changes to an attempt's files, cut to what a prompt can hold."""
    ids: Sequence[str] = [each.id for each in judgement.revisions[:_MAX_SHOWN]]
    if not ids:
        return ""
    paths = [f":(literal){name}" for name in judgement.names]
    shown = await _git(
        *(home, "show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv", "-M"),
        *("--diff-merges=first-parent", *ids, "--", *paths),
    )
    return await asyncio.to_thread(cut, shown, MAX_DIFF)


async def _git(home: Path, *command: str) -> str:
    return await ask_git(home, *command, seconds=_SECONDS)
