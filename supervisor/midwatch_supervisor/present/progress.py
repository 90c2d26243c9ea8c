"""The progress of a run as a person reads it while it goes on. Pure."""

from datetime import tzinfo

from midwatch_monitor.records import (
    Alert,
    AlertState,
    AttemptTransition,
    Change,
    Entry,
    Escalation,
    EscalationState,
    Outage,
    Resolution,
    Step,
)
from midwatch_supervisor.present.json_lines import Transcript
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import brief

_WIDTH = 240
"""Characters of a line; `show` and the console have all of it."""


def progress_line(entry: Entry, transcript: Transcript, zone: tzinfo | None = None) -> str | None:
    """One line of progress, its time in `zone` (default: this machine's); `None` for nothing.

    Nothing is said of alerts that do not fire yet or only end with their attempt, nor of an
    escalation once it is open. The transcript has taken the entry.
    """
    if not _tells(entry):
        return None
    record = entry.record
    told = line(record, transcript.about(entry), id=entry.id)
    head = "" if told.what == "status" else f"{told.what}: "
    step = f"step {record.number}, " if isinstance(record, Step) else ""
    began = isinstance(record, AttemptTransition) and not record.lifecycle.over
    worker = transcript.worker(entry) if began else ""
    text = brief(f"{step}{head}{told.text}{f' ({worker})' if worker else ''}", _WIDTH)
    return f"{entry.at.astimezone(zone):%H:%M:%S} {transcript.name(entry)}: {text}"


def _tells(entry: Entry) -> bool:
    match entry.record:
        case Alert() as alert:
            resolved = alert.state is AlertState.RESOLVED
            return alert.firing or (resolved and alert.resolution is not Resolution.ENDED)
        case Escalation() as asked:
            return asked.state is EscalationState.OPEN
        case Change(
            outage=Outage() as outage
        ):  # a refusal ends the run, with a sentence of its own
            return outage.over or outage.next_try is not None
        case _:
            return True
