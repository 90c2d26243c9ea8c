"""What agents say at their hooks, read; and what they are answered."""

import json
from pathlib import Path

import pytest

from midwatch_agents.hooks.adapters import ADAPTERS, HookEvent, HookKind
from midwatch_agents.hooks.events import answer, as_lines, can_stop, passes_guidance, read_event
from midwatch_monitor.records import Edit, Step
from midwatch_monitor.traces.claude_code import ClaudeCodeSession
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.session_reader import read_session

Fields = dict[str, object]


def event(agent: str, name: str, **more: object) -> HookEvent:
    fields = {"session_id": "s", "hook_event_name": name, "cwd": "/repo", **more}
    found = read_event(agent, JsonNode(fields))
    assert found is not None
    return found


def test_an_event_is_read_whole() -> None:
    folders = {"transcript_path": "/t.jsonl", "agent_transcript_path": "/a1.jsonl"}
    more = {"hook_event_name": "Stop", "agent_id": "a1", "stop_hook_active": True}
    said = {"session_id": "s", "cwd": "/repo", **folders, **more}
    assert read_event("claude-code", JsonNode(said)) == HookEvent(
        agent="claude-code",
        kind=HookKind.TURN_END,
        session="s",
        transcript="/t.jsonl",
        folder="/repo",
        sub_agent="a1",
        payload=JsonNode(said),
    )


def test_an_event_of_another_name_is_one_all_the_same() -> None:
    assert event("gemini", "BeforeModel").kind is HookKind.OTHER


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("codex", []),
        ("codex", {"session_id": 5}),
        ("codex", {"session_id": ""}),
        ("new", {"session_id": "s"}),
    ],
)
def test_without_a_session_of_a_known_agent_there_is_no_event(agent: str, said: object) -> None:
    assert read_event(agent, JsonNode(said)) is None


START, PROMPT, BEFORE, AFTER = "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"
FAILED, BATCH = "PostToolUseFailure", "PostToolBatch"


@pytest.mark.parametrize("agent", ["claude-code", "codex", "qwen"])
def test_only_what_a_person_typed_is_a_prompt(agent: str) -> None:
    said = {
        "Go on.": HookKind.PROMPT,
        "": HookKind.OTHER,  # with this, qwen-code reports each result
        "<task-notification>Done.</task-notification>": HookKind.OTHER,
    }
    assert {each: event(agent, PROMPT, prompt=each).kind for each in said} == said


@pytest.mark.parametrize(
    ("agent", "guided", "stopped"),
    [
        ("claude-code", {START, PROMPT, BEFORE, AFTER}, {BEFORE, AFTER, BATCH, "Stop"}),
        ("codex", {START, PROMPT, BEFORE, AFTER}, {BEFORE}),
        ("gemini", {START, "BeforeAgent", "AfterTool"}, {"BeforeTool", "AfterTool"}),
        ("qwen", {START, PROMPT, AFTER}, {BEFORE}),
    ],
)
def test_an_agent_is_told_where_it_listens(agent: str, guided: set[str], stopped: set[str]) -> None:
    events = [event(agent, name) for name in [*ADAPTERS[agent].events, "Notification"]]
    assert {each.name for each in events if passes_guidance(each)} == guided
    assert {each.name for each in events if can_stop(each)} == stopped
    assert {each.name for each in events if answer(each, guidance="look", stop="")} == guided
    assert {each.name for each in events if answer(each, guidance="", stop="no")} == stopped
    assert not any(answer(each, guidance="", stop="") for each in events)


DENIED = {
    "hookSpecificOutput": {
        "hookEventName": BEFORE,
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }
}
GUIDED = {"hookSpecificOutput": {"hookEventName": AFTER, "additionalContext": "look"}}
ENDED = {"continue": False, "stopReason": "no"}


