"""What the files around the code promise about each other."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINS = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
FOLDERS = ("monitor", "tools", "agents", "supervisor", "configs", "tests")
PACKAGES = ("monitor", "tools", "agents", "supervisor")
SOMEBODYS_FOLDER = re.compile(r"(?<![\w.$}*])/(?:home|Users|work)/[A-Za-z]")


def tracked_files() -> list[Path]:
    """Every file that git tracks or would track, relative to the repository."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"not a git repository: {done.stderr.strip()}")
    return sorted(Path(line) for line in done.stdout.splitlines() if (ROOT / line).exists())


def test_constraints_are_the_same_for_pip_and_for_uv_and_name_exact_versions_and_no_place() -> None:
    assert PYPROJECT["tool"]["uv"]["constraint-dependencies"] == PINS
    exact = re.compile(r"[a-z0-9-]+==[\w.!+]+( ; [^/@]+)?")
    assert [pin for pin in PINS if not exact.fullmatch(pin)] == []


def test_every_dependency_is_pinned() -> None:
    project, groups = PYPROJECT["project"], PYPROJECT["dependency-groups"]
    several = [*project["optional-dependencies"].values(), *groups.values()]
    wanted = [*project["dependencies"], *(text for texts in several for text in texts)]
    names = {re.split(r"[\[<>=;, ]", text)[0] for text in wanted if isinstance(text, str)}
    assert names - {pin.split("==")[0] for pin in PINS} == {"midwatch"}


def test_the_lock_file_that_names_hosts_is_ignored() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {"uv.lock", ".venv/", ".midwatch/"} <= set(ignored)
    assert Path("uv.lock") not in tracked_files()


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    found = [
        f"{file}: {match[0]}…"
        for file in tracked_files()
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


def test_every_test_that_a_page_names_exists() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"`([\w/]*test_\w+\.py)`", page.read_text())
    }
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
