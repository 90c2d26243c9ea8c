"""What a task, an attempt or a fleet waits for: other tasks, a node, a person, a monitor. Pure."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING

from midwatch_monitor.command_hint import command
from midwatch_monitor.journal.fleet.nodes import MonitorStatus
from midwatch_monitor.records import Action, Lifecycle, NodeState, NodeStatus, Run, SupervisedBy
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import Awaited
from midwatch_monitor.state.need import needs_person, unattended
from midwatch_monitor.state.task import TaskState

if TYPE_CHECKING:
    from midwatch_monitor.config.tasks import TaskSpec

TURN = "its turn"
SEEN = "`c` in `midwatch watch`"
"""How a person acknowledges alerts, which also answers the question about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What one task waits for before it begins."""

    what: str
    """In words that can follow `waits for`."""
    short: str
    """In few words, for a table cell."""
    vain: bool = False
    """Whether no node will take it, in the nodes' present state."""


_TURN = Wait(what=TURN, short=TURN)


_FIXED_WORDS = {
    Awaited.RESUME: "a person to resume it",
    Awaited.PERSON: "a person",
    Awaited.END: "you to end it in its terminal: told to stop, still running",
    Awaited.DECISION: "a decision",
}


def attempt_waits_for(attempt: AttemptState, *, content: bool = True) -> str:
    """Return what an attempt needs from elsewhere to continue; empty for nothing.

    Without `content`, questions and requests of a worker are not quoted.
    """
    awaited, about = attempt.awaited
    named = f"{about.action} ({about.id})" if about is not None else ""
    match awaited:
        case Awaited.APPROVAL if about is not None:
            return f"{awaited} of {about.action}: {_approval_text(about.id)}"
        case Awaited.APPROVAL | Awaited.DELIVERY:
            return f"{awaited} of {named}"
        case Awaited.ANSWER:
            where = f" where it runs (or press {SEEN})" if is_only_watched(attempt) else ""
            asked = f": {about.intervention.message}" if about and content else ""
            return f"an answer{where}{asked}"
        case Awaited.PERMISSION:
            wish, id = attempt.permission, attempt.interventions.permission
            may = f"permission to {wish.what}" if wish and content else awaited.value
            return f"{may}: {_approval_text(id)}"
        case Awaited.PROVIDER:
            away = attempt.outage
            return f"the provider: {away.reason} from {away.url}" if away else "the provider"
        case _:
            return _FIXED_WORDS.get(awaited, awaited.value)


def _approval_text(id: int | None) -> str:
    return f"`{command(f'approve {id}')}` or `{command(f'reject {id}')}`"


def need_words(attempt: AttemptState) -> str:
    """Return what an attempt that does not wait needs a person for; empty for nothing."""
    if not needs_person(attempt) or attempt.needed_since is not None:
        return ""
    if unattended(attempt):
        return f"it is stuck (`{command(f'show {attempt.id}')}`)"
    asked = min(attempt.open_requests)
    return f"it asks for something: {_approval_text(asked)}"


def is_stopped(task: TaskState) -> bool:
    """Whether nothing works on a task that could continue without a person or another task."""
    asks = task.latest is not None and asks_person(task.latest)
    return task.interrupted and not (task.over or asks or task.turn not in {"", TURN})


def asks_person(attempt: AttemptState) -> bool:
    """Whether an attempt needs a person, and no answer is on its way."""
    return attempt.needed_since is not None and not attempt.goes_on


def task_waits_for(task: TaskState) -> str:
    """Return what a task needs from elsewhere to continue; empty for nothing."""
    latest = task.latest
    if task.over:
        return ""
    if task.interrupted and task.task.embedded and not task.of_session:
        return f"`{command(f'cancel --run {task.task.run}')}`: its process is gone"
    if is_stopped(task):
        if task.of_session:
            watching = attach_command(latest.attempt.worker if latest else "")
            return f"`{watching}`: nothing is watching it"
        resume = command(f"resume --run {task.task.run}")
        away = latest.outage if latest and latest.awaited[0] is Awaited.PROVIDER else None
        if away is None:
            return f"`{resume}`: no process works on it"
        return f"`{resume}`, once the provider accepts requests: {away.reason} from {away.url}"
    if latest is None or latest.interventions.begin_again:
        return refused(task.refusal) or task.turn or TURN
    if latest.split:
        return "the tasks that it was split into"
    return attempt_waits_for(latest) or refused(task.refusal)


