"""What a task that has not begun waits for: other tasks, a node that can do it, its turn. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from midwatch_monitor.config.tasks import TaskSpec
from midwatch_monitor.words import Lifecycle, NodeState, NodeStatus

TURN = "its turn"
_THERE = frozenset({NodeState.UP, NodeState.DRAINING})


def turn_of(
    wanted: TaskSpec,
    states: Mapping[str, Lifecycle],
    nodes: Iterable[NodeStatus] | None,
) -> str:
    """What the task waits for before it begins, in words.

    `states` are those of the tasks of its run, by name; `nodes` are those of the fleet that it is
    run by, `None` where one process runs it.
    """
    before = [name for name in wanted.depends_on if not _done(states.get(name))]
    if before:
        return f"the task{'s' if len(before) > 1 else ''} {', '.join(before)}"
    return TURN if nodes is None else _place(wanted.labels, nodes)


def _done(state: Lifecycle | None) -> bool:
    return state is Lifecycle.COMPLETED


def _place(labels: Sequence[str], nodes: Iterable[NodeStatus]) -> str:
    """A node that can do it, and which of them are there."""
    able = [each.name for each in nodes if each.state in _THERE and {*labels} <= {*each.labels}]
    if able and not labels:
        return TURN
    which = f" with the label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
    there = f"{', '.join(able)} is up" if len(able) == 1 else f"{', '.join(able)} are up"
    return f"a node{which if labels else ''} ({there if able else 'none is up'})"
