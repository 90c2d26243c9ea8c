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


PATCHED = (Edit(path="a.py"), Edit(path="b.py", deleted=True))


@pytest.mark.parametrize(
    ("args", "edits"),
    [
        ({"patch": BLOCKS}, PATCHED),
        ({"input": BLOCKS}, PATCHED),
        (BLOCKS, PATCHED),
        ({"diff": DIFF}, (Edit(path="a.py"),)),
    ],
)
def test_a_patch_edits_the_files_of_its_headers(
    args: CallArguments, edits: tuple[Edit, ...]
) -> None:
    assert claimed_edits("apply_patch", args) == edits


@pytest.mark.parametrize(
    ("tool", "args", "content"),
    [
        ("write_file", {"content": "x"}, "x"),
        ("Write", {"content": "x", "mode": "w"}, "x"),
        ("write_to_file", {"contents": "x"}, "x"),
        ("str_replace_editor", {"command": "create", "file_text": "x"}, "x"),
        ("append_to_file", {"content": "x"}, None),
        ("insert", {"content": "x"}, None),
        ("edit_file", {"content": "x"}, None),
        ("write_file", {"content": "x", "append": True}, None),
        ("write_file", {"content": "x", "mode": "a"}, None),
        ("write_file", {"content": 3}, None),
    ],
)
def test_only_a_whole_content_has_a_digest(
    tool: str, args: dict[str, object], content: str | None
) -> None:
    assert whole_content(tool, args) == content
    known = "" if content is None else digest(content)
    assert claimed_edits(tool, {"path": "a.py", **args}) == (Edit(path="a.py", digest=known),)


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
        *("File already exists at: /w/a.py.", "\n[Errno 2] No such file or directory: 'a.py'"),
        *("the text `x = 1` was not found in a.py", "not found in a.py"),
        "Found 3 matches of the string to replace",
        "Error executing the tool: the file is open elsewhere",
        *("Failed to edit, 0 occurrences found", "error: patch failed: a.py:3"),
        *("The path /w/b.py does not exist.", "No file open. Use the open command first."),
    ],
)
def test_an_editor_that_refuses_says_so_at_once(output: str) -> None:
    assert refused(output)


@pytest.mark.parametrize(
    "output",
    [
        *("", "ok"),
        "The file /w/a.py has been edited. Here is the part: raise Refused('file not found')",
        "Edited errors.py: file not found is told",
        "The file a.py has been edited.\n  3  # No replacement was performed",
        *("Error handling is now in a.py", "Successfully replaced text: string not found"),
        "File created successfully at: a.py",
        "Text replaced. Please review the changes: the block was not found before",
    ],
)
def test_an_editor_that_did_its_work_may_quote_anything(output: str) -> None:
    assert not refused(output)


@pytest.mark.parametrize(
    ("tool", "args", "line", "more"),
    [
        ("append_section", '{"path": "a.md", "title": "b"}', "", True),
        ("file_editor", '{"command": "insert", "path": "a.py", "insert_line": 3}', "", True),
        ("write_file", '{"path": "a.py", "content": "b", "mode": "append"}', "", True),
        ("Edit", '{"path": "a.py", "old_string": "a", "new_string": "a\\nb"}', "", True),
        ("edit", "12:12\ndef more():\n    pass", "", True),
        ("bash", "", "cat >> a.md <<'EOF'\n> b\nEOF", True),
        ("write_file", '{"path": "a.py", "content": "b"}', "", False),
        ("Edit", '{"path": "a.py", "old_string": "a", "new_string": "b"}', "", False),
        ("Edit", '{"path": "a.py", "old_string": "", "new_string": "b"}', "", False),
        ("edit", "12:14\nb", "", False),
        ("bash", "", "cat > a.md <<'EOF'\nb >> c\nEOF", False),
    ],
)
def test_an_edit_adds_that_leaves_what_stood_there(
    tool: str, args: str, line: str, more: bool
) -> None:
    assert adds(tool, args, line) is more
