"""What `midwatch status` says below its tables: unmerged results, earlier runs, a fleet."""

import asyncio
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo

from midwatch_monitor.command_hint import command
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import is_interrupted
from midwatch_monitor.records import (
    Alert,
    AttemptTransition,
    Feedback,
    Health,
    Lifecycle,
    NodeState,
    NodeStatus,
    Run,
    TaskTransition,
)
from midwatch_monitor.records.fleet import name_of
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.notify.unreachable_targets import UnreachableTarget
from midwatch_supervisor.present.fleet_nodes import nodes_of
from midwatch_supervisor.present.json_lines import JsonLine, moment
from midwatch_supervisor.present.lookup import run_option, set_waits, task_state, task_states
from midwatch_supervisor.present.numbers import list_names
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.present.waiting import is_stopped

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