@pytest.mark.parametrize(
    ("agent", "name", "stop", "said"),
    [
        ("claude-code", BEFORE, "no", ENDED | DENIED),
        ("claude-code", AFTER, "no", ENDED),
        ("claude-code", BATCH, "no", ENDED),
        ("claude-code", "Stop", "no", ENDED),
        ("codex", BEFORE, "no", DENIED),
        ("qwen", BEFORE, "no", DENIED),
        ("gemini", "BeforeTool", "no", {"decision": "deny", "reason": "no"}),
        ("gemini", "AfterTool", "no", ENDED),
        ("codex", AFTER, "", GUIDED),
    ],
)
def test_each_agent_is_stopped_or_guided_in_its_own_form(
    agent: str, name: str, stop: str, said: Fields
) -> None:
    assert json.loads(answer(event(agent, name), guidance="look", stop=stop)) == said


@pytest.mark.parametrize("agent", ADAPTERS)
def test_the_end_of_a_turn_is_never_kept_from_coming(agent: str) -> None:
    ends = [
        name
        for name, kind in ADAPTERS[agent].events.items()
        if kind in (HookKind.TURN_END, HookKind.SESSION_END)
    ]
    assert len(ends) == 2
    assert {answer(event(agent, name), guidance="look", stop="no") for name in ends} <= {
        "",
        json.dumps(ENDED),
    }


def hooks_of(tool: str, given: object, came: object, call: str) -> list[Fields]:
    """Both hooks of a call; a text that came is the error of one that failed."""
    asked: Fields = {"tool_name": tool, "tool_input": given, "tool_use_id": call}
    done: Fields = {"error": came} if isinstance(came, str) else {"tool_response": came}
    name = FAILED if isinstance(came, str) else AFTER
    return [{"hook_event_name": BEFORE, **asked}, {"hook_event_name": name, **asked, **done}]


def recorded_steps(agent: str, hooks: list[Fields], folder: Path) -> list[Step]:
    events = [
        read_event(agent, JsonNode({"session_id": "s", "cwd": "/repo"} | each)) for each in hooks
    ]
    return steps([line for each in events if each for line in as_lines(each)], folder)


def steps(lines: list[JsonNode], folder: Path) -> list[Step]:
    file = folder / "lines.jsonl"
    file.write_text("".join(json.dumps(line.value) + "\n" for line in lines), "utf-8")
    return [each for each in read_session(file, ClaudeCodeSession()) if isinstance(each, Step)]


def line(role: str, block: Fields, kept: object = None, **more: object) -> JsonNode:
    message = {"role": role, "content": [block], **more}
    return JsonNode({"type": role, "cwd": "/repo", "message": message, "toolUseResult": kept})


CALLS: list[tuple[str, Fields, object, str]] = [
    ("Bash", {"command": "ls"}, {"stdout": "a.py", "stderr": "warned"}, "a.py\nwarned"),
    ("Bash", {"command": "touch b"}, {"stdout": "", "stderr": ""}, ""),
    ("Bash", {"command": "sed -i s/a/b/ a.py; false"}, "Exit code 3\nboom", "Exit code 3\nboom"),
    ("Bash", {"command": "sleep 9"}, {"stdout": "", "backgroundTaskId": "b1"}, ""),
    ("Read", {"file_path": "/repo/none.py"}, "File does not exist.", "File does not exist."),
    ("Write", {"file_path": "/repo/c.py", "content": "x = 1\n"}, "Denied.", "Denied."),
    ("mcp__s__t", {"n": 1}, [{"type": "text", "text": "one"}], "one"),
]


