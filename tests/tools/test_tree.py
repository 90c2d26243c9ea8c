"""Which files of a workspace changed, and whether files that a worker names are there."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from midwatch_monitor.records import Acceptance, Edit, Writer
from midwatch_tools.tools.completion import FilePresence
from midwatch_tools.tree import Tree, ignored_below, ignored_in
from midwatch_tools.workspace_checks import WorkspaceChecks

FAR = 20_000


async def begin_tree(root: Path, *, max_files: int = FAR) -> Tree:
    tree = Tree(root, max_files=max_files, ignored_by_git=ignored_below(root))
    await tree.begin()
    return tree


async def paths(tree: Tree, named: str = "") -> list[str]:
    return sorted(edit.path for edit in await tree.changes(Writer.WORKER, named))


async def test_a_changed_content_is_an_edit_with_both_digests(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    tree = await begin_tree(tmp_path)
    (tmp_path / "a.py").write_text("2")
    (first,) = await tree.changes(Writer.WORKER)
    (tmp_path / "a.py").write_text("1")
    (second,) = await tree.changes(Writer.WORKER)
    assert first == Edit(path="a.py", digest=first.digest, before=first.before)
    assert (second.digest, second.before) == (first.before, first.digest)
    assert first.digest != first.before


async def test_two_contents_of_one_size_within_one_tick_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    soon = file.stat().st_mtime_ns + 3_600_000_000_000  # as young as can be, however long we take
    os.utime(file, ns=(soon, soon))
    tree = await begin_tree(tmp_path)
    file.write_text("2")
    os.utime(file, ns=(soon, soon))
    assert await paths(tree) == ["a.py"]


async def test_a_touched_file_with_the_same_content_is_no_edit(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    tree = await begin_tree(tmp_path)
    os.utime(tmp_path / "a.py", ns=(1, 1))
    assert await paths(tree) == []


async def test_a_deleted_file_is_an_edit_without_a_content(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    tree = await begin_tree(tmp_path)
    (tmp_path / "a.py").unlink()
    (gone,) = await tree.changes(Writer.WORKER)
    assert gone == Edit(path="a.py", before=gone.before, deleted=True)
    assert gone.before


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root, away = tmp_path / "in", tmp_path / "out"
    away.mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("*.log\n")
    (root / "link").symlink_to(away)
    return root


@pytest.mark.parametrize(
    ("file", "edited"),
    [
        ("src/a.py", ["src/a.py"]),
        ("run.log", []),
        *((f"deep/{folder}/x", []) for folder in (".git", ".midwatch", "node_modules")),
        ("deep/__pycache__/x", []),
        (os.fsdecode(b"\xff.py"), ["\udcff.py"]),
        ("link/a.py", []),
    ],
    ids=[
        "the first of a folder",
        "what git ignores",
        *("git's", "Midwatch's", "packages", "bytecode"),
        "a name that is no text",
        "behind a link",
    ],
)
async def test_a_new_file_is_an_edit_once_unless_tools_fill_it_or_git_ignores_it(
    repository: Path, file: str, edited: list[str]
) -> None:
    tree = await begin_tree(repository)
    (repository / file).parent.mkdir(parents=True, exist_ok=True)
    (repository / file).write_text("1")
    found = await tree.changes(Writer.PERSON)
    assert [(each.path, each.writer) for each in found] == [
        (name, Writer.PERSON) for name in edited
    ]
    assert await paths(tree) == []


class TestATooLargeFolder:
    """Only the paths that acts name are looked at."""

    @pytest.fixture
    async def tree(self, tmp_path: Path) -> Tree:
        for n in range(4):
            (tmp_path / f"{n}.py").write_text("old")
        return await begin_tree(tmp_path, max_files=3)

    async def test_reading_a_file_is_no_edit(self, tree: Tree) -> None:
        await tree.expect("1.py")
        assert await paths(tree, "1.py") == []

    async def test_a_named_path_that_changed_is_an_edit(self, tree: Tree) -> None:
        await tree.expect("1.py")
        (tree.root / "1.py").write_text("new")
        (tree.root / "2.py").write_text("new")
        assert await paths(tree, "1.py") == ["1.py"]

    async def test_a_named_path_that_was_not_there_is_an_edit(self, tree: Tree) -> None:
        await tree.expect("new.py")
        (tree.root / "new.py").write_text("new")
        assert await paths(tree, str(tree.root / "new.py")) == ["new.py"]

    @pytest.mark.parametrize(
        "named", ["", ".", "nowhere", "../x", "a\0b", "x" * 5000, "/etc/passwd"]
    )
    async def test_what_names_no_file_in_it_is_no_edit(self, tree: Tree, named: str) -> None:
        await tree.expect(named)
        assert await paths(tree, named) == []


async def test_a_folder_that_grows_too_large_reports_only_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    tree = await begin_tree(tmp_path, max_files=2)
    for n in range(4):
        (tmp_path / f"{n}.out").write_text("1")
    (tmp_path / "a.py").write_text("2")
    assert await paths(tree, "a.py") == ["a.py"]


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
    assert loop.fault, "in other words with each version of Python"


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
