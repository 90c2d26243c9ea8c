"""What an editor says when it refuses."""

import pytest

from midwatch_monitor.shell.claimed_edits import refused


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
