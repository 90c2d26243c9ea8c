"""Midwatch's own trace format: one JSON object a line, read as a stream."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from midwatch_monitor.traces.damage import Damage
from midwatch_monitor.words import (
    Activity,
    Budget,
    Change,
    Checkpoint,
    Course,
    Edit,
    Event,
    Lifecycle,
    Meter,
    Step,
    StepKind,
    Writer,
)

STATE = "state"
"""The kind of a line without a number: what changed around the attempt."""
_FIRST_LINE = 16 * 1024 * 1024


def _aware(value: datetime) -> datetime:
    """Times without a zone are taken as UTC: domain values are always aware."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Time = Annotated[datetime, AfterValidator(_aware)]
Percent = Annotated[int, Field(ge=0, le=100)]
Natural = Annotated[int, Field(ge=0)]
Ordinal = Annotated[int, Field(ge=1)]


class _Line(BaseModel):
    """One line; keys that are not known here are somebody's own and are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: Time | None = None


class _EditLine(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    digest: str = ""
    writer: Writer = Writer.WORKER
    deleted: bool = False


class _StepLine(_Line):
    step: Ordinal
    kind: StepKind
    request: Natural = 0
    tool: str = ""
    args: Any = ""
    path: str = ""
    edit: bool = False
    edits: tuple[_EditLine, ...] = ()
    content_digest: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    output: str = ""
    output_digest: str = ""
    text: str = ""
    tokens: Natural = 0
    cost_usd: Annotated[float, Field(ge=0)] = 0.0
    call: str = ""


class _CheckpointLine(_StepLine):
    progress_percent: Percent
    confidence: Percent
    decision: Course = Course.CONTINUE
    blockers: tuple[str, ...] = ()
    files_done: tuple[str, ...] = ()
    notes: str = ""
    estimated_steps_left: Natural | None = None
    plan_step: Ordinal


class _StateLine(_Line):
    reflect: bool | None = None
    reflect_every: Natural | None = None
    plan_step: Ordinal | None = None
    plan_steps: Natural | None = None
    revision: Natural | None = None
    lifecycle: Lifecycle | None = None
    activity: Activity | None = None
    budget: dict[str, tuple[float, float | None]] | None = None
    """Used and limit of each resource."""


def recognise(path: Path) -> bool:
    """Whether the first line that is not empty is an object with a `kind`."""
    with path.open("rb") as file:
        while line := file.readline(_FIRST_LINE):
            if line.strip():
                raw = _object(line)
                return isinstance(raw, dict) and "kind" in raw
    return False


def read(path: Path) -> Iterator[Event | Damage]:
    """The events of a trace in order. A line that cannot be read becomes damage, and is skipped."""
    plan_step = 1
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            raw = _object(line)
            event = parse(raw, plan_step) if isinstance(raw, dict) else raw
            if isinstance(event, str):
                yield Damage(line=number, problem=event)
                continue
            if isinstance(event, Change) and event.plan_step is not None:
                plan_step = event.plan_step
            yield event


def parse(raw: Mapping[str, object], plan_step: int = 1) -> Event | str:
    """One line as an event, or what is wrong with it.

    `plan_step` is the one in force, for checkpoints that do not name theirs.
    """
    known = {key: value for key, value in raw.items() if value is not None}
    try:
        match known.get("kind"):
            case "state":
                return _change(_StateLine.model_validate(known))
            case "checkpoint":
                line = _CheckpointLine.model_validate({"plan_step": plan_step, **known})
                return _step(line, _checkpoint(line))
            case _:
                return _step(_StepLine.model_validate(known), None)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}" if place else first["msg"]


def _object(line: bytes) -> dict[str, object] | str:
    """The line's JSON object, or what is wrong with it."""
    try:
        raw: object = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(raw, dict):
        return "not a JSON object"
    return raw  # pyright: ignore[reportUnknownVariableType]


def _step(line: _StepLine, checkpoint: Checkpoint | None) -> Step:
    return Step(
        number=line.step,
        kind=line.kind,
        at=line.at,
        request=line.request,
        tool=line.tool,
        args=line.args if isinstance(line.args, str) else _canonical(line.args),
        path=line.path,
        edits=_edits(line),
        ok=line.ok,
        exit_code=line.exit_code,
        output=line.output,
        output_digest=line.output_digest,
        text=line.text,
        tokens=line.tokens,
        cost_usd=line.cost_usd,
        call=line.call,
        checkpoint=checkpoint,
    )


def _edits(line: _StepLine) -> tuple[Edit, ...]:
    """The observed edits if the line has them, else the one it claims; a failed one is none."""
    if line.edits:
        return tuple(Edit(**edit.model_dump()) for edit in line.edits)
    failed = line.ok is False or line.exit_code not in (0, None)
    if not line.edit or not line.path or failed:
        return ()
    return (Edit(path=line.path, digest=line.content_digest),)


def _checkpoint(line: _CheckpointLine) -> Checkpoint:
    return Checkpoint(
        progress_percent=line.progress_percent,
        confidence=line.confidence,
        decision=line.decision,
        blockers=line.blockers,
        files_done=line.files_done,
        notes=line.notes,
        estimated_steps_left=line.estimated_steps_left,
        plan_step=line.plan_step,
    )


def _change(line: _StateLine) -> Change:
    return Change(
        at=line.at,
        reflect=line.reflect,
        reflect_every=line.reflect_every,
        plan_step=line.plan_step,
        plan_steps=line.plan_steps,
        revision=line.revision,
        lifecycle=line.lifecycle,
        activity=line.activity,
        budget=None if line.budget is None else _budget(line.budget),
    )


def _budget(raw: Mapping[str, tuple[float, float | None]]) -> Budget:
    def meter(name: str) -> Meter:
        used, limit = raw.get(name, (0.0, None))
        return Meter(used=used, limit=limit)

    return Budget(
        requests=meter("requests"),
        tokens=meter("tokens"),
        cost_usd=meter("cost_usd"),
        minutes=meter("minutes"),
    )


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
