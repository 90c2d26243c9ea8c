"""`midwatch show`: everything about one task or attempt."""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import (
    AlertKey,
    Attempt,
    Entry,
    Fact,
    Feedback,
    Health,
    Lesson,
    NodeStatus,
    Recall,
    Record,
    Step,
    Study,
    Summary,
    Task,
)
from midwatch_monitor.secrets.masking import Masker
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import WorkerRequest
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.inspect.status import health_of, waits_for
from midwatch_supervisor.cli.journals import JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.present.intervention_text import (
    action_text,
    alert_text,
    author_text,
    settled_text,
)
from midwatch_supervisor.present.json_lines import JsonLine, Transcript
from midwatch_supervisor.present.learning_text import NOTHING, GivenLearning
from midwatch_supervisor.present.lookup import (
    FoundTask,
    assignment_of,
    find_about,
    given_by,
    meet_new,
    set_wait,
    states_before,
    task_state,
)
from midwatch_supervisor.present.numbers import budget_text
from midwatch_supervisor.present.record_text import CONFIDENCE_SILENT, line, plan_lines
from midwatch_supervisor.present.text_line import because, status_text
from midwatch_supervisor.present.waiting import answer_commands, nodes_of
from midwatch_supervisor.workspaces.task_workspace import TaskWorkspace, workspace_in

TaskOrAttempt = Annotated[
    str,
    Parameter(
        name="ID",
        help="A task's id or a unique prefix of it, an attempt's id, or TASK#N for its attempt "
        "number N. The latest run that has it is used. The number of an intervention, a request "
        "or an escalation means the attempt that it is about. If a number fits several of these, "
        "the first in this order is used.",
    ),
]

_RECENT = 15
"""Number of steps shown; `--json` prints all."""


