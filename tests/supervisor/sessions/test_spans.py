"""Programs that send spans of OpenTelemetry are watched as sessions."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

import pytest
from aiohttp import ClientSession, web
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Lifecycle, StepKind
from midwatch_supervisor.operator.tasks import out_of_reach
from midwatch_supervisor.sessions.session_journal import SessionJournal
from midwatch_supervisor.sessions.span_watch import SpanWatch
from midwatch_supervisor.telemetry.http_listener import MAX_BODY, serve
from midwatch_tests.collector import tool_span, tracing
from midwatch_tests.command import ask, read
from midwatch_tests.foreign import Away, ForeignAgents

PROTOBUF, JSON = "application/x-protobuf", "application/json"


def span_watch(journal: Journal, agents: ForeignAgents) -> SpanWatch:
    """One who knows only what the journal knows."""
    operator = SessionJournal(
        journal=journal, settings=Settings(), bus=LocalBus(), clock=lambda: agents.now
    )
    return SpanWatch(operator)


def serve_spans(watch: SpanWatch) -> AbstractAsyncContextManager[int]:
    """Take spans; yields the port."""
    return serve("127.0.0.1", 0, web.post("/v1/traces", watch.answer))


@pytest.fixture
async def port(journal: Journal, agents: ForeignAgents) -> AsyncGenerator[int]:
    async with serve_spans(span_watch(journal, agents)) as taken:
        yield taken


def exporter(port: int) -> OTLPSpanExporter:
    url = f"http://127.0.0.1:{port}/v1/traces"
    return OTLPSpanExporter(endpoint=url, compression=Compression.Gzip, timeout=60)


def run_looping_agent(port: int, times: int, args: str | None = '{"city": "Bern"}') -> None:
    """A fake agent that calls the same tool again and again, and gets nowhere."""
    with tracing(exporter(port)) as tracer:
        for _ in range(times):
            tool_span(tracer, "look_up", args, "not found", ok=False)


async def test_an_agent_that_loops_is_found_by_spans(port: int, agents: ForeignAgents) -> None:
    await asyncio.to_thread(run_looping_agent, port, 6)
    state = await agents.attempt()
    assert {"repeated_call", "error_streak"} <= {each.key.rule for each in state.firing}
    steps = await agents.steps()
    assert [(s.number, s.tool, s.ok, s.output) for s in steps] == [
        (n, "look_up", False, "not found") for n in range(1, 7)
    ]
    assert steps[0].args == '{"city":"Bern"}'
    (run,) = await agents.journal.runs()
    assert run.source == "session shopbot conv-1"
    assert out_of_reach(state, Action.NUDGE) == (
        "somebody else started it: it is only watched; answer it where it runs, or acknowledge its "
        "alerts (`c` in `midwatch watch`)"
    )


@pytest.mark.parametrize("came", [False, True])
async def test_where_no_span_comes_for_half_a_minute_it_is_said_what_to_look_at(
    agents: ForeignAgents, caplog: pytest.LogCaptureFixture, came: bool
) -> None:
    watch = span_watch(agents.journal, agents)
    if came:
        async with serve_spans(watch) as port:
            await asyncio.to_thread(run_looping_agent, port, 1)
    for seconds in (29, 1, 1):
        agents.now += timedelta(seconds=seconds)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await watch.run()
        assert ("OTEL_EXPORTER_OTLP_ENDPOINT" in caplog.text) is (seconds == 1 and not came)
    assert caplog.text.count("no span of a model or a tool") == (not came)


async def test_calls_without_arguments_all_differ(port: int, agents: ForeignAgents) -> None:
    await asyncio.to_thread(run_looping_agent, port, 6, None)
    assert "repeated_call" not in {each.key.rule for each in (await agents.attempt()).firing}
    assert len(await agents.steps()) == 6


def attribute(key: str, value: object) -> dict[str, object]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def span(number: int, parent: int = 0, trace: int = 1, **has: object) -> dict[str, object]:
    """A span of the JSON encoding; `__` in a name of an attribute is a dot."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "x",
        "endTimeUnixNano": str(1_790_000_000_000_000_000 + number),
        "attributes": [attribute(key.replace("__", "."), value) for key, value in has.items()],
    }


def body(*spans: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


async def post(
    port: int, sent: bytes, type: str = JSON, path: str = "/v1/traces", **headers: str
) -> int:
    """The status that a request is answered with; 0 where the connection is cut."""

    def ask() -> int:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            said = {"Content-Type": type, **{k.replace("_", "-"): v for k, v in headers.items()}}
            connection.request("POST", path, sent, said)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


FIND: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "find"}
ANSWER = json.dumps(
    [{"role": "assistant", "parts": [{"type": "text", "content": "I look it up."}]}]
)


