"""The lines at the top: what is watched; and while the watch itself is unhealthy, what is wrong."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text
from textual.widgets import Static

from midwatch_monitor.records import Activity, Fault, Lifecycle
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.record_text import fault_text
from midwatch_supervisor.present.text_line import NODE, because
from midwatch_supervisor.present.waiting import monitor_absent
from midwatch_supervisor.tui.state.board import Board
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.table import long_span, span

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
    last: datetime | None = None
    """When the banner was told of it the last time, if it passes unless it is told again."""

    def passed(self, now: datetime) -> bool:
        """Whether it need not be shown any more."""
        return self.last is not None and now - self.last > LASTING


def failed_parts(faults: Iterable[tuple[datetime, Row | None, Fault]]) -> list[Trouble]:
    """What failed and still matters: an attempt that is over needs no rule any more.

    A node that is lost stands in the queue for a person; the watch goes on without it.
    """
    return [
        Trouble(what=fault_text(fault, f" in {row.label}" if row else ""), since=at)
        for at, row, fault in faults
        if fault.part != NODE and (row is None or not row.over)
    ]


def journal_still(
    rows: Iterable[Row], last_at: datetime | None, now: datetime, *, stale_seconds: float
) -> Trouble | None:
    """That the journal does not grow although somebody works, if it is so."""
    if last_at is None or (now - last_at).total_seconds() < stale_seconds:
        return None
    at_work = sum(works(row) for row in rows)
    if not at_work:
        return None
    agents = "1 agent" if at_work == 1 else f"{at_work} agents"
    silent = long_span((now - last_at).total_seconds())
    return Trouble(what=f"No new data for {silent}; {agents} should be working", since=last_at)


def no_node(board: Board) -> Trouble | None:
    """That there are tasks of a fleet to be worked on and no node, if it is so."""
    if not board.node_list.read or board.node_list.at_work:
        return None
    handed_over, waiting = board.open_since, sum(board.shared(row) for row in board.all_rows())
    if handed_over is None:
        return None
    attempts = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
    since = max((each.beat_at for each in board.node_list.nodes.values()), default=handed_over)
    return Trouble(what=f"no node is up, and {attempts} for one", since=since)


def no_monitor(board: Board, now: datetime) -> Trouble | None:
    """That there are tasks of a fleet to be worked on and no monitor, if it is so."""
    monitors = board.node_list.monitors
    what = "" if monitors is None else monitor_absent(monitors, now)
    handed_over = board.open_since if what else None
    if handed_over is None:
        return None
    since = max((each.until for each in monitors or ()), default=handed_over)
    return Trouble(what=what, since=since)


def missing_parts(board: Board, now: datetime) -> Trouble | None:
    """What a fleet with something to do has not, all of it in one: each alone would hide others."""
    found = [each for each in (no_node(board), no_monitor(board, now)) if each is not None]
    what = "; ".join(each.what for each in found)
    return Trouble(what=what, since=max(each.since for each in found)) if found else None


def works(row: Row) -> bool:
    """Whether entries are to be expected of an attempt: it works, here or on a node that lives."""
    if row.adrift or row.state.activity is Activity.WAITING:
        return False
    return row.lifecycle is Lifecycle.WORKING


def banner_text(troubles: Sequence[Trouble], now: datetime) -> str:
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
        self._reported: dict[str, Trouble] = {}
        self._dropped = 0
        self._silence: Trouble | None = None
        self.said = ""
        """What it says now."""

    def report(self, part: str, what: str, *, passing: bool = False) -> None:
        """Something that the journal does not say is wrong with a part of the watch.

        What is `passing` is forgotten when it has not been told again for a minute.
        """
        now, before = self._now(), self._reported.get(part)
        since = before.since if before is not None and before.what == what else now
        self._reported[part] = Trouble(what=what, since=since, last=now if passing else None)

    def forget(self, part: str) -> None:
        """What was told of a part of the watch is over."""
        self._reported.pop(part, None)

    def report_drops(self, dropped: int) -> None:
        """How many hints the bus has dropped so far: the journal has all, but later."""
        if dropped > self._dropped:
            self._dropped = dropped
            self.report("bus", "the bus drops hints: what is shown may be late", passing=True)

    def report_silence(self, seconds: float, problem: str) -> None:
        """For how long the journal has not answered, and why, as far as that is known."""
        if seconds < _PATIENT:
            self._silence = None
            return
        began = self._now() - timedelta(seconds=seconds)
        since = began if self._silence is None else self._silence.since
        self._silence = Trouble(what=f"{_NO_CONNECTION}{because(problem)}", since=since)

    def refresh_board(self) -> None:
        """Look whether all is well."""
        now, board = self._now(), self._board
        found = [missing_parts(board, now)]
        if no_node(board) is None:
            rows, last_at = board.rows.values(), board.last_at
            found.append(journal_still(rows, last_at, now, stale_seconds=self._stale_seconds))
        kept = {part: each for part, each in self._reported.items() if not each.passed(now)}
        self._reported = kept
        troubles = [*failed_parts(board.faults), *kept.values(), *filter(None, found)]
        # Of a journal that nobody can read nothing else is known.
        said = banner_text([self._silence] if self._silence else troubles, now)
        if said != self.said:
            self.said = said
            self.set_class(bool(said), "trouble")
            self.update(Text(said))
