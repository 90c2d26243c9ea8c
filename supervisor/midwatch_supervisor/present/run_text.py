"""A run for people: a line for each event, and its tasks' results at the end. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from shlex import quote
from textwrap import wrap

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import (
    Acceptance,
    Alert,
    AlertState,
    AttemptTransition,
    Change,
    Entry,
    Escalation,
    EscalationState,
    Lifecycle,
    Outage,
    Resolution,
    Step,
    TaskTransition,
)
from midwatch_monitor.state.task import TaskState
from midwatch_monitor.state.usage import Usage, spent_usage
from midwatch_supervisor.present.file_changes import FileChange, changes_text
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.numbers import checks_text, count_noun, list_names, usage_text
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import brief, status_text, with_reservations
from midwatch_supervisor.present.waiting import answer_commands, task_waits_for

_BLOCKS = 4
"""With more tasks than this, each has a line instead of a block."""
_LABEL = 8
_REASON = 300
_CHECK = 80
_NAMED = 4
"""Number of tasks that are named beside a command."""

_COUNT = re.compile(r"(\d) (?=\w)")

LabelledText = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of one task."""

    state: TaskState
    branch: str = ""
    """Empty if it did not work in git."""
    folder: str = ""
    """The workspace as a path from here; empty before the first attempt."""
    files: tuple[FileChange, ...] | None = None
    """Changed files; `None` if unknown."""
    wanted: int = 0
    """Number of acceptance checks."""

    @property
    def mergeable(self) -> bool:
        """Whether there is something to merge or take: a branch with commits, or changed files."""
        done = self.state.lifecycle is Lifecycle.COMPLETED
        return done and (bool(self.files) or (bool(self.branch) and self.files is None))

    def take(self, name: str, of: str) -> str:
        """Return the command that merges or takes it, with a name for its task."""
        return command(f"merge {name}{of}{'' if self.branch else ' --into FOLDER'}")


def run_end(results: Sequence[TaskResult], *, width: int, of: str = "") -> Iterator[str]:
    """Return the lines at the end of a run, for a terminal of this width.

    `of` names the run in commands, if they need it.
    """
    if len(results) <= _BLOCKS:
        for result in results:
            yield ""
            yield from _result_block(result, width, of)
        yield ""
        return
    yield ""
    for result in results:
        yield from _compact_block(result, width, of)
    yield ""
    yield from _row_lines(_sum_rows(results, of), width)


def _result_block(result: TaskResult, width: int, of: str) -> Iterator[str]:
    state = result.state
    yield f"{state.task.name}: {_status_words(state)}"
    where = ("branch", result.branch) if result.branch else ("folder", result.folder)
    rows = (
        *_reason_rows(state),
        ("changes", "" if result.files is None else changes_text(result.files)),
        where,
        ("checks", _checks_text(result)),
        ("tries", _tries_text(state)),
        ("used", _usage_words([state])),
    )
    yield from _row_lines([*rows, *_next_commands(result, of)], width)


def _compact_block(result: TaskResult, width: int, of: str) -> Iterator[str]:
    state = result.state
    parts = (
        _status_words(state),
        "" if result.files is None else changes_text(result.files),
        checks_text(state.passed, state.total) if state.total else "",
        count_noun(len(state.attempts), "attempt"),
        _usage_text(replace(state.used, requests=0)) if state.used.tokens else "",
    )
    line = f"{state.task.name}: {', '.join(filter(None, parts))}"
    yield from _wrap_line(line, width, indent="  ")
    answers = (row for row in _next_commands(result, of) if row[0] == "answer")
    yield from _row_lines([*_reason_rows(state), *answers], width)


def _sum_rows(results: Sequence[TaskResult], of: str) -> Iterator[LabelledText]:
    yield "used", _usage_words([each.state for each in results])
    if any(each.files for each in results):
        yield "look", command(f"diff TASK{of}")
    takes = defaultdict[str, list[str]](list)
    for each in results:
        if each.mergeable:
            takes[each.take("TASK", of)].append(each.state.task.name)
    for take, names in takes.items():
        yield "take", take if len(takes) == 1 else f"{take} ({list_names(names, _NAMED)})"
    if any(not each.state.over for each in results):
        yield "continue", command(f"resume{of}")


def _status_words(state: TaskState) -> str:
    """Return the status, with any reservations about a completed task."""
    accepted = state.verdict.accepted if state.verdict else None
    reservations = "" if accepted is False else with_reservations(state.reservations)
    return ", ".join(filter(None, (status_text(state.status, accepted=accepted), reservations)))


def _reason_rows(state: TaskState) -> Iterator[LabelledText]:
    if state.over and state.lifecycle is not Lifecycle.COMPLETED:
        yield "why", brief(state.transition.reason, _REASON)
    elif not state.over:
        yield "waits", brief(f"for {task_waits_for(state)}", _REASON)


