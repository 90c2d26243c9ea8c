"""Reads (as a stream) and writes Midwatch's own trace format: one JSON object a line."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from midwatch_monitor.config.problem import error_line
from midwatch_monitor.records import (
    Activity,
    Budget,
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Event,
    Lifecycle,
    Meter,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.shell import Shell
from midwatch_monitor.shell.claimed_edits import (
    CallArguments,
    claims_edit,
    edits_named,
    looks,
    refused,
    whole_content,
)
from midwatch_monitor.shell.tools import is_shell
from midwatch_monitor.time_range import plausible
from midwatch_monitor.traces.foreign import NOTHING_RAN, JsonNode
from midwatch_monitor.traces.json_stream import Damage, lines, object_of

STATE = "state"
"""The kind of a line without a number: a change in the attempt's circumstances."""
_FIRST_LINE = 16 * 1024 * 1024


def _with_zone(value: datetime) -> datetime:
    """Treat times without a zone as UTC: domain values are always aware."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not plausible(aware):
        raise PydanticCustomError("time", "Input should be a time of the years 1970 to 8999")
    return aware


def _with_hyphens(value: object) -> object:
    """Replace underscores, for names that are spelled with hyphens here."""
    return value.replace("_", "-") if isinstance(value, str) else value


AnyText = InstanceOf[str]
"""Any text: pydantic's own `str` rejects unpaired surrogates, which a command may print."""
Time = Annotated[datetime, AfterValidator(_with_zone)]
Percent = Annotated[int, Field(ge=0, le=100)]
Natural = Annotated[int, Field(ge=0)]
Ordinal = Annotated[int, Field(ge=1)]


class _Line(BaseModel):
    """One line; unknown keys are not ours and are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: Time | None = None


class _EditLine(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    path: AnyText
    digest: AnyText = ""
    before: AnyText = ""
    writer: Writer = Writer.WORKER
    deleted: bool = False


class _StepLine(_Line):
    step: Ordinal
    kind: StepKind
    request: Natural = 0
    tool: AnyText = ""
    args: Any = ""
    path: AnyText = ""
    edit: bool | None = None
    """Whether the call claims to change the file that it names."""
    edits: tuple[_EditLine, ...] | None = None
    """Observed edits; an empty list means that nothing changed."""
    content_digest: AnyText = ""
    ok: bool | None = None
    exit_code: int | None = None
    output: AnyText = ""
    output_digest: AnyText = ""
    text: AnyText = ""
    speaker: AnyText = Field(
        "", validation_alias=AliasChoices("speaker", "sender", "name", "agent", "from", "role")
    )
    """Who speaks in this turn of a conversation, if the text does not begin with the name."""
    tokens: Natural = 0
    cost_usd: Annotated[float, Field(ge=0)] = 0.0
    call: AnyText = ""


class _CheckpointLine(_StepLine):
    progress_percent: Percent
    confidence: Percent
    decision: CheckpointDecision = CheckpointDecision.CONTINUE
    blockers: tuple[AnyText, ...] = ()
    files_done: tuple[AnyText, ...] = ()
    notes: AnyText = ""
    estimated_steps_left: Natural | None = None
    plan_step: Ordinal


class _StateLine(_Line):
    reflect: bool | None = None
    reflect_every: Natural | None = None
    confidence_counts: bool | None = None
    plan_step: Ordinal | None = None
    plan_steps: Natural | None = None
    revision: Natural | None = None
    plan_step_requests: Natural | None = None
    plan_step_files: tuple[AnyText, ...] | None = None
    model: AnyText | None = None
    lifecycle: Annotated[Lifecycle | None, BeforeValidator(_with_hyphens)] = None
    activity: Annotated[Activity | None, BeforeValidator(_with_hyphens)] = None
    doing: AnyText = ""
    node: AnyText | None = None
    sandbox: AnyText | None = None
    budget: dict[str, tuple[float, float | None]] | None = None
    """Used amount and limit of each resource."""


def line_model(kind: object) -> type[BaseModel]:
    """Return the model of the lines of a kind."""
    match kind:
        case "state":
            return _StateLine
        case "checkpoint":
            return _CheckpointLine
        case _:
            return _StepLine


def line_keys(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys that a model's lines may have, including aliases."""
    aliases = (field.validation_alias for field in model.model_fields.values())
    others = (each.choices for each in aliases if isinstance(each, AliasChoices))
    return frozenset({"kind", *model.model_fields, *(str(key) for each in others for key in each)})


