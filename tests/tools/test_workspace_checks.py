"""Files that are claimed are looked for in the workspace, and nowhere else."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from midwatch_monitor.records import Acceptance, Writer
from midwatch_tools.tools.completion import FilePresence
from midwatch_tools.tree import Tree, ignored_in
from midwatch_tools.workspace_checks import WorkspaceChecks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "a.py").write_text("x")
    (root / "docs" / "one.md").write_text("y")
    (root / "[odd].txt").write_text("z")
    (root / "empty").touch()
    (root / "loop").symlink_to("loop")
    (tmp_path / "secret").write_text("s")
    return root


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("a.py", ""),
        ("./a.py", ""),
        ("[odd].txt", ""),
        ("docs/*.md", ""),
        ("**/*.md", ""),
        ("docs/*.rst", "no file is like that"),
        ("b.py", "it is missing"),
        ("empty", "it is empty"),
        ("docs", "it is not a file"),
        ("../secret", "it lies outside of the workspace"),
        ("/etc/passwd", "it lies outside of the workspace"),
        ("../*", "it is not a file"),
        ("/etc/*", "no file can be called that"),
        ("a\0b", "no file can be called that"),
    ],
)
async def test_a_file_is_there_or_it_is_said_why_not(root: Path, path: str, fault: str) -> None:
    assert await WorkspaceChecks(root).look([path]) == (FilePresence(path=path, fault=fault),)


async def test_a_link_to_itself_is_no_file(root: Path) -> None:
    (loop,) = await WorkspaceChecks(root).look(["loop"])
    assert loop.fault


async def test_without_a_folder_nothing_is_known() -> None:
    assert await WorkspaceChecks().look(["a.py"]) == (FilePresence(path="a.py", known=False),)


async def test_what_a_check_writes_is_nobodys_edit(root: Path) -> None:
    tree = Tree(root, max_files=100, ignored_by_git=ignored_in(None))
    await tree.begin()

    async def check(commands: Sequence[str]) -> tuple[Acceptance, ...]:
        (root / "report.txt").write_text("r")
        return tuple(Acceptance(check=each, passed=True) for each in commands)

    passed = (Acceptance(check="make", passed=True),)
    assert await WorkspaceChecks(root, tree, check).run(["make"]) == passed
    assert await tree.changes(Writer.PERSON) == ()


async def test_where_nobody_can_run_a_check_none_is_run(root: Path) -> None:
    site = WorkspaceChecks(root)
    assert (site.checks, await site.run(["make"])) == (False, ())
