"""Task files, and what is said of wrong ones."""

from pathlib import Path

import pytest

from midwatch_monitor.config.document import read_document
from midwatch_monitor.config.source import load_tasks
from midwatch_monitor.config.tasks import BudgetSpec, FileCheck, TaskSpec, resolve_workspace
from midwatch_monitor.errors import ConfigError

ONE = "tasks:\n  - {id: a, goal: do it, acceptance: ['true']}\n"
IN_WORKSPACE = "must be a file in the workspace, by its path from there"


def write(folder: Path, text: str) -> Path:
    file = folder / "tasks.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def config_errors(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_tasks(file)
    return [line.replace(f"{file}", "") for line in caught.value.lines]


def test_a_task_needs_little_and_has_the_defaults_that_it_does_not_change(tmp_path: Path) -> None:
    one = TaskSpec(id="a", goal="do it", acceptance=("true",))
    assert load_tasks(write(tmp_path, ONE)).tasks == (one,)
    empty = load_tasks(write(tmp_path, f"defaults:\nmodels:\nworkers:\n{ONE}"))
    assert empty == load_tasks(write(tmp_path, ONE))
    text = f"defaults: {{max_attempts: 5, budget: {{minutes: 3}}}}\n{ONE}"
    task = load_tasks(write(tmp_path, text)).tasks[0]
    assert (task.max_attempts, task.budget) == (5, BudgetSpec(minutes=3))


def test_an_acceptance_check_is_a_command_or_a_file(tmp_path: Path) -> None:
    text = "tasks:\n  - {id: a, goal: x, acceptance: [make test, {file: out.txt}]}\n"
    task = load_tasks(write(tmp_path, text)).tasks[0]
    assert task.acceptance == ("make test", FileCheck(file="out.txt"))


def test_a_workspace_starts_beside_its_file(tmp_path: Path) -> None:
    text = "tasks:\n  - {id: a, goal: x, acceptance: ['true'], workspace: ../other}\n"
    task = load_tasks(write(tmp_path, text)).tasks[0]
    assert resolve_workspace(task, tmp_path) == tmp_path.parent / "other"


@pytest.mark.parametrize(
    ("workspace", "url"),
    [
        ("https://host/shop.git", True),
        ("ssh://git@host:2222/shop", True),
        ("git@host:team/shop.git", True),
        ("file:///srv/shop.git", True),
        ("../shop", False),
        ("/srv/shop@host", False),
        ("host:shop", False),
    ],
)
def test_a_git_url_is_no_folder(workspace: str, url: bool, tmp_path: Path) -> None:
    text = f"tasks:\n  - {{id: a, goal: x, acceptance: ['true'], workspace: '{workspace}'}}\n"
    task = load_tasks(write(tmp_path, text)).tasks[0]
    assert task.origin == (workspace if url else "")
    assert (resolve_workspace(task, tmp_path) is None) is url


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# nothing\n", [": is empty: a task file names its `tasks`"]),
        ("models: {worker: x}\n", [": tasks: is missing"]),
        ("tasks: []\n", [":1: tasks: must not be empty"]),
        ("tasks:\n", [":1: tasks: must be a list; is empty"]),
        ("tasks: [\n", [":2: is not YAML: while parsing a flow node, expected the node content, "
                        "but found '<stream end>'"]),
        (
            "tasks:\n  - {id: a, goal: x, acceptance: [' ']}\n",
            [":2: tasks[0].acceptance[0]: must not be empty"],
        ),
        (
            "tasks:\n  - {id: a, goal: x, acceptance: [x], plan: [b, {title: c, "
            "acceptance: ['']}]}\n",
            [":2: tasks[0].plan[1].acceptance[0]: must not be empty"],
        ),
        *(
            (
                f"tasks:\n  - {{id: a, goal: x, acceptance: [x, {{file: '{file}'}}]}}\n",
                [f":2: tasks[0].acceptance[1]: {said}"],
            )
            for file, said in (("", "must name a file"), ("a/..", "must name a file"),
                               ("/etc/hosts", IN_WORKSPACE), ("a/../../b", IN_WORKSPACE))
        ),
        (
            "tasks:\n  - {id: a, goal: x, acceptance: [x], plan: [{title: b, files: [../c]}]}\n",
            [f":2: tasks[0].plan[0].files[0]: {IN_WORKSPACE}"],
        ),
        ("tasks:\n  - x\n", [":2: tasks[0]: must be a mapping: `key: value`; is 'x'"]),
        (
            "tasks:\n  - id: a\n    goal: x\n    acceptance:\n      - fil: x\n",
            [
                ":5: tasks[0].acceptance[0].file: is missing",
                ":5: tasks[0].acceptance[0].fil: unknown key (did you mean `file`?)",
            ],
        ),
        (
            "tasks:\n  - id: a b\n    goal: ''\n    acceptance: []\n",
            [
                ":2: tasks[0].id: may have letters (a-z, A-Z), digits, `.`, `_` and `-`, "
                "at most 80, a letter or digit first; is 'a b'",
                ":3: tasks[0].goal: must not be empty",
                ":4: tasks[0].acceptance: must not be empty",
            ],
        ),
        (f"{ONE}  - {{id: a, goal: x, acceptance: [x]}}\n",
         [":3: tasks[1].id: two tasks have the id 'a'"]),
        (
            f"{ONE}  - id: b\n    goal: x\n    acceptance: [x]\n    depends_on: [a, bb]\n",
            [":6: tasks[1].depends_on[1]: there is no task 'bb' (did you mean `b`?)"],
        ),
        *(
            (
                f"tasks:\n  - {{id: a, goal: x, acceptance: [x], workspace: '{url}'}}\n",
                [":2: tasks[0].workspace: contains a login: leave that to git's credential "
                 "helper"],
            )
            for url in ("https://ada:secret@host/shop", "https://secret@host/shop",
                        "ssh://git:secret@host/shop")
        ),
        (f"workers: {{bob: {{}}, ann: {{}}}}\n{ONE}",
         [":3: tasks[0].worker: must name one of the workers: bob, ann"]),
        (
            f"defaults:\n  budget: {{requests: 0}}\n{ONE}  - {{id: b, goal: x, acceptance: [x]}}\n",
            [":2: defaults.budget.requests: must be at least 1; is 0"],
        ),
        (f"defaults: {{worker: bop}}\nworkers: {{bob: {{}}}}\n{ONE}",
         [":1: defaults.worker: there is no worker 'bop' (did you mean `bob`?)"]),
        (
            "tasks:\n  - {id: a, goal: x, acceptance: [x], depends_on: [b]}\n"
            "  - {id: b, goal: x, acceptance: [x], depends_on: [a]}\n",
            [":1: tasks: tasks depend on each other in a circle: a, b"],
        ),
        (f"models: {{worker: x}}\nmodels: {{worker: y}}\n{ONE}",
         [":2: models: is here twice, first in line 1"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, text: str, said: list[str]) -> None:
    assert config_errors(write(tmp_path, text)) == said


@pytest.mark.parametrize(("text", "holds"), [(ONE, True), ("mode: act\n", False), ("[", False)])
def test_a_task_file_is_told_by_its_key(tmp_path: Path, text: str, holds: bool) -> None:
    assert read_document(write(tmp_path, text)).holds_tasks is holds
