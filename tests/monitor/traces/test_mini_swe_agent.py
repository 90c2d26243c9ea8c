"""Runs of mini-swe-agent, both versions, as steps."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_monitor.records import Step, StepKind
from midwatch_monitor.traces import open_trace, recognise

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 1, tzinfo=UTC)
REFUSAL = "Please always provide EXACTLY ONE action in triple backticks, found 2 actions."


def user(content: str) -> object:
    return {"role": "user", "content": content}


def said(content: str, **extra: object) -> object:
    return {"role": "assistant", "content": content, "extra": extra}


def ran(code: int, output: str = "") -> object:
    return user(f"<returncode>{code}</returncode>\n<output>\n{output}</output>")


def answered(content: str, role: str = "tool", **extra: object) -> object:
    return {"role": role, "content": content, "tool_call_id": "c1", "extra": extra}


def asked(*commands: str, **extra: object) -> object:
    actions = [{"command": command, "tool_call_id": "c1"} for command in commands]
    return said("Let me look.", actions=actions, **extra)


def fenced(command: str) -> object:
    return said(f"THOUGHT: look\n\n```bash\n{command}\n```")


def steps(folder: Path, *messages: object) -> list[Step]:
    path = folder / "run.traj.json"
    environment = {"cwd": "/repo"}
    document = {
        "info": {"config": {"environment": environment}},
        "messages": [{"role": "system", "content": "You are."}, user("Do it."), *messages],
        "trajectory_format": "mini-swe-agent-1",
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    assert recognise(path) == "mini-swe-agent"
    return [event for event in open_trace(path) if isinstance(event, Step)]


def test_a_message_with_one_block_is_a_command(tmp_path: Path) -> None:
    usage = {"total_tokens": 12, "cost": 0.5}
    response = {"created": NOON.timestamp(), "usage": usage}
    content = "THOUGHT: look\n\n```bash\nls -a\n```"
    taken = steps(tmp_path, said(content, response=response), ran(0, "a.py\n"))
    assert taken == [
        Step(
            number=1,
            kind=StepKind.TOOL,
            at=NOON,
            request=1,
            tool="bash",
            args="ls -a",
            ok=True,
            exit_code=0,
            output="a.py\n",
            text="THOUGHT: look",
            tokens=12,
            cost_usd=0.5,
        )
    ]


def test_a_call_of_the_second_version_is_a_command(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        asked("make", cost=0.25, timestamp=NOON.timestamp()),
        answered("…", raw_output="no rule\n", returncode=2, timestamp=LATER.timestamp()),
    )
    assert taken == [
        Step(
            number=1,
            kind=StepKind.TOOL,
            at=LATER,
            request=1,
            tool="bash",
            args="make",
            ok=False,
            exit_code=2,
            output="no rule\n",
            text="Let me look.",
            cost_usd=0.25,
            call="c1",
        )
    ]


def test_a_call_is_read_from_the_provider_where_the_agent_kept_no_action(tmp_path: Path) -> None:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    call = {"id": "c7", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    (step,) = steps(tmp_path, message, answered("<returncode>0</returncode>\n<output>\n</output>"))
    assert (step.args, step.call, step.exit_code, step.output) == ("ls", "c7", 0, "")


@pytest.mark.parametrize(
    "content", ["```bash\nls\n```\nor\n```bash\npwd\n```", "I am done.", "```python\n1\n```"]
)
def test_a_refused_message_is_no_command(tmp_path: Path, content: str) -> None:
    taken = steps(tmp_path, said(content), user(REFUSAL), fenced("ls"), ran(0))
    assert [step.kind for step in taken] == [StepKind.MESSAGE, StepKind.TOOL]
    assert taken[0] == Step(
        number=1, kind=StepKind.MESSAGE, request=1, ok=False, output=REFUSAL, text=content
    )


def test_another_kind_of_block_is_a_command_where_it_ran(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, said("I look.\n```sh\nls\n```"), ran(0, "a\n"))
    assert (step.kind, step.args, step.exit_code) == (StepKind.TOOL, "ls", 0)


def test_what_the_second_version_refused_is_of_no_step(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        asked("ls"),
        answered("", raw_output="a\n", returncode=0),
        answered("Tool call error", role="user", interrupt_type="FormatError"),
        asked("pwd"),
    )
    assert [(step.args, step.output) for step in taken] == [("ls", "a\n"), ("pwd", "")]


def test_several_calls_of_one_message_are_one_step_that_fails_with_the_first(
    tmp_path: Path,
) -> None:
    (step,) = steps(
        tmp_path,
        asked("false", "ls"),
        answered("", raw_output="no\n", returncode=1),
        answered("", raw_output="a\n", returncode=0),
    )
    assert (step.args, step.exit_code, step.ok) == ("false\nls", 1, False)
    assert step.output == "no\n\na\n"


@pytest.mark.parametrize(
    "message",
    [
        user("The last command <command>x</command> timed out and has been killed.\nOutput: y"),
        answered("<exception>An error occurred: timed out</exception>", raw_output=""),
    ],
)
def test_a_command_that_timed_out_failed(tmp_path: Path, message: object) -> None:
    (step,) = steps(tmp_path, fenced("x"), message)
    assert (step.ok, step.exit_code) == (False, None)
    assert "timed out" in step.output


def test_the_submission_is_a_step(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        fenced("ls"),
        ran(0),
        fenced("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        answered("diff --git a/x b/x", role="exit", exit_status="Submitted"),
    )
    assert [(step.number, step.ok) for step in taken] == [(1, True), (2, True)]
    assert taken[1].output == "diff --git a/x b/x"


def test_how_a_run_broke_is_no_result_of_its_last_command(tmp_path: Path) -> None:
    (step,) = steps(
        tmp_path,
        asked("ls"),
        answered("", raw_output="a\n", returncode=0),
        answered("The server is gone", role="exit", exit_status="InternalServerError"),
    )
    assert (step.output, step.ok) == ("a\n", True)


def test_a_command_that_never_came_back_is_a_step(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, fenced("sleep 99"))
    assert (step.args, step.ok, step.exit_code, step.output) == ("sleep 99", None, None, "")


@pytest.mark.parametrize(("code", "paths"), [(0, ["a.py"]), (1, ["a.py"]), (127, []), (126, [])])
def test_what_a_command_writes_counts_if_it_ran_at_all(
    tmp_path: Path, code: int, paths: list[str]
) -> None:
    (step,) = steps(tmp_path, fenced("cat > /repo/a.py <<'EOF'\nx\nEOF"), ran(code))
    assert [edit.path for edit in step.edits] == paths


def test_a_warning_beside_the_output_is_kept(tmp_path: Path) -> None:
    content = "<returncode>0</returncode>\n<warning>\nToo long\n</warning><output_head>\nx\n"
    (step,) = steps(tmp_path, fenced("cat big"), user(content))
    assert (step.exit_code, step.output.startswith("<warning>")) == (0, True)


def test_content_may_be_a_list_of_parts(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "```bash\nls\n```"}]
    (step,) = steps(tmp_path, {"role": "assistant", "content": parts}, ran(0))
    assert step.args == "ls"
