"""`midwatch replay`: run the current rules over recorded runs, and print alerts or a table."""

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import TraceError, UsageError
from midwatch_monitor.records import Severity
from midwatch_monitor.replay.replay import (
    AlertLine,
    DamageLine,
    FaultLine,
    ReplayLine,
    TraceLine,
    replay_together,
)
from midwatch_monitor.replay.replay import replay as replay_trace
from midwatch_monitor.rules.overrides import rule_settings
from midwatch_monitor.traces import AUTO, FORMATS, find_traces, recognise
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.numbers import count_noun, number
from midwatch_supervisor.present.text_line import brief, cut_middle
from midwatch_supervisor.report.section import table, table_lines

FormatOption = Annotated[str, Parameter(help=f"The traces' format: {AUTO}, {', '.join(FORMATS)}.")]


def check_format(format: str) -> None:
    """Raise UsageError for an unknown format of traces."""
    if format not in (AUTO, *FORMATS):
        raise UsageError(f"no trace format is called {format!r}: {AUTO}, {', '.join(FORMATS)}")


def replay(
    *paths: Annotated[
        Path,
        Parameter(
            help="Traces; a folder means all known ones below it. FILE:STEP, as "
            "printed in the table, means FILE.",
            required=True,
        ),
    ],
    format: FormatOption = AUTO,
    worker: Annotated[
        str, Parameter(help="Use the configuration's thresholds for this worker.")
    ] = "",
    together: Annotated[
        bool, Parameter(help="Treat the traces as attempts that ran side by side on one project.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Run the current rules over recorded runs.

    Prints every alert of a single file; of several files, a table of the runs with alerts. If files
    cannot be read, they are reported, the others are replayed, and the exit code is 2; with
    --together, none is replayed.
    """
    check_format(format)
    settings = settings_in_force(config)
    _check_worker(worker, settings.rules)
    files = [_without_step(path) for path in paths]
    unread: list[Path] = []
    if together:
        runs = [replay_together(files, settings, format=format, worker=worker)]
    else:
        found = (find_traces(each, format) if each.is_dir() else [each] for each in files)
        traces = chain.from_iterable(found)
        runs = (_replay_trace(each, settings, format, worker, unread) for each in traces)
    runs = map(_cut_damage, runs)
    several = len(files) > 1 or (files[0].is_dir() and recognise(files[0], format) is None)
    if several and not json:
        _print_table(files, runs, unread)
    else:
        for line in chain.from_iterable(runs):
            _print_line(line, json=json)
    return 2 if unread else 0


def _replay_trace(
    trace: Path, settings: Settings, format: str, worker: str, unread: list[Path]
) -> Iterator[ReplayLine]:
    """Run the rules over a trace; one that cannot be read is reported and added to `unread`."""
    try:
        yield from replay_trace(trace, settings, format=format, worker=worker)
    except TraceError as error:
        write_error(str(error))
        unread.append(trace)


_MOST_DAMAGE = 3
"""Number of skipped lines of one trace that are shown."""


def _cut_damage(run: Iterator[ReplayLine]) -> Iterator[ReplayLine]:
    """Yield the lines without the rest of much damage to a trace, which is reported at its end."""
    damaged = Counter[str]()
    for line in run:
        if isinstance(line, DamageLine):
            damaged[line.trace] += 1
            if damaged[line.trace] > _MOST_DAMAGE:
                continue
        elif isinstance(line, TraceLine) and (more := damaged[line.trace] - _MOST_DAMAGE) > 0:
            write_error(f"{line.trace}: {count_noun(more, 'more line')} skipped")
        yield line


def _check_worker(worker: str, rules: Rules) -> None:
    """Raise UsageError for a worker without thresholds of its own."""
    each = rule_settings(rules).values()
    known = sorted({name for settings in each for name in settings.workers})
    if worker and worker not in known:
        there = f"there are some for: {', '.join(known)}" if known else "there are none for any"
        raise UsageError(f"the configuration has no thresholds for a worker {worker!r}; {there}")


_PLACE = re.compile(r"(.+):\d+", re.DOTALL)


def _without_step(path: Path) -> Path:
    """Return the file of `FILE:STEP`; a path that exists is taken as it is."""
    place = _PLACE.fullmatch(str(path))
    if place is None or path.exists() or not Path(place[1]).exists():
        return path
    return Path(place[1])


def _print_table(
    paths: Sequence[Path], runs: Iterable[Iterator[ReplayLine]], unread: Sequence[Path]
) -> None:
    sessions = [each for run in runs for each in replayed_sessions(_find_alerts(run))]
    read = {each.path for each in sessions}.union(unread)
    skipped = max(0, sum(map(_count_files, paths)) - sum(map(_count_files, read)))
    width = shutil.get_terminal_size().columns
    write_line(*session_table(sessions, skipped=skipped, width=width))


def _find_alerts(run: Iterator[ReplayLine]) -> Iterator[AlertLine | TraceLine]:
    """Yield the alerts of one trace, and print problems in reading it where they occur."""
    for line in run:
        if isinstance(line, AlertLine | TraceLine):
            yield line
        else:
            _print_line(line, json=False)


def _count_files(path: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(path)) if path.is_dir() else 1


def _print_line(line: ReplayLine, *, json: bool) -> None:
    match line:
        case DamageLine():
            write_error(f"{line.trace}:{line.line}: skipped: {line.problem}")
        case FaultLine():
            write_error(f"{line.trace}: the rule {line.rule} failed and was off: {line.error}")
        case _ if json:
            write_json(asdict(line))
        case AlertLine():
            write_line(_alert_text(line))
        case TraceLine():
            write_line(_trace_text(line))


def _alert_text(line: AlertLine) -> str:
    seen = f" (steps {', '.join(str(step) for step in line.evidence)})" if line.evidence else ""
    return f"{line.trace}: step {line.step}: {line.severity} {line.rule}: {line.summary}{seen}"


def _trace_text(line: TraceLine) -> str:
    first = line.first_alarm_step
    alarm = "no alarm" if first is None else f"first alarm at step {first}"
    steps, alerts = count_noun(line.steps, "step"), count_noun(line.alerts, "alert")
    return f"{line.trace}: {steps}, {alerts}, {alarm}"


_HEADS = ("session", "steps", "alarms", "first")
_WRONG = "worst alarm"
_MIN_NAME = 10
_MIN_WRONG = 20
_MIN_WRONG_BESIDE = 40
"""Columns that an error message needs before its place fits on the same line."""


@dataclass(slots=True, kw_only=True)
class ReplayedSession:
    """What the rules say about one trace."""

    path: Path
    steps: int = 0
    alarms: int = 0
    """Number of alarms that fired; a rise in severity is not another alarm."""
    first: int = 0
    """Step of the first alarm."""
    worst: AlertLine | None = None
    """The first alarm of the highest severity."""
    _latest: dict[tuple[str, str], Severity] = field(
        default_factory=dict[tuple[str, str], Severity]
    )

    def observe(self, alert: AlertLine) -> None:
        """Count an alert that fires or whose severity rises."""
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
    """Return the sessions of one replay, in the order found."""
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
    """Return a table of sessions with alarms, at most `width` wide, a count of the others, and the
    totals.
    """
    found = [(each, each.worst) for each in sessions if each.worst is not None]
    found.sort(key=lambda each: (-each[1].severity.rank, -each[0].alarms, each[0].first))
    if found:
        yield from _session_lines(found, width)
        if calm := len(sessions) - len(found):
            yield f"{count_noun(calm, 'more session')} without an alarm"
        yield ""
    critical = sum(worst.severity is Severity.CRITICAL for _, worst in found)
    alarmed = f"{number(len(found))} with alarms" if found else "none with an alarm"
    parts = (
        count_noun(len(sessions), "session"),
        count_noun(sum(each.steps for each in sessions), "step"),
        f"{alarmed} ({number(critical)} critical)" if critical else alarmed,
        f"{count_noun(skipped, 'other file')} skipped" if skipped else "",
    )
    yield ", ".join(filter(None, parts))
    if found:
        yield "All alerts of one session: midwatch replay FILE"


def _session_lines(found: Sequence[tuple[ReplayedSession, AlertLine]], width: int) -> Iterator[str]:
    """Return a line for each session, with its place on a second line if both do not fit on one."""
    names = _short_names([session.path for session, _ in found], max(_MIN_NAME, width // 4))
    figures = [
        (name, session.steps, session.alarms, session.first)
        for name, (session, _) in zip(names, found, strict=True)
    ]
    heading, *starts = table_lines(table(_HEADS, figures))
    places = [_step_place(session.path, worst.step) for session, worst in found]
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


def _short_names(paths: Sequence[Path], width: int) -> list[str]:
    """Return short names; equal names are told apart by their folders."""
    # OpenHands keeps a conversation in the folder ID/events.
    named = [path.parent if path.name == "events" else path for path in paths]
    stems = [path.stem.removesuffix(".traj") for path in named]
    often = Counter(stems)
    return [
        cut_middle(f"{path.parent.name}/{stem}" if often[stem] > 1 else stem, width)
        for path, stem in zip(named, stems, strict=True)
    ]


def _step_place(path: Path, step: int) -> str:
    """Return a file and a step as one shell word that is never an option."""
    file = f"./{path}" if str(path).startswith("-") else str(path)
    return shlex.quote(f"{file}:{step}")
