"""How many results were accepted: over the weeks, and from one attempt to the next."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from midwatch_monitor.records import Entry, Origin
from midwatch_monitor.records.verdict import verdict_of
from midwatch_monitor.replay.tune.figures import Share

BUCKETS = 10
"""Parts of equal size into which the attempts are cut for the learning curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """The verdicts of one week."""

    begins: date
    """A Monday, in UTC."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Attempts that followed one another."""

    first: int
    last: int
    """By journal id, included."""
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceFigures:
    """What the verdicts of one origin say. Verdicts of two origins never stand in one rate."""

    origin: Origin
    accepted: Share
    """Of all attempts on which there is such a verdict."""
    weeks: tuple[Week, ...] = ()
    """Those with a verdict, by when that was given, oldest first."""
    curve: tuple[Bucket, ...] = ()
    """The judged attempts in the order in which they began, in ten parts as equal as can be; the
    first parts are larger by one where they do not divide, and of fewer than ten each is a part.
    """


@dataclass(frozen=True, slots=True)
class _Said:
    at: datetime
    accepted: bool


class Verdicts:
    """Follows verdicts: for each attempt and origin the newest counts, and that alone."""

    def __init__(self) -> None:
        self._said: dict[Origin, dict[int, _Said]] = {origin: {} for origin in Origin}

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        verdict = verdict_of(entry.record)
        if entry.attempt is not None and verdict is not None:
            self._said[verdict.origin][entry.attempt] = _Said(entry.at, verdict.accepted)

    def share(self, attempts: Iterable[int], origin: Origin) -> Share:
        """Of these attempts the accepted ones, of those with a verdict of that origin."""
        said = self._said[origin]
        found = [said[attempt].accepted for attempt in attempts if attempt in said]
        return Share(hits=sum(found), of=len(found))

    def figures(self) -> tuple[AcceptanceFigures, ...]:
        """How it stands, for each origin of which there is a verdict."""
        return tuple(_figures(origin, said) for origin, said in self._said.items() if said)


def _figures(origin: Origin, said: Mapping[int, _Said]) -> AcceptanceFigures:
    weeks: dict[date, Counter[bool]] = defaultdict(Counter)
    for each in said.values():
        day = each.at.astimezone(UTC).date()
        weeks[day - timedelta(days=day.weekday())][each.accepted] += 1
    return AcceptanceFigures(
        origin=origin,
        accepted=_share([each.accepted for each in said.values()]),
        weeks=tuple(
            Week(begins=monday, accepted=Share(hits=found[True], of=found.total()))
            for monday, found in sorted(weeks.items())
        ),
        curve=tuple(_buckets(said)),
    )


def _buckets(said: Mapping[int, _Said]) -> Iterable[Bucket]:
    attempts = sorted(said)
    size, larger = divmod(len(attempts), BUCKETS)
    at = 0
    for number in range(min(BUCKETS, len(attempts))):
        part = attempts[at : at + size + (number < larger)]
        at += len(part)
        accepted = _share([said[attempt].accepted for attempt in part])
        yield Bucket(first=part[0], last=part[-1], accepted=accepted)


def _share(accepted: Sequence[bool]) -> Share:
    return Share(hits=sum(accepted), of=len(accepted))
