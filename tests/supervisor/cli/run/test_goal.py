"""`midwatch run`: a task file, one on stdin, or a goal in a sentence; what is said before it."""

import subprocess
import time
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.config.tasks import WorkerSpec
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.schema import open_store
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.run.start_warnings import sandbox_words
from midwatch_supervisor.present.assignment import Assignment
from midwatch_tests.command import MIDWATCH, assignment, printed_now, refused_now
from midwatch_tools.git import run_git

Capture = pytest.CaptureFixture[str]
TASKS = 'tasks: [{id: a, goal: b, workspace: ., acceptance: ["true"]}]\n'
GOAL = "Fix the failing tests"
CHECKED = ("--check", "true", "--model", "ollama:m")


@pytest.fixture(autouse=True)
def folder(no_models: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_goal_is_a_task_of_the_repository_around_this_folder(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(folder, "init", "-q")
    run_git(folder, "commit", "--allow-empty", "-q", "-m", "Begin")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    words = ("--check", "pytest -q", "--check", "ruff check", "--model", "ollama:qwen3")
    assert printed_now(capsys, "run", GOAL, *words, "--dry-run").splitlines() == [
        f"{folder}: check `pytest -q`, `ruff check`, model ollama:qwen3",
        f"would run fix-the-failing-tests: worker coder, workspace {folder}",
    ]


def test_what_was_chosen_for_a_goal_is_said_in_one_line(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "go.mod").touch()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert printed_now(capsys, "run", GOAL, "--dry-run").splitlines()[0] == (
        f"{folder}: check `go test ./...` (go.mod), model openai:gpt-5.2 (OPENAI_API_KEY is set)"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tsks.yaml",), "tsks.yaml: there is no such file (did you mean `tasks.yaml`?)"),
        (("fix",), "'fix' is not a file, and one word is not a goal; try `midwatch run "),
        (("  ",), "'  ' is not a file, and one word is not a goal; try `midwatch run "),
        (("--headles",), "Unknown option: --headles. Did you mean --headless?"),
        ((".",), ". is a folder: name a task file, or give a goal as in `midwatch run "),
        (("tasks.yaml", "--check", "x"), "--check and --model go with a goal; a task file has "),
        ((GOAL,), "no test command was found in "),
        ((GOAL, "--check", " "), "--check is empty: it would always pass"),
        ((GOAL, "--check", "true"), "no model is available: set one of ANTHROPIC_API_KEY, "),
    ],
)
def test_what_is_unclear_is_said_in_one_sentence(
    folder: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    (folder / "tasks.yaml").write_text(TASKS)
    assert main(["run", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err[: len(said)], err.count("\n")) == ("", said, 1)


def test_a_whole_home_is_not_worked_on(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    said = refused_now(capsys, "run", GOAL, *CHECKED, "--dry-run")
    assert said.startswith(f"{folder} is not a project, and all of it would be copied")


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("Make it better. " * 100, "make-it-better-make-it-better-make-it"),
        ("Löse überall die größten Ängste", "lose-uberall-die-grossten-angste"),
    ],
)
def test_a_goal_may_be_longer_than_a_path_can_be_and_accents_are_their_letters_in_a_name(
    capsys: Capture, goal: str, name: str
) -> None:
    assert f"would run {name}: worker" in printed_now(capsys, "run", goal, *CHECKED, "--dry-run")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (TASKS.encode(), 0, "would run a: worker coder, workspace "),
        pytest.param(
            b"tasks: [{id: a, gaol: b}]",
            2,
            "stdin:1: tasks[0].gaol: unknown key (did you mean `goal`?)",
            marks=pytest.mark.matrix,
        ),
        pytest.param(b"", 2, "stdin: is empty: a task file names", marks=pytest.mark.matrix),
        (b"\xff", 2, "stdin: is not UTF-8 text"),
    ],
)
def test_a_dash_is_a_task_file_on_stdin(folder: Path, text: bytes, code: int, said: str) -> None:
    words = (*MIDWATCH, "run", "-", "--dry-run")
    done = subprocess.run(words, input=text, cwd=folder, capture_output=True, check=False)
    told, nothing = (done.stderr, done.stdout) if code else (done.stdout, done.stderr)
    assert (done.returncode, nothing) == (code, b"")
    assert any(line.startswith(said) for line in told.decode().splitlines())


def test_twenty_thousand_tasks_are_refused_before_they_are_read(
    folder: Path, capsys: Capture
) -> None:
    lines = (f"- {{id: t{at}, goal: g, acceptance: [x]}}\n" for at in range(20_000))
    (folder / "tasks.yaml").write_text("tasks:\n" + "".join(lines))
    began = time.process_time()
    said = refused_now(capsys, "run", "tasks.yaml", "--dry-run")
    assert time.process_time() - began < 1
    assert said == ("tasks.yaml: is longer than 500,000 characters: split it into several files\n")


