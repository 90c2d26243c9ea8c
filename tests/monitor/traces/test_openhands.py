"""Conversations of OpenHands, of the server and of the SDK, as steps."""

import json
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import pytest

from midwatch_monitor.records import Edit, Step, StepKind
from midwatch_monitor.traces import Damage, open_trace, recognise
from midwatch_tests.factories import step as make_step

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIME = "2026-11-21T12:00:00"
Event = dict[str, object]


def digest(content: str) -> str:
    return blake2b(content.encode(), digest_size=16).hexdigest()


def action(id: int, name: str, **args: object) -> Event:
    return {"id": id, "timestamp": TIME, "source": "agent", "action": name, "args": args}


def observation(cause: int, name: str, content: str = "", **extras: object) -> Event:
    return {
        "id": cause + 100,
        "timestamp": TIME,
        "source": "agent",
        "cause": cause,
        "observation": name,
        "content": content,
        "extras": extras,
    }


def call(id: str, tool: str, given: object, **more: object) -> Event:
    return {
        "kind": "ActionEvent",
        "id": f"event-{id}",
        "timestamp": TIME,
        "source": "agent",
        "thought": [{"type": "text", "text": "I do."}],
        "action": given,
        "tool_name": tool,
        "tool_call_id": id,
        "llm_response_id": "r1",
        **more,
    }


def result(id: str, text: str = "", **more: object) -> Event:
    return {
        "kind": "ObservationEvent",
        "timestamp": TIME,
        "source": "environment",
        "tool_call_id": id,
        "observation": {"content": [{"type": "text", "text": text}], **more},
    }


def steps(folder: Path, *events: object) -> list[Step]:
    path = folder / "events.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    assert recognise(path) == "openhands"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def test_an_action_of_the_server_with_its_observation_is_a_step(tmp_path: Path) -> None:
    meta = {
        "function_name": "execute_bash",
        "tool_call_id": "c1",
        "model_response": {"id": "r1", "usage": {"total_tokens": 9}},
    }
    ran = action(3, "run", command="ls", thought="I look.", confirmation_state="confirmed")
    taken = steps(
        tmp_path,
        {**action(1, "message", content="Do it."), "source": "user"},
        {**ran, "tool_call_metadata": meta, "llm_metrics": {"accumulated_cost": 0.5}},
        observation(3, "run", "a.py", metadata={"exit_code": 0, "working_dir": "/repo"}),
    )
    assert taken == [
        make_step(
            tool="execute_bash",
            at=NOON,
            request=1,
            args="ls",
            exit_code=0,
            output="a.py",
            text="I look.",
            tokens=9,
            cost_usd=0.5,
            call="c1",
        )
    ]


def test_a_call_of_the_sdk_with_its_observation_is_a_step(tmp_path: Path) -> None:
    given = {"kind": "FileEditorAction", "command": "view", "path": "/a.py", "old_str": None}
    taken = steps(
        tmp_path,
        {"kind": "SystemPromptEvent", "source": "agent"},
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": []}},
        call("c1", "file_editor", given),
        result("c1", "1\tx"),
    )
    assert taken == [
        make_step(
            tool="file_editor",
            at=NOON,
            request=1,
            args='{"command":"view","path":"/a.py"}',
            path="/a.py",
            output="1\tx",
            text="I do.",
            call="c1",
        )
    ]


@pytest.mark.parametrize(
    ("seen", "code", "ok"),
    [
        *(
            (observation(1, "run", metadata={"exit_code": said}), code, ok)
            for said, code, ok in ((0, 0, True), (2, 2, False), (-1, None, None))
        ),
        (observation(1, "run"), None, None),
        (observation(1, "run", exit_code=3), 3, False),  # of earlier versions
    ],
)
def test_a_command_that_still_runs_has_no_exit_code(
    tmp_path: Path, seen: Event, code: int | None, ok: bool | None
) -> None:
    (step,) = steps(tmp_path, action(1, "run", command="x"), seen)
    assert (step.tool, step.args, step.exit_code, step.ok) == ("run", "x", code, ok)


def test_the_exit_code_of_the_sdk_may_stand_in_its_metadata(tmp_path: Path) -> None:
    given = {"command": "x"}
    (step,) = steps(tmp_path, call("c", "terminal", given), result("c", metadata={"exit_code": 1}))
    assert (step.args, step.exit_code, step.ok) == ("x", 1, False)


@pytest.mark.parametrize(
    ("name", "args", "content"),
    [
        ("edit", {"path": "/r/a", "command": "create", "file_text": "x"}, "x"),
        ("edit", {"path": "/r/a", "command": "str_replace", "old_str": "y"}, None),
        ("edit", {"path": "/r/a", "content": "x", "start": 1}, None),
        ("write", {"path": "/r/a", "content": "x"}, "x"),
    ],
)
def test_an_edit_of_the_server_changes_its_file(
    tmp_path: Path, name: str, args: Event, content: str | None
) -> None:
    done, refused = steps(
        tmp_path,
        action(1, name, **args),
        observation(1, name, "edited"),
        action(2, name, **args),
        observation(2, "error", "ERROR: no"),
    )
    known = digest(content) if content else ""
    assert (done.ok, done.edits) == (True, (Edit(path="/r/a", digest=known),))
    assert (refused.ok, refused.edits) == (False, ())


