"""Programs are started in few places, and git in one."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("supervisor", "agents", "tools", "monitor")
STARTERS = frozenset(
    {
        *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec"),
        *("subprocess_shell", "subprocess", "Popen"),
    }
)
OF_OS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen")
ALLOWED = {
    "agents/midwatch_agents/acp/agent.py": "an agent of another maker",
    "agents/midwatch_agents/acp/fake_agent.py": "the commands of its script",
    "agents/midwatch_agents/orphan_parent.py": "a worker's command, where there is no sandbox",
    "agents/midwatch_agents/sandbox.py": "bubblewrap, tried",
    "supervisor/midwatch_supervisor/cli/admin/checks.py": "an agent, for its version",
    "supervisor/midwatch_supervisor/cli/inspect/webserver.py": "a console for each browser",
    "supervisor/midwatch_supervisor/tui/bell.py": "the desktop's notifier",
    "tools/midwatch_tools/git.py": "git",
}


def starters(source: str) -> Iterator[str]:
    """The names in a source text by which a program could be started."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name.startswith(OF_OS):
                yield name
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in STARTERS:
                yield name
            case ast.Import(names=names) if any(each.name in STARTERS for each in names):
                yield "subprocess"
            case ast.ImportFrom(module="subprocess"):
                yield "subprocess"
            case ast.ImportFrom(module="os", names=names):
                yield from (each.name for each in names if each.name.startswith(OF_OS))
            case _:
                pass


def test_only_these_modules_start_a_program() -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {file.relative_to(ROOT).as_posix() for file in files if any(starters(file.read_text()))}
    assert found == set(ALLOWED)


def test_a_start_is_found_however_it_is_written() -> None:
    for source in (
        "import subprocess",
        "from subprocess import run",
        "import os; os.system('x')",
        "from os import execv",
        "import asyncio; asyncio.create_subprocess_exec('git')",
    ):
        assert list(starters(source)), source
    assert not list(starters("import os; os.environ"))