async def show(
    id: TaskOrAttempt,
    /,
    *,
    run: RunOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print everything about one task or attempt, or about the attempt of an escalation."""
    async with await journal_to_read(journal) as opened:
        found = await find_about(opened, id, run=run)
        if json:
            async for shown in shown_records(opened, found):
                write_json(shown.fields)
            return
        state = await task_state(opened, found.task)
        nodes = await _fleet_nodes(opened, state)
        texts: dict[int, _AttemptTexts] = defaultdict(_AttemptTexts)
        async for shown in shown_records(opened, found):
            texts[shown.entry.attempt or 0].add(shown)
        calibrations = await _read_calibrations(opened, state, only=found.attempt)
        for number, attempt in state.attempts.items():
            if found.attempt is None or found.attempt.id == number:
                at = workspace_in(found.task, attempt)
                text = texts[number]
                text.place, text.fate = await _workspace_state(at, moved=bool(attempt.moves))
    only = found.attempt
    write_line(*_task_lines(state, nodes, texts, calibrations, opened.masker, only=only))


async def _workspace_state(at: TaskWorkspace, *, moved: bool) -> tuple[str, str]:
    """Return where an attempt's work is and what became of it, as far as this machine knows."""
    merge = await at.find_merge() if at.made_by_run else None
    removed = await at.removed()
    # On another machine only the first node's workspace is known: each node has its own home.
    known = not moved or await at.there()
    place = f"in {at.folder}" if known else f"begun in {at.attempt.workspace}"
    if removed or not at.attempt.workspace:
        place = ""
    merged = [f"merged into {merge.into}"] if merge else []
    return place, "; ".join([*merged, *["its workspace was removed"] * removed])


async def _fleet_nodes(journal: Journal, state: TaskState) -> dict[str, NodeStatus]:
    """Return the nodes of the fleet that runs the task, by name, and complete the task's state.

    The state lacks whether the run was interrupted, and what a task that has not begun waits for.
    """
    run = await journal.run(state.task.run)
    nodes = nodes_of(run, await Nodes(journal).all())
    state.interrupted = await is_interrupted(journal, run.id)
    if state.latest is None:
        set_wait(state, await states_before(journal, state.task), nodes)
    return {each.name: each for each in nodes or ()}


async def _read_calibrations(
    journal: Journal, state: TaskState, *, only: Attempt | None
) -> dict[str, Calibration | None]:
    """Return calibrations by model, for the shown attempts that have stated a confidence."""
    calibrator = Calibrator(journal)
    return {
        each.attempt.model: await calibrator.calibration(each.attempt.model)
        for id, each in state.attempts.items()
        if each.checkpoint is not None and (only is None or only.id == id)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecord:
    """One record with its JSON line."""

    entry: Entry
    given: GivenLearning
    """What a recall handed to the worker."""
    fields: JsonLine
    plan_steps: int
    """The number of steps in the plan of its attempt at that time."""


@dataclass(slots=True, kw_only=True)
class _AttemptTexts:
    """Lines about one attempt that its state does not hold."""

    place: str = ""
    fate: str = ""
    steps: deque[str] = field(default_factory=lambda: deque[str](maxlen=_RECENT))
    given: list[str] = field(default_factory=list[str])
    learned: list[str] = field(default_factory=list[str])

    def add(self, shown: ShownRecord) -> None:
        match shown.entry.record:
            case Step() as step:
                self.steps.append(f"step {step.number}, {record_line(step, shown.plan_steps)}")
            case Recall() as recall:
                self.given += (
                    line(recall, given=shown.given).detail.replace("\n\n", "\n").split("\n")
                )
            case (Feedback() | Lesson() | Summary() | Fact() | Study()) as record:
                self.learned.append(record_line(record))
            case _:
                pass


def record_line(record: Record, plan_steps: int = 0) -> str:
    """Return a record's text after its kind; `plan_steps` as for `line`."""
    told = line(record, plan_steps=plan_steps)
    return f"{told.what}{because(told.text)}"


async def shown_records(journal: Journal, found: FoundTask) -> AsyncIterator[ShownRecord]:
    """Yield those records of the found task or attempt that have a line, oldest first."""
    transcript = Transcript([found.task], await journal.attempts(found.task.id))
    async for entry in journal.all_entries(task=found.task.id):
        await meet_new(journal, transcript.run, entry)
        given = NOTHING
        if isinstance(entry.record, Recall):
            given = await given_by(Learned(journal), entry.record)
        # An attempt's line may need what was said about the attempt before it.
        fields = transcript.line(entry, given)
        if fields and (found.attempt is None or entry.attempt == found.attempt.id):
            steps = transcript.plan_steps(entry)
            yield ShownRecord(entry=entry, given=given, fields=fields, plan_steps=steps)


def _task_lines(
    state: TaskState,
    nodes: Mapping[str, NodeStatus],
    texts: Mapping[int, _AttemptTexts],
    calibrations: Mapping[str, Calibration | None],
    masker: Masker,
    *,
    only: Attempt | None,
) -> Iterator[str]:
    task = state.task
    title = f": {task.title}" if task.title else ""
    yield f"task {task.name} (run {task.run}){title}"
    status = status_text(state.status, accepted=state.verdict.accepted if state.verdict else None)
    yield f"status: {_with_reason(status, state.reason)}"
    waits = waits_for(state, nodes)
    if waits:
        yield f"waits for: {waits}"
        answers = () if state.over else answer_commands(state, f" --run {task.run}")
        yield from (f"  answer: {each}" for each in answers if each not in waits)
    assignment = assignment_of(task)
    if assignment is not None and assignment.task.labels:
        yield f"labels: {', '.join(assignment.task.labels)}"
    goal = masker.text(assignment.task.goal).splitlines() if assignment else []
    yield from _section_lines("goal", goal, indent="  ")
    spent = (line(each).text for each in state.spent.values())
    yield from _section_lines("used apart from the workers", spent, indent="  ")
    for id, attempt in state.attempts.items():
        if only is None or only.id == id:
            yield ""
            calibration = calibrations.get(attempt.attempt.model)
            shown = texts.get(id, _AttemptTexts())
            health = health_of(attempt, nodes)
            yield from _attempt_lines(task, attempt, calibration, health, shown)
            yield from _section_lines("lessons and facts it was given", shown.given)
            yield from _section_lines("verdicts and lessons", shown.learned)
            yield from _section_lines("last steps", shown.steps)


def _attempt_lines(
    task: Task,
    state: AttemptState,
    calibration: Calibration | None,
    health: Health,
    texts: _AttemptTexts,
) -> Iterator[str]:
    attempt = state.attempt
    by = f"{attempt.worker} with {state.model}" if state.model else attempt.worker
    before = f" (before: {attempt.model})" if state.model != attempt.model else ""
    ending, status = state.transition.ending, state.status.value
    status = f"{status} ({ending})" if ending and ending.value != status else status
    reason = "" if state.goes_on else state.transition.reason
    yield f"attempt {attempt.id}, {task.name}#{attempt.number}: {_with_reason(status, reason)}"
    yield f"  health {health}, last step {state.last_step}"
    yield from _report_lines(state, calibration)
    where = f", {texts.place}" if texts.place else ""
    nodes = ", then ".join((attempt.node, *state.moves))
    yield f"  {by}{before} on {nodes}{where}"
    if texts.fate:
        yield f"  {texts.fate}"
    details = state.details
    for saved in filter(None, (details.saved, details.unsaved)):
        yield f"  {record_line(saved)}"
    # The meters continue from the previous attempt.
    of = "" if attempt.number == 1 else " of the task's budget"
    yield f"  used{of}: {budget_text(state.budget)}"
    yield from _section_lines("plan", () if state.plan.bare else plan_lines(state.plan))
    yield from _section_lines("plan checks", _request_lines(state, details.plan_checks))
    yield from _section_lines("completions", _record_lines(details.completions))
    yield from _section_lines("analyses", _record_lines(details.analyses))
    yield from _section_lines("budget requests", _request_lines(state, details.requests))
    yield from _section_lines("permissions", _request_lines(state, state.interventions.permissions))
    yield from _section_lines("acceptance", _record_lines(details.checks.values()))
    alerts = (alert_text(a, state.alert_status(key)) for key, a in state.alerts.items())
    yield from _section_lines("alerts", alerts)
    yield from _section_lines("decisions", decision_lines(state))
    yield from _section_lines("interventions", intervention_lines(state))
    yield from _section_lines("faults of the watch", _record_lines(details.faults))


def _record_lines(records: Iterable[Record]) -> Iterator[str]:
    return (line(record).text for record in records)


def _request_lines(state: AttemptState, requests: Mapping[int, WorkerRequest]) -> Iterator[str]:
    """Yield a line for each request of a worker, with its answer."""
    for id, request in requests.items():
        yield f"{id} {line(request, state.answer(id)).text}"


def _report_lines(state: AttemptState, calibration: Calibration | None) -> Iterator[str]:
    told = state.checkpoint
    if told is not None:
        text = f"progress {told.progress_percent} %, confidence {told.confidence} %"
        if calibration is not None:
            percent, attempts = calibration.percent(told.confidence), calibration.attempts
            text += f" (calibrated {percent} %, by {attempts} finished attempts of the model)"
        yield f"  last reported: {text}"
    if not state.confidence_counts:
        yield f"  {CONFIDENCE_SILENT}"


def _section_lines(name: str, lines: Iterable[str], *, indent: str = "    ") -> Iterator[str]:
    """Yield a heading and its lines; nothing if there are no lines."""
    body = list(lines)
    if body:
        yield f"{indent[2:]}{name}:"
        yield from (f"{indent}{line}" for line in body)


def _with_reason(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def decision_lines(state: AttemptState, about: Collection[AlertKey] | None = None) -> Iterator[str]:
    """Yield escalations and their decisions; with `about`, only those on these alerts."""
    for each in state.escalations.values():
        if about is not None and not {*about} & {*each.alerts}:
            continue
        yield f"escalation {line(each).text}"
        made = (one for one in state.details.decisions if one.escalation == each.id)
        yield from (f"  {text}" for text in _record_lines(made))


def intervention_lines(
    state: AttemptState, about: Collection[AlertKey] | None = None
) -> Iterator[str]:
    """Yield interventions and their results; with `about`, only those that answer these alerts."""
    for each in state.interventions:
        what = each.intervention
        if about is not None and not {*about} & {*what.answers}:
            continue
        outcome = f", {each.outcome}{because(each.reason)}" if each.outcome else ""
        act = action_text(what.action, what.terms)
        yield f"{each.id} {act} by {author_text(what)}: {settled_text(each)}{outcome}"
        yield from (f"  {text}" for text in what.message.splitlines())
