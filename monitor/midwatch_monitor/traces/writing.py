"""Events as lines of Midwatch's own trace format: what `native` reads back as the same events."""

import json
from dataclasses import fields
from datetime import UTC, datetime

from midwatch_monitor.records import Budget, Change, Checkpoint, Edit, Event, Meter, Step, StepKind
from midwatch_monitor.traces.native import STATE, canonical


def written(event: Event) -> str:
    """An event as one line of a trace, without the end of the line.

    What has its default is left out, but not the edits of a tool step: where a line says nothing
    of edits, a reader may infer them. What cannot be printed is escaped: some readers take it for
    the end of a line, halves of surrogate pairs are no UTF-8, and terminals obey it.
    """
    said = _change(event) if isinstance(event, Change) else _step(event)
    line = json.dumps(said, ensure_ascii=False, separators=(",", ":"), default=_time)
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def _step(step: Step) -> dict[str, object]:
    said = {"step": step.number} | _said(step)
    del said["number"]
    said.pop("checkpoint", None)
    if "args" in said:
        said["args"] = _args(step.args)
    if step.kind is StepKind.TOOL or step.edits:
        said["edits"] = [_said(edit) for edit in step.edits]
    if step.checkpoint is not None:
        # A report that names no plan step is taken to be about the one in force.
        said |= _said(step.checkpoint) | {"plan_step": step.checkpoint.plan_step}
    return said


def _change(change: Change) -> dict[str, object]:
    said: dict[str, object] = {"kind": STATE} | _said(change)
    if change.budget is not None:
        said["budget"] = _budget(change.budget)
    return said


def _said(word: Step | Change | Edit | Checkpoint) -> dict[str, object]:
    """The fields of a word that do not have their default."""
    return {
        field.name: value
        for field in fields(word)
        if (value := getattr(word, field.name)) != field.default
    }


def _args(args: str) -> object:
    """Arguments as the object that they are the text of; as text where that would not survive."""
    if not args.startswith("{"):
        return args
    try:
        value: object = json.loads(args)
        return value if canonical(value) == args else args
    except (ValueError, RecursionError):
        return args


def _budget(budget: Budget) -> dict[str, object]:
    """Used and limit of each resource that has either."""
    meters: dict[str, Meter] = {field.name: getattr(budget, field.name) for field in fields(budget)}
    return {
        name: [_number(each.used), _number(each.limit)]
        for name, each in meters.items()
        if each != Meter()
    }


def _number(value: float | None) -> float | None:
    """Whole numbers as such: most meters count things."""
    return int(value) if value is not None and value % 1 == 0 else value


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no place in a trace")
