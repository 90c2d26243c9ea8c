"""What became of an attempt's merged work: kept, edited, or taken back. Pure.

A change counts as a person's unless an agent wrote it: Midwatch itself, or an attempt on its own
branch before its end. Only what is committed counts, and only on the branch that took the work.

**Taken back**: a person's commit says that it reverts the merge or a commit of the attempt, or the
attempt's files are again what they were before it, and a person was the last to change them.
**Edited**: some of its files are other than they were merged, and a person changed them.
**Kept**: no person did, for long enough. Once that is stored, a later edit is new work and no
verdict; only a revert overturns it. Nothing follows a revert.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import Sign
from midwatch_supervisor.learning.branch_history import BranchHistory, Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
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
class Judgement:
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


def merge_point(work: Work, history: BranchHistory) -> MergePoint | None:
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


def _by_content(work: Work, history: BranchHistory) -> int | None:
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
    works: Iterable[Work], merges: dict[int, MergePoint], history: BranchHistory
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
    work: Work,
    merge: MergePoint,
    history: BranchHistory,
    *,
    agents: frozenset[str],
    stored: Sign | None,
    settings: FeedbackSettings,
    now: datetime,
) -> Judgement | None:
    """What became of merged work by now; `None` while that says nothing, or nothing new.

    `stored` is the last implied verdict of the attempt.
    """
    if stored is Sign.REVERTED or now - merge.at > span(settings.watched_for.seconds):
        return None
    files = [_file_history(work, file, merge.place, history, agents) for file in sorted(work.after)]
    if not files:
        return None
    by_persons = _ordered(each for file in files for each in file.by_persons if file.changed)
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
) -> Judgement:
    names = dict.fromkeys(name for file in files for name in (file.file, file.name))
    return Judgement(
        sign=sign,
        files=tuple(file.file for file in files),
        names=tuple(names),
        revisions=tuple(revisions),
    )


def _file_history(
    work: Work, file: str, place: int, history: BranchHistory, agents: frozenset[str]
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
    work: Work, place: int, history: BranchHistory, agents: frozenset[str]
) -> tuple[Revision, ...]:
    """A person's commits after the merge that say that they take it, or a part of it, back."""
    mine = work.own | {history.line[place].id}
    return tuple(
        revision
        for at, revision in history.reverting
        if at > place and revision.id not in agents and revision.reverts & mine
    )


def _ordered(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    found = {each.id: each for each in revisions}
    return tuple(sorted(found.values(), key=lambda each: each.at))
