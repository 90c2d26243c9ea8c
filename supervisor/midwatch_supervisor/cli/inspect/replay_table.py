"""Replayed sessions as a table for people: those with alarms, the worst first. Pure."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from midwatch_monitor.records import Severity
from midwatch_monitor.replay.replay import AlertLine, TraceLine
from midwatch_supervisor.present.numbers import counted, number
from midwatch_supervisor.present.text_line import brief, cut_middle
from midwatch_supervisor.report.section import table
from midwatch_supervisor.report.text import table_lines

_HEADS = ("session", "steps", "alarms", "first")
_WRONG = "what was wrong"
_MIN_NAME = 10
_MIN_WRONG = 20
_MIN_WRONG_BESIDE = 40
"""Columns that what was wrong needs before the place stands on the same line."""


@dataclass(slots=True, kw_only=True)
class ReplayedSession:
    """What the rules say of one trace."""

    path: Path
    steps: int = 0
    alarms: int = 0
    """How many times an alarm fired; a severity that rises is no further alarm."""
    first: int = 0
    """The step of the first alarm."""
    worst: AlertLine | None = None
    """The first alarm of the highest severity."""
    _latest: dict[tuple[str, str], Severity] = field(
        default_factory=dict[tuple[str, str], Severity]
    )

    def observe(self, alert: AlertLine) -> None:
        """Count an alert that fires, or whose severity rises."""
        if not alert.severity.alarm:
            return
        key = (alert.rule, alert.subject)
        before = self._latest.get(key)
        self._latest[key] = alert.severity
        if before is None or alert.severity.rank <= before.rank:
            self.alarms += 1
        if self.worst is None or alert.severity.rank > self.worst.severity.rank:
            self.worst = alert
        self.first = self.first or alert.step


def replayed_sessions(lines: Iterable[AlertLine | TraceLine]) -> list[ReplayedSession]:
    """The sessions of one replay, in the order in which they were met."""
    sessions: dict[str, ReplayedSession] = {}
    for line in lines:
        session = sessions.setdefault(line.trace, ReplayedSession(path=Path(line.trace)))
        if isinstance(line, AlertLine):
            session.observe(line)
        else:
            session.steps = line.steps
    return list(sessions.values())


def session_table(
    sessions: Sequence[ReplayedSession], *, skipped: int, width: int
) -> Iterator[str]:
    """Sessions with alarms, those without as a count, and the sums, for so many columns."""
    found = [(each, each.worst) for each in sessions if each.worst is not None]
    found.sort(key=lambda each: (-each[1].severity.rank, -each[0].alarms, each[0].first))
    if found:
        yield from _rows(found, width)
        if calm := len(sessions) - len(found):
            yield f"{counted(calm, 'more session')} without an alarm"
        yield ""
    critical = sum(worst.severity is Severity.CRITICAL for _, worst in found)
    alarmed = f"{number(len(found))} with alarms" if found else "none with an alarm"
    parts = (
        counted(len(sessions), "session"),
        counted(sum(each.steps for each in sessions), "step"),
        f"{alarmed} ({number(critical)} critical)" if critical else alarmed,
        f"{counted(skipped, 'other file')} skipped" if skipped else "",
    )
    yield ", ".join(filter(None, parts))
    if found:
        yield "All alerts of one session: midwatch replay FILE"


def _rows(found: Sequence[tuple[ReplayedSession, AlertLine]], width: int) -> Iterator[str]:
    """A line for each session; where it was stands below it if both do not fit on one."""
    names = _names([session.path for session, _ in found], max(_MIN_NAME, width // 4))
    figures = [
        (name, session.steps, session.alarms, session.first)
        for name, (session, _) in zip(names, found, strict=True)
    ]
    heading, *starts = table_lines(table(_HEADS, figures))
    places = [_place(session.path, worst.step) for session, worst in found]
    room = width - len(heading) - 2
    beside = room - max(map(len, places)) - 2
    if beside >= _MIN_WRONG_BESIDE:
        yield f"{heading}  {_WRONG:<{beside}}  where"
    else:
        yield f"{heading}  {_WRONG}"
    for start, place, (_, worst) in zip(starts, places, found, strict=True):
        wrong = f"{worst.rule}: {worst.summary}"
        if beside >= _MIN_WRONG_BESIDE:
            yield f"{start}  {brief(wrong, beside):<{beside}}  {place}"
        else:
            yield f"{start}  {brief(wrong, max(_MIN_WRONG, room))}"
            yield f"  {place}"


def _names(paths: Sequence[Path], width: int) -> list[str]:
    """Short names; those of one name get that of their folder."""
    stems = [path.stem.removesuffix(".traj") for path in paths]
    often = Counter(stems)
    return [
        cut_middle(f"{path.parent.name}/{stem}" if often[stem] > 1 else stem, width)
        for path, stem in zip(paths, stems, strict=True)
    ]


def _place(path: Path, step: int) -> str:
    """A file and a step as one word for a shell, never an option."""
    file = f"./{path}" if str(path).startswith("-") else str(path)
    return shlex.quote(f"{file}:{step}")