async def test_a_model_that_calls_no_tool_makes_a_message(port: int, agents: ForeignAgents) -> None:
    called = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "1"}]}])
    usage: dict[str, Any] = {"gen_ai__usage__input_tokens": 10, "gen_ai__usage__output_tokens": 5}
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat", **usage}
    sent = body(
        span(3, 9, **chat, gen_ai__output__messages=ANSWER),  # they come in any order
        span(2, 9, **FIND),
        span(1, 9, **chat, gen_ai__output__messages=called),
        span(4, gen_ai__operation__name="invoke_agent", gen_ai__conversation__id="c"),
    )
    assert await post(port, sent) == 200
    assert await post(port, sent) == 200  # a program that missed the answer sends it again
    assert [(s.kind, s.tool, s.tokens, s.text) for s in await agents.steps()] == [
        (StepKind.TOOL, "find", 15, ""),
        (StepKind.MESSAGE, "", 15, "I look it up."),
    ]
    state = await agents.attempt()
    assert state.budget.tokens.used == 30
    assert state.lifecycle is Lifecycle.INPUT_REQUIRED
    assert (await agents.journal.runs())[0].source == "session otlp c"
    assert (await agents.steps())[0].at == datetime.fromtimestamp(1_790_000_000, UTC)


async def test_each_conversation_or_trace_is_a_session(port: int, agents: ForeignAgents) -> None:
    sent = body(
        span(1, trace=1, gen_ai__conversation__id="alice-0001", **FIND),
        span(2, trace=2, gen_ai__conversation__id="alice-0001", **FIND),
        span(3, trace=3, gen_ai__conversation__id="bob 0001", **FIND),
        span(4, trace=4, **FIND),
        span(5, trace=4, **FIND),
        span(6, trace=4, http__method="GET"),
    )
    assert await post(port, sent) == 200
    assert [state.last_step for state in await agents.attempts()] == [2, 1, 2]
    tasks = [await agents.journal.task(state.task) for state in await agents.attempts()]
    assert [task.name for task in tasks] == ["otlp-alice-0001", "otlp-bob-0001", "otlp-0004"]
    assert (await agents.steps())[0].call == f"span {1:032x} {1:016x}"


TOOL: dict[str, Any] = {"openinference__span__kind": "TOOL"}


@pytest.mark.parametrize(
    "has",
    [
        {"gen_ai__tool__name": "find", "tool_arguments": '{"q": 1}', "tool_response": "none"},
        {**TOOL, "tool__name": "find", "input__value": '{"q": 1}', "output__value": "none"},
    ],
    ids=["older names", "OpenInference"],
)
async def test_other_names_of_the_same_are_known(
    port: int, agents: ForeignAgents, has: dict[str, Any]
) -> None:
    assert await post(port, body(span(1, **has))) == 200
    (step,) = await agents.steps()
    assert (step.tool, step.args, step.output) == ("find", '{"q":1}', "none")


DEEP = b'{"resourceSpans":' + b"[" * 100_000
NO_SPAN = body({"attributes": 5, "traceId": [], "endTimeUnixNano": {}, "status": [1]}, 7)
STRANGE = body(
    span(1, gen_ai__tool__name="find", gen_ai__conversation__id="\x1b]0;x\x07 \n" * 999),
    {**span(2, gen_ai__tool__name="\x00"), "endTimeUnixNano": str(2**64 - 1)},
    {**span(3, gen_ai__tool__name="find"), "traceId": "zz", "spanId": ""},
)


REQUESTS: dict[str, tuple[bytes, str, int, str]] = {
    "length": (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF, 400, "not OTLP spans: "),
    "cut": (b"\x0a\x05abc", PROTOBUF, 400, "not OTLP spans: Error parsing message with type "),
    "no json": (b"{", JSON, 400, "not OTLP spans: "),
    "array": (b"[]", JSON, 400, '{"message": "not OTLP spans: a request must be a JSON object"}'),
    "string": (b'"spans"', JSON, 400, "a request must be a JSON object"),
    "deep": (DEEP, JSON, 400, "not OTLP spans: "),
    "types": (b'{"resourceSpans": 3}', JSON, 400, "not OTLP spans: "),
    "logs": (b'{"resourceLogs": []}', JSON, 400, "not OTLP spans: "),
    "empty": (b"{}", JSON, 200, ""),
    "nothing": (b"", PROTOBUF, 200, ""),
    "no span": (NO_SPAN, JSON, 400, "not OTLP spans: "),
    "values": (STRANGE, JSON, 200, ""),
    "text": (b"{}", "text/plain", 415, "the content type must be one of application/json, appl"),
}


@pytest.mark.parametrize(("sent", "type", "status", "said"), REQUESTS.values(), ids=REQUESTS)
async def test_whatever_is_sent_is_answered_and_the_next_request_is_taken(
    port: int, agents: ForeignAgents, sent: bytes, type: str, status: int, said: str
) -> None:
    url, headers = f"http://127.0.0.1:{port}/v1/traces", {"Content-Type": type}
    async with ClientSession() as client, client.post(url, data=sent, headers=headers) as answer:
        assert (answer.status, said.encode() in await answer.read()) == (status, True)
    before = len(await agents.steps())
    assert await post(port, body(span(77, gen_ai__tool__name="find", trace=9))) == 200
    assert len(await agents.steps()) == before + 1