def recognise(path: Path) -> bool:
    """Whether the first non-empty line is an object of one of our kinds."""
    with path.open("rb") as file:
        while line := file.readline(_FIRST_LINE):
            if line.strip():
                read = object_of(line)
                return isinstance(read, JsonNode) and read["kind"].value in (STATE, *StepKind)
    return False


def read(path: Path) -> Iterator[Event | Damage]:
    """Yield the events of a trace in order. An unreadable line becomes damage."""
    reader = LineReader()
    for line in lines(path):
        if isinstance(line, Damage):
            yield line
            continue
        event = reader.read(line.node.members)
        yield Damage(line=line.number, problem=event) if isinstance(event, str) else event


class LineReader:
    """Reads the lines of one trace in order; omitted values follow from earlier lines.

    A checkpoint that names no plan step is about the current one. Without `edits`, a shell command
    changes the files it says, directly or through a script written earlier, and a call to an
    editing tool changes the file it names, unless it was refused. Arguments given as the text of an
    object are read as that object; with `edits` they stay text, so that exported runs are read back
    unchanged.
    """

    def __init__(self) -> None:
        self._plan_step = 1
        self._shell = Shell()

    def read(self, raw: Mapping[str, object]) -> Event | str:
        """Return the next line as an event, or a description of what is wrong with it."""
        known = {key: value for key, value in raw.items() if value is not None}
        try:
            return self._read_event(known)
        except RecursionError:
            return "nested too deeply"
        except ValidationError as error:
            return error_line(error.errors(include_url=False)[:1])

    def _read_event(self, known: Mapping[str, object]) -> Event:
        match known.get("kind"):
            case "state":
                change = _read_change(_StateLine.model_validate(known))
                self._plan_step = change.plan_step or self._plan_step
                return change
            case "checkpoint":
                line = _CheckpointLine.model_validate({"plan_step": self._plan_step, **known})
                return _read_step(
                    line, self._edits(line), Checkpoint(**_shared_fields(line, Checkpoint))
                )
            case _:
                line = _StepLine.model_validate(_decode_arguments(known))
                return _read_step(line, self._edits(line), None)

    def _edits(self, line: _StepLine) -> tuple[Edit, ...]:
        """Return the line's observed edits if it has any, else claimed or inferred ones."""
        if line.edits is not None:
            return tuple(Edit(**edit.model_dump()) for edit in line.edits)
        if line.edit is False or line.kind is not StepKind.TOOL:
            return ()
        if line.edit is None and (command := _shell_command(line)):
            return self._inferred_edits(line, command)
        failed = line.ok is False or line.exit_code not in (0, None)
        return () if failed or refused(line.output) else self._claimed_edits(line)

    def _claimed_edits(self, line: _StepLine) -> tuple[Edit, ...]:
        """Return the edits that a call claims with `edit`, a digest or its tool's name."""
        tool, args = line.tool, _read_arguments(line.args)
        said = line.edit or bool(line.content_digest and not looks(tool, args))
        if not said and not claims_edit(tool, args):
            return ()
        edits = edits_named(tool, args, path=line.path)
        content = whole_content(tool, args)
        if edits and content is not None:
            self._shell.note(edits[0].path, content)
        if len(edits) == 1 and line.content_digest:
            return (replace(edits[0], digest=line.content_digest),)
        return edits

    def _inferred_edits(self, line: _StepLine, command: str) -> tuple[Edit, ...]:
        """Return what a command writes; one that fails may have written something before."""
        refused = line.ok is False and line.exit_code is None
        if refused or line.exit_code in NOTHING_RAN:
            return ()
        return self._shell.edits(command)


def _read_step(line: _StepLine, edits: tuple[Edit, ...], checkpoint: Checkpoint | None) -> Step:
    shared = _shared_fields(line, Step)
    shared["args"] = line.args if isinstance(line.args, str) else canonical(line.args)
    shared["edits"] = edits
    if line.speaker and line.kind is StepKind.MESSAGE:
        shared["text"] = _turn_text(line.speaker, line.text)
    return Step(**shared, number=line.step, checkpoint=checkpoint)


def _turn_text(speaker: str, text: str) -> str:
    """Return a turn's text, beginning with the speaker."""
    begins = text.lstrip("[<*@ ").startswith(speaker)
    return text if begins or not text else f"[{speaker}] {text}"


