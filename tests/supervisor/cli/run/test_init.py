"""`midwatch init`: the files that it writes fit the project that stands there."""

from pathlib import Path

import pytest

from midwatch_monitor.config.source import load_tasks
from midwatch_tests.command import printed_now

Capture = pytest.CaptureFixture[str]
VITEST = '{"scripts": {"test": "vitest"}}'
UNITTEST = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
NPM = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'


@pytest.fixture(autouse=True)
def folder(no_models: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "command", "by"),
    [
        ({"pytest.ini": ""}, "pytest -q", "pytest.ini"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest -q", "pyproject.toml"),
        ({"tests/test_a.py": "", "uv.lock": ""}, "uv run pytest -q", "tests/test_a.py"),
        ({"test_a.py": UNITTEST}, "python3 -m unittest", "test_a.py"),
        (
            {"tests/test_a.py": UNITTEST, "uv.lock": ""},
            "uv run python3 -m unittest discover -s tests",
            "tests/test_a.py",
        ),
        (
            {"tests/__init__.py": "", "tests/test_a.py": UNITTEST},
            "python3 -m unittest",
            "tests/test_a.py",
        ),
        ({"test_a.py": UNITTEST, "tests/test_b.py": UNITTEST}, "pytest -q", "test_a.py"),
        ({"test_a.py": UNITTEST, "test_b.py": "def test_b(): pass\n"}, "pytest -q", "test_a.py"),
        ({"tox.ini": "", "poetry.lock": ""}, "poetry run tox -q", "tox.ini"),
        ({"package.json": VITEST}, "npm test", "package.json"),
        (
            {"package.json": '{"scripts": {"test": "x"}}', "yarn.lock": ""},
            "yarn test",
            "package.json",
        ),
        ({"package.json": NPM, "Cargo.toml": ""}, "cargo test", "Cargo.toml"),
        ({"go.mod": "", "Makefile": "test:\n\tx\n"}, "go test ./...", "go.mod"),
        ({"Makefile": "all: test\n\ntest: build\n\tx\n"}, "make test", "Makefile"),
    ],
)
def test_the_projects_own_test_command_is_the_check(
    folder: Path, capsys: Capture, files: dict[str, str], command: str, by: str
) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    said = printed_now(capsys, "init").splitlines()[2:]
    assert said == [f"the check is `{command}`, found in {by}"]
    assert load_tasks(folder / "tasks.yaml").tasks[0].acceptance == (command,)


@pytest.mark.parametrize(
    "files",
    [{}, {"Makefile": "test := 1\n"}, {"package.json": NPM}, {"package.json": "[]"}],
)
def test_without_a_test_command_that_is_said(
    folder: Path, capsys: Capture, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    assert printed_now(capsys, "init").splitlines()[2:] == [
        "no test command was found: name the checks of your tasks in tasks.yaml"
    ]
    assert [task.id for task in load_tasks(folder / "tasks.yaml").tasks] == ["readme", "review"]


def test_the_model_whose_key_is_set_stands_in_the_file(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    name = "openrouter:anthropic/claude-sonnet-4.6"
    said = f"the model is {name}: OPENROUTER_API_KEY is set\n"
    assert said in printed_now(capsys, "init")
    assert next(iter(load_tasks(folder / "tasks.yaml").models.values())).name == name
