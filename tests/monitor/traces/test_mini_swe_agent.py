"""Runs of mini-swe-agent, both versions, as steps."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_monitor.records import Step, StepKind
from midwatch_monitor.traces import open_trace, recognise
from midwatch_tests.factories import step as make_step

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 1, tzinfo=UTC)
REFUSAL = "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."


def user_message(content: str) -> object:
    return {"role": "user", "content": content}


def assistant_message(content: str, **extra: object) -> object:
    return {"role": "assistant", "content": content, "extra": extra}


def result_message(code: int, output: str = "") -> object:
    return user_message(f"<returncode>{code}</returncode>\n<output>\n{output}</output>")


def tool_message(content: str, role: str = "tool", **extra: object) -> object:
    return {"role": role, "content": content, "tool_call_id": "c1", "extra": extra}


def call_message(*commands: str, **extra: object) -> object:
    actions = [{"command": command, "tool_call_id": "c1"} for command in commands]
    return assistant_message("Let me look.", actions=actions, **extra)


def fenced_message(command: str) -> object:
    return assistant_message(f"THOUGHT: look\n\n```bash\n{command}\n```")


def steps(folder: Path, *messages: object) -> list[Step]:
    path = folder / "run.traj.json"
    environment = {"cwd": "/repo"}
    document = {
        "info": {"config": {"environment": environment}},
        "messages": [{"role": "system", "content": "You are."}, user_message("Do it."), *messages],
        "trajectory_format": "mini-swe-agent-1",
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    assert recognise(path) == "mini-swe-agent"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def test_a_message_with_one_block_is_a_command(tmp_path: Path) -> None:
    usage = {"total_tokens": 12, "cost": 0.5}
    response = {"created": NOON.timestamp(), "usage": usage}
    content = "THOUGHT: look\n\n```bash\nls -a\n```"
    (step,) = steps(
        tmp_path, assistant_message(content, response=response), result_message(0, "a.py\n")
    )
    assert step == make_step(
        at=NOON,
        request=1,
        args="ls -a",
        exit_code=0,
        output="a.py\n",
        text="THOUGHT: look",
        tokens=12,
        cost_usd=0.5,
    )


def test_a_call_of_the_second_version_is_a_command(tmp_path: Path) -> None:
    (step,) = steps(
        tmp_path,
        call_message("make", cost=0.25, timestamp=NOON.timestamp()),
        tool_message("…", raw_output="no rule\n", returncode=2, timestamp=LATER.timestamp()),
    )
    assert step == make_step(
        at=LATER,
        request=1,
        args="make",
        ok=False,
        exit_code=2,
        output="no rule\n",
        text="Let me look.",
        cost_usd=0.25,
        call="c1",
    )


@pytest.mark.parametrize(
    "content", ["```bash\nls\n```\nor\n```bash\npwd\n```", "I am done.", "```python\n1\n```"]
)
def test_a_refused_message_is_no_command(tmp_path: Path, content: str) -> None:
    taken = steps(
        tmp_path,
        assistant_message(content),
        user_message(REFUSAL),
        fenced_message("ls"),
        result_message(0),
    )
    assert [step.kind for step in taken] == [StepKind.MESSAGE, StepKind.TOOL]
    assert taken[0] == Step(
        number=1, kind=StepKind.MESSAGE, request=1, ok=False, output=REFUSAL, text=content
    )


def test_what_the_second_version_refused_is_of_no_step_and_the_submission_is_one(
    tmp_path: Path,
) -> None:
    taken = steps(
        tmp_path,
        call_message("ls"),
        tool_message("", raw_output="a\n", returncode=0),
        tool_message("Tool call error", role="user", interrupt_type="FormatError"),
        call_message("pwd"),
        fenced_message("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        tool_message("diff --git a/x b/x", role="exit", exit_status="Submitted"),
    )
    assert [(step.args, step.output, step.ok) for step in taken[:2]] == [
        ("ls", "a\n", True),
        ("pwd", "", None),
    ]
    assert (taken[2].number, taken[2].output, taken[2].ok) == (3, "diff --git a/x b/x", True)


FUNCTION = {"name": "bash", "arguments": '{"command": "ls"}'}
CALL = {"id": "c7", "type": "function", "function": FUNCTION}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TIMED_OUT = "The last command <command>x</command> timed out and has been killed.\nOutput: y"
EXCEPTION = "<exception>An error occurred: timed out</exception>"
WARNING = "<returncode>0</returncode>\n<warning>\nToo long\n</warning><output_head>\nx\n"
EMPTY = tool_message("<returncode>0</returncode>\n<output>\n</output>")
LISTED, FALSE = (
    tool_message("", raw_output=output, returncode=code)
    for output, code in (("a\n", 0), ("no\n", 1))
)
BROKEN = tool_message("The server is gone", role="exit", exit_status="InternalServerError")
PARTS = {"role": "assistant", "content": [{"type": "text", "text": "```bash\nls\n```"}]}


@pytest.mark.parametrize(
    ("messages", "fields"),
    [
        # A call is read from the provider where the agent kept no action.
        ([CALLING, EMPTY], {"args": "ls", "call": "c7", "exit_code": 0, "output": ""}),
        # Another kind of block is a command where it ran.
        (
            [assistant_message("I look.\n```sh\nls\n```"), result_message(0, "a\n")],
            {"kind": StepKind.TOOL, "args": "ls", "exit_code": 0},
        ),
        # Several calls of one message fail with the first.
        (
            [call_message("false", "ls"), FALSE, LISTED],
            {"args": "false\nls", "exit_code": 1, "ok": False, "output": "no\n\na\n"},
        ),
        # A command that timed out failed.
        (
            [fenced_message("x"), user_message(TIMED_OUT)],
            {"ok": False, "exit_code": None, "output": TIMED_OUT},
        ),
        (
            [fenced_message("x"), tool_message(EXCEPTION, raw_output="")],
            {"ok": False, "output": EXCEPTION},
        ),
        # How a run broke is no result of its last command.
        ([call_message("ls"), LISTED, BROKEN], {"output": "a\n", "ok": True}),
        # A command that never came back.
        (
            [fenced_message("sleep 99")],
            {"args": "sleep 99", "ok": None, "exit_code": None, "output": ""},
        ),
        # A warning beside the output is kept.
        (
            [fenced_message("cat big"), user_message(WARNING)],
            {"exit_code": 0, "output": WARNING.partition("\n")[2]},
        ),
        # Content may be a list of parts.
        ([PARTS, result_message(0)], {"args": "ls"}),
    ],
)
def test_a_command_and_what_came_of_it_are_one_step(
    tmp_path: Path, messages: list[object], fields: dict[str, object]
) -> None:
    (step,) = steps(tmp_path, *messages)
    assert {name: getattr(step, name) for name in fields} == fields


@pytest.mark.parametrize(("code", "paths"), [(0, ["a.py"]), (1, ["a.py"]), (127, []), (126, [])])
def test_what_a_command_writes_counts_if_it_ran_at_all(
    tmp_path: Path, code: int, paths: list[str]
) -> None:
    (step,) = steps(
        tmp_path, fenced_message("cat > /repo/a.py <<'EOF'\nx\nEOF"), result_message(code)
    )
    assert [edit.path for edit in step.edits] == paths