def _checks_text(result: TaskResult) -> str:
    """Return the checks that ran and their results; those of an earlier attempt are marked."""
    state = result.state
    found = state.checks.values()
    if not found:
        return f"none of {result.wanted} ran" if result.wanted else "none"
    failed = [_failure_text(each) for each in found if not each.passed]
    passed = [brief(each.check, _CHECK) for each in found if each.passed]
    parts = [checks_text(len(passed), len(found))]
    parts += [f"failed: {', '.join(failed)}"] if failed else []
    parts += [f"passed: {', '.join(passed)}"] if passed else []
    earlier = state.attempts.get(state.checked or 0)
    of = f" (attempt {earlier.attempt.number})" if earlier and earlier is not state.latest else ""
    return f"{'; '.join(parts)}{of}"


def _failure_text(check: Acceptance) -> str:
    said = check.detail.splitlines()[0] if check.detail else "failed"
    return f"{brief(check.check, _CHECK)} ({brief(said, _CHECK)})"


def _tries_text(state: TaskState) -> str:
    delivered = len(state.delivered)
    parts = [count_noun(len(state.attempts), "attempt"), count_noun(state.alerts, "alert")]
    if delivered:
        parts.append(f"{count_noun(delivered, 'intervention')}, {state.recovered} recovered")
    return ", ".join(parts)


def _usage_words(states: Sequence[TaskState]) -> str:
    """Return what the workers used, then every other role."""
    roles: dict[str, Usage] = {}
    for state in states:
        for (role, _), spent in state.spent.items():
            roles[role] = roles.get(role, Usage()) + spent_usage(spent)
    workers = sum((state.used for state in states), Usage())
    parts = [
        _usage_text(workers),
        *(f"{brief(role)} {_usage_text(used)}" for role, used in roles.items()),
    ]
    return "; ".join(parts)


def _usage_text(used: Usage) -> str:
    return usage_text(requests=used.requests, tokens=used.tokens, cost_usd=used.cost_usd)


def _next_commands(result: TaskResult, of: str) -> Iterator[LabelledText]:
    """Return the commands to run next."""
    name = quote(result.state.task.name)
    if not result.state.over:
        yield from (("answer", each) for each in answer_commands(result.state, of))
        yield "continue", command(f"resume{of}")
    if result.files:
        yield "look", command(f"diff {name}{of}")
    elif result.state.attempts and not result.mergeable:
        yield "look", command(f"show {name}{of}")
    if result.mergeable:
        yield "take", result.take(name, of)


_COMMANDS = frozenset({"answer", "continue", "look", "take"})


def _row_lines(rows: Iterable[LabelledText], width: int) -> Iterator[str]:
    """Yield labelled values; empty ones are left out, and a command is never broken."""
    indent = " " * (_LABEL + 3)
    for label, value in rows:
        head = f"  {label:<{_LABEL}} "
        if label in _COMMANDS and value:
            yield f"{head}{value}"
        elif value:
            yield from _wrap_line(head + value, width, indent=indent)


def _wrap_line(line: str, width: int, *, indent: str) -> list[str]:
    """Wrap to as many lines as needed; a count stays with its noun."""
    lines = wrap(
        _COUNT.sub("\\1\xa0", line),
        max(width, 2 * len(indent)),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [each.replace("\xa0", " ") for each in lines]


_WIDTH = 240
"""Characters of a line; `show` and the console have everything."""


def progress_line(entry: Entry, transcript: Transcript, zone: tzinfo | None = None) -> str | None:
    """Return one line of progress, with its time in `zone` (default: this machine's), or `None`.

    Leaves out a task that ends with its attempt, unless checks decided; alerts that do not fire yet
    or only end with their attempt; and an escalation after its opening. The transcript must already
    have taken in the entry.
    """
    if not _tells_of_run(entry):
        return None
    record = entry.record
    about, plan_steps = transcript.about(entry), transcript.plan_steps(entry)
    told = line(record, about, id=entry.id, plan_steps=plan_steps)
    head = "" if told.what == "status" else f"{told.what}: "
    step = f"step {record.number}, " if isinstance(record, Step) else ""
    began = isinstance(record, AttemptTransition) and not record.lifecycle.over
    worker = transcript.worker(entry) if began else ""
    text = brief(f"{step}{head}{told.text}{f' ({worker})' if worker else ''}", _WIDTH)
    if began and (asked := transcript.permission(entry)):
        text = f"{text}: `{command(f'approve {asked}')}` or `{command(f'reject {asked}')}`"
    return f"{entry.at.astimezone(zone):%H:%M:%S} {transcript.name(entry)}: {text}"


def _tells_of_run(entry: Entry) -> bool:
    match entry.record:
        case TaskTransition(total=0) as state:  # its last attempt says how it ended
            return entry.attempt is None or not state.lifecycle.over
        case Alert() as alert:
            resolved = alert.state is AlertState.RESOLVED
            return alert.firing or (resolved and alert.resolution is not Resolution.ENDED)
        case Escalation() as asked:
            return asked.state is EscalationState.OPEN
        case Change(outage=Outage() as outage):  # a refusal ends the run, with its own message
            return outage.over or outage.next_try is not None
        case _:
            return True
