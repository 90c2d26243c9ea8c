"""Edits read from arguments, where there is no workspace to look at."""

import pytest

from midwatch_monitor.records import Edit
from midwatch_tools.observation import argued_edits


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "str_replace_editor", "create"])
def test_a_tool_named_for_writing_edits_the_file_that_it_names(tool: str) -> None:
    assert argued_edits(tool, {"path": "a.py"}, ok=True) == (Edit(path="a.py"),)


@pytest.mark.parametrize("tool", ["read_file", "grep", "rewrite", "credits"])
def test_other_tools_edit_nothing(tool: str) -> None:
    assert argued_edits(tool, {"path": "a.py"}, ok=True) == ()


def test_a_failed_call_is_no_edit() -> None:
    assert argued_edits("write_file", {"path": "a.py", "content": "x"}, ok=False) == ()


def test_equal_whole_contents_have_equal_hashes() -> None:
    first, second = (
        argued_edits("write_file", {"path": "a.py", "content": "x = 1\n"}, ok=True) for _ in "12"
    )
    assert first == second
    assert first[0].digest


def test_a_deletion_is_told_apart() -> None:
    assert argued_edits("delete_file", {"path": "a.py"}, ok=True)[0].deleted
