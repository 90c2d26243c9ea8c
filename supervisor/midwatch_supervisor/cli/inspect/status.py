"""`midwatch status`: what tasks and attempts do, what is left of runs, and what a fleet lacks."""

import asyncio
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Literal

from cyclopts import Parameter

from midwatch_agents.sandbox import OPEN, SandboxKind
from midwatch_monitor.command_hint import command, journal_width
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Alert,
    AttemptTransition,
    Fault,
    Feedback,
    Health,
    Lifecycle,
    NodeState,
    NodeStatus,
    Notified,
    Run,
    SupervisedBy,
    TaskTransition,
)
from midwatch_monitor.records.fleet import name_of
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus, planned
from midwatch_monitor.state.need import needs_person
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.cli.journals import JournalOption, RunOption, journal_to_read
from midwatch_supervisor.cli.output import write_columns, write_either, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.notify.unreachable_targets import UnreachableTarget, unreachable_targets
from midwatch_supervisor.present.json_lines import JsonLine, moment
from midwatch_supervisor.present.lookup import (
    chosen_runs,
    run_option,
    set_waits,
    task_state,
    task_states,
)
from midwatch_supervisor.present.numbers import list_names, plan_text
from midwatch_supervisor.present.text_line import brief, status_text, with_reservations
from midwatch_supervisor.present.waiting import (
    TURN,
    adrift,
    answer_commands,
    asks_person,
    fleet_of,
    is_stopped,
    missing_lines,
    need_words,
    nodes_of,
    task_waits_for,
)

DAY = timedelta(days=1)
"""How long a lost node and the runs of an agent with a `Watch` are listed."""
_WEEK = timedelta(days=7)
"""How long an earlier run is listed that is not over, or whose results are not merged."""
_NAMED = 4
"""Number of its tasks that are named."""
_KINDS = (TaskTransition, AttemptTransition, Feedback, Alert)
"""Records that tell how an earlier run ended."""

Notice = tuple[JsonLine, str]
"""One thing to say, for programs and for people; what is empty is said only to the others."""

_HEADINGS = (
    *("task", "attempt", "status", "health", "node", "plan", "progress", "confidence"),
    *("steps", "requests", "alerts", "waits for"),
)
_NODE_COLUMN = _HEADINGS.index("node")
_WAITS_WIDTH = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """One task with its latest attempt; `None` stands for what it does not have yet."""

    type: Literal["status"] = "status"
    run: int
    task: str
    title: str
    status: Lifecycle
    attempt: int | None
    """The attempt's id."""
    number: int | None
    lifecycle: Lifecycle | None
    """State of the attempt."""
    stands: AttemptStatus
    """State of the task in a word for people."""
    health: Health | None
    node: str | None
    """Node that is working on the attempt, or last did."""
    node_state: NodeState | None
    """State of that node, if it belongs to a fleet."""
    interrupted: bool
    """Whether the process that worked on its run is gone although the task is not over."""
    sandbox: str | None
    """Sandbox of the attempt's commands."""
    plan_step: int | None
    """Number of the first open plan step, from 1; of the last one if all are closed."""
    plan_steps: int
    """0 without a plan."""
    progress_percent: int | None
    confidence: int | None
    steps: int
    requests_used: int
    requests_limit: int | None
    alerts: int
    """Number of alerts that fire now, or fired at the end of an attempt that passed no check."""
    waits_for: str | None
    commands: tuple[str, ...]
    """Commands that answer what it waits for; one of them is enough."""
    needs_person: bool
    need: str | None
    """What it needs a person for although it does not wait."""
    accepted: bool | None
    """Whether the last verdict accepts the result; `None` without a verdict."""
    reservations: tuple[str, ...]
    """Reservations with which the task counts as completed."""


