"""What is true of all code of the product: how it spells, errs, and starts other programs."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from midwatch_monitor import errors

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


@cache
def trees() -> dict[str, ast.AST]:
    """The parsed text of each module of the product, by its path."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_bytes()) for file in files}


def starters(code: ast.AST) -> Iterator[str]:
    """The names in code by which a program could be started."""
    for node in ast.walk(code):
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
    assert {file for file, code in trees().items() if any(starters(code))} == set(ALLOWED)


def test_a_start_is_found_however_it_is_written() -> None:
    for source in (
        "import subprocess",
        "from subprocess import run",
        "import os; os.system('x')",
        "from os import execv",
        "import asyncio; asyncio.create_subprocess_exec('git')",
    ):
        assert list(starters(ast.parse(source))), source
    assert not list(starters(ast.parse("import os; os.environ")))


def test_what_people_read_spells_canceled_as_the_lifecycle_does() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "configs").rglob("*.yaml"),
    ]
    texts = {page.name: page.read_text("utf-8") for page in pages}
    texts |= {file: "\n".join(texts_of(code)) for file, code in trees().items()}
    assert [name for name, text in texts.items() if re.search("(?i)cancell(ed|ing)", text)] == []


def texts_of(code: ast.AST) -> Iterator[str]:
    """The texts of a module without its docstrings, and without what is a word of ACP by itself."""
    for node in ast.walk(code):
        for each in () if isinstance(node, ast.Expr) else ast.iter_child_nodes(node):
            text = each.value if isinstance(each, ast.Constant) else None
            if isinstance(text, str) and text != "cancelled":
                yield text


def parents_in_tree(tree: str) -> dict[str, str]:
    """Child and parent of a tree that is drawn with box characters, four columns a level."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in tree.splitlines():
        match = re.match(r"([│├└─ ]*)(\w+Error)\b", line)
        if match is None:
            continue
        depth = len(match[1]) // 4
        path[depth:] = [match[2]]
        parents[match[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_every_error_is_drawn_in_the_tree_where_it_belongs() -> None:
    defined = {
        name: thing.__bases__[0].__name__
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, Exception)
    }
    assert parents_in_tree(errors.__doc__ or "") == defined


def test_no_error_is_defined_outside_the_tree() -> None:
    strays = [
        f"{file}: {node.name}"
        for file, code in trees().items()
        if not file.endswith("/errors.py")
        for node in ast.walk(code)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    ]
    assert not strays
