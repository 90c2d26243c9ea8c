"""The recent history of a branch: its line of commits, what each changed, when each came. Pure.

`LOG` is what git is asked for, and `revisions` reads its answer; `BRANCH_LOG` and `branch` do the
same for the branch of an attempt. Of a merge the changes are those
against its first parent, so that what stands in the line is what the branch's owner saw happen.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
class FileChange:
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
    changes: tuple[FileChange, ...] = ()

    @property
    def by_midwatch(self) -> bool:
        """Whether Midwatch wrote it."""
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
    touching: Mapping[str, Sequence[tuple[int, FileChange]]]
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

    def next_change(self, file: str, place: int) -> tuple[int, FileChange] | None:
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
    touching: dict[str, list[tuple[int, FileChange]]] = {}
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
            said=_said(message),
            changes=tuple(changes(raw)),
        )


def _said(message: str) -> str:
    lines = (line.strip() for line in message.splitlines())
    own = [line for line in lines if line and not _BY_GIT.match(line)]
    return " ".join(own)[:_LONGEST]


def changes(raw: str) -> Iterator[FileChange]:
    """Read git's raw form of a diff, which ends each part with a NUL. Raises ValueError."""
    parts = iter(part.lstrip("\n") for part in raw.split("\0"))
    for part in parts:
        if not part.startswith(":"):
            continue
        _, _, before, after, status = part.split(" ")
        path, origin = next(parts), ""
        if status[0] in "RC":
            path, origin = next(parts), path if status[0] == "R" else ""
        yield FileChange(
            path=path,
            before=before.strip("0") and before,
            after=after.strip("0") and after,
            origin=origin,
        )
