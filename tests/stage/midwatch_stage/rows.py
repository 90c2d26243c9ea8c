"""Rows of the console's fleet, as records of the journal make them."""

from typing import Any

from midwatch_monitor.records import Record
from midwatch_monitor.state.attempt import AttemptState
from midwatch_stage.factories import attempt, entry
from midwatch_supervisor.tui.state.row import Row


def row(*records: Record, id: int = 1, name: str = "fix", **fields: Any) -> Row:
    """Attempt `id` of the task `fix` after records a second apart, with ids from 1.

    Other fields are those of the attempt.
    """
    state = AttemptState(attempt=attempt(id, task=id, **fields), detailed=False)
    made = Row(run=1, task=id, name=name, state=state)
    for number, record in enumerate(records, start=1):
        made.fold(entry(number, record, attempt=id, task=id))
    return made
