"""What the files around the code promise about each other."""

import ast
import inspect
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from midwatch_monitor import errors

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = ("monitor", "tools", "agents", "supervisor", "configs", "tests")
PACKAGES = ("monitor", "tools", "agents", "supervisor")
SOMEBODYS_FOLDER = re.compile(r"(?<![\w.$}*])/(?:home|Users|work)/[A-Za-z]")


def tracked() -> list[Path]:
    """Every file that git tracks or would track, relative to the repository."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"not a git repository: {done.stderr.strip()}")
    return sorted(Path(line) for line in done.stdout.splitlines() if (ROOT / line).exists())


def test_what_people_read_spells_canceled_as_the_lifecycle_does() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "configs").rglob("*.yaml"),
    ]
    texts = {page.name: page.read_text("utf-8") for page in pages}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            texts[str(file)] = "\n".join(said_by(ast.parse(file.read_bytes())))
    assert [name for name, text in texts.items() if re.search("(?i)cancell(ed|ing)", text)] == []


def said_by(code: ast.AST) -> Iterator[str]:
    """The texts of a module without its docstrings, and without what is a word of ACP by itself."""
    for node in ast.walk(code):
        for each in () if isinstance(node, ast.Expr) else ast.iter_child_nodes(node):
            text = each.value if isinstance(each, ast.Constant) else None
            if isinstance(text, str) and text != "cancelled":
                yield text


def test_constraints_are_the_same_for_pip_and_for_uv() -> None:
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert pins == PYPROJECT["tool"]["uv"]["constraint-dependencies"]


def test_every_constraint_is_one_exact_version_and_names_no_place() -> None:
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    loose = [pin for pin in pins if not re.fullmatch(r"[a-z0-9-]+==[\w.!+]+( ; [^/@]+)?", pin)]
    assert not loose


def test_every_dependency_is_pinned() -> None:
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    groups = PYPROJECT["dependency-groups"]
    wanted: list[str] = [
        *PYPROJECT["project"]["dependencies"],
        *(
            text
            for extra in PYPROJECT["project"]["optional-dependencies"].values()
            for text in extra
        ),
        *(text for group in groups.values() for text in group if isinstance(text, str)),
    ]
    names = {re.split(r"[\[<>=;, ]", text, maxsplit=1)[0] for text in wanted}
    assert names - pinned == {"midwatch"}


def test_the_lock_file_that_names_hosts_is_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"uv.lock", ".venv/", ".midwatch/"} <= set(ignored)
    assert Path("uv.lock") not in tracked()


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    found = [
        f"{file}: {match[0]}…"
        for file in tracked()
        for match in SOMEBODYS_FOLDER.finditer((ROOT / file).read_text("utf-8", "replace"))
    ]
    assert not found


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_on_one_page_what_lives_in_it(folder: str) -> None:
    lines = (ROOT / folder / "README.md").read_text("utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) <= 60


@pytest.mark.parametrize("folder", PACKAGES)
def test_the_page_of_a_package_lists_its_modules_and_no_other(folder: str) -> None:
    page = (ROOT / folder / "README.md").read_text("utf-8")
    cells = re.findall(r"^\| (`[^|]+) \|", page, re.M)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    package = ROOT / folder / f"midwatch_{folder}"
    modules = {path.stem for path in package.glob("[a-z]*.py")}
    folders = {path.parent.name for path in package.glob("*/*") if path.parent.name[0].isalpha()}
    wrong = sorted((modules | folders) ^ set(listed))
    assert not wrong, f"in the page or in the package, but not in both: {wrong}"


def test_the_changelog_has_an_entry_for_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## [{PYPROJECT['project']['version']}]" in changelog


def test_the_check_before_merging_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def drawn(tree: str) -> dict[str, str]:
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
    assert drawn(errors.__doc__ or "") == defined


def test_no_error_is_defined_outside_the_tree() -> None:
    strays = [
        f"{file}: {node.name}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if file.name != "errors.py"
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    ]
    assert not strays


def test_every_test_that_a_page_names_exists() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"`([\w/]*test_\w+\.py)`", page.read_text())
    }
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
