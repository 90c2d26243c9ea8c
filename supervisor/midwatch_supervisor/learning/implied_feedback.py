"""Verdicts that nobody spoke: what a person did with work that was merged.

An attempt that ended well, in git, is looked at from its end on: its merge is waited for as long as
`watched_for`, and what becomes of it is looked at for so long again. What is not merged, or merged
too lately to say, gets no verdict: silence is none.
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
    Sign,
    Task,
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
from midwatch_supervisor.present.lookup import assignment_of
from midwatch_supervisor.present.numbers import list_names
from midwatch_supervisor.workspaces.changes import begin
from midwatch_supervisor.workspaces.workspace import TRACES
from midwatch_tools.data_blocks import cut
from midwatch_tools.git import ask_git, is_repository

log = logging.getLogger(__name__)

_AUTHOR = "midwatch"
_SLACK = timedelta(days=2)
"""How far the clocks of commits and of the journal may differ, and an attempt may last."""
_BATCH = 500
"""Attempts that are read at a time."""
_NAMED = 5
"""Files and commits that a comment names."""
MAX_DIFF = 4_000
"""Characters of a person's diff that are kept: what a prompt can hold."""
MAX_COMMITS = 5_000
"""Commits of a branch that are read, the newest: of work that was merged before them nothing is
implied."""
_SECONDS = 60.0
"""How long git may take for one answer; 5,000 commits of 60 files take it one or two."""
_MAX_SHOWN = 20
"""A person's commits whose diff is read."""
_BRANCHES = f"refs/heads/{BRANCHES}"
_HEAD = "HEAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """An implied verdict that is not in the journal yet."""

    task: Task
    attempt: Attempt
    feedback: Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    task: Task
    attempt: Attempt
    at: datetime
    done: bool
    stored: Sign | None
    """The last implied verdict on it."""

    @property
    def open(self) -> bool:
        """Whether an implied verdict may still be found."""
        return self.done and self.stored is not Sign.REVERTED

    @property
    def branch(self) -> str:
        return branch_of(Path(self.attempt.workspace))


async def scan(journal: Journal, *, settings: FeedbackSettings, now: datetime) -> list[Entry]:
    """Look for implied verdicts and store them; nothing where they are switched off.

    A repository that cannot be read is passed over with a warning. Raises JournalError.
    """
    if not settings.implied:
        return []
    stored: list[Entry] = []
    for each in await look(journal, settings=settings, now=now):
        draft = Draft(record=each.feedback, at=now, task=each.task.id, attempt=each.attempt.id)
        with suppress(StaleIncarnationError):  # another process has stored it meanwhile
            stored += await journal.commit(Commit(drafts=(draft,)))
    return stored


async def look(journal: Journal, *, settings: FeedbackSettings, now: datetime) -> list[Implied]:
    """The implied verdicts that are to be stored, by repository and attempt."""
    watched = span(settings.watched_for.seconds)
    if not watched:
        return []
    ended = await _ended_attempts(journal, now - 2 * watched - _SLACK)
    homes = await asyncio.to_thread(_by_home, ended)
    found: list[Implied] = []
    for home, ended in homes.items():
        if not any(each.open for each in ended):
            continue
        try:
            found += await _judge(home, ended, settings=settings, now=now)
        except (WorkspaceError, OSError) as error:
            log.warning("no implied verdicts on what was done in %s: %s", home, error)
    return found


# -- the journal ---------------------------------------------------------------------------


async def _ended_attempts(journal: Journal, since: datetime) -> list[_Ended]:
    """The attempts that ended since a moment, oldest first."""
    endings: dict[int, tuple[datetime, Ending]] = {}
    signs: dict[int, Sign] = {}
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
        attempts = await journal.attempts_with(ids[start : start + _BATCH])
        tasks = {t.id: t for t in await journal.tasks_with({each.task for each in attempts})}
        found += [
            _Ended(
                task=tasks[each.task],
                attempt=each,
                at=endings[each.id][0],
                done=endings[each.id][1] is Ending.DONE,
                stored=signs.get(each.id),
            )
            for each in attempts
            if each.task in tasks  # else it was erased just now
        ]
    return found


async def _last_before(journal: Journal, since: datetime) -> int:
    """An id below which nothing was written since a moment; ids rise with the time."""
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
    """Attempts by the worktree whose owner takes their work; not where there was never git."""
    homes: dict[Path, list[_Ended]] = {}
    for each in ended:
        assignment = assignment_of(each.task)
        home = assignment.workspace if assignment else None
        if home is not None and (is_repository(home) or not home.exists()):
            homes.setdefault(home, []).append(each)
    return homes


# -- a repository --------------------------------------------------------------------------


async def _judge(
    home: Path, ended: Sequence[_Ended], *, settings: FeedbackSettings, now: datetime
) -> list[Implied]:
    """The verdicts on what was done in one repository.

    Raises WorkspaceError or TimeoutError.
    """
    if not await asyncio.to_thread(home.is_dir):
        raise WorkspaceError("the folder is gone")
    works, takers = await _works(home, ended)
    began = min((each.attempt.started_at for each in ended), default=now)
    found: list[Implied] = []
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
            found.append(Implied(task=each.task, attempt=each.attempt, feedback=feedback))
    return found


async def _works(
    home: Path, ended: Iterable[_Ended]
) -> tuple[dict[int, BranchWork], dict[str, list[_Ended]]]:
    """What attempts made, by their ids; and those still to be judged, by the branch for them."""
    known = await refs(home)
    works: dict[int, BranchWork] = {}
    takers: dict[str, list[_Ended]] = {}
    for each in ended:
        if (ref := known.get(each.branch)) is None:
            continue
        work = await work_of(home, each.attempt, ref, ended=each.at)
        if work is not None:
            works[each.attempt.id] = work
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
    look = partial(judge, agents=agents(works.values(), merges, history), now=now)
    found: list[tuple[_Ended, MergeJudgement]] = []
    for each in ended:
        id, stored = each.attempt.id, each.stored
        if id in merges and (
            judgement := look(works[id], merges[id], history, stored=stored, settings=settings)
        ):
            found.append((each, judgement))
    return found


def verdict(
    judgement: MergeJudgement, *, into: str, diff: str, settings: FeedbackSettings
) -> Feedback:
    """A judgement as it is stored, in words that name the files and the commits. Pure."""
    files = list_names(judgement.files, _NAMED)
    commits = list_names([each.id[:12] for each in judgement.revisions], _NAMED)
    authors = ", ".join(dict.fromkeys(each.author for each in judgement.revisions))
    said = "; ".join(dict.fromkeys(each.said for each in judgement.revisions[:_NAMED] if each.said))
    if judgement.sign is Sign.KEPT:
        span = settings.kept_after.text
        comment = f"unchanged on {into} for {span} and more since it was merged: {files}"
    else:
        what = "taken back" if judgement.sign is Sign.REVERTED else "changed"
        comment = f"{what} on {into} after it was merged, in {commits}: {files}"
        comment = f"{said} ({comment})" if said else comment
    return Feedback(
        accepted=judgement.sign is Sign.KEPT,
        comment=comment,
        origin=Origin.IMPLIED,
        author=authors or _AUTHOR,
        sign=judgement.sign,
        diff=diff,
    )


# -- what git tells ------------------------------------------------------------------------
# Everything is read, and nothing is written. One repository costs one look at its branches, one at
# the history of the branch that takes the work, and three short ones for each attempt. What git
# says may be long: it is read in a thread, for workers, heartbeats and the console run beside it.
# Each raises TimeoutError where git does not answer in time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """Where an attempt's branch, or what is known of its merge, stands in a repository."""

    tip: str
    begun: str = ""
    """Empty where only the branch's own log tells."""
    into: str = ""
    """The branch that took it, where it was `midwatch merge`."""
    merged_at: datetime | None = None