def attach_command(agent: str) -> str:
    """Return the command that watches an agent's sessions, through its files or else its spans."""
    from midwatch_monitor.traces.session_reader import KEPT  # this imports all formats

    return command("attach" if agent in KEPT else "attach otlp")


def refused(refusal: str) -> str:
    """Return what a task waits for after a node refused it; empty if none did."""
    return refusal and f"a node that can do it ({refusal})"


def answer_commands(task: TaskState, of: str = "") -> tuple[str, ...]:
    """Return the commands that answer what a task waits for; one of them is enough.

    `of` names its run, if they need it.
    """
    name = quote(task.task.name)
    awaited, about = task.latest.awaited if task.latest else (Awaited.NOTHING, None)
    match awaited:
        case Awaited.APPROVAL if about is not None:
            return command(f"approve {about.id}"), command(f"reject {about.id}")
        case Awaited.PERMISSION if task.latest is not None:
            id = task.latest.interventions.permission
            return command(f"approve {id}"), command(f"reject {id}")
        case Awaited.ANSWER if task.latest is not None and is_only_watched(task.latest):
            return (command(f"watch{of}"),)
        case Awaited.ANSWER | Awaited.PERSON:
            return (command(f'tell {name}{of} "your answer"'),)
        case Awaited.RESUME:
            return (command(f"tell {name}{of} --resume"),)
        case _:
            return ()


def is_only_watched(attempt: AttemptState) -> bool:
    """Whether a person must answer elsewhere, because nothing reaches the worker from here."""
    return attempt.acts is not None and Action.NUDGE not in attempt.acts


def wait_of(
    wanted: "TaskSpec",
    states: Mapping[str, Lifecycle],
    nodes: Iterable[NodeStatus] | None,
) -> Wait:
    """Return what the task waits for before it begins.

    `states` are those of its run's tasks, by name; `nodes` are those of the fleet that runs it,
    `None` if one process runs it.
    """
    known = {name: states.get(name) for name in wanted.depends_on}
    before = [name for name, state in known.items() if state is None or not state.over]
    if before:
        names = ", ".join(before)
        tasks = f"the task{'s' if len(before) > 1 else ''} {names}"
        return Wait(what=tasks, short=f"after {names}")
    return _TURN if nodes is None else _wait_for_node(wanted.labels, [*nodes])


def _wait_for_node(labels: Sequence[str], nodes: Collection[NodeStatus]) -> Wait:
    """Return the wait for a node that can take it, and how full such nodes are."""
    able = [each for each in nodes if _has_labels(each, labels) and not each.state.gone]
    up = [each for each in able if each.state is NodeState.UP]
    node = f"a node with {_label_words(labels)}" if labels else "a node"
    if not up:
        leaving = f", {_node_names(able)} draining" if able else ""
        vain = nobody_has(labels, nodes)
        others = any(each.state is NodeState.UP for each in nodes)
        short = f"no node: {', '.join(labels)}" if others else "no node is up"
        return Wait(what=f"{node} (none is up{leaving})", short=short, vain=vain)
    slots = sum(each.slots for each in up)
    taken = sum(min(each.busy, each.slots) for each in up)
    if taken == slots:
        where = f" on {node}" if labels else ""
        what = f"a free slot{where} ({taken} of {slots} taken)"
        return Wait(what=what, short="no free slot")
    return Wait(what=f"{node} ({_node_names(up)} up)", short=TURN) if labels else _TURN


