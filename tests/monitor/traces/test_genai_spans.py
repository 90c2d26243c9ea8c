"""Spans of OpenTelemetry as steps."""

import json

import pytest

from midwatch_monitor.traces.genai_spans import SpanSession, spans_in

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