async def refs(home: Path) -> Mapping[str, Ref]:
    """The branches of attempts that a repository has or had merged, by name.

    Raises WorkspaceError where it is broken or does not have its whole history.
    """
    if (await _git(home, "rev-parse", "--is-shallow-repository")).strip() == "true":
        raise WorkspaceError("it has only the newest part of its history")
    told = await _git(
        *(home, "for-each-ref", _BRANCHES, TRACES),
        "--format=%(refname)%00%(objectname)%00%(parent)%00%(committerdate:unix)%00%(subject)",
    )
    found: dict[str, Ref] = {}
    for line in told.splitlines():  # sorted by name: the traces come last, and they know more
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
    """The branch that takes finished work, as a full name: `into`, else what is checked out."""
    try:
        if into:
            await _git(home, "rev-parse", "--verify", "--quiet", f"refs/heads/{into}")
            return f"refs/heads/{into}"
        return (await _git(home, "symbolic-ref", "--quiet", _HEAD)).strip()
    except WorkspaceError:  # it is gone, or no branch is checked out
        return await base_of(home) if into else _HEAD


async def read_history(home: Path, base: str, since: datetime) -> BranchHistory:
    """The history of a branch since a moment, at most the newest `MAX_COMMITS` commits of it.

    Raises WorkspaceError.
    """
    head = (await _git(home, "rev-parse", base)).strip()
    log = await _git(
        *(home, *LOG, f"--since={since.isoformat()}", f"--max-count={MAX_COMMITS}", head, "--")
    )
    arrivals = await _arrivals(home, base)
    try:
        return await asyncio.to_thread(lambda: branch_history(revisions(log), head, arrivals))
    except ValueError as error:
        raise WorkspaceError(f"git log cannot be read: {error}") from error


async def _arrivals(home: Path, base: str) -> Iterable[tuple[str, datetime]]:
    """What a branch stood at since when, oldest first; nothing where git keeps no log of it."""
    try:
        log = await _git(
            home, "log", "--walk-reflogs", "--date=unix", "--format=%H %gd", base, "--"
        )
    except WorkspaceError:
        return ()
    entries = (line.partition(" ") for line in reversed(log.splitlines()))
    # A selector is `refs/heads/main@{1763755200}`.
    seconds = ((id, at.rpartition("@{")[2].rstrip("}")) for id, _, at in entries)
    return [(id, datetime.fromtimestamp(int(at), UTC)) for id, at in seconds]


async def work_of(home: Path, attempt: Attempt, ref: Ref, *, ended: datetime) -> BranchWork | None:
    """What an attempt made on its branch until it ended.

    `None` for nothing, or where nobody knows. Raises WorkspaceError.
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
    return begin(known.splitlines())


async def diff_of(home: Path, judgement: MergeJudgement) -> str:
    """What a person changed in an attempt's files, cut to what a prompt can hold."""
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