def test_hooks_tell_the_steps_that_the_transcript_tells(tmp_path: Path) -> None:
    transcript: list[JsonNode] = []
    hooks: list[Fields] = [{"hook_event_name": PROMPT, "prompt": "Do it."}]
    for at, (tool, given, came, output) in enumerate(CALLS):
        call = f"c{at}"
        block: Fields = {"type": "tool_use", "id": call, "name": tool, "input": given}
        transcript.append(line("assistant", block, id=f"m{at}"))
        failed = isinstance(came, str)
        result: Fields = {"type": "tool_result", "tool_use_id": call, "content": output}
        kept = f"Error: {came}" if failed else came
        transcript.append(line("user", result | {"is_error": failed}, kept))
        hooks += hooks_of(tool, given, came, call)
    transcript.append(line("assistant", {"type": "text", "text": "Done."}, id="last"))
    hooks.append({"hook_event_name": "Stop", "last_assistant_message": "Done."})
    found = recorded_steps("claude-code", hooks, tmp_path)
    assert found == steps(transcript, tmp_path)
    assert [step.exit_code for step in found] == [0, 0, 3, None, None, None, None, None]
    assert found[-1].text == "Done."


def test_what_a_call_wrote_is_told_with_its_content(tmp_path: Path) -> None:
    given = {"file_path": "/repo/c.py", "content": "x = 1\n"}
    (step,) = recorded_steps(
        "claude-code", hooks_of("Write", given, {"filePath": "c"}, "c1"), tmp_path
    )
    assert [(edit.path, bool(edit.digest)) for edit in step.edits] == [("c.py", True)]


@pytest.mark.parametrize(
    ("said", "code", "ok"),
    [("Output: x\nExit Code: 0\n", 0, True), ("Exit Code: 2\n", 2, False), ("Stopped", None, True)],
)
def test_a_command_of_qwen_says_its_exit_code_in_its_answer(
    tmp_path: Path, said: str, code: int | None, ok: bool
) -> None:
    given = {"command": "sed -i s/a/b/ d"}
    (step,) = recorded_steps(
        "qwen", hooks_of("run_shell_command", given, {"llmContent": said}, "c1"), tmp_path
    )
    assert (step.tool, step.args, step.exit_code, step.ok) == ("Bash", given["command"], code, ok)
    assert step.output.endswith(said)
    assert step.edits == (Edit(path="d"),)


def test_a_result_of_mcp_says_whether_it_failed(tmp_path: Path) -> None:
    came: Fields = {"content": [{"type": "text", "text": "no"}], "isError": True}
    (step,) = recorded_steps("codex", hooks_of("mcp__s__t", {}, came, "c1"), tmp_path)
    assert (step.ok, step.output) == (False, "no")


def test_codex_does_not_say_whether_a_command_succeeded(tmp_path: Path) -> None:
    hooks = hooks_of("Bash", {"command": "ls"}, None, "c1")
    hooks[1]["tool_response"] = "a.py\n"
    (step,) = recorded_steps("codex", hooks, tmp_path)
    assert (step.tool, step.args, step.exit_code, step.output) == ("Bash", "ls", None, "a.py\n")


def test_what_a_sub_agent_does_is_left_to_its_own_session(tmp_path: Path) -> None:
    own = hooks_of("Bash", {"command": "ls"}, {"stdout": ""}, "c1")
    theirs = [{**each, "tool_use_id": "c2", "agent_id": "a1"} for each in own]
    assert len(recorded_steps("claude-code", [*own, *theirs], tmp_path)) == 1


def test_events_that_are_no_part_of_a_conversation_have_no_lines() -> None:
    assert as_lines(event("claude-code", "SessionStart")) == ()
    assert as_lines(event("claude-code", "Stop")) == ()
    assert as_lines(event("gemini", "AfterTool")) == ()


def test_an_adapter_names_its_settings_by_environment_or_home() -> None:
    home = Path("/users/ada")
    files = {name: each.settings_file({}, home) for name, each in ADAPTERS.items()}
    assert files == {
        "claude-code": home / ".claude/settings.json",
        "codex": home / ".codex/hooks.json",
        "gemini": home / ".gemini/settings.json",
        "qwen": home / ".qwen/settings.json",
    }
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"}
    assert ADAPTERS["claude-code"].settings_file(moved, home) == Path("/c/settings.json")
    assert ADAPTERS["codex"].settings_file(moved, home) == Path("/x/hooks.json")
