"""The edits that a call claims by its name and its arguments."""

import pytest

from midwatch_monitor.records import Edit
from midwatch_monitor.shell.claimed_edits import (
    CallArguments,
    adds,
    changes_unnamed,
    claimed_edits,
    digest,
    edits_named,
    named_path,
    refused,
    whole_content,
)

BLOCKS = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** Delete File: b.py\n*** End Patch"

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    "tool",
    [
        *("Edit", "MultiEdit", "Write", "NotebookEdit", "WriteFile", "writeFile"),
        *("edit", "edit_file", "write", "write_file", "write_to_file", "create", "create_file"),
        *("str_replace_editor", "str_replace_based_edit_tool", "file_editor", "insert", "replace"),
        *("append_to_file", "update_file", "replace_in_file", "search_replace", "multiedit"),
        *("mcp__filesystem__edit_file", "fs.write-file", "apply_patch", "undo_edit"),
    ],
)
def test_a_tool_named_for_changing_files_edits_the_one_that_it_names(tool: str) -> None:
    assert claimed_edits(tool, {"path": "a.py"}) == (Edit(path="a.py"),)


@pytest.mark.parametrize(
    "tool",
    [
        *("", "read_file", "view", "search", "Read", "grep", "rewrite", "credits", "goto"),
        *("list_edits", "get_patch", "open_editor", "create_directory", "bash", "check_edit"),
    ],
)
def test_other_tools_edit_nothing(tool: str) -> None:
    assert claimed_edits(tool, {"path": "a.py"}) == ()
    assert not changes_unnamed(tool, "")


@pytest.mark.parametrize(
    ("command", "edits"),
    [
        ("view", ()),
        ("create", (Edit(path="a.py"),)),
        ("str_replace", (Edit(path="a.py"),)),
        ("insert", (Edit(path="a.py"),)),
        ("undo_edit", (Edit(path="a.py"),)),
        ("delete", (Edit(path="a.py", deleted=True),)),
    ],
)
def test_an_editor_does_what_its_command_says(command: str, edits: tuple[Edit, ...]) -> None:
    assert claimed_edits("file_editor", {"command": command, "path": "a.py"}) == edits


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"path": "a.py"}, "a.py"),
        ({"file_path": "a.py"}, "a.py"),
        ({"target_file": "a.py"}, "a.py"),
        ({"notebook_path": "a.ipynb"}, "a.ipynb"),
        ({"filePath": "a.py"}, "a.py"),
        ({"file": 3, "filename": "b"}, "b"),
        ({"path": "", "file": "a.py"}, "a.py"),
        ({"name": "a.py"}, ""),
        ("a.py", ""),
    ],
)
def test_the_path_is_what_an_argument_of_that_name_says(args: CallArguments, path: str) -> None:
    assert named_path(args) == path


def test_the_path_beside_the_arguments_counts_before_those_within() -> None:
    assert edits_named("edit", {"path": "a.py"}, path="w/a.py") == (Edit(path="w/a.py"),)


@pytest.mark.parametrize("args", [{"patch": BLOCKS}, {"input": BLOCKS}, BLOCKS])
def test_a_patch_edits_the_files_of_its_headers(args: CallArguments) -> None:
    edits = (Edit(path="a.py"), Edit(path="b.py", deleted=True))
    assert claimed_edits("apply_patch", args) == edits


def test_a_unified_diff_edits_the_file_that_it_names() -> None:
    assert claimed_edits("apply_patch", {"diff": DIFF}) == (Edit(path="a.py"),)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"content": "x"}),
        ("Write", {"content": "x", "mode": "w"}),
        ("write_to_file", {"contents": "x"}),
        ("str_replace_editor", {"command": "create", "file_text": "x"}),
    ],
)
def test_a_whole_content_has_a_digest(tool: str, args: dict[str, object]) -> None:
    (edit,) = claimed_edits(tool, {"path": "a.py", **args})
    assert edit == Edit(path="a.py", digest=digest("x"))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("append_to_file", {"content": "x"}),
        ("insert", {"content": "x"}),
        ("edit_file", {"content": "x"}),
        ("write_file", {"content": "x", "append": True}),
        ("write_file", {"content": "x", "mode": "a"}),
        ("write_file", {"content": 3}),
        ("write_file", "x"),
    ],
)
def test_a_part_of_a_file_has_none(tool: str, args: CallArguments) -> None:
    assert whole_content(tool, args) is None