async def status(
    *,
    run: RunOption = None,
    all: Annotated[bool, Parameter(help="Show every run.")] = False,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print the state of the latest run's tasks, or of all agent sessions of the last day."""
    async with await journal_to_read(journal) as opened:
        runs = await chosen_runs(opened, run)
        known = Nodes(opened)
        nodes = await known.all()
        now, needy = await opened.now(), set[str]()
        shown = runs[::-1] if all else await latest(opened, runs)
        told = list[Notice]()
        async for each, tasks, ours in read_states(opened, shown, nodes):
            shared = each.supervised_by is SupervisedBy.MONITOR
            needy |= {fleet_of(each)} if shared and any(map(_open_to_nodes, tasks)) else set()
            lines = [status_line(state, ours) for state in tasks]
            unmerged = [one async for one in unmerged_notices(opened, each, tasks)]
            _print_status(each, lines, unmerged, json=json)
            faults = opened.all_entries(run=each.id, kinds=(Fault, Notified))
            unreachable = unreachable_targets(each.id, [entry async for entry in faults])
            told += map(unreachable_notice, unreachable)
        earlier = [] if run or all else [each for each in runs if each not in shown]
        told += await earlier_notices(opened, earlier, nodes)
        monitors = await known.monitors() if needy else []
        told += lost_notices(nodes, now - DAY, await known.in_hand() if nodes else {})
        learned = Learned(opened)
        several = len(await learned.projects()) > 1
        told += unread_notices(*await learned.count_waiting(), several=several)
    told += missing_notices(missing_lines(nodes, monitors, now, fleets=needy) if needy else ())
    if not runs:
        told.append(({}, f"nothing has run yet in {opened.name}"))
    _say_all(told, json=json)


async def latest(journal: Journal, runs: Sequence[Run]) -> list[Run]:
    """Return the newest run; for watched sessions, all that went on in the day before it."""
    if not runs or not runs[0].of_session:
        return list(runs[:1])
    active = await journal.active(runs[0].started_at - DAY)
    found = {(await journal.task(each)).run for each in active}
    return [each for each in runs[::-1] if each.of_session and each.id in found]


def _open_to_nodes(state: TaskState) -> bool:
    """Whether nodes have something to do for the task; never for agents that run on their own."""
    return not state.task.embedded and not state.lifecycle.over


def status_line(state: TaskState, nodes: Mapping[str, NodeStatus]) -> StatusLine:
    """Return the line of one task; `nodes` are the nodes, by name, of the fleet that runs it."""
    latest = state.latest
    plan = planned(latest.plan_step, latest.plan_steps) if latest else None
    limit = latest.budget.requests.limit if latest else None
    needs = latest is not None and needs_person(
        latest, adrift=adrift(latest, nodes.get(latest.node))
    )
    return StatusLine(
        run=state.task.run,
        task=state.task.name,
        title=state.task.title,
        status=state.lifecycle,
        attempt=latest.attempt.id if latest else None,
        number=latest.attempt.number if latest else None,
        lifecycle=latest.lifecycle if latest else None,
        stands=state.status,
        health=health_of(latest, nodes) if latest else None,
        node=latest.node if latest else None,
        node_state=nodes[latest.node].state if latest and latest.node in nodes else None,
        interrupted=state.interrupted and not state.over,
        sandbox=latest.sandbox or None if latest else None,
        plan_step=plan[0] if plan else None,
        plan_steps=plan[1] if plan else 0,
        progress_percent=state.progress,
        confidence=latest.confidence if latest else None,
        steps=latest.last_step if latest else 0,
        requests_used=int(latest.budget.requests.used) if latest else 0,
        requests_limit=None if limit is None else int(limit),
        alerts=len(latest.unresolved) if latest else 0,
        waits_for=waits_for(state, nodes) or None,
        commands=() if state.over else answer_commands(state, f" --run {state.task.run}"),
        needs_person=needs,
        need=need_words(latest) or None if latest and needs else None,
        accepted=state.verdict.accepted if state.verdict else None,
        reservations=state.reservations,
    )


def waits_for(state: TaskState, nodes: Mapping[str, NodeStatus]) -> str:
    """Describe what a task waits for that must come from elsewhere; empty for nothing.

    `nodes` are the nodes, by name, of the fleet that runs it.
    """
    latest = state.latest
    if latest is None or state.lifecycle.over:
        return task_waits_for(state)
    if latest.lifecycle is Lifecycle.SUBMITTED:
        return task_waits_for(state) or TURN
    if adrift(latest, nodes.get(latest.node)) and not asks_person(latest):
        return f"another node ({latest.node} is {nodes[latest.node].state})"
    return task_waits_for(state)


def health_of(latest: AttemptState, nodes: Mapping[str, NodeStatus]) -> Health:
    """Return an attempt's health; unknown if its node is gone, until another has taken it over."""
    return Health.UNKNOWN if adrift(latest, nodes.get(latest.node)) else latest.health


def _print_status(
    run: Run, lines: Sequence[StatusLine], unmerged: Sequence[Notice], *, json: bool
) -> None:
    """Print the tasks of one run and its results, for people or for programs."""
    if json:
        begun = {"source": run.source, "started_at": moment(run.started_at)}
        for line in lines:
            write_json({**asdict(line), **begun})
    else:
        _print_table(run, lines)
    _say_all(unmerged, json=json)


def _say_all(notices: Iterable[Notice], *, json: bool) -> None:
    for fields, text in notices:
        if fields if json else text:
            write_either(fields, text, json=json)


def _print_table(run: Run, lines: Sequence[StatusLine]) -> None:
    """Print the table; with the node of each attempt if there are nodes to tell apart."""
    nodes = any(line.node_state for line in lines) or len({line.node for line in lines}) > 1
    write_line(f"run {run.id}: {run.source}, {run.started_at.astimezone():%Y-%m-%d %H:%M}")
    rows = [_HEADINGS, *map(_row, lines)]
    if not nodes:
        rows = [(*row[:_NODE_COLUMN], *row[_NODE_COLUMN + 1 :]) for row in rows]
    write_columns(rows)
    if bare := [line.task for line in lines if line.sandbox == SandboxKind.NONE]:
        write_line(f"No sandbox for {', '.join(bare)}: {OPEN}")
    for line in lines:
        if said := with_reservations(line.reservations):
            write_line(f"{line.task}: {line.status}, {said}")
    for line in lines:
        if line.need:
            write_line(f"{line.task} needs you: {line.need}")


def _row(line: StatusLine) -> tuple[str, ...]:
    limit = "" if line.requests_limit is None else f"/{line.requests_limit}"
    return (
        line.task,
        _or_dash(line.number),
        status_text(line.stands, accepted=line.accepted),
        _or_dash(line.health),
        _node_text(line),
        plan_text((line.plan_step, line.plan_steps) if line.plan_step else None),
        _percent(line.progress_percent),
        _percent(line.confidence),
        str(line.steps),
        f"{line.requests_used}{limit}",
        str(line.alerts),
        brief(_wait_text(line), _WAITS_WIDTH + 2 * journal_width()),
    )


def _wait_text(line: StatusLine) -> str:
    """Return what the task waits for, after the commands that answer it: the end may be cut off."""
    waits, answers = line.waits_for or "-", " or ".join(f"`{each}`" for each in line.commands)
    return f"{answers}: {waits.removesuffix(f': {answers}')}" if answers else waits


def _node_text(line: StatusLine) -> str:
    away = line.node_state is not None and line.node_state.gone
    works = line.lifecycle is Lifecycle.WORKING
    return f"{line.node} ({line.node_state})" if away and works else _or_dash(line.node)


def _percent(value: int | None) -> str:
    return "-" if value is None else f"{value} %"


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


# -- below the tables ------------------------------------------------------------------------


async def read_states(
    journal: Journal, runs: Sequence[Run], nodes: Collection[NodeStatus]
) -> AsyncIterator[tuple[Run, list[TaskState], dict[str, NodeStatus]]]:
    """Yield each run with the states of its tasks and those of all `nodes` in its fleet, by name.

    A run of a single process has no nodes.
    """
    for run in runs:
        tasks, interrupted = (
            await task_states(journal, run.id),
            await is_interrupted(journal, run.id),
        )
        for task in tasks:
            task.interrupted = interrupted
        ours = nodes_of(run, nodes)
        set_waits(tasks, ours)
        yield run, tasks, {each.name: each for each in ours or ()}


async def earlier_notices(
    journal: Journal, runs: Sequence[Run], nodes: Collection[NodeStatus]
) -> list[Notice]:
    """Return what is left of earlier runs: open tasks, results to merge, agents that failed.

    Sessions are left out: if its process was killed, nothing tells that one has ended.
    """
    now = await journal.now()
    recent = [each for each in runs if each.started_at >= now - _WEEK and not each.of_session]
    ends = {
        run: [await task_state(journal, each, kinds=_KINDS) for each in await journal.tasks(run.id)]
        for run in recent
    }
    left = [run for run, tasks in ends.items() if not all(each.over for each in tasks)]
    found = [
        _unfinished_notice(run, tasks) async for run, tasks, _ in read_states(journal, left, nodes)
    ]
    for run, tasks in ends.items():
        found += [
            (fields, f"run {run.id}: {text}")
            async for fields, text in unmerged_notices(journal, run, tasks)
        ]
    today = [run for run, tasks in ends.items() if tasks and run.started_at >= now - DAY]
    ended = [ends[run] for run in today if run not in left]
    found += _agent_notices([tasks for tasks in ended if all(each.task.embedded for each in tasks)])
    return found


def _unfinished_notice(run: Run, tasks: Sequence[TaskState]) -> Notice:
    """Return that a run has tasks that are not over."""
    left = [each for each in tasks if not each.over]
    named = list_names([f"{each.task.name} ({each.status})" for each in left], _NAMED)
    gone = any(each.interrupted and each.task.embedded for each in left)
    stopped = gone or any(map(is_stopped, tasks))
    alone = ", and no process works on it" if stopped else ""
    then = command(f"{'cancel' if gone else 'resume' if stopped else 'status'} --run {run.id}")
    fields: JsonLine = {
        "type": "unfinished",
        "run": run.id,
        "tasks": [{"task": each.task.name, "stands": each.status} for each in left],
        "stopped": stopped,
        "command": then,
    }
    return fields, f"run {run.id} is not over{alone} (`{then}`): {named}"


def _agent_notices(runs: Collection[Sequence[TaskState]]) -> Iterator[Notice]:
    """Yield how these runs of agents with a `Watch` ended; nothing if there are none."""
    if not runs:
        return
    failed = sum(any(each.lifecycle is Lifecycle.FAILED for each in tasks) for tasks in runs)
    stuck = sum(
        any(each.latest and each.latest.health is Health.STUCK for each in tasks) for tasks in runs
    )
    then, many = command("status --all"), "s" if len(runs) > 1 else ""
    yield (
        {"type": "agents", "runs": len(runs), "failed": failed, "stuck": stuck, "command": then},
        f"{len(runs)} earlier run{many} of agents with a `Watch` in the last day: "
        f"{failed} failed, {stuck} stuck (`{then}`)",
    )


async def unmerged_notices(
    journal: Journal, run: Run, tasks: Sequence[TaskState]
) -> AsyncIterator[Notice]:
    """Yield the results that nobody has merged or rejected, as far as this machine knows."""
    from midwatch_supervisor.workspaces.task_workspace import result_of

    done = [each for each in tasks if each.lifecycle is Lifecycle.COMPLETED]
    wanted = [each for each in done if each.verdict is None or each.verdict.accepted]
    results = [each for each in map(result_of, wanted) if each is not None]
    found = await asyncio.gather(*(each.unmerged() for each in results))
    there = [each for each in found if each is not None]
    of_fleet = await asyncio.gather(*(each.unmerged_in_repository() for each in results))
    for said, more, in_git in _UNMERGED:
        waiting = {each.folder for each in there if bool(each.branch) == in_git}
        names = [
            each.name
            for each, unmerged in zip(results, of_fleet, strict=True)
            if each.folder in waiting or (in_git and unmerged)
        ]
        if names:
            of = await run_option(journal, run.id)
            then = command(f"merge TASK{of}{more}")
            told = {"run": run.id, "tasks": names, "in_git": in_git, "command": then}
            yield {"type": "unmerged", **told}, f"{said}: {', '.join(names)} (`{then}`)"


_UNMERGED = (("to be merged", "", True), ("to be taken", " --into FOLDER", False))
"""What results wait for, the option of the command for that, and whether they are in git."""


def unreachable_notice(target: UnreachableTarget) -> Notice:
    """Return that messages about a run do not reach a target."""
    fields: JsonLine = {
        "type": target.type,
        "run": target.run,
        "target": target.target,
        "since": moment(target.since),
        "error": target.error,
    }
    since = f"{target.since.astimezone():%Y-%m-%d %H:%M}"
    text = f"messages of run {target.run} to {target.target} have failed since {since}"
    return fields, f"{text}: {brief(target.error)}"


def lost_notices(
    nodes: Collection[NodeStatus],
    since: datetime,
    holders: Collection[str],
    zone: tzinfo | None = None,
) -> Iterator[Notice]:
    """Yield each node lost since then, with the time when it was last heard from.

    `holders` are the processes that hold attempts that are being worked on.
    """
    manned = {each.fleet for each in nodes if not each.state.gone}
    holding = {name_of(each) for each in holders}
    for each in nodes:
        if each.state is NodeState.LOST and each.beat_at >= since:
            heard = f"{each.beat_at.astimezone(zone):%Y-%m-%d %H:%M:%S}"
            left = each.name in holding and each.fleet in manned
            others = "; other nodes take over its attempts" if left else ""
            fields: JsonLine = {
                "type": "node",
                "name": each.name,
                "fleet": each.fleet,
                "state": each.state.value,
                "beat_at": moment(each.beat_at),
                "taken_over": left,
            }
            yield fields, f"node {each.name} is lost: last heard from {heard}{others}"


def missing_notices(lines: Iterable[str]) -> Iterator[Notice]:
    """Yield the lines about what a fleet lacks."""
    for each in lines:
        yield {"type": "missing", "text": each}, each


def unread_notices(
    lessons: Counter[str], facts: Counter[str], *, several: bool
) -> Iterator[Notice]:
    """Yield learned things that wait for a person; `several` projects are named."""
    if lessons or facts:
        yield {"type": "unread", "lessons": lessons.total(), "facts": facts.total()}, ""
    for what, waiting in (("lessons", lessons), ("facts", facts)):
        for project, count in waiting.items():
            of = f" --project {shlex.quote(project)}" if several else ""
            yield {}, f"{what} waiting for you: {count} (`{command(f'{what} list{of}')}`)"
