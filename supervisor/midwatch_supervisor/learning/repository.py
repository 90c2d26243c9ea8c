"""What git tells of attempts: what each made on its branch, and the branch that may have taken it.

Everything is read, and nothing is written. One repository costs one look at its branches, one at
the history of the branch that takes the work, and three short ones for each attempt. What git says
may be long: it is read in a thread, for workers, heartbeats and the console run beside it. Beside
what is told at each function, all of them raise TimeoutError where git does not answer in time.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Attempt
from midwatch_supervisor.learning.branch_history import (
    BRANCH_LOG,
    LOG,
    RAW,
    BranchHistory,
    branch,
    branch_history,
    changes,
    revisions,
)
from midwatch_supervisor.learning.merge_outcome import Judgement, Work
from midwatch_supervisor.present.assignment import BRANCHES, branch_of
from midwatch_supervisor.workspaces.changes import begin
from midwatch_supervisor.workspaces.workspace import TRACES
from midwatch_tools.data_blocks import cut
from midwatch_tools.git import ask_git

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


async def read(home: Path, base: str, since: datetime) -> BranchHistory:
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


async def work_of(home: Path, attempt: Attempt, ref: Ref, *, ended: datetime) -> Work | None:
    """What an attempt made on its branch until it ended.

    `None` for nothing, or where nobody knows. Raises WorkspaceError.
    """
    begun = ref.begun or await _begun(home, branch_of(Path(attempt.workspace)))
    if not begun or begun == ref.tip:
        return None
    log_text = await _git(home, *BRANCH_LOG, f"{begun}..{ref.tip}", "--")
    made = branch(log_text, ref.tip, ended)
    if made.tip == begun:
        return None
    diff = await _git(home, *RAW, begun, made.tip, "--")
    found = await asyncio.to_thread(lambda: list(changes(diff)))
    return Work(
        attempt=attempt.id,
        tip=made.tip,
        begun=begun,
        own=made.own,
        fixes=made.fixes,
        before={each.path: each.before for each in found},
        after={each.path: each.after for each in found},
        merged_at=ref.merged_at,
    )


async def _begun(home: Path, branch: str) -> str:
    try:
        known = await _git(
            home, "log", "--walk-reflogs", "--format=%H %gs", f"refs/heads/{branch}", "--"
        )
    except WorkspaceError:
        return ""
    return begin(known.splitlines())


async def diff_of(home: Path, judgement: Judgement) -> str:
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
