"""A collector of OpenTelemetry on loopback, and an agent that sends spans of what it does."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode, Tracer


class Collector:
    """What was sent to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies = list[bytes]()
        self.paths = list[str]()
        self.headers = list[dict[str, str]]()
        self.status = 200

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order in which they came."""
        return [
            span
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, start: str) -> list[Span]:
        """The spans whose names begin so."""
        return [each for each in self.spans if each.name.startswith(start)]


def attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    """Attributes by their names."""
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in pairs
    }


@contextmanager
def collector(port: int = 0) -> Generator[Collector]:
    """A collector that takes everything, whatever it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            taken.paths.append(self.path)
            taken.headers.append({key.lower(): value for key, value in self.headers.items()})
            self.send_response(taken.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server, ThreadPoolExecutor(1) as pool:
        taken = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        pool.submit(server.serve_forever, 0.05)
        try:
            yield taken
        finally:
            server.shutdown()


@contextmanager
def tracing(exporter: SpanExporter, service: str = "shopbot") -> Generator[Tracer]:
    """A tracer of OpenTelemetry's own, whose spans are sent as each ends."""
    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("test")
    provider.shutdown()


def tool_span(tracer: Tracer, tool: str, args: str | None, result: str, *, ok: bool = True) -> None:
    """A call of a tool, as the conventions for generative AI have it."""
    with tracer.start_as_current_span(f"execute_tool {tool}") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", tool)
        span.set_attribute("gen_ai.conversation.id", "conv-1")
        if args is not None:
            span.set_attribute("gen_ai.tool.call.arguments", args)
        span.set_attribute("gen_ai.tool.call.result", result)
        if not ok:
            span.set_status(Status(StatusCode.ERROR, "it failed"))
