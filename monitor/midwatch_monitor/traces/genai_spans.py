"""Spans of OpenTelemetry, as programs send them, and the sessions that they tell of.

One step for each span of a tool, and for each of a model that called none; names are those of the
conventions for generative AI, of today and before, and of OpenInference.
"""

import base64
from collections.abc import Iterator
from enum import StrEnum

from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Event, Step, StepKind
from midwatch_monitor.traces.foreign import Node
from midwatch_monitor.traces.json_stream import object_of
from midwatch_monitor.traces.session_reader import SessionReader
from midwatch_monitor.traces.tool_calls import Answer, Tools, finished

_DEEPEST = 32
"""Lists inside each other in an attribute; what is deeper is left out."""
_TOOLS = Tools(shell="", writing=frozenset(), whole="")
_SEEN = Step(number=0, kind=StepKind.MESSAGE)


class SpanKind(StrEnum):
    """What a span is of."""

    TOOL = "tool"
    MODEL = "model"
    AGENT = "agent"


_NAMES = {
    SpanKind.MODEL: ("chat", "text_completion", "generate_content", "LLM"),
    SpanKind.TOOL: ("execute_tool", "TOOL"),
    SpanKind.AGENT: ("invoke_agent", "AGENT"),
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


def spans_in(body: bytes, *, json: bool) -> list[Node]:
    """The spans of a request, as they ended, each with its attributes as one object.

    Raises TraceError for what is no request of OTLP.
    """
    found = object_of(body) if json else _decode(body)
    if isinstance(found, str):
        raise TraceError(f"no spans of OTLP: {found}")
    spans = [
        _span(span, resource["resource"])
        for resource in found["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    return sorted(spans, key=lambda each: each["nanoseconds"].whole or 0)


def _decode(body: bytes) -> Node | str:
    """A request as its JSON says it, other than that its ids are in base64."""
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = ExportTraceServiceRequest.FromString(body)
        return Node(MessageToDict(request, use_integers_for_enums=True))
    except (DecodeError, ValueError, RecursionError) as error:
        return str(error)


def _span(span: Node, resource: Node) -> Node:
    status, nanoseconds = span["status"], _nanoseconds(span["endTimeUnixNano"])
    exceptions = (_attributes(each["attributes"]) for each in span["events"])
    problems = [status["message"].text, *(each["exception.message"].text for each in exceptions)]
    return Node(
        {
            "trace": _id(span["traceId"].text, 16),
            "span": _id(span["spanId"].text, 8),
            "root": not span["parentSpanId"].text.strip("0"),
            "nanoseconds": nanoseconds,
            "end": nanoseconds / 1e9,
            "failed": status["code"].whole == 2,
            "problem": next(filter(None, problems), ""),
            "service": _attributes(resource["attributes"])["service.name"].text,
            "attributes": _attributes(span["attributes"]).value,
        }
    )


def _nanoseconds(said: Node) -> int:
    """A time since 1970: a text of up to twenty digits, or a number; else 0."""
    digits = said.text
    return int(digits) if digits.isdecimal() and len(digits) <= 20 else said.whole or 0


def _id(text: str, size: int) -> str:
    """An id in hexadecimal, which it is in JSON; else it is in base64."""
    try:
        raw = bytes.fromhex(text) if len(text) == 2 * size else base64.b64decode(text)
    except ValueError:
        return ""
    return raw.hex() if len(raw) == size else ""


def _attributes(pairs: Node, depth: int = 0) -> Node:
    return Node({pair["key"].text: _plain(pair["value"], depth) for pair in pairs})


def _plain(value: Node, depth: int) -> object:
    match next(iter(value.members), ""):
        case "arrayValue" if depth < _DEEPEST:
            return [_plain(each, depth + 1) for each in value["arrayValue"]["values"]]
        case "kvlistValue" if depth < _DEEPEST:
            return _attributes(value["kvlistValue"]["values"], depth + 1).value
        case "intValue":
            return value["intValue"].whole
        case "stringValue" | "boolValue" | "doubleValue" as kind:
            return value[kind].value
        case _:
            return None


def span_kind(span: Node) -> SpanKind | None:
    """What a span is of; `None` for one that is no act of an agent."""
    has = span["attributes"]
    said = has["gen_ai.operation.name"].text or has["openinference.span.kind"].text.upper()
    return _KINDS.get(said) if said else SpanKind.TOOL if _first(has, _TOOL_NAMES) else None


def conversation(span: Node) -> str:
    """The id of the conversation that a span is of; empty where it does not say."""
    return _first(span["attributes"], ("gen_ai.conversation.id", "session.id")).text


class SpanSession(SessionReader):
    """One session as its spans are read."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: Answer | None = None

    def take(self, line: Node) -> Iterator[Event]:
        """The events that are complete with this span."""
        key, at = f"{line['trace'].text} {line['span'].text}", line["end"].time
        if self._calls.knows(key):  # a program that got no answer sends it again
            return
        list(self._calls.open(key, _SEEN))
        self._calls.close(key)
        kind = span_kind(line)
        if kind is SpanKind.AGENT and line["root"]:
            yield from self.finish()
            yield from self._to_person(at)
        elif kind is SpanKind.TOOL:
            yield from self._to_model(at)
            yield self._calls.numbered(self._tool(line))
        elif kind is SpanKind.MODEL:
            yield from self._to_model(at)
            yield from self.finish()
            yield from self._model(key, line)

    def finish(self) -> Iterator[Event]:
        """An answer whose calls have not come."""
        if self._answer is not None and not self._answer.called:
            yield self._calls.numbered(self._answer.step)
        self._answer = None

    def _model(self, key: str, span: Node) -> Iterator[Step]:
        has = span["attributes"]
        self._requests += 1
        prompts = has["gen_ai.input.messages"].decoded
        self.heading.add(prompt=next((_text(e) for e in prompts if e["role"].text == "user"), ""))
        answers = list(has["gen_ai.output.messages"].decoded)
        step = Step(
            number=0,
            kind=StepKind.MESSAGE,
            at=span["end"].time,
            request=self._requests,
            ok=False if span["failed"] else None,
            output=span["problem"].text if span["failed"] else "",
            text="\n\n".join(filter(None, map(_text, answers))),
            tokens=sum(_first(has, names).count for names in _TOKENS),
        )
        parts = {part["type"].text for each in answers for part in each["parts"]}
        reasons = {each.text for each in has["gen_ai.response.finish_reasons"]}
        if not _CALLED & (parts | reasons):
            yield self._calls.numbered(step)
        else:
            self._answer = Answer(key=key, step=step)

    def _tool(self, span: Node) -> Step:
        has, at = span["attributes"], span["end"].time
        trace, id = span["trace"].text, span["span"].text
        given = _first(has, _ARGUMENTS).decoded
        if given.value is None:
            # Calls are not equal because nothing is known of them.
            given = Node(f"not recorded (span {id})")
        call = f"span {trace} {id}" if trace and id else ""
        name = _first(has, _TOOL_NAMES).text or "unknown"
        step = _TOOLS.call(self._place, name, given, at=at, call=call)
        if self._answer is not None:
            step = self._answer.call(step)
        result = _first(has, _RESULTS)
        output = result.canonical if result.value is not None else span["problem"].text
        return finished(step, at=at, ok=not span["failed"], exit_code=None, output=output)


def _first(has: Node, names: tuple[str, ...]) -> Node:
    return next((has[name] for name in names if has[name].value is not None), Node())


def _text(message: Node) -> str:
    return "\n".join(part["content"].text for part in message["parts"] if part["content"].text)