async def test_a_body_too_long_even_if_packed_is_refused(port: int, agents: ForeignAgents) -> None:
    bomb = gzip.compress(b" " * (MAX_BODY + 1))
    assert len(bomb) < MAX_BODY / 100
    assert await post(port, bomb, Content_Encoding="gzip") == 413
    assert await post(port, b" " * (MAX_BODY + 1)) == 413
    endless = b"%x\r\n%b\r\n0\r\n\r\n" % (MAX_BODY + 1, b" " * (MAX_BODY + 1))
    assert await post(port, endless, Transfer_Encoding="chunked") == 413
    whole = body(span(1, gen_ai__tool__name="find"))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in (whole[:50], whole[50:], b""))
    assert await post(port, chunks, Transfer_Encoding="chunked") == 200
    assert len(await agents.steps()) == 1


async def test_an_unreadable_body_is_refused(port: int, caplog: pytest.LogCaptureFixture) -> None:
    assert await post(port, b"no gzip", Content_Encoding="gzip") == 400
    assert await post(port, b"", Content_Length="-1") == 400
    assert await post(port, b"none", Content_Encoding="br") == 400
    assert [each.exc_info for each in caplog.records] == [None] * 3


async def test_other_paths_and_names_are_not_served(port: int) -> None:
    assert await post(port, b"{}", path="/v1/logs") == 404
    assert await post(port, b"{}", Host=f"rebound.example:{port}") == 421


async def test_who_comes_next_goes_on_with_the_session_and_ends_it_once_it_hears_nothing(
    journal: Journal, agents: ForeignAgents
) -> None:
    first, second, last = (span_watch(journal, agents) for _ in range(3))
    for watch in (first, second):
        async with serve_spans(watch) as port:
            await asyncio.to_thread(run_looping_agent, port, 2)
    assert [each.number for each in await agents.steps()] == [1, 2, 3, 4]
    first.close()
    second.close()
    await last.settle()
    agents.now += timedelta(days=2)
    await last.settle()
    assert (await agents.attempt()).over
    assert not [*(agents.home.parent / ".midwatch").glob("*.run-*.lock")]


@pytest.mark.usefixtures("by_ada")
async def test_a_session_whose_watch_is_gone_waits_for_one_that_takes_it_up(
    journal: Journal, agents: ForeignAgents, capsys: pytest.CaptureFixture[str]
) -> None:
    async def read_waits_for() -> object:
        (line,) = await ask(capsys, "status")
        return line["waits_for"]

    watch = span_watch(journal, agents)
    async with serve_spans(watch) as port:
        await asyncio.to_thread(run_looping_agent, port, 2)
        assert await read_waits_for() is None
    watch.close()
    assert await read_waits_for() == "`midwatch attach otlp`: nothing is watching it"
    (said,) = await read(capsys, "cancel", "shopbot-conv-1", "--dry-run")
    assert said.startswith("would cancel")
    watch = span_watch(journal, agents)
    await watch.settle()
    assert await read_waits_for() is None
    watch.close()


async def test_spans_that_were_not_taken_come_again(location: str, agents: ForeignAgents) -> None:
    sent = body(span(1, gen_ai__tool__name="find"), span(2, gen_ai__tool__name="find"))
    async with (
        await Away.open(location) as journal,
        serve_spans(span_watch(journal, agents)) as port,
    ):
        journal.times = 1
        assert [await post(port, sent) for _ in range(3)] == [503, 200, 200]
    assert [each.number for each in await agents.steps()] == [1, 2]


LANGCHAIN = json.dumps({"type": "tool", "data": {"content": "none", "tool_call_id": "c-%d"}})
PIECE = "llm__output_messages__0__message__"


async def test_openinference_of_langchain_is_judged_alike(port: int, agents: ForeignAgents) -> None:
    model: dict[str, Any] = {"openinference__span__kind": "LLM", "llm__token_count__prompt": 10}
    asks = "llm__input_messages__0__message__"
    asked: dict[str, Any] = {f"{asks}role": "user", f"{asks}content": "How is the weather?"}
    calls: dict[str, Any] = {**asked, f"{PIECE}tool_calls__0__tool_call__function__name": "look_up"}
    tool: dict[str, Any] = {**TOOL, "tool__name": "look_up"}
    rounds = [
        each
        for n in range(6)
        for each in (
            span(2 * n + 1, 99, **model, **calls),
            span(2 * n + 2, 99, **tool, input__value="Oslo", output__value=LANGCHAIN % n),
        )
    ]
    answer: dict[str, Any] = {f"{PIECE}content": "It is cold."}
    sent = body(
        *rounds, span(20, 99, **model, **answer), span(99, openinference__span__kind="CHAIN")
    )
    assert await post(port, sent) == 200
    steps = await agents.steps()
    assert [s.tool for s in steps] == ["look_up"] * 6 + [""]
    assert (steps[5].output, steps[5].tokens, steps[6].text) == ("none", 10, "It is cold.")
    state = await agents.attempt()
    assert "repeated_call" in {each.key.rule for each in state.firing}
    assert state.lifecycle is Lifecycle.INPUT_REQUIRED
    assert (await agents.journal.task(state.attempt.task)).title == "How is the weather?"