def _shared_fields(line: _Line, kind: type[Step | Checkpoint | Change]) -> dict[str, Any]:
    """Return the fields of a line that a record also has."""
    known = type(line).model_fields
    return {each.name: getattr(line, each.name) for each in fields(kind) if each.name in known}


def _shell_command(line: _StepLine) -> str:
    """Return a shell's command line; empty for any other act."""
    if line.tool and not is_shell(line.tool):
        return ""
    args = _read_arguments(line.args)
    if isinstance(args, str):
        return "" if args.startswith("{") else args
    command = args.get("command") or args.get("cmd")
    if isinstance(command, list):
        return shlex.join(str(word) for word in cast("list[object]", command))
    return command if isinstance(command, str) else ""


def _decode_arguments(known: Mapping[str, object]) -> Mapping[str, object]:
    """Return the line with its arguments decoded if they are the text of an object."""
    args = known.get("args")
    if not isinstance(args, str) or not args.lstrip().startswith("{"):
        return known
    if known.get("kind") != StepKind.TOOL or "edits" in known:
        return known
    try:
        value: object = json.loads(args)
    except (ValueError, RecursionError):
        return known
    return known if _read_arguments(value) == "" else {**known, "args": value}


def _read_arguments(args: object) -> CallArguments:
    """Return the arguments as an object, or as text if they are not one."""
    if isinstance(args, dict):
        return cast("dict[str, object]", args)
    return args if isinstance(args, str) else ""


def _read_change(line: _StateLine) -> Change:
    shared = _shared_fields(line, Change)
    if line.budget is not None:
        shared["budget"] = Budget(
            **{
                name: Meter(used=used, limit=limit)
                for name, (used, limit) in line.budget.items()
                if name in _RESOURCES
            }
        )
    return Change(**shared)


_RESOURCES = frozenset(each.name for each in fields(Budget))


def canonical(value: object) -> str:
    """Return arguments as JSON that is equal for equal arguments, as in live steps."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def write_event(event: Event) -> str:
    """Return an event as one line of a trace, without the newline.

    Default values are left out, except the edits of a tool step: without them, a reader may infer
    some. Unprintable characters are escaped: some readers take them for line ends, unpaired
    surrogates are not UTF-8, and terminals interpret them.
    """
    said = _change_fields(event) if isinstance(event, Change) else _step_fields(event)
    line = json.dumps(said, ensure_ascii=False, separators=(",", ":"), default=_time_text)
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def _step_fields(step: Step) -> dict[str, object]:
    said = {"step": step.number} | _fields_set(step)
    del said["number"]
    said.pop("checkpoint", None)
    if "args" in said:
        said["args"] = _written_arguments(step.args)
    if step.kind is StepKind.TOOL or step.edits:
        said["edits"] = [_fields_set(edit) for edit in step.edits]
    if step.checkpoint is not None:
        # A report that names no plan step is about the current one.
        said |= _fields_set(step.checkpoint) | {"plan_step": step.checkpoint.plan_step}
    return said


def _change_fields(change: Change) -> dict[str, object]:
    said: dict[str, object] = {"kind": STATE} | _fields_set(change)
    for name in ("outage", "acts"):  # no rule uses them
        said.pop(name, None)
    if change.budget is not None:
        said["budget"] = _budget_fields(change.budget)
    return said


def _fields_set(word: Step | Change | Edit | Checkpoint) -> dict[str, object]:
    """Return the fields of a value that differ from their defaults."""
    return {
        field.name: value
        for field in fields(word)
        if (value := getattr(word, field.name)) != field.default
    }


def _written_arguments(args: str) -> object:
    """Return arguments as the object in their text, or as text if that would change them."""
    if not args.startswith("{"):
        return args
    try:
        value: object = json.loads(args, parse_constant=_refuse_constant)
        return value if canonical(value) == args else args
    except (ValueError, RecursionError):
        return args


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _budget_fields(budget: Budget) -> dict[str, object]:
    """Return the used amount and the limit of each resource that has either."""
    meters: dict[str, Meter] = {field.name: getattr(budget, field.name) for field in fields(budget)}
    return {
        name: [_plain_number(each.used) or 0, _plain_number(each.limit)]
        for name, each in meters.items()
        if each != Meter()
    }


def _plain_number(value: float | None) -> float | None:
    """Return whole numbers as integers, since most meters count things. JSON has no NaN."""
    if value is None or not isfinite(value):
        return None
    return int(value) if value % 1 == 0 else value


def _time_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"a trace cannot contain a value of type {type(value).__name__}")