def nobody_has(labels: Sequence[str], nodes: Collection[NodeStatus]) -> bool:
    """Whether no node of the fleet will take a task with these labels.

    A node that has just left or was lost may come back; if none is up, that is reported instead.
    """
    return any(not each.state.gone for each in nodes) and not any(
        _has_labels(each, labels) for each in nodes
    )


def missing_node_words(labels: Sequence[str], nodes: Iterable[NodeStatus]) -> str:
    """Return that no running node takes a task with these labels; empty if one does."""
    up = [each for each in nodes if each.state is NodeState.UP]
    if any(_has_labels(each, labels) for each in up):
        return ""
    return f"no node that is up has {_label_words(labels)}" if up else "no node is up"


def _has_labels(node: NodeStatus, labels: Sequence[str]) -> bool:
    return {*labels} <= {*node.labels}


def _label_words(labels: Sequence[str]) -> str:
    return f"the label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"


def _node_names(nodes: Sequence[NodeStatus]) -> str:
    names = ", ".join(each.name for each in nodes)
    return f"{names} {'is' if len(nodes) == 1 else 'are'}"


def adrift(attempt: AttemptState, node: NodeStatus | None) -> bool:
    """Whether an attempt's node is gone, as far as known, and no other has taken it over."""
    return node is not None and node.state.gone and not attempt.over


def missing_lines(
    nodes: Collection[NodeStatus],
    monitors: Iterable[MonitorStatus],
    now: datetime,
    *,
    fleets: Collection[str] = (),
) -> Iterator[str]:
    """Yield a line for each thing that these fleets lack, by default all that have a node.

    A fleet is named only if there is more than one.
    """
    known = {each.fleet for each in nodes}
    several = len(known | {*fleets}) > 1
    for fleet in sorted(fleets or known) or [""]:
        ours = fleet_nodes(fleet, nodes)
        yield from _no_node(ours, f" of fleet {fleet}" if several else "")
    absent = monitor_absent(monitors, now)
    if absent:
        yield absent


def _no_node(nodes: Collection[NodeStatus], of: str) -> Iterator[str]:
    node = command("node")
    if not nodes:
        yield f"no node{of} has joined yet: `{node}` starts one"
    elif all(each.state.gone for each in nodes):
        yield f"no node{of} is up: nothing continues until one is; `{node}` starts one"


def monitor_absent(monitors: Iterable[MonitorStatus], now: datetime) -> str:
    """Return that no monitor is running; empty if one is."""
    known = sorted(monitors, key=lambda each: each.until)
    if any(each.lives(now) for each in known):
        return ""
    last = (
        f" ({known[-1].name} was, until {round_time(now - known[-1].until)} ago)" if known else ""
    )
    return (
        f"no monitor is running{last}: nobody escalates, decides or learns until one is; "
        f"`{command('monitor')}` starts one"
    )


def round_time(time: timedelta) -> str:
    """Return seconds as seconds, minutes or hours, rounded for a reader."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def fleet_of(run: Run) -> str:
    """Return the fleet that a run was submitted to.

    Reads nothing else: a newer Midwatch may have written settings that this one does not know.
    """
    # Importing it takes a while, and `status` of a run without a fleet does not need it.
    from midwatch_monitor.config.fleet import FleetSettings

    try:
        said: dict[str, dict[str, str]] = json.loads(run.settings)
        return said.get("fleet", {}).get("name", FleetSettings().name)
    except (ValueError, AttributeError, RecursionError):
        return ""  # of no fleet, so that the other runs can still be handled


def fleet_nodes(fleet: str, nodes: Iterable[NodeStatus]) -> list[NodeStatus]:
    """Return the nodes that work for a fleet."""
    return [each for each in nodes if each.fleet == fleet]


def nodes_of(run: Run, nodes: Iterable[NodeStatus]) -> list[NodeStatus] | None:
    """Return the nodes that may work on a run; `None` if one process runs it."""
    return fleet_nodes(fleet_of(run), nodes) if run.supervised_by is SupervisedBy.MONITOR else None
