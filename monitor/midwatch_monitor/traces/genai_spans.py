"""OpenTelemetry spans as programs send them, and the sessions they describe.

One step for each tool span, and for each model span without a call. Names follow the current and
earlier conventions for generative AI, and OpenInference.
"""

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from json import loads
from typing import TYPE_CHECKING, Any, cast

from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Event, Step, StepKind
from midwatch_monitor.traces.foreign import JsonNode, ModelAnswer, Tools, finish_call
from midwatch_monitor.traces.session_reader import SessionReader

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_TOOLS = Tools(shell="", writing=frozenset(), whole="")
_SEEN = Step(number=0, kind=StepKind.MESSAGE)


class SpanKind(StrEnum):
    """The kind of act that a span describes."""

    TOOL = "tool"
    MODEL = "model"
    AGENT = "agent"


_NAMES = {
    SpanKind.MODEL: ("chat", "text_completion", "generate_content", "LLM"),
    SpanKind.TOOL: ("execute_tool", "TOOL"),
    SpanKind.AGENT: ("invoke_agent", "invoke_workflow", "AGENT", "CHAIN"),
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
_TOOL_NAMES = ("gen_ai.tool.name", "tool.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_arguments", "input.value")
_RESULTS = ("gen_ai.tool.call.result", "tool_response", "output.value")
_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
)
_CALLED = frozenset({"tool_call", "tool_calls", "tool_use", "function_call"})
_MESSAGE_PIECE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.([^.]+)(.*)")
"""OpenInference has a separate attribute for each piece of a message."""


