"""A line or three at the top, while the watch itself is unhealthy: what, and since when."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text
from textual.widgets import Static

from midwatch_monitor.records import Activity, Fault, Lifecycle
from midwatch_supervisor.present.absence import monitor_absent
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.record_text import fault_text
from midwatch_supervisor.present.text_line import NODE, because
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Need, Row

"""The parts of the watch that are rules."""
_PATIENT = 3.0
"""Seconds for which the journal may owe an answer."""
_NO_CONNECTION = "no connection to the journal, trying again"
LASTING = timedelta(minutes=1)
"""How long a passing trouble is shown; a monitor that fails says so at each tick, sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something about the watch itself that is wrong."""

    what: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Trouble):
    """A trouble that the banner was told of, and that nothing in the journal ends."""

    told_at: datetime
    passing: bool

    def passed(self, now: datetime) -> bool:
        """Whether it need not be shown any more."""
        return self.passing and now - self.told_at > LASTING


def broken(faults: Iterable[tuple[datetime, Row | None, Fault]]) -> list[Trouble]:
    """What failed and still matters: an attempt that is over needs no rule any more.

    A node that is lost stands in the queue for a person; the watch goes on without it.
    """
    return [
        Trouble(what=_fault(row, fault), since=at)
        for at, row, fault in faults
        if fault.part != NODE and (row is None or row.need is not Need.OVER)
    ]


def _fault(row: Row | None, fault: Fault) -> str:
    where = f" in {row.name}#{row.number}" if row else ""
    return fault_text(fault, where)


def standing_still(
    rows: Iterable[Row], last_at: datetime | None, now: datetime, *, stale_seconds: float
) -> Trouble | None:
    """That the journal does not grow although somebody works, if it is so."""
    if last_at is None or (now - last_at).total_seconds() < stale_seconds:
        return None
    at_work = sum(works(row) for row in rows)
    if not at_work:
        return None
    attempts = "1 attempt works" if at_work == 1 else f"{at_work} attempts work"
    return Trouble(what=f"the journal does not grow, though {attempts}", since=last_at)


def nobody_works(board: Board) -> Trouble | None:
    """That there are tasks of a fleet to be worked on and no node, if it is so."""
    if not board.muster.read or board.muster.at_work:
        return None
    handed_over, waiting = board.open_since, sum(board.shared(row) for row in board.all_rows())
    if handed_over is None:
        return None
    attempts = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
    since = max((each.beat_at for each in board.muster.nodes.values()), default=handed_over)
    return Trouble(what=f"no node is up, and {attempts} for one", since=since)


def nobody_watches(board: Board, now: datetime) -> Trouble | None:
    """That there are tasks of a fleet to be worked on and no monitor, if it is so."""
    monitors = board.muster.monitors
    what = "" if monitors is None else monitor_absent(monitors, now)
    handed_over = board.open_since if what else None
    if handed_over is None:
        return None
    since = max((each.until for each in monitors or ()), default=handed_over)
    return Trouble(what=what, since=since)


def lacking(board: Board, now: datetime) -> Trouble | None:
    """What a fleet with something to do has not, all of it in one: each alone would hide others."""
    found = [each for each in (nobody_works(board), nobody_watches(board, now)) if each is not None]
    if not found:
        return None
    return Trouble(
        what="; ".join(each.what for each in found), since=max(each.since for each in found)
    )


def works(row: Row) -> bool:
    """Whether entries are to be expected of an attempt: it works, here or on a node that lives."""
    if row.adrift or row.activity is Activity.WAITING:
        return False
    return row.lifecycle is Lifecycle.WORKING


def spoken(troubles: Sequence[Trouble], now: datetime) -> str:
    """The newest trouble in one line, and how many more there are; empty if all is well."""
    if not troubles:
        return ""
    newest = max(troubles, key=lambda trouble: trouble.since)
    others = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
    at = newest.since.astimezone(now.tzinfo)
    age = span((now - newest.since).total_seconds())
    return one_line(f"! since {at:%H:%M:%S} ({age}){others}: {newest.what}")


class Banner(Static):
    """What is wrong, in three lines at most; it is not there while all is well."""

    DEFAULT_CSS = """
    Banner { height: auto; max-height: 3; display: none; padding: 0 1; }
    Banner { background: $error; color: $text; text-style: bold; }
    Banner.trouble { display: block; }
    """

    def __init__(self, board: Board, now: Callable[[], datetime], *, stale_seconds: float) -> None:
        super().__init__(markup=False, id="banner")
        self._board = board
        self._now = now
        self._stale_seconds = stale_seconds
        self._told: dict[str, Told] = {}
        self._dropped = 0
        self._silence: Trouble | None = None
        self.said = ""
        """What it says now."""

    def tell(self, part: str, what: str, *, passing: bool = False) -> None:
        """Something that the journal does not say is wrong with a part of the watch.

        What is `passing` is forgotten when it has not been told again for a minute.
        """
        now, before = self._now(), self._told.get(part)
        since = before.since if before is not None and before.what == what else now
        self._told[part] = Told(what=what, since=since, told_at=now, passing=passing)

    def forget(self, part: str) -> None:
        """What was told of a part of the watch is over."""
        self._told.pop(part, None)

    def hear_of_drops(self, dropped: int) -> None:
        """How many hints the bus has dropped so far: the journal has all, but later."""
        if dropped > self._dropped:
            self._dropped = dropped
            self.tell("bus", "the bus drops hints: what is shown may be late", passing=True)

    def hear_of_silence(self, seconds: float, problem: str) -> None:
        """For how long the journal has not answered, and why, as far as that is known."""
        if seconds < _PATIENT:
            self._silence = None
            return
        began = self._now() - timedelta(seconds=seconds)
        since = began if self._silence is None else self._silence.since
        self._silence = Trouble(what=f"{_NO_CONNECTION}{because(problem)}", since=since)

    def refresh_board(self) -> None:
        """Look whether all is well."""
        now = self._now()
        missing = [lacking(self._board, now)]
        if nobody_works(self._board) is None:
            missing.append(self._stands_still(now))
        self._told = {part: told for part, told in self._told.items() if not told.passed(now)}
        found = [each for each in missing if each is not None]
        troubles = [*broken(self._board.faults), *self._told.values(), *found]
        # Of a journal that nobody can read nothing else is known.
        said = spoken([self._silence] if self._silence else troubles, now)
        if said != self.said:
            self.said = said
            self.set_class(bool(said), "trouble")
            self.update(Text(said))

    def _stands_still(self, now: datetime) -> Trouble | None:
        rows, last_at = self._board.rows.values(), self._board.last_at
        return standing_still(rows, last_at, now, stale_seconds=self._stale_seconds)
