"""The banner: problems with the watch itself."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.text import Text
from textual.widgets import Static

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import Activity, Fault, Lifecycle
from midwatch_supervisor.present.text_line import NODE, because, one_line
from midwatch_supervisor.present.waiting import TURN, asks_person, attach_command, monitor_absent
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import Row
from midwatch_supervisor.tui.widgets.table import clock, long_span, span

_PATIENT = 3.0
"""Seconds without an answer from the journal before that is reported."""
_NO_CONNECTION = "no connection to the journal, trying again"
_NEXT_TIME = "watch it yourself; a new attempt has the rule again"
LASTING = timedelta(minutes=1)
"""How long a temporary problem is shown; a failing monitor reports more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem with the watch itself."""

    what: str
    since: datetime
    remedy: str = ""
    """What a person can do about it; empty if that is in `what`, or unknown."""
    last: datetime | None = None
    """When a temporary problem was last reported."""

    key: str = ""
    """Its subject, if `what` changes with time; else empty."""

    @property
    def text(self) -> str:
        return f"{self.what} → {self.remedy}" if self.remedy else self.what

    @property
    def mark(self) -> tuple[str, datetime]:
        """Distinguishes it from others, and from itself before a change."""
        return self.key or self.what, self.since

    def passed(self, now: datetime) -> bool:
        """Whether it no longer needs to be shown."""
        return self.last is not None and now - self.last > LASTING


def failed_parts(faults: Collection[tuple[datetime, Row | None, Fault]]) -> list[Trouble]:
    """Return failures that still matter: an ended attempt no longer needs rules.

    A lost node is in the attention queue; the watch continues without it.
    """
    if not faults:
        return []
    from midwatch_supervisor.present.record_text import RULES, fault_text  # not for the first frame

    return [
        Trouble(
            what=fault_text(fault, f" in {row.label}" if row else ""),
            since=at,
            remedy=_NEXT_TIME if fault.part in RULES else "work continues without it",
        )
        for at, row, fault in faults
        if fault.part != NODE and (row is None or not row.over)
    ]


def journal_still(
    rows: Iterable[Row], last_at: datetime | None, now: datetime, *, stale_seconds: float
) -> Trouble | None:
    """Return the problem that agents are working but the journal is not growing, else `None`."""
    if last_at is None or (now - last_at).total_seconds() < stale_seconds:
        return None
    at_work = sum(works(row) for row in rows)
    if not at_work:
        return None
    agents, still = ("1 agent", "is it") if at_work == 1 else (f"{at_work} agents", "are they")
    silent = long_span((now - last_at).total_seconds())
    what = f"No new data for {silent}; {agents} should be working"
    return Trouble(
        what=what,
        since=last_at,
        remedy=f"{still} still running? See `{command('status')}`",
        key=f"still {agents}",
    )


def interrupted_run(board: FleetBoard) -> Trouble | None:
    """Return the problem that tasks could continue but their process is gone, else `None`."""
    rows = (row for row in board.all_rows() if row.run in board.interrupted)
    for id in sorted({row.run for row in rows if _could_continue(board, row)}):
        run = board.runs.get(id)
        if run is not None:
            since = board.last_at or run.started_at
            remedy = f"`{command(f'resume --run {id}')}` continues it"
            if run.of_session:
                what = f"nothing is watching the session of run {id}"
                return Trouble(what=what, since=since, remedy=f"`{attach_command(run.agent)}`")
            if any(each.run == id and each.embedded for each in board.tasks.values()):
                remedy = f"`{command(f'cancel --run {id}')}` cancels it"
            return Trouble(what=f"no process works on run {id}", since=since, remedy=remedy)
    return None


def no_node(board: FleetBoard) -> Trouble | None:
    """Return the problem that a fleet has tasks but no node, else `None`."""
    waiting = board.without_node
    if not waiting:
        return None
    runs = {row.run for row in waiting}
    beats = [each.beat_at for run in runs for each in board.nodes_of(run)]
    since = max(beats, default=min(board.runs[run].started_at for run in runs))
    tasks = "1 task is" if len(waiting) == 1 else f"{len(waiting)} tasks are"
    names = ", ".join(sorted({board.fleets[run] for run in runs}))
    of = f" of fleet {names}" if board.node_list.at_work else ""
    what = f"no node{of} is up, and {tasks} waiting for one"
    return Trouble(what=what, since=since, remedy=f"`{command('node')}` starts one")


def no_monitor(board: FleetBoard, now: datetime) -> Trouble | None:
    """Return the problem that a fleet has tasks but no monitor, else `None`."""
    monitors = board.node_list.monitors
    what = "" if monitors is None else monitor_absent(monitors, now)
    handed_over = board.open_since if what else None
    if handed_over is None:
        return None
    since = max((each.until for each in monitors or ()), default=handed_over)
    return Trouble(what=what, since=since, key="no monitor")


def missing_parts(board: FleetBoard, now: datetime) -> Trouble | None:
    """Return what a fleet lacks as one problem, because the banner shows only one."""
    found = [each for each in (no_node(board), no_monitor(board, now)) if each is not None]
    if len(found) < 2:
        return found[0] if found else None
    return Trouble(
        what="; ".join(each.text for each in found),
        since=max(each.since for each in found),
        key=" ".join(each.mark[0] for each in found),
    )


def _could_continue(board: FleetBoard, row: Row) -> bool:
    """Whether a row works, or could without a person or another task."""
    waits = row.over or row.state.idle or asks_person(row.state)
    return works(row) or not (waits or board.turn(row) not in {"", TURN})


def works(row: Row) -> bool:
    """Whether an attempt should write entries: it is working, here or on a running node."""
    if row.adrift or row.state.activity is Activity.WAITING:
        return False
    return row.lifecycle is Lifecycle.WORKING


def newest_of(troubles: Sequence[Trouble]) -> Trouble:
    """Return the problem to show. Raises ValueError if there is none."""
    return max(troubles, key=lambda trouble: trouble.since)


def banner_text(troubles: Sequence[Trouble], now: datetime) -> str:
    """Return the newest problem as one line, with the number of others; empty if there are none."""
    if not troubles:
        return ""
    newest = newest_of(troubles)
    others = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
    age = span((now - newest.since).total_seconds())
    return one_line(f"! since {clock(newest.since, now)} ({age}){others}: {newest.text}")


class BannerLine(Static):
    """Shows what is wrong, in three lines at most; hidden while all is well."""

    DEFAULT_CSS = """
    BannerLine { height: auto; max-height: 3; display: none; padding: 0 1; }
    BannerLine { background: $error; color: $text; text-style: bold; }
    BannerLine.trouble { display: block; }
    """
    said = ""
    """Its current text."""

    def show_text(self, said: str, hint: str = "") -> None:
        if said != self.said:
            self.said = said
            self.set_class(bool(said), "trouble")
            self.update(Text(f"{said}{hint}" if said else ""))


class Banner(BannerLine):
    """Looks for what is wrong; it can be dismissed."""

    def __init__(
        self,
        board: FleetBoard,
        now: Callable[[], datetime],
        *,
        stale_seconds: float,
    ) -> None:
        super().__init__(markup=False, id="banner")
        self._board = board
        self._now = now
        self._stale_seconds = stale_seconds
        self._reported: dict[str, Trouble] = {}
        self._dropped = 0
        self._silence: Trouble | None = None
        self._troubles: Sequence[Trouble] = ()
        """All problems that were not dismissed."""
        self._put_away: set[tuple[str, datetime]] = set()

    def report(self, part: str, what: str, *, remedy: str = "", passing: bool = False) -> None:
        """Report a problem with the watch that is not in the journal.

        A `passing` problem is forgotten a minute after its last report.
        """
        now, before = self._now(), self._reported.get(part)
        since = before.since if before is not None and before.what == what else now
        last = now if passing else None
        self._reported[part] = Trouble(what=what, since=since, remedy=remedy, last=last)

    def forget(self, part: str) -> None:
        """Withdraw the problem reported for a part of the watch."""
        self._reported.pop(part, None)

    def report_drops(self, dropped: int) -> None:
        """Report dropped hints: their entries are still read from the journal, but later."""
        if dropped > self._dropped:
            self._dropped = dropped
            what = "the bus is dropping hints: the display may lag"
            self.report(
                "bus", what, remedy="nothing to do: the journal has everything", passing=True
            )

    def report_silence(self, seconds: float, problem: str) -> None:
        """Report how long the journal has not answered, and why, if known."""
        if seconds < _PATIENT:
            self._silence = None
            return
        began = self._now() - timedelta(seconds=seconds)
        since = began if self._silence is None else self._silence.since
        what = f"{_NO_CONNECTION}{because(problem)}"
        self._silence = Trouble(what=what, since=since, remedy="check the journal's database")

    def refresh_board(self) -> None:
        """Look for problems, and show the newest."""
        now, board = self._now(), self._board
        # What has been read so far is old, and says nothing about the present.
        found = [] if board.loading else [missing_parts(board, now)]
        if not board.loading and no_node(board) is None:
            rows, last_at = board.rows.values(), board.last_at
            still = journal_still(rows, last_at, now, stale_seconds=self._stale_seconds)
            found.append(interrupted_run(board) or still)
        kept = {part: each for part, each in self._reported.items() if not each.passed(now)}
        self._reported = kept
        troubles = [*failed_parts(board.faults), *kept.values(), *filter(None, found)]
        # While the journal is unreadable, nothing else is known.
        silence = [self._silence] if self._silence else []
        self._put_away &= {each.mark for each in (*silence, *troubles)}
        self._troubles = [each for each in silence or troubles if each.mark not in self._put_away]
        self.show_text(banner_text(self._troubles, now), " (esc)")

    def put_away(self) -> bool:
        """Dismiss the shown problem until it changes; return whether there was one."""
        if self._troubles:
            self._put_away.add(newest_of(self._troubles).mark)
            self.refresh_board()
            return True
        return False