def spans_in(body: bytes, *, json: bool) -> list[JsonNode]:
    """Return the spans of a request in the order in which they end, each with its attributes as one
    object.

    Raises TraceError if it is not an OTLP request.
    """
    spans = [
        (span, _attributes(resource.resource.attributes)["service.name"].text)
        for resource in _parse_request(body, json=json).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    spans.sort(key=lambda each: each[0].end_time_unix_nano)
    return [_span_node(span, service) for span, service in spans]


def _parse_request(body: bytes, *, json: bool) -> "ExportTraceServiceRequest":
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        if json:
            request = _json_request(body)
            return ParseDict(request, ExportTraceServiceRequest(), ignore_unknown_fields=True)
        return ExportTraceServiceRequest.FromString(body)
    except (DecodeError, ParseError, ValueError, RecursionError) as error:
        raise TraceError(f"not OTLP spans: {error}") from error


def _json_request(body: bytes) -> dict[str, Any]:
    """Return a JSON request. Raises ValueError for one that would be parsed as empty."""
    request = loads(body)
    if not isinstance(request, dict):
        raise ValueError("a request must be a JSON object")
    found = cast("dict[str, Any]", request)
    if found and not {"resourceSpans", "resource_spans"} & found.keys():
        raise ValueError("a request must have `resourceSpans`")
    return found


def _span_node(span: "Span", service: str) -> JsonNode:
    exceptions = (_attributes(each.attributes) for each in span.events)
    problems = span.status.message, *(each["exception.message"].text for each in exceptions)
    return JsonNode(
        {
            "trace": _hex_id(span.trace_id, 16),
            "span": _hex_id(span.span_id, 8),
            "root": not span.parent_span_id,
            "end": span.end_time_unix_nano / 1e9,
            "failed": span.status.code == span.status.STATUS_CODE_ERROR,
            "problem": next(filter(None, problems), ""),
            "service": service,
            "attributes": _attributes(span.attributes).value,
        }
    )


def _hex_id(raw: bytes, size: int) -> str:
    """Return an id in hexadecimal. JSON has it in that form, but it was decoded as base64."""
    text = raw.hex() if len(raw) == size else b64encode(raw).decode().lower()
    return text if re.fullmatch(rf"[0-9a-f]{{{2 * size}}}", text) else ""


def _attributes(pairs: "Iterable[KeyValue]") -> JsonNode:
    return JsonNode({pair.key: _plain_value(pair.value) for pair in pairs})


def _plain_value(value: "AnyValue") -> object:
    match value.WhichOneof("value"):
        case "array_value":
            return [_plain_value(each) for each in value.array_value.values]
        case "kvlist_value":
            return _attributes(value.kvlist_value.values).value
        case "string_value" | "bool_value" | "int_value" | "double_value" as kind:
            return getattr(value, kind)
        case _:
            return None


def span_kind(span: JsonNode) -> SpanKind | None:
    """Return the kind of a span; `None` if it is not an act of an agent."""
    has = span["attributes"]
    said = has["gen_ai.operation.name"].text or has["openinference.span.kind"].text.upper()
    return (
        _KINDS.get(said) if said else SpanKind.TOOL if _first_attribute(has, _TOOL_NAMES) else None
    )


def conversation(span: JsonNode) -> str:
    """Return the id of a span's conversation; empty if it has none."""
    return _first_attribute(span["attributes"], ("gen_ai.conversation.id", "session.id")).text


class SpanSession(SessionReader):
    def __init__(self) -> None:
        super().__init__()
        self._answer: ModelAnswer | None = None

    def take(self, line: JsonNode) -> Iterator[Event]:
        key, at = _span_key(line), line["end"].time
        if self._calls.knows(key):  # a program resends spans if it got no answer
            return
        list(self._calls.open(key, _SEEN))
        self._calls.close(key)
        kind = span_kind(line)
        if kind is SpanKind.AGENT and line["root"]:
            yield from self.finish()
            yield from self._to_person(at)
        elif kind is SpanKind.TOOL:
            yield from self._to_model(at)
            yield self._calls.number(self._tool_step(line))
        elif kind is SpanKind.MODEL:
            yield from self._to_model(at)
            yield from self.finish()
            yield from self._model_steps(key, line)

    def finish(self) -> Iterator[Event]:
        """Yield the last answer if no call of it has come."""
        if self._answer is not None and not self._answer.called:
            yield self._calls.number(self._answer.step)
        self._answer = None

    def _model_steps(self, key: str, span: JsonNode) -> Iterator[Step]:
        has = span["attributes"]
        self._requests += 1
        prompts, answers = _messages(has, "input"), _messages(has, "output")
        self.heading.add(
            prompt=next((_message_text(e) for e in prompts if e["role"].text == "user"), "")
        )
        step = Step(
            number=0,
            kind=StepKind.MESSAGE,
            at=span["end"].time,
            request=self._requests,
            ok=False if span["failed"] else None,
            output=span["problem"].text if span["failed"] else "",
            text="\n\n".join(filter(None, map(_message_text, answers))),
            tokens=sum(_first_attribute(has, names).count for names in _TOKENS),
        )
        parts = {part["type"].text for each in answers for part in each["parts"]}
        reasons = {each.text for each in has["gen_ai.response.finish_reasons"]}
        # An answer that says neither what it said nor why it ended may have made the next calls.
        silent = not (step.text or parts or reasons or span["failed"])
        if silent or _CALLED & (parts | reasons):
            self._answer = ModelAnswer(key=key, step=step)
        else:
            yield self._calls.number(step)

    def _tool_step(self, span: JsonNode) -> Step:
        has, at, key = span["attributes"], span["end"].time, _span_key(span)
        given = _first_attribute(has, _ARGUMENTS).decoded
        if given.value is None:
            # Calls whose arguments are unknown must not count as equal.
            given = JsonNode(f"not recorded (span {span['span'].text})")
        call = f"span {key}" if key else ""
        name = _first_attribute(has, _TOOL_NAMES).text or "unknown"
        step = _TOOLS.call(self._place, name, given, at=at, call=call)
        if self._answer is not None:
            step = self._answer.call(step)
        result = _first_attribute(has, _RESULTS)
        if (wrapped := result.decoded)["type"].text == "tool":  # LangChain adds the call's id
            result = wrapped["data"]["content"]
        output = result.canonical if result.value is not None else span["problem"].text
        return finish_call(step, at=at, ok=not span["failed"], exit_code=None, output=output)


def _span_key(span: JsonNode) -> str:
    """Return a key that distinguishes a span from all others; empty without ids."""
    trace, id = span["trace"].text, span["span"].text
    return f"{trace} {id}" if trace and id else ""


def _first_attribute(has: JsonNode, names: tuple[str, ...]) -> JsonNode:
    return next((has[name] for name in names if has[name].value is not None), JsonNode())


def _messages(has: JsonNode, side: str) -> list[JsonNode]:
    """Return the messages that a model was given, or those that it answered."""
    if said := list(has[f"gen_ai.{side}.messages"].decoded):
        return said
    roles, parts = dict[str, object](), defaultdict[str, list[Mapping[str, object]]](list)
    for name, value in has.members.items():
        match (found := _MESSAGE_PIECE.fullmatch(name)) and found.groups():
            case (of, number, "role", _) if of == side:
                roles[number] = value
            case (of, number, "tool_calls", _) if of == side:
                parts[number].append({"type": "tool_call"})
            case (of, number, "content" | "contents", rest) if of == side and "type" not in rest:
                parts[number].append({"type": "text", "content": value})
            case _:
                pass
    return [JsonNode({"role": roles.get(each), "parts": parts[each]}) for each in roles | parts]


def _message_text(message: JsonNode) -> str:
    return "\n".join(part["content"].text for part in message["parts"] if part["content"].text)
