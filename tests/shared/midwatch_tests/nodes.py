"""Nodes as the journal tells of them."""

from datetime import datetime

from midwatch_monitor.records import NodeState, NodeStatus
from midwatch_tests.factories import AT


def node(
    name: str,
    *labels: str,
    state: NodeState = NodeState.UP,
    slots: int = 1,
    busy: int = 0,
    began: datetime = AT,
    heard: datetime | None = None,
) -> NodeStatus:
    """A node that was last heard when it `began`, unless it is told otherwise."""
    return NodeStatus(
        name=name,
        boot="1",
        state=state,
        slots=slots,
        busy=busy,
        labels=labels,
        version="0.1.0",
        revision="",
        started_at=began,
        beat_at=heard or began,
    )
