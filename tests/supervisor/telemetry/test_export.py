"""Attempts and steps are sent to a collector as spans, and only where one is configured."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import TelemetrySettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Activity,
    Attempt,
    AttemptTransition,
    Ending,
    Lifecycle,
    Step,
    SupervisedBy,
    TaskTransition,
)
from midwatch_supervisor.cli import main
from midwatch_supervisor.telemetry.exporting import export_spans
from midwatch_tests.collector import Collector, attributes, collector
from midwatch_tests.command import write
from midwatch_tests.factories import (
    alert,
    change,
    decision,
    delivery,
    ended,
    escalation,
    intervention,
    message,
    step,
    transition,
)
from midwatch_tests.harness import RunHarness
from midwatch_tests.ports import LOOPBACK
from midwatch_tests.watched import SETTINGS, Fleet

SAID = "Xylophone"
"""Stands in everything that the worker says, reads and writes."""
TASK = f"""
    models: {{worker: "scripted:{__name__}@0", supervisor: none}}
    tasks:
      - {{id: loop, title: {SAID} title, goal: {SAID}., workspace: project, max_attempts: 1,
         acceptance: ["true"], budget: {{requests: 6}}}}
"""


def script_for(role: Role, key: str) -> Script:
    write = Call(tool="write_file", args=json.dumps({"path": f"{SAID}.py", "content": SAID}))
    check = Call(tool="run_command", args=json.dumps({"command": f"echo {SAID}; exit 3"}))
    turns = (Turn(say=SAID, calls=(write,)), Turn(calls=(check,)))
    return Script(phases=(Phase(turns=turns, repeat=2),))


@pytest.fixture
def receiver() -> Iterator[Collector]:
    with collector() as opened:
        yield opened


async def run(harness: RunHarness, tmp_path: Path, **telemetry: object) -> None:
    (tmp_path / "project").mkdir()
    settings = TelemetrySettings.model_validate(telemetry)
    harness.settings = harness.settings.model_copy(update={"telemetry": settings})
    await harness.run(TASK)


async def test_steps_are_spans_below_the_span_of_their_attempt(
    harness: RunHarness, tmp_path: Path, receiver: Collector
) -> None:
    await run(harness, tmp_path, endpoint=receiver.url)
    (attempt,) = receiver.named("invoke_agent")
    steps = [each for each in receiver.spans if each.name != attempt.name]
    assert set(receiver.paths) == {"/v1/traces"}
    assert {(each.trace_id, each.parent_span_id) for each in steps} == {
        (attempt.trace_id, attempt.span_id)
    }
    recorded = await harness.told(Step)
    names = [f"execute_tool {each.tool}" if each.tool else "chat" for each in recorded]
    assert [each.name for each in steps if each.name.startswith("execute_tool")] == [
        each for each in names if each != "chat"
    ]
    assert all(s.start_time_unix_nano <= s.end_time_unix_nano for s in receiver.spans)
    assert attempt.start_time_unix_nano <= min(each.start_time_unix_nano for each in steps)
    told = attributes(attempt.attributes)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.conversation.id"] == "midwatch-1-1"
    assert told["midwatch.task"] == "loop"
    assert told["midwatch.steps"] == len(recorded)
    assert told["midwatch.usage.requests"] == 6
    failed = [each for each in steps if each.status.code == 2]
    assert 3 in {attributes(each.attributes).get("midwatch.exit_code") for each in failed}


async def test_alerts_decisions_and_interventions_are_events_and_an_answer_has_its_model(
    journal: Journal, attempt: Attempt, at: datetime, receiver: Collector
) -> None:
    later = at + timedelta(seconds=5)
    async with export_spans(
        TelemetrySettings(endpoint=receiver.url), journal, bus=LocalBus(), run=1
    ):
        begun = (transition(), change(model="google-gla:gemini"))
        await write(journal, attempt, at, *begun, alert("cycle"), escalation(), decision())
        nudge = await write(journal, attempt, at, intervention(Action.NUDGE))
        idle = change(activity=Activity.IDLE, at=later)
        answer = message(at=later)
        await write(journal, attempt, later, delivery(nudge), idle, answer, ended())
    (span,) = receiver.named("chat")
    assert span.end_time_unix_nano - span.start_time_unix_nano == 5_000_000_000
    told = attributes(span.attributes)
    model = ("gen_ai.provider.name", "gen_ai.request.model")
    assert [told[each] for each in model] == ["gcp.gemini", "gemini"]
    (span,) = receiver.named("invoke_agent")
    events = [(each.name, attributes(each.attributes)) for each in span.events]
    said = [(name, t.get("midwatch.rule"), t.get("midwatch.action")) for name, t in events]
    assert said == [
        ("midwatch.alert", "cycle", None),
        ("midwatch.escalation", None, None),
        *[(f"midwatch.{name}", None, "nudge") for name in ("decision", *["intervention"] * 2)],
    ]
    assert [told["midwatch.state"] for _, told in events[3:]] == ["issued", "delivered"]


async def test_no_word_of_the_work_is_sent_and_headers_from_the_environment_stand_in_no_journal(
    harness: RunHarness, tmp_path: Path, receiver: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_HEADERS", "x-team=night,x-key=a%20b")
    await run(harness, tmp_path, endpoint=f"{receiver.url}/", headers_env="COLLECTOR_HEADERS")
    assert receiver.spans
    assert not any(SAID.encode() in body for body in receiver.bodies)
    assert {(each["x-team"], each["x-key"]) for each in receiver.headers} == {("night", "a b")}
    assert "night" not in (await harness.journal.runs())[0].settings


async def test_with_content_arguments_and_outputs_are_sent_and_by_who_goes_on_only_what_is_new(
    harness: RunHarness, tmp_path: Path, receiver: Collector
) -> None:
    await run(harness, tmp_path, endpoint=receiver.url, content=True)
    commands = [attributes(each.attributes) for each in receiver.named("execute_tool run")]
    assert SAID in str(commands[0]["gen_ai.tool.call.arguments"])
    assert SAID in str(commands[0]["gen_ai.tool.call.result"])
    sent = len(receiver.spans)
    await harness.resume()
    assert len(receiver.spans) == sent


async def test_nothing_is_sent_unless_a_collector_is_configured(
    harness: RunHarness, tmp_path: Path, receiver: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    await run(harness, tmp_path)
    assert receiver.bodies == []


FORM = "COLLECTOR_HEADERS is not of the form name=value,name=value"


@pytest.mark.usefixtures("named_by_the_environment")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "the environment variable COLLECTOR_HEADERS is not set"),
        ({"COLLECTOR_HEADERS": "Bearer s3cret"}, FORM),
        ({"COLLECTOR_HEADERS": 'x-key="s3cret"'}, FORM),
    ],
    ids=["missing", "a token", "in quotes"],
)
def test_headers_that_are_missing_or_wrong_end_a_run_before_it_begins_without_their_value(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    value: dict[str, str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in value.items():
        monkeypatch.setenv(name, text)
    (tmp_path / "project").mkdir()
    (tmp_path / "tasks.yaml").write_text(TASK)
    where = f"{{endpoint: 'http://{LOOPBACK}:1', headers_env: COLLECTOR_HEADERS}}"
    (tmp_path / "midwatch.yaml").write_text(f"run: {{sandbox: off}}\ntelemetry: {where}\n")
    assert main(["run", "tasks.yaml", "--headless"]) == 2
    assert capsys.readouterr() == ("", f"telemetry.headers_env: {said}\n")


async def test_a_collector_that_refuses_is_said_once(
    harness: RunHarness, tmp_path: Path, receiver: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 400
    await run(harness, tmp_path, endpoint=receiver.url)
    said = [each for each in caplog.records if "telemetry" in each.getMessage()]
    assert [each.levelno for each in said] == [logging.WARNING]


async def test_a_dead_collector_holds_up_no_run(
    harness: RunHarness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        began = time.monotonic()
        (tmp_path / "project").mkdir()
        await harness.run(TASK)
        alone = time.monotonic() - began
        (tmp_path / "again").mkdir()
        settings = TelemetrySettings(endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        harness.settings = harness.settings.model_copy(update={"telemetry": settings})
        began = time.monotonic()
        await harness.run(TASK.replace("project", "again"))
        assert time.monotonic() - began < alone + 15
    assert len(await harness.told(Step)) > 2
    assert not [each for each in caplog.records if "opentelemetry" in each.name]


def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(ValueError, match="without a user"):
        TelemetrySettings(endpoint="http://me:secret@127.0.0.1:4318")


# -- of all monitors over a journal, one sends -------------------------------------------------

OVER = AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.STUCK, reason="Stuck.")
DONE = TaskTransition(lifecycle=Lifecycle.FAILED)


@pytest.fixture
def fleet(journal: Journal, location: str) -> Fleet:
    return Fleet(journal, location)


async def test_of_two_monitors_one_sends_with_links_and_nothing_of_a_process(
    fleet: Fleet, receiver: Collector
) -> None:
    telemetry = TelemetrySettings(endpoint=receiver.url)
    settings = SETTINGS.model_copy(update={"telemetry": telemetry})
    recorder, other = await fleet.begin(), await fleet.begin(supervised_by=SupervisedBy.PROCESS)
    await other.record(step(1, tool="elsewhere"))

    async def has_spans() -> bool:  # at first no monitor exports
        call = f"span {7:032x} {5:016x}"
        await recorder.record(step(recorder.last_step + 1, tool="late", call=call))
        return bool(receiver.spans)

    async with fleet.monitor("a", settings=settings), fleet.monitor("b", settings=settings):
        await fleet.until(has_spans)
        for each in (other, recorder):
            await each.end(OVER, DONE)
        await fleet.until(lambda: bool(receiver.named("invoke_agent")))
    assert {each.name for each in receiver.spans} == {"execute_tool late", "invoke_agent w"}
    assert len({each.span_id for each in receiver.spans}) == len(receiver.spans)
    (attempt,) = receiver.named("invoke_agent")
    told = attributes(attempt.attributes)
    assert (told["midwatch.attempt"], told["midwatch.steps"]) == (1, recorder.last_step)
    assert told["error.type"] == "stuck"
    for span in receiver.spans:
        (link,) = span.links
        assert (link.trace_id.hex(), link.span_id.hex()) == (f"{7:032x}", f"{5:016x}")
