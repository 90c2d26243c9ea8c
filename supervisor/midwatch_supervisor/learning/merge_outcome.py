"""The outcome of an attempt's merged work: kept, edited, or reverted. Pure.

It is read from the recent history of the branch that took the work: the commits on its first-parent
line, what each changed, and when each arrived. `LOG` is the git command, and `revisions` reads its
output; `BRANCH_LOG` and `branch` do the same for an attempt's branch. The changes of a merge are
those against its first parent, so that the line shows what the branch's owner saw happen.

A change counts as a person's unless an agent wrote it: Midwatch itself, or an attempt on its own
branch before its end. Only commits count, and only on the branch that took the work.

**Reverted**: a person's commit says that it reverts the merge or a commit of the attempt, or the
attempt's files are again as they were before it, and a person changed them last. **Edited**: some
of its files differ from the merged ones, and a person changed them. **Kept**: no person changed
them for long enough. Once that is stored, a later edit is new work, not a verdict; only a revert
overrides it. Nothing follows a revert.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import eq

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import VerdictBasis
from midwatch_tools.git import EMAIL

LOG = (
    *("log", "-z", "--raw", "--no-abbrev", "-M", "--diff-merges=first-parent", "--no-color"),
    "--format=%x1e%H%x00%P%x00%an%x00%ae%x00%ct%x00%B%x00",
)
BRANCH_LOG = ("log", "--no-color", "--format=%H%x00%P%x00%ae%x00%at")
RAW = ("diff", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-color")

_RECORD = re.compile("\x1e(?=[0-9a-f]{40,64}\0)")
"""Start of a commit: a message may contain any character but NUL."""
_LONGEST = 300
"""Characters kept of a commit's message: more than its subject, less than its details."""
_BY_GIT = re.compile(r'Revert "|Reapply "|This reverts commit |reversing$|changes made to |Merge ')
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{40,64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFileChange:
    """What one commit did to one file. Contents are git object names, empty for no file."""

    path: str
    before: str
    after: str
    origin: str = ""
    """The file's former name, if it was renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit."""

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    at: datetime
    """The committer's time."""
    reverts: frozenset[str] = frozenset()
    """The commits that it says it reverts."""
    said: str = ""
    """The author's own message, without the text that git writes for reverts."""
    changes: tuple[CommitFileChange, ...] = ()

    @property
    def by_midwatch(self) -> bool:
        return self.email == EMAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The commits on an attempt's branch, by author."""

    tip: str
    """The attempt's last commit, or the one it began with if it has none."""
    own: frozenset[str]
    fixes: frozenset[str]
    """A person's commits on top of `tip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchHistory:
    """A branch as far back as it was read."""

    revisions: Mapping[str, Revision]
    """All commits of the branch."""
    line: tuple[Revision, ...]
    """Its first-parent commits, oldest first."""
    places: Mapping[str, int]
    """For each commit, the index in `line` of the commit that brought it in."""
    side: Mapping[int, tuple[Revision, ...]]
    """The other commits that a merge in `line` brought in, by its index."""
    touching: Mapping[str, Sequence[tuple[int, CommitFileChange]]]
    """What `line` did to each file, under its old and new name, with indexes."""
    arrivals: tuple[tuple[int, datetime], ...] = ()
    """The indexes that the branch moved to, and when, as far as its reflog goes, oldest first."""

    def arrival(self, place: int) -> datetime | None:
        """Return when the branch reached an index of its line; `None` if unknown."""
        return next((at for found, at in self.arrivals if found >= place), None)

    def content(self, file: str, place: int, *, default: str) -> str:
        """Return a file's content at an index of the line; `default` if nothing had changed it."""
        known = self.touching.get(file, ())
        index = bisect_right(known, place, key=lambda each: each[0])
        if not index:
            return default
        change = known[index - 1][1]
        return change.after if change.path == file else ""

    def next_change(self, file: str, place: int) -> tuple[int, CommitFileChange] | None:
        """Return the next change of a file after an index of the line."""
        known = self.touching.get(file, ())
        index = bisect_right(known, place, key=lambda each: each[0])
        return known[index] if index < len(known) else None

    def by_person(self, place: int, names: Collection[str], agents: Collection[str]) -> bool:
        """Whether a person made the change of a file at an index of the line.

        For a merge, the authors of the merged commits that touch the file count.
        """
        carrier = self.line[place]
        writers = [
            each
            for each in self.side.get(place, ())
            if len(each.parents) < 2
            and any(change.path in names or change.origin in names for change in each.changes)
        ]
        return carrier.id not in agents and any(
            each.id not in agents for each in writers or [carrier]
        )


def branch_history(
    revisions: Iterable[Revision], head: str, arrivals: Iterable[tuple[str, datetime]] = ()
) -> BranchHistory:
    """Return the history of a branch at commit `head`; `arrivals` is its reflog, oldest first."""
    known = {each.id: each for each in revisions}
    line = _first_parents(known, head)
    places, side = _brought_commits(known, line)
    touching: dict[str, list[tuple[int, CommitFileChange]]] = {}
    for place, each in enumerate(line):
        for change in each.changes:
            for name in {change.path, change.origin} - {""}:
                touching.setdefault(name, []).append((place, change))
    own = {each.id: place for place, each in enumerate(line)}
    return BranchHistory(
        revisions=known,
        line=line,
        places=places,
        side=side,
        touching=touching,
        arrivals=tuple((own[id], at) for id, at in arrivals if id in own),
    )


def _first_parents(known: Mapping[str, Revision], head: str) -> tuple[Revision, ...]:
    line: list[Revision] = []
    while head in known:
        line.append(known[head])
        head = next(iter(known[head].parents), "")
    return tuple(reversed(line))


def _brought_commits(
    known: Mapping[str, Revision], line: Sequence[Revision]
) -> tuple[dict[str, int], dict[int, tuple[Revision, ...]]]:
    places: dict[str, int] = {}
    side: dict[int, tuple[Revision, ...]] = {}
    for place, carrier in enumerate(line):
        places[carrier.id] = place
        found, left = list[Revision](), list(carrier.parents[1:])
        while left:
            id = left.pop()
            if id in known and id not in places:
                places[id] = place
                found.append(known[id])
                left += known[id].parents
        if found:
            side[place] = tuple(found)
    return places, side


def branch(log: str, tip: str, ended: datetime) -> Branch:
    """Read git's output for `BRANCH_LOG` of a branch at `tip`, whose attempt ended at `ended`.

    Later commits are a person's, unless Midwatch wrote them: only an unfinished attempt commits
    under the name of the repository's owner. Merges count for nobody.
    """
    known: dict[str, list[str]] = {}
    late: set[str] = set()
    for line in log.splitlines():
        id, parents, email, seconds = line.split("\0")
        known[id] = parents.split()
        if email != EMAIL and int(seconds) > ended.timestamp() and len(known[id]) < 2:
            late.add(id)
    fixes: set[str] = set()
    last, id = tip, tip
    while id in known:
        after = next(iter(known[id]), "")
        if id in late:
            fixes.add(id)
            last = after
        id = after
    return Branch(tip=last, own=frozenset(known) - fixes, fixes=frozenset(fixes))


def revisions(log: str) -> Iterator[Revision]:
    """Read git's output for `LOG`. Raises ValueError if it is something else."""
    starts = [each.start() for each in _RECORD.finditer(log)]
    if log and 0 not in starts[:1]:
        raise ValueError("it does not begin with a commit")
    for start, end in zip(starts, [*starts[1:], len(log)], strict=True):
        record = log[start + 1 : end]
        id, parents, author, email, seconds, message, raw = record.split("\0", 6)
        yield Revision(
            id=id,
            parents=tuple(parents.split()),
            author=author,
            email=email,
            at=datetime.fromtimestamp(int(seconds), UTC),
            reverts=frozenset(_REVERTS.findall(message)),
            said=_own_lines(message),
            changes=tuple(changes(raw)),
        )


def _own_lines(message: str) -> str:
    lines = (line.strip() for line in message.splitlines())
    own = [line for line in lines if line and not _BY_GIT.match(line)]
    return " ".join(own)[:_LONGEST]


def changes(raw: str) -> Iterator[CommitFileChange]:
    """Read git's raw diff format, whose parts end with NUL. Raises ValueError."""
    parts = iter(part.lstrip("\n") for part in raw.split("\0"))
    for part in parts:
        if not part.startswith(":"):
            continue
        _, _, before, after, status = part.split(" ")
        path, origin = next(parts), ""
        if status[0] in "RC":
            path, origin = next(parts), path if status[0] == "R" else ""
        yield CommitFileChange(
            path=path,
            before=before.strip("0") and before,
            after=after.strip("0") and after,
            origin=origin,
        )


# -- outcomes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchWork:
    """The work of an attempt on its branch."""

    attempt: int
    """The attempt's journal id."""
    tip: str
    """The branch's last commit."""
    begun: str
    """The commit it began with."""
    own: frozenset[str]
    """The commits between them."""
    fixes: frozenset[str] = frozenset()
    """A person's commits on the branch after the attempt's end, on top of `tip`."""
    before: dict[str, str]
    """The original content of each file it changed, by name."""
    after: dict[str, str]
    """The final content of each file it changed, by name."""
    merged_at: datetime | None = None
    """When `midwatch merge` merged it, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePoint:
    """Where an attempt's work entered the branch that took it."""

    place: int
    """Index in the branch's line of the commit that brought it."""
    at: datetime
    sure: bool = True
    """False if only the time of the work is known, not of its merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeJudgement:
    """What a person did with merged work."""

    sign: VerdictBasis
    files: tuple[str, ...]
    """The attempt's files concerned, by the attempt's names."""
    names: tuple[str, ...] = ()
    """These names, and the current ones."""
    revisions: tuple[Revision, ...] = ()
    """The person's commits, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileHistory:
    file: str
    name: str
    """The current name."""
    merged: str
    now: str
    before: frozenset[str]
    """Contents before the attempt."""
    by_persons: tuple[Revision, ...]
    """Commits of persons that changed the content."""

    @property
    def changed(self) -> bool:
        return self.now != self.merged

    @property
    def back(self) -> bool:
        return self.changed and self.now in self.before


def merge_point(work: BranchWork, history: BranchHistory) -> MergePoint | None:
    """Return where the work was merged; `None` if it was not.

    Found by its last commit, else (squashed or rebased) by content: the first moment at which each
    of its files is as the attempt left it.
    """
    place = history.places.get(work.tip)
    if place is None:
        place = _by_content(work, history)
    if place is None:
        return None
    carrier = history.line[place]
    at, arrived = work.merged_at, history.arrival(place)
    if at is None and arrived is not None:
        at = max(arrived, carrier.at)
    # After a fast-forward, all commits are older than the merge.
    return MergePoint(place=place, at=at or carrier.at, sure=bool(at) or carrier.id != work.tip)


def _by_content(work: BranchWork, history: BranchHistory) -> int | None:
    start = history.places.get(work.begun, -1)
    touched = {place for file in work.after for place, _ in history.touching.get(file, ())}
    for place in sorted(each for each in touched if each > start):
        now = (history.content(file, place, default=work.before[file]) for file in work.after)
        if all(map(eq, now, work.after.values())):
            return place
    return None


def agents(
    works: Iterable[BranchWork], merges: dict[int, MergePoint], history: BranchHistory
) -> frozenset[str]:
    """Return the commits that no person wrote: on attempts' branches, or bringing these in.

    `merges` are by attempt. A person's merge commit is not included; what it brings in is.
    """
    found = {each.id for each in history.revisions.values() if each.by_midwatch}
    for work in works:
        found |= work.own
        if (merge := merges.get(work.attempt)) is not None:
            carrier = history.line[merge.place]
            if len(carrier.parents) < 2:
                found.add(carrier.id)
    return frozenset(found)


def judge(
    work: BranchWork,
    merge: MergePoint,
    history: BranchHistory,
    *,
    agents: frozenset[str],
    stored: VerdictBasis | None,
    settings: FeedbackSettings,
    now: datetime,
) -> MergeJudgement | None:
    """Return the outcome of merged work so far; `None` if nothing, or nothing new, can be said.

    `stored` is the attempt's last implied verdict.
    """
    if stored is VerdictBasis.REVERTED or now - merge.at > span(settings.watched_for.seconds):
        return None
    files = [_file_history(work, file, merge.place, history, agents) for file in sorted(work.after)]
    if not files:
        return None
    by_persons = _sort_revisions(each for file in files for each in file.by_persons if file.changed)
    if undone := _reverting_commits(work, merge.place, history, agents):
        if any(file.changed for file in files):
            return _judgement(
                VerdictBasis.REVERTED, [file for file in files if file.changed], undone
            )
    elif by_persons and all(file.back for file in files):
        return _judgement(VerdictBasis.REVERTED, files, by_persons)
    if stored is not None:
        return None
    if by_persons:
        return _judgement(VerdictBasis.EDITED, [file for file in files if file.changed], by_persons)
    if _is_kept(files, merge, settings, now):
        return _judgement(VerdictBasis.KEPT, files, ())
    return None


def span(seconds: float | None) -> timedelta:
    """Return seconds as a time span; an empty one for `None`."""
    return timedelta(seconds=seconds or 0)


def _is_kept(
    files: Sequence[_FileHistory], merge: MergePoint, settings: FeedbackSettings, now: datetime
) -> bool:
    least = span(settings.kept_after.seconds)
    if not least or not merge.sure or all(file.back for file in files):
        return False
    since = max([merge.at, *(edit.at for file in files for edit in file.by_persons)])
    return now - since >= least


def _judgement(
    sign: VerdictBasis, files: Sequence[_FileHistory], revisions: Iterable[Revision]
) -> MergeJudgement:
    names = dict.fromkeys(name for file in files for name in (file.file, file.name))
    return MergeJudgement(
        sign=sign,
        files=tuple(file.file for file in files),
        names=tuple(names),
        revisions=tuple(revisions),
    )


def _file_history(
    work: BranchWork, file: str, place: int, history: BranchHistory, agents: frozenset[str]
) -> _FileHistory:
    now = history.content(file, place, default=work.after[file])
    fixes = [
        each
        for each in history.side.get(place, ())
        if each.id in work.fixes and any(file in (it.path, it.origin) for it in each.changes)
    ]
    merged = work.after[file] if fixes else now
    before = {work.before[file]}
    carrier = history.line[place]
    if len(carrier.parents) > 1:  # the branch that took it may have advanced meanwhile
        before |= {each.before for each in carrier.changes if each.path == file}
    name, by_persons = file, fixes
    while (found := history.next_change(name, place)) is not None:
        place, change = found
        moved = change.origin == name and change.path != name
        content = change.after if moved or change.path == name else ""
        if content != now and history.by_person(place, {name, change.path}, agents):
            by_persons.append(history.line[place])
        name, now = change.path if moved else name, content
    return _FileHistory(
        file=file,
        name=name,
        merged=merged,
        now=now,
        before=frozenset(before),
        by_persons=tuple(by_persons),
    )


def _reverting_commits(
    work: BranchWork, place: int, history: BranchHistory, agents: frozenset[str]
) -> tuple[Revision, ...]:
    """Return a person's commits after the merge that say they revert it or a part of it."""
    mine = work.own | {history.line[place].id}
    later = range(place + 1, len(history.line))
    return tuple(
        revision
        for at in later
        for revision in (history.line[at], *history.side.get(at, ()))
        if revision.id not in agents and revision.reverts & mine
    )


def _sort_revisions(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    found = {each.id: each for each in revisions}
    return tuple(sorted(found.values(), key=lambda each: each.at))