@pytest.mark.parametrize(
    ("tool", "args", "changes"),
    [
        ("edit", "12:14\nreturn 1\nend_of_edit", True),
        ("insert", '{"line": 3, "text": "x"}', True),
        ("str_replace_editor", "str_replace --old x", True),
        ("str_replace_editor", "view /w/a.py", False),
        ("file_editor", '{"command": "view"}', False),
        ("edit", '{"path": "a.py"}', False),
        ("edit", '{"path": "a.py"', True),
        ("apply_patch", BLOCKS, False),
        ("create_issue", '{"title": "x"}', False),
        ("update_plan", "{}", False),
        ("TodoWrite", "{}", False),
    ],
)
def test_a_call_may_change_a_file_that_it_does_not_name(
    tool: str, args: str, *, changes: bool
) -> None:
    assert changes_unnamed(tool, args) is changes


@pytest.mark.parametrize(
    "output",
    [
        "No replacement was performed, old_str `x` did not appear verbatim in a.py.",
        "No replacement was performed: `the file was created` is not there",
        "ERROR:\nNo replacement was performed.",
        "<tool_use_error>String to replace not found in file.\nString: x = 1",
        "<tool_use_error>File has not been read yet.",
        "Your proposed edit has introduced new syntax errors.",
        "File already exists at: /w/a.py.",
        "\n[Errno 2] No such file or directory: 'a.py'",
        "the text `x = 1` was not found in a.py",
        "not found in a.py",
        "Found 3 matches of the string to replace",
        "Error executing the tool: the file is open elsewhere",
        "Failed to edit, 0 occurrences found",
        "error: patch failed: a.py:3",
        "The path /w/b.py does not exist.",
        "No file open. Use the open command first.",
    ],
)
def test_an_editor_that_refuses_says_so_at_once(output: str) -> None:
    assert refused(output)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "ok",
        "The file /w/a.py has been edited. Here is the part: raise Refused('file not found')",
        "Edited errors.py: file not found is told",
        "The file a.py has been edited.\n  3  # No replacement was performed",
        "Error handling is now in a.py",
        "Successfully replaced text: string not found",
        "File created successfully at: a.py",
        "Text replaced. Please review the changes: the block was not found before",
    ],
)
def test_an_editor_that_did_its_work_may_quote_anything(output: str) -> None:
    assert not refused(output)


@pytest.mark.parametrize(
    ("tool", "args", "line"),
    [
        ("append_section", '{"path": "a.md", "title": "b"}', ""),
        ("file_editor", '{"command": "insert", "path": "a.py", "insert_line": 3}', ""),
        ("write_file", '{"path": "a.py", "content": "b", "mode": "append"}', ""),
        ("Edit", '{"path": "a.py", "old_string": "a", "new_string": "a\\nb"}', ""),
        ("edit", "12:12\ndef more():\n    pass", ""),
        ("bash", "", "cat >> a.md <<'EOF'\n> b\nEOF"),
    ],
)
def test_an_edit_adds_that_leaves_what_stood_there(tool: str, args: str, line: str) -> None:
    assert adds(tool, args, line)


@pytest.mark.parametrize(
    ("tool", "args", "line"),
    [
        ("write_file", '{"path": "a.py", "content": "b"}', ""),
        ("Edit", '{"path": "a.py", "old_string": "a", "new_string": "b"}', ""),
        ("Edit", '{"path": "a.py", "old_string": "", "new_string": "b"}', ""),
        ("edit", "12:14\nb", ""),
        ("bash", "", "cat > a.md <<'EOF'\nb >> c\nEOF"),
    ],
)
def test_an_edit_that_replaces_adds_nothing(tool: str, args: str, line: str) -> None:
    assert not adds(tool, args, line)
