"""`midwatch show`: everything about one task or attempt."""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.metrics.calibration import Calibration
from midwatch_monitor.records import (
    Acceptance,
    AlertKey,
    Attempt,
    Decision,
    Health,
    Keeper,
    NodeStatus,
    Task,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.intervention import Interventions
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.inspect.status import health_of, waits_for
from midwatch_supervisor.cli.journals import JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.decide.calibration import Calibrator
from midwatch_supervisor.decide.dossier import spent_words
from midwatch_supervisor.learning.line import Learnt, RecallLine, learnt_fields
from midwatch_supervisor.learning.lines import Lore
from midwatch_supervisor.learning.spelling import given_words, learnt_words
from midwatch_supervisor.present.line import CheckpointLine, Line, StepLine, fields
from midwatch_supervisor.present.lines import Transcript
from midwatch_supervisor.present.lookup import (
    Found,
    account_of,
    assignment_of,
    find,
    say_turn,
    states_before,
)
from midwatch_supervisor.present.progress import described, short
from midwatch_supervisor.present.spelling import (
    analysis_words,
    completion_words,
    in_brackets,
    plan_check_words,
    plan_lines,
    request_words,
    saved_words,
    spending_words,
    steps_words,
    terms_words,
)

TaskOrAttempt = Annotated[
    str,
    Parameter(
        name="ID",
        help="A task's id or the unique beginning of one, an attempt's id, or TASK#N for its "
        "attempt number N. The latest run that has it counts.",
    ),
]

_RECENT = 15
"""Steps that are shown; `--json` has them all."""


async def show(
    id: TaskOrAttempt,
    *,
    run: RunOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print everything about one task or attempt."""
    async with await journal_to_read(journal) as opened:
        found = await find(opened, id, run=run)
        if json:
            async for line in _lines(opened, found):
                write_json(fields(line) if isinstance(line, Line) else learnt_fields(line))
            return
        account = await account_of(opened, found.task)
        nodes = await _fleet(opened, account)
        steps: dict[int, deque[str]] = defaultdict(lambda: deque(maxlen=_RECENT))
        learnt: dict[int, list[Learnt]] = defaultdict(list)
        async for line in _lines(opened, found):
            if isinstance(line, StepLine | CheckpointLine) and line.attempt is not None:
                steps[line.attempt].append(described(line))
            elif isinstance(line, Learnt) and line.attempt is not None:
                learnt[line.attempt].append(line)
        calibrations = await _calibrations(opened, account, only=found.attempt)
    for text in _account(account, nodes, steps, learnt, calibrations, only=found.attempt):
        write_line(text)


async def _fleet(journal: Journal, account: TaskState) -> dict[str, NodeStatus]:
    """The nodes that share the task's run, by name; says what the task waits for if not begun."""
    run = await journal.run(account.task.run)
    nodes = await Nodes(journal).all() if run.keeper is Keeper.MONITOR else None
    if account.latest is None:
        say_turn(account, await states_before(journal, account.task), nodes)
    return {each.name: each for each in nodes or ()}


async def _calibrations(
    journal: Journal, account: TaskState, *, only: Attempt | None
) -> dict[str, Calibration | None]:
    """By model, where an attempt that is shown has stated its confidence."""
    calibrator = Calibrator(journal)
    return {
        each.attempt.model: await calibrator.calibration(each.attempt.model)
        for id, each in account.attempts.items()
        if each.checkpoint is not None and (only is None or only.id == id)
    }


async def _lines(journal: Journal, found: Found) -> AsyncIterator[Line | Learnt]:
    """The lines of what was found, oldest first."""
    transcript = Transcript([found.task], await journal.attempts(found.task.id))
    lore = Lore(journal, found.task)
    async for entry in journal.all_entries(task=found.task.id):
        if transcript.lacks(entry) and entry.attempt is not None:
            transcript.meet(await journal.attempt(entry.attempt))
        # An attempt's line may need what was said on the attempt before it.
        line = transcript.line(entry) or await lore.line(entry)
        if line is not None and (found.attempt is None or line.attempt == found.attempt.id):
            yield line


def _account(
    account: TaskState,
    nodes: Mapping[str, NodeStatus],
    steps: Mapping[int, Iterable[str]],
    learnt: Mapping[int, Sequence[Learnt]],
    calibrations: Mapping[str, Calibration | None],
    *,
    only: Attempt | None,
) -> Iterator[str]:
    task, state = account.task, account.transition
    title = f": {task.title}" if task.title else ""
    yield f"task {task.name} (run {task.run}){title}"
    yield f"status: {_with_reason(state.lifecycle.value, state.reason)}"
    waits = waits_for(account, nodes)
    if waits:
        yield f"waits for: {waits}"
    assignment = assignment_of(task)
    if assignment is not None and assignment.task.labels:
        yield f"labels: {', '.join(assignment.task.labels)}"
    goal = assignment.task.goal.splitlines() if assignment else []
    yield from _section("goal", goal, indent="  ")
    spent = map(spending_words, account.spent.values())
    yield from _section("used by others than the workers", spent, indent="  ")
    for id, attempt in account.attempts.items():
        if only is None or only.id == id:
            yield ""
            calibration = calibrations.get(attempt.attempt.model)
            yield from _attempt(task, attempt, calibration, health_of(attempt, nodes))
            yield from _learnt(learnt.get(id, ()))
            yield from _section("last steps", steps.get(id, ()))


def _learnt(lines: Sequence[Learnt]) -> Iterator[str]:
    recalls = [line for line in lines if isinstance(line, RecallLine)]
    yield from _section("given of what was learned", chain.from_iterable(map(given_words, recalls)))
    yield from _section("verdicts, and what was learned of it", learnt_words(lines))


def _attempt(
    task: Task, account: AttemptState, calibration: Calibration | None, health: Health
) -> Iterator[str]:
    attempt = account.attempt
    by = f"{attempt.worker} with {account.model}" if account.model else attempt.worker
    before = f" (before: {attempt.model})" if account.model != attempt.model else ""
    ending, status = account.transition.ending, account.status.value
    status = f"{status} ({ending})" if ending and ending.value != status else status
    yield f"attempt {attempt.id}, {task.name}#{attempt.number}: " + _with_reason(
        status, account.transition.reason
    )
    yield f"  health {health}, last step {account.last_step}"
    yield from _reported(account, calibration)
    # Another node has a workspace of its own, and the journal knows only the first one's.
    where = f"begun in {attempt.workspace}" if account.moves else f"in {attempt.workspace}"
    yield f"  {by}{before} on {', then '.join((attempt.node, *account.moves))}, {where}"
    if account.details.saved is not None:
        yield f"  saved: {saved_words(account.details.saved)}"
    yield f"  used: {spent_words(account.budget)}"
    yield from _section("plan", plan_lines(account.plan))
    yield from _section("plan checks", _plan_checks(account))
    yield from _section("completions", map(completion_words, account.details.completions))
    yield from _section(
        "analyses", (f"analysis {analysis_words(a)}" for a in account.details.analyses)
    )
    yield from _section("budget requests", _requests(account))
    yield from _section("acceptance", map(_check, account.details.checks.values()))
    yield from _section("alerts", (_alert(account, key) for key in account.alerts))
    yield from _section("decisions", _decisions(account))
    yield from _section("interventions", _interventions(account.interventions))
    yield from _section(
        "faults of the watch", (f"{f.part}: {f.error}" for f in account.details.faults)
    )


def _reported(account: AttemptState, calibration: Calibration | None) -> Iterator[str]:
    told = account.checkpoint
    if told is not None:
        text = f"progress {told.progress_percent} %, confidence {told.confidence} %"
        if calibration is not None:
            percent, attempts = calibration.percent(told.confidence), calibration.attempts
            text += f" (calibrated {percent} %, by {attempts} finished attempts of the model)"
        yield f"  last reported: {text}"


def _section(name: str, lines: Iterable[str], *, indent: str = "    ") -> Iterator[str]:
    """A heading and its lines; nothing where there is nothing."""
    body = list(lines)
    if body:
        yield f"{indent[2:]}{name}:"
        yield from (f"{indent}{line}" for line in body)


def _with_reason(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def _check(check: Acceptance) -> str:
    verdict = "passed" if check.passed else "FAILED"
    return _with_reason(f"{verdict} {check.check}", short(check.detail))


def _alert(account: AttemptState, key: AlertKey) -> str:
    alert = account.alerts[key]
    about = f" ({alert.key.subject})" if alert.key.subject else ""
    since = f"steps {alert.since_step} to {alert.step}"
    seen = f"; evidence: steps {', '.join(map(str, alert.evidence))}" if alert.evidence else ""
    status = account.alert_status(key)
    shown = alert.resolution if alert.resolution and alert.resolution.value != status else None
    ended = f" ({shown})" if shown else ""
    return (
        f"{status}{ended} {alert.severity} {alert.key.rule}{about}, {since}: {alert.summary}{seen}"
    )


def _plan_checks(account: AttemptState) -> Iterator[str]:
    for id, check in account.details.plan_checks.items():
        yield f"{id} {plan_check_words(check, account.answer(id))}"


def _requests(account: AttemptState) -> Iterator[str]:
    for id, request in account.details.requests.items():
        yield f"{id} {request_words(request, account.answer(id))}"


def _decisions(account: AttemptState) -> Iterator[str]:
    for each in account.escalations.values():
        rules = ", ".join(dict.fromkeys(key.rule for key in each.alerts))
        yield _with_reason(f"escalation {each.id} {each.state} ({rules})", each.reason)
        for decision in account.details.decisions:
            if decision.escalation == each.id:
                yield f"  {_decision(decision)}"


def _decision(decision: Decision) -> str:
    by = decision.author or decision.by
    what = f"{decision.action}{in_brackets(terms_words(decision.terms))} by {by}"
    cause = f"{decision.diagnosis}{in_brackets(steps_words(decision.steps))}"
    refused = f"; REFUSED: {decision.refused}" if decision.refused else ""
    return f"{what}, {cause}: {decision.rationale}{refused}"


def _interventions(interventions: Interventions) -> Iterator[str]:
    for each in interventions:
        what = each.intervention
        author = f" ({what.author})" if what.author else ""
        outcome = f", {_with_reason(each.outcome.value, each.reason)}" if each.outcome else ""
        terms = in_brackets(terms_words(what.terms))
        yield f"{each.id} {what.action}{terms} by {what.by}{author}: {each.status}{outcome}"
        yield from (f"  {line}" for line in what.message.splitlines())
