"""Runs of SWE-agent as steps."""

import json
from pathlib import Path

import pytest

from midwatch_monitor.records import Edit, Step, StepKind
from midwatch_monitor.traces import Damage, open_trace, recognise
from midwatch_tests.factories import step as make_step

EDIT = "edit 1:1\nprint(1)\nend_of_edit"
SHOWN = "[File: /repo/src/a.py (2 lines total)]\n1:print(1)\n"
UPDATED = f"{SHOWN}File updated. Please review the changes and make sure they are correct."
REFUSED = f"Your proposed edit has introduced new syntax error(s).\n{SHOWN}"


def entry(action: str, observation: str = "", open_file: str = "n/a", cwd: str = "/repo") -> object:
    state = json.dumps({"open_file": open_file, "working_dir": cwd})
    return {
        "action": action,
        "observation": observation,
        "response": f"I do.\n```\n{action}\n```",
        "state": state,
        "thought": "I do.",
    }


def steps(folder: Path, *entries: object) -> list[Step]:
    path = folder / "run.traj"
    document: dict[str, object] = {"trajectory": entries, "history": [], "environment": "x"}
    path.write_text(json.dumps(document), encoding="utf-8")
    events = list(open_trace(path))
    return [event for event in events if isinstance(event, Step)]


def test_a_command_of_the_interface_is_a_tool_of_that_name(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, entry("open src/a.py 12", SHOWN))
    assert step == make_step(
        tool="open", request=1, args="src/a.py 12", path="src/a.py", output=SHOWN, text="I do."
    )


def test_any_other_command_is_bash_and_may_write(tmp_path: Path) -> None:
    command = "cat > b.py <<'EOF'\nx\nEOF"
    (step,) = steps(tmp_path, entry(command, "Traceback (most recent call last)"))
    assert (step.tool, step.args, step.ok, step.exit_code) == ("bash", command, None, None)
    assert [edit.path for edit in step.edits] == ["b.py"]


def test_an_edit_changes_the_file_that_is_shown(tmp_path: Path) -> None:
    step, unknown = steps(tmp_path, entry(EDIT, UPDATED, "/repo/src/a.py"), entry(EDIT))
    assert (unknown.ok, unknown.edits, unknown.path) == (None, (), "")
    assert (step.tool, step.args) == ("edit", EDIT.removeprefix("edit "))
    assert (step.path, step.ok, step.edits) == ("src/a.py", True, (Edit(path="src/a.py"),))


@pytest.mark.parametrize(
    "observation",
    [
        REFUSED,
        "Usage: edit <start_line>:<end_line>",
        "No file open. Use the `open` command first.",
        "\nEXECUTION TIMED OUT",
    ],
)
def test_a_refused_edit_changes_nothing(tmp_path: Path, observation: str) -> None:
    (step,) = steps(tmp_path, entry(EDIT, observation, "/repo/src/a.py"))
    assert (step.ok, step.edits) == (False, ())
    assert step.path == "src/a.py"


@pytest.mark.parametrize(
    ("observation", "ok"),
    [
        ("[File: /repo/a.py (1 lines total)]\n1:", True),
        ("Error: File 'a.py' already exists.\n[File: /repo/a.py (9 lines total)]", False),
        ("/root/commands/defaults.sh: line 173: no/a.py: No such file or directory", False),
    ],
)
def test_creating_a_file_that_is_there_changes_nothing(
    tmp_path: Path, observation: str, ok: bool
) -> None:
    (step,) = steps(tmp_path, entry("create a.py", observation))
    assert (step.path, step.ok) == ("a.py", ok)
    assert step.edits == ((Edit(path="a.py"),) if ok else ())


@pytest.mark.parametrize("word", ["submit", "exit_cost"])
def test_the_closing_entry_is_a_step(tmp_path: Path, word: str) -> None:
    taken = steps(tmp_path, entry("ls"), entry(word, "diff --git a/x b/x"))
    assert [(step.number, step.tool) for step in taken] == [(1, "bash"), (2, word)]
    assert steps(tmp_path) == []  # it ended before its first step


def test_a_turn_without_an_action_is_a_message(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, entry("", "Your output was not formatted correctly."))
    assert (step.kind, step.text) == (StepKind.MESSAGE, "I do.")
    assert step.output == "Your output was not formatted correctly."


def test_a_path_is_that_of_one_file_in_every_folder(tmp_path: Path) -> None:
    taken = steps(
        tmp_path,
        entry("ls"),
        entry("sed -i s/a/b/ a.py", cwd="/repo/src"),
        entry(EDIT, UPDATED, "/repo/src/a.py", "/repo/src"),
        entry("open a.py", "File a.py not found", cwd="/repo/src"),
        entry('search_file "def x" lib/b.py', "Found 1 matches"),
        entry('search_file "def x"', "Found 1 matches", "/repo/src/a.py"),
    )
    assert [step.edits for step in taken[1:3]] == [(Edit(path="src/a.py"),)] * 2
    assert (taken[3].path, taken[3].ok) == ("src/a.py", False)
    assert [step.path for step in taken[4:]] == ["lib/b.py", "src/a.py"]  # named, or open


def test_a_state_that_is_an_object_is_the_one_after_the_action(tmp_path: Path) -> None:
    act = {"observation": "", "response": "", "thought": ""}
    taken = steps(
        tmp_path,
        {**act, "action": "cd src", "state": {"working_dir": "/repo/src"}},
        {**act, "action": "sed -i s/a/b/ a.py && cd ..", "state": {"working_dir": "/repo"}},
    )
    assert [edit.path for edit in taken[1].edits] == ["a.py"]


@pytest.mark.parametrize(
    ("command", "observation", "ok", "edited"),
    [
        ("view /repo/a.py", "Here's the result of running `cat -n`", None, False),
        ("create /repo/a.py --file_text 'x'", "File created successfully at: /repo/a.py", True, 1),
        ("str_replace /repo/a.py --old_str b", "The file /repo/a.py has been edited.", True, 1),
        ("str_replace '/repo/a.py' --old_str b", "No replacement was performed", False, False),
    ],
)
def test_the_editor_of_later_versions_is_known(
    tmp_path: Path, command: str, observation: str, ok: bool | None, edited: bool
) -> None:
    (step,) = steps(tmp_path, entry(f"str_replace_editor {command}", observation))
    assert (step.tool, step.path, step.ok) == ("str_replace_editor", "a.py", ok)
    assert step.edits == ((Edit(path="a.py"),) if edited else ())


def test_an_entry_that_is_no_object_is_skipped_and_keeps_its_number(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"trajectory": [entry("ls"), "?", entry("pwd")]}))
    assert recognise(path) == "swe-agent"
    events = list(open_trace(path, "swe-agent"))
    assert [event.number for event in events if isinstance(event, Step)] == [1, 3]
    assert events[1] == Damage(line=2, problem="item 2 is not a JSON object")
