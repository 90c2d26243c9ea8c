"""What became of an attempt's merged work: kept, edited, or taken back. Pure.

It is told from the recent history of the branch that took the work: its line of commits, what each
changed, when each came. `LOG` is what git is asked for, and `revisions` reads its answer;
`BRANCH_LOG` and `branch` do the same for the branch of an attempt. Of a merge the changes are those
against its first parent, so that what stands in the line is what the branch's owner saw happen.

A change counts as a person's unless an agent wrote it: Midwatch itself, or an attempt on its own
branch before its end. Only what is committed counts, and only on the branch that took the work.

**Taken back**: a person's commit says that it reverts the merge or a commit of the attempt, or the
attempt's files are again what they were before it, and a person was the last to change them.
**Edited**: some of its files are other than they were merged, and a person changed them.
**Kept**: no person did, for long enough. Once that is stored, a later edit is new work and no
verdict; only a revert overturns it. Nothing follows a revert.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import Sign
from midwatch_tools.git import EMAIL

LOG = (
    *("log", "-z", "--raw", "--no-abbrev", "-M", "--diff-merges=first-parent", "--no-color"),
    "--format=%x1e%H%x00%P%x00%an%x00%ae%x00%ct%x00%B%x00",
)
BRANCH_LOG = ("log", "--no-color", "--format=%H%x00%P%x00%ae%x00%at")
RAW = ("diff", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-color")

_RECORD = re.compile("\x1e(?=[0-9a-f]{40,64}\0)")
"""Where a commit begins: a message may hold any character but NUL."""
_LONGEST = 300
"""Characters of a commit's message; more than its subject, less than its changelog."""
_BY_GIT = re.compile(r'Revert "|Reapply "|This reverts commit |reversing$|changes made to |Merge ')
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{40,64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFileChange:
    """What one commit did to one file. Contents are git's names for them, empty for no file."""

    path: str
    before: str
    after: str
    origin: str = ""
    """What it was called before, if it was renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit."""

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    at: datetime
    """When it was made as it is, by its committer."""
    reverts: frozenset[str] = frozenset()
    """The commits that it says it takes back."""
    said: str = ""
    """What its writer said of it, without what git itself writes of a revert."""
    changes: tuple[CommitFileChange, ...] = ()

    @property
    def by_midwatch(self) -> bool:
        return self.email == EMAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The commits on the branch of an attempt, by who wrote them."""

    tip: str
    """The attempt's last commit; the one that it began with if it has none."""
    own: frozenset[str]
    fixes: frozenset[str]
    """What a person committed on top of `tip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchHistory:
    """A branch as far back as it was read."""

    revisions: Mapping[str, Revision]
    """All commits that the branch has."""
    line: tuple[Revision, ...]
    """Those that it went through itself, oldest first: always the first parent."""
    places: Mapping[str, int]
    """Which commit of the line brought each commit in."""
    side: Mapping[int, tuple[Revision, ...]]
    """The others that a merge in the line brought in, by its place."""
    touching: Mapping[str, Sequence[tuple[int, CommitFileChange]]]
    """What the line did to each file, under its old name and its new one, by place."""
    arrivals: tuple[tuple[int, datetime], ...] = ()
    """Since when the branch stood at which place, as far as its log tells; oldest first."""

    @property
    def reverting(self) -> Iterator[tuple[int, Revision]]:
        """The commits that take others back, with the place in the line that brought them."""
        for place, carrier in enumerate(self.line):
            for each in (carrier, *self.side.get(place, ())):
                if each.reverts:
                    yield place, each

    def arrival(self, place: int) -> datetime | None:
        """When the branch came to have that place of its line; `None` where nothing tells."""
        return next((at for found, at in self.arrivals if found >= place), None)

    def content(self, file: str, place: int, *, default: str) -> str:
        """What a file was at a place of the line; `default` if nothing changed it before."""
        known = self.touching.get(file, ())
        index = bisect_right(known, place, key=lambda each: each[0])
        if not index:
            return default
        change = known[index - 1][1]
        return change.after if change.path == file else ""

    def next_change(self, file: str, place: int) -> tuple[int, CommitFileChange] | None:
        """What happened to a file next after a place of the line."""
        known = self.touching.get(file, ())
        index = bisect_right(known, place, key=lambda each: each[0])
        return known[index] if index < len(known) else None

    def by_person(self, place: int, names: Collection[str], agents: Collection[str]) -> bool:
        """Whether a person wrote what the line did to a file at a place.

        Of a merge whoever changed the file on the branch that it brings in.
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
    """The history of a branch at the commit `head`, whose own log is `arrivals`, oldest first."""
    known = {each.id: each for each in revisions}
    line = _line(known, head)
    places, side = _brought(known, line)
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


def _line(known: Mapping[str, Revision], head: str) -> tuple[Revision, ...]:
    line: list[Revision] = []
    while head in known:
        line.append(known[head])
        head = next(iter(known[head].parents), "")
    return tuple(reversed(line))


def _brought(
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
    """Read what git answers to `BRANCH_LOG` of a branch at `tip` whose attempt ended at a moment.

    What is written later is a person's, unless Midwatch wrote it: only an attempt that is not over
    commits under the name of the repository's owner. Merges are nobody's.
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
    """Read what git answers to `LOG`. Raises ValueError where it is something else."""
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
            said=_explain(message),
            changes=tuple(changes(raw)),
        )


def _explain(message: str) -> str:
    lines = (line.strip() for line in message.splitlines())
    own = [line for line in lines if line and not _BY_GIT.match(line)]
    return " ".join(own)[:_LONGEST]


def changes(raw: str) -> Iterator[CommitFileChange]:
    """Read git's raw form of a diff, which ends each part with a NUL. Raises ValueError."""
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


# -- what became of work -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchWork:
    """What an attempt made on its branch."""

    attempt: int
    """By journal id."""
    tip: str
    """The branch's last commit."""
    begun: str
    """The commit that it began with."""
    own: frozenset[str]
    """The commits between them."""
    fixes: frozenset[str] = frozenset()
    """What a person committed on its branch after its end, on top of `tip`."""
    before: dict[str, str]
    """The content of each file that it changed as it was at the beginning, by name."""
    after: dict[str, str]
    """The same at the end."""
    merged_at: datetime | None = None
    """When `midwatch merge` merged it, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePoint:
    """Where an attempt's work came into the branch that took it."""

    place: int
    """Which commit of the branch's line brought it, from 0."""
    at: datetime
    sure: bool = True
    """Off where only the time of the work is known, and not that of its merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeJudgement:
    """What a person did with merged work."""

    sign: Sign
    files: tuple[str, ...]
    """Those of the attempt that it is about, as it named them."""
    names: tuple[str, ...] = ()
    """Those and what they are called now."""
    revisions: tuple[Revision, ...] = ()
    """The person's commits, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileHistory:
    file: str
    name: str
    """What it is called now."""
    merged: str
    now: str
    before: frozenset[str]
    """What it was before the attempt."""
    by_persons: tuple[Revision, ...]
    """The commits of persons that changed its content."""

    @property
    def changed(self) -> bool:
        return self.now != self.merged

    @property
    def back(self) -> bool:
        return self.changed and self.now in self.before


def merge_point(work: BranchWork, history: BranchHistory) -> MergePoint | None:
    """Where the work was merged; `None` if it was not.

    By its last commit, else (squashed, or put on top of others) by its content: the first moment
    at which each of its files is what the attempt made of it.
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
    # A branch that was taken as it is has commits from before its merge only.
    return MergePoint(place=place, at=at or carrier.at, sure=bool(at) or carrier.id != work.tip)


def _by_content(work: BranchWork, history: BranchHistory) -> int | None:
    start = history.places.get(work.begun, -1)
    news = sorted(
        (place, file)
        for file in work.after
        for place, _ in history.touching.get(file, ())
        if place > start
    )
    wrong = set(work.after)
    for place, found in groupby(news, key=itemgetter(0)):
        for _, file in found:
            same = history.content(file, place, default="") == work.after[file]
            (wrong.discard if same else wrong.add)(file)
        if not wrong:
            return place
    return None


def agents(
    works: Iterable[BranchWork], merges: dict[int, MergePoint], history: BranchHistory
) -> frozenset[str]:
    """The commits that no person wrote: on the branches of attempts, or bringing these in.

    `merges` are by attempt. A merge by a person is not among them: what it brings is.
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
    stored: Sign | None,
    settings: FeedbackSettings,
    now: datetime,
) -> MergeJudgement | None:
    """What became of merged work by now; `None` while that says nothing, or nothing new.

    `stored` is the last implied verdict of the attempt.
    """
    if stored is Sign.REVERTED or now - merge.at > span(settings.watched_for.seconds):
        return None
    files = [_file_history(work, file, merge.place, history, agents) for file in sorted(work.after)]
    if not files:
        return None
    by_persons = _sort(each for file in files for each in file.by_persons if file.changed)
    if undone := _reverts(work, merge.place, history, agents):
        if any(file.changed for file in files):
            return _judgement(Sign.REVERTED, [file for file in files if file.changed], undone)
    elif by_persons and all(file.back for file in files):
        return _judgement(Sign.REVERTED, files, by_persons)
    if stored is not None:
        return None
    if by_persons:
        return _judgement(Sign.EDITED, [file for file in files if file.changed], by_persons)
    if _kept(files, merge, settings, now):
        return _judgement(Sign.KEPT, files, ())
    return None


def span(seconds: float | None) -> timedelta:
    """So many seconds; none for a length of 0."""
    return timedelta(seconds=seconds or 0)


def _kept(
    files: Sequence[_FileHistory], merge: MergePoint, settings: FeedbackSettings, now: datetime
) -> bool:
    least = span(settings.kept_after.seconds)
    if not least or not merge.sure or all(file.back for file in files):
        return False
    since = max([merge.at, *(edit.at for file in files for edit in file.by_persons)])
    return now - since >= least


def _judgement(
    sign: Sign, files: Sequence[_FileHistory], revisions: Iterable[Revision]
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
    if len(carrier.parents) > 1:  # the branch that took it may have gone on meanwhile
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


def _reverts(
    work: BranchWork, place: int, history: BranchHistory, agents: frozenset[str]
) -> tuple[Revision, ...]:
    """A person's commits after the merge that say that they take it, or a part of it, back."""
    mine = work.own | {history.line[place].id}
    return tuple(
        revision
        for at, revision in history.reverting
        if at > place and revision.id not in agents and revision.reverts & mine
    )


def _sort(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    found = {each.id: each for each in revisions}
    return tuple(sorted(found.values(), key=lambda each: each.at))
