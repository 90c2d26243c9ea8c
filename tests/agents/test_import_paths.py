"""Import paths in a task file: what is wrong with one is said in a line."""

import json
import re
import sys
from pathlib import Path

import pytest

from midwatch_agents.worker import import_object
from midwatch_monitor.errors import UsageError


def test_an_import_path_gives_the_object() -> None:
    assert import_object("json:dumps", "tool") is json.dumps


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("json", "worker a, tool: write 'json' as package.module:name"),
        ("json:", "write 'json:' as package.module:name"),
        (":dumps", "write ':dumps' as package.module:name"),
        ("no_such_module:x", "no_such_module cannot be imported: ModuleNotFoundError: No module"),
        (".json:dumps", ".json cannot be imported: TypeError"),
        ("json:no_such", "json has no 'no_such'"),
    ],
)
def test_a_bad_path_is_told_with_its_use(path: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        import_object(path, "worker a, tool")


def test_a_module_that_fails_while_it_is_imported_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken_by_itself.py").write_text("1 / 0\n")
    sys.path.append(str(tmp_path))
    try:
        with pytest.raises(UsageError, match="ZeroDivisionError: division by zero"):
            import_object("broken_by_itself:x", "tool")
    finally:
        sys.path.remove(str(tmp_path))


def test_a_module_of_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_tools.py").write_text("def greet() -> str:\n    return 'hello'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    greet = import_object("shop_tools:greet", "tool")
    assert callable(greet)
    assert greet() == "hello"