def test_an_edit_takes_the_content_that_the_observation_shows(tmp_path: Path) -> None:
    given = {"command": "insert", "path": "/a", "new_str": "x", "insert_line": 1}
    (step,) = steps(tmp_path, call("c", "file_editor", given), result("c", new_content="x\ny"))
    assert step.edits == (Edit(path="/a", digest=digest("x\ny")),)


@pytest.mark.parametrize(
    "answer",
    [
        result("c", "no", is_error=True),
        {"kind": "AgentErrorEvent", "tool_call_id": "c", "error": "no"},
        {"kind": "UserRejectObservation", "action_id": "c", "rejection_reason": "no"},
    ],
)
def test_a_refused_call_of_the_sdk_changes_nothing(tmp_path: Path, answer: Event) -> None:
    given = {"command": "create", "path": "/a", "file_text": "x"}
    (step,) = steps(tmp_path, call("c", "file_editor", given), answer)
    assert (step.ok, step.output, step.edits) == (False, "no", ())


def test_a_call_that_could_not_be_made_is_known_as_the_model_wrote_it(tmp_path: Path) -> None:
    wrote = {"name": "nope", "arguments": '{"b": 1, "a": 2}'}
    error = {"kind": "AgentErrorEvent", "tool_call_id": "c", "error": "no such tool"}
    (step,) = steps(tmp_path, call("c", "nope", None, tool_call=wrote), error)
    assert (step.tool, step.args, step.ok) == ("nope", '{"a":2,"b":1}', False)


def test_paths_are_relative_to_the_folder_of_the_first_command(tmp_path: Path) -> None:
    place = {"exit_code": 0, "working_dir": "/repo"}
    edited, ran = steps(
        tmp_path,
        action(1, "write", path="/repo/a.py", content="x"),
        observation(1, "write"),
        action(2, "run", command="sed -i s/a/b/ /repo/a.py"),
        observation(2, "run", metadata=place),
    )
    assert [edit.path for step in (edited, ran) for edit in step.edits] == ["a.py", "a.py"]


def test_input_to_a_running_command_is_no_command(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, call("c", "terminal", {"command": "rm a", "is_input": True}))
    assert (step.args, step.edits) == ("rm a", ())


def test_events_without_ids_answer_the_action_before(tmp_path: Path) -> None:
    act = {"source": "agent", "action": "run", "args": {"command": "ls"}}
    seen = {"source": "agent", "observation": "run", "content": "a", "extras": {"exit_code": 0}}
    taken = steps(tmp_path, act, seen, act, act, seen)
    assert [(step.number, step.output) for step in taken] == [(1, "a"), (2, ""), (3, "a")]


def test_parallel_calls_share_a_request(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        call("a", "think", {}),
        call("b", "think", {}),
        result("b"),
        result("a"),
        call("c", "think", {}, llm_response_id="r2"),
    )
    assert [(step.number, step.call, step.request) for step in taken] == [
        (1, "b", 1),
        (2, "a", 1),
        (3, "c", 2),
    ]


MESSAGE = {"content": [{"type": "text", "text": "Done."}]}


@pytest.mark.parametrize(
    "message",
    [
        action(5, "message", content="Done."),
        {"kind": "MessageEvent", "source": "agent", "llm_message": MESSAGE},
    ],
)
def test_a_message_of_the_agent_is_a_step_of_its_own(tmp_path: Path, message: Event) -> None:
    # What finishes waits for nothing.
    finish, said = steps(tmp_path, action(1, "finish", thought="t"), message)
    assert finish.tool == "finish"
    assert (said.kind, said.text, said.tool, said.args) == (StepKind.MESSAGE, "Done.", "", "")


@pytest.mark.parametrize("name", ["system", "recall", "change_agent_state", "condensation"])
def test_what_the_server_does_itself_is_no_step(tmp_path: Path, name: str) -> None:
    assert steps(tmp_path, action(1, name), observation(0, "agent_state_changed")) == []


@pytest.mark.parametrize("array", ["trajectory", "history"])
def test_the_events_may_stand_in_a_document(tmp_path: Path, array: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"id": "x", array: [action(1, "think", thought="t")]}))
    assert recognise(path) == "openhands"
    assert [event.tool for event in open_trace(path) if isinstance(event, Step)] == ["think"]


def test_the_events_may_stand_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [json.dumps(call("a", "think", {})), "{", json.dumps(result("a", "ok"))]
    path.write_text("\n".join(lines))
    assert recognise(path) == "openhands"
    damage, step = open_trace(path)
    assert isinstance(damage, Damage)
    assert isinstance(step, Step)
    assert (damage.line, step.output) == (2, "ok")
