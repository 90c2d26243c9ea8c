"""Spans of OpenTelemetry as steps."""

import json

import pytest

from midwatch_monitor.records import Step
from midwatch_monitor.traces.genai_spans import SpanSession, spans_in

CHAT = [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9"}},
]
CALLED = [{"key": "gen_ai.tool.name", "value": {"stringValue": "find"}}]


@pytest.mark.parametrize(("span", "steps"), [("b7ad6b7169203331", 1), ("no id", 2), ("", 2)])
def test_a_span_that_is_sent_again_is_known_by_its_id_and_one_without_an_id_is_a_new_one(
    span: str, steps: int
) -> None:
    ids = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": span}
    spans = [{**ids, "attributes": CALLED}] * 2
    sent = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    session = SpanSession()
    taken = [event for each in spans_in(sent.encode(), json=True) for event in session.take(each)]
    assert len(taken) == steps


def test_a_model_that_tells_nothing_of_its_answer_is_a_part_of_the_call_that_follows() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    spans = [
        {"traceId": trace, "spanId": f"{number:016x}", "endTimeUnixNano": number, "attributes": has}
        for number, has in enumerate((CHAT, CALLED, CHAT, CALLED, CHAT), 1)
    ]
    sent = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    session = SpanSession()
    taken = [event for each in spans_in(sent.encode(), json=True) for event in session.take(each)]
    taken += session.finish()
    steps = [event for event in taken if isinstance(event, Step)]
    assert [(step.tool, step.request, step.tokens) for step in steps] == [
        ("find", 1, 9),
        ("find", 2, 9),
        ("", 3, 9),
    ]
