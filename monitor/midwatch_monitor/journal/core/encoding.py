"""A record as the journal stores it: the name of its kind, and JSON."""

import dataclasses
import json
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, SchemaSerializer, to_json

from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.records import (
    Acceptance,
    Alert,
    Analysis,
    AttemptTransition,
    BudgetRequest,
    Change,
    Completion,
    Decision,
    Delivery,
    Entry,
    Escalation,
    Fact,
    FactMark,
    FactReview,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesMark,
    Hint,
    Intervention,
    Lesson,
    LessonMark,
    OutcomeReport,
    Plan,
    PlanCheck,
    Recall,
    Record,
    Reflection,
    Snapshot,
    Spending,
    Step,
    Study,
    Summary,
    TaskTransition,
    Trial,
)

_KINDS: dict[type[Record], str] = {
    TaskTransition: "task_state",
    AttemptTransition: "attempt_state",
    Step: "step",
    Change: "change",
    Plan: "plan",
    PlanCheck: "plan_check",
    Completion: "completion",
    Analysis: "analysis",
    BudgetRequest: "budget_request",
    Spending: "spending",
    Acceptance: "acceptance",
    Alert: "alert",
    Escalation: "escalation",
    Decision: "decision",
    Intervention: "intervention",
    Delivery: "delivery",
    OutcomeReport: "outcome",
    Feedback: "feedback",
    Recall: "recall",
    Summary: "summary",
    Study: "study",
    Lesson: "lesson",
    LessonMark: "lesson_mark",
    Fact: "fact",
    FactMark: "fact_mark",
    FactReview: "fact_review",
    Guidelines: "guidelines",
    GuidelinesMark: "guidelines_mark",
    Reflection: "reflection",
    Trial: "trial",
    Snapshot: "snapshot",
    Fault: "fault",
}
_WORDS = {kind: word for word, kind in _KINDS.items()}


def kind_of(word: type[Record]) -> str:
    """The name of a kind of record, as it stands in the journal and in hints."""
    return _KINDS[word]


def hint_of(entry: Entry) -> Hint:
    """What the bus says of an entry: that it is there, and where to look."""
    record = entry.record
    step, note = None, ""
    if isinstance(record, Step):
        step = record.number
    elif isinstance(record, Alert):
        step, note = record.step, f"{record.key.rule} {record.severity} {record.state}"
    return Hint(
        entry=entry.id,
        kind=kind_of(type(record)),
        task=entry.task,
        attempt=entry.attempt,
        step=step,
        note=note,
    )


def written(record: Record) -> str:
    """A record as JSON, with every field that says something: a default may change, `None` not."""
    try:
        body = _serializer(type(record)).to_json(record, exclude_none=True, warnings=False)
    except PydanticSerializationError:
        return _forced(record)
    # Made of its type, a number that is none is `null`. So is `null` within a text, rarely.
    return (body if b":null" not in body else _exact(record)).decode()


@cache
def _serializer(word: type[Record]) -> SchemaSerializer:
    return _adapter(_KINDS[word]).serializer


def _exact(record: Record) -> bytes:
    said = {
        name: value for name in _names(type(record)) if (value := getattr(record, name)) is not None
    }
    return to_json(said, inf_nan_mode="constants")


@cache
def _names(word: type[Record]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(word))


def _forced(record: Record) -> str:
    # The output of a command may hold half a surrogate pair, which UTF-8 cannot say.
    text = json.dumps(dataclasses.asdict(record), default=_plain, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in a record")


def read(kind: str, body: str) -> Record:
    """The record that `written` made into JSON.

    Raises JournalTooNewError for a kind that this version does not know, and JournalCorruptError
    for a body that is no such record.
    """
    if kind not in _WORDS:
        raise JournalTooNewError(f"the journal holds a {kind!r}: a newer Midwatch wrote it")
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        # Without what stands there, which may be anything a worker or a model wrote: an error goes
        # to logs. The cause would be printed with it.
        faults = "; ".join(map(_fault, error.errors(include_input=False, include_url=False)))
        raise JournalCorruptError(f"the journal holds a broken {kind!r}: {faults}") from None


def _fault(details: ErrorDetails) -> str:
    place = ".".join(map(str, details["loc"]))
    return f"{place}: {details['msg']}" if place else details["msg"]


@cache
def _adapter(kind: str) -> TypeAdapter[Record]:
    return TypeAdapter(_WORDS[kind])