@pytest.mark.parametrize(
    "journal", [".", "tasks.yaml", "tasks.yaml/j.db", "mysql://host/x", "x" * 300]
)
def test_a_dry_run_refuses_a_journal_that_the_run_would_refuse(
    journal: str, folder: Path, capsys: Capture
) -> None:
    (folder / "tasks.yaml").write_text(TASKS)
    words = ["run", "tasks.yaml", "--headless", "--journal", journal]
    code, said = main([*words, "--dry-run"]), capsys.readouterr()
    assert (code, said.out) == (main(words), "")
    assert said.err.split(":")[0] == capsys.readouterr().err.split(":")[0] != ""


def test_a_repository_without_a_commit_is_refused_before_the_run(
    folder: Path, capsys: Capture
) -> None:
    run_git(folder, "init", "-q")
    (folder / "tasks.yaml").write_text('models: {worker: "ollama:qwen3"}\n' + TASKS)
    for option in ("--dry-run", "--headless"):
        assert refused_now(capsys, "run", "tasks.yaml", option) == (
            f"tasks.yaml: task a: the workspace {folder} has no commit, and workers begin with the "
            "last one: `git add -A && git commit`\n"
        )
    assert not (folder / ".midwatch").exists()


@pytest.mark.parametrize(
    ("check", "missing"),
    [
        ("pytset -q", True),
        (" pytset", True),
        ("git diff --check", False),
        ("cd below && pytset", False),
        ("PYTHONPATH=src pytset", False),
        ("./check.sh", False),
        ("! pytset", False),
    ],
)
def test_a_check_whose_program_is_not_there_is_warned_of(
    check: str, missing: bool, folder: Path, capsys: Capture
) -> None:
    task = f'{{id: a, goal: b, workspace: ., acceptance: ["{check}"]}}'
    (folder / "tasks.yaml").write_text(f'models: {{worker: "ollama:qwen3"}}\ntasks: [{task}]\n')
    assert main(["run", "tasks.yaml", "--dry-run"]) == 0
    said = f"warning: a: no program pytset is on PATH, so its check fails: {check.strip()}\n"
    assert capsys.readouterr().err == said * missing


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        ("opnai:gpt-5", "Unknown model: opnai:gpt-5"),
        (
            "scripted:nowhere",
            "scripted:nowhere: nowhere cannot be imported: ModuleNotFoundError",
        ),
        ("scripted:broken", "scripted:broken: broken cannot be imported: SyntaxError"),
        (
            "scripted:empty_script",
            "the module 'empty_script' has neither `script_for` nor `model_for`",
        ),
        ("scripted:demo@soon", "scripted:demo@soon: the pause must be 0 to 60 seconds"),
        (
            "scripted:demo",
            "the demo has no script for the worker of task 'a'; it has: ",
        ),
        (
            "scripted:other_tasks",
            "scripted:other_tasks: it has nothing for the worker of a: KeyError: 'a'",
        ),
    ],
)
def test_a_model_or_a_script_that_has_nothing_for_a_task_is_refused_by_whoever_looks(
    worker: str, told: str, folder: Path, capsys: Capture
) -> None:
    (folder / "broken.py").write_text("def (")
    (folder / "empty_script.py").touch()
    (folder / "other_tasks.py").write_text("def script_for(role, key):\n    return {}[key]\n")
    (folder / "tasks.yaml").write_text(f'models: {{worker: "{worker}"}}\n' + TASKS)
    for option in ("--dry-run", "--headless"):
        assert told in refused_now(capsys, "run", "tasks.yaml", option)


def test_a_script_that_is_not_there_is_refused_by_a_check(folder: Path, capsys: Capture) -> None:
    (folder / "tasks.yaml").write_text('models: {worker: "scripted:nowhere"}\n' + TASKS)
    assert "nowhere cannot be imported" in refused_now(capsys, "config", "check", "tasks.yaml")


def test_a_dry_run_makes_no_journal(folder: Path, capsys: Capture) -> None:
    (folder / "tasks.yaml").write_text(TASKS)
    assert main(["run", "tasks.yaml", "--dry-run", "--journal", "new/j.db"]) == 0
    assert not (folder / "new").exists()
    open_store(folder / "j.db", Access.CREATE).close()
    assert main(["run", "tasks.yaml", "--dry-run", "--journal", "j.db"]) == 0


CLAUDE = WorkerSpec(kind="claude-code")
OWN, FOREIGN = assignment(), assignment(spec=CLAUDE)
MAY = assignment(others={"claude": CLAUDE})


@pytest.mark.parametrize(
    ("wanted", "told"),
    [([OWN], False), ([OWN, FOREIGN], True), ([MAY], True), (None, True)],
)
def test_what_the_sandbox_allows_a_third_party_agent_is_said_if_there_may_be_one(
    wanted: list[Assignment] | None, *, told: bool
) -> None:
    said = sandbox_words(SandboxKind.BUBBLEWRAP, wanted)
    assert "no network unless `run.network`" in said
    assert ("third-party agents also have the network and their own state" in said) is told
