"""The command line as a function: exit codes and what is said where."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli import main
from midwatch_tests.command import (
    MIDWATCH,
    new_attempt,
    new_task,
    printed_now,
    process,
    refused_now,
)
from midwatch_tests.foreign import asked, loop
from midwatch_tests.matrix import matrix
from midwatch_tests.sessions import DIALECTS
from midwatch_tests.sessions import write as write_session

Capture = pytest.CaptureFixture[str]
EMPTY = "an argument is empty: leave it out, or give it a value"


@pytest.fixture(autouse=True)
def _go_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "go.mod").touch()
    monkeypatch.setenv("OPENAI_API_KEY", "k")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["rum"], "there is no command `rum` (did you mean `run`?); `midwatch --help` lists them"),
        (["config", "chek", "x"], 'Unknown command "chek". Did you mean "check"?'),
        (["config", "check"], 'Command "config check" parameter FILES requires an argument.'),
        (["config", "show", "--bar"], "Unknown option: --bar."),
        (["show"], 'Command "show" parameter ID requires an argument.'),
        (["replay"], 'Command "replay" parameter PATHS requires an argument.'),
        (["replay", "none.jsonl"], "none.jsonl: No such file or directory\n"),
        (["replay", ""], f"{EMPTY}\n"),
        (["replay", "a.jsonl", ""], EMPTY),
        (["tune", ".", "--outcomes="], f"Invalid value for --outcomes: {EMPTY}"),
        (["status", "--journal", ""], f"Invalid value for --journal: {EMPTY}"),
        (["replay", ".", "--format", "x"], "no trace format is called 'x'"),
        (["replay", ".", "--config", "[x]"], "[x]: there is no such file\n"),
        (["status", "--run", "0.5"], "Invalid value for --run: `0.5` is not a whole number"),
        (["lessons", "show", "9" * 20], f"`{'9' * 20}` is not a whole number of at most 18 digits"),
        (["watch", "--port", "0"], 'Invalid value "0" for --port. Must be a port, from 1 to 65535'),
        (["watch", "--port", "99999"], 'Invalid value "99999" for --port. Must be a port'),
        (["attach", "--port", "-1"], 'Invalid value "-1" for --port. Must be a port, from 0 to'),
        (["show", "a", "b"], "too many arguments: b; --help shows what the command takes\n"),
        (
            ["--install-completion", "--shell", "bash", "--output", "/usr"],
            "/usr cannot be written: Is a directory\n",
        ),
    ],
)
def test_bad_usage_is_said_plainly_and_exits_with_2(
    capsys: Capture, argv: list[str], said: str
) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err[: len(said)]) == ("", said)


def test_the_former_name_of_a_command_still_works_and_says_the_new_one(capsys: Capture) -> None:
    assert main(["reflect", "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == "`midwatch reflect` is now `midwatch learn`\n"
    assert out.startswith("Usage: midwatch learn ")


def test_all_that_is_wrong_is_said_one_a_line(capsys: Capture) -> None:
    Path("[b]a.yaml").write_text("mode: of\nrulez: 1\n")
    Path("good.yaml").write_text("mode: off\n")
    assert main(["config", "check", "[b]a.yaml", "good.yaml"]) == 2
    out, err = capsys.readouterr()
    assert out == "good.yaml: ok\n"
    assert err.splitlines() == [
        "[b]a.yaml:1: mode: must be one of off, advise, act; is 'of' (did you mean `off`?)",
        "[b]a.yaml:2: rulez: unknown key (did you mean `rules`?)",
    ]
    assert main(["config", "check", "[b]a.yaml", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    wrong = {"line": 2, "key": "rulez", "problem": "unknown key", "nearest": "rules"}
    assert told.pop("problems")[1] == wrong
    assert told == {"type": "config", "file": "[b]a.yaml", "ok": False, "warnings": []}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "rulez: 1\n"
            "rules:\n  low_confidence: {workers: {bob: {below: 300}}}\n"
            "console:\n  theme: midwatch-save\n  keys:\n    flet: f2\n"
            "fleet: {labels: [a, b, c, d, e, f, g]}\n",
            "1 rulez, 3 rules.low_confidence.workers.bob.below, 5 console.theme, "
            "7 console.keys.flet, 8 fleet.labels",
        ),
        (
            "workers:\n  bob:\n    kind: coder\n    agent: no_such_module:x\n"
            "tasks:\n"
            "  - {id: a, goal: '', acceptance: [x], worker: bop}\n"
            "  - {id: a, goal: x, acceptance: [x], other_workers: [ann]}\n"
            "  - {id: b, gaol: x, acceptance: [x], depends_on: [c]}\n"
            "  - {id: d, goal: x, acceptance: [x], plan: [{title: ''}]}\n",
            "4 workers.bob.agent, 6 tasks[0].goal, 6 tasks[0].worker, 7 tasks[1].id, "
            "7 tasks[1].other_workers[0], 8 tasks[2].goal, 8 tasks[2].gaol, "
            "8 tasks[2].depends_on[0], 9 tasks[3].plan[0].title",
        ),
    ],
    ids=["configuration", "task file"],
)
def test_no_kind_of_mistake_hides_another(capsys: Capture, text: str, found: str) -> None:
    Path("a.yaml").write_text(text)
    lines = refused_now(capsys, "config", "check", "a.yaml").splitlines()
    assert [each.split(": ")[:2] for each in lines] == [
        [f"a.yaml:{line}", key] for line, key in (each.split() for each in found.split(", "))
    ]


WORKER = "{worker: openai:x}"
URL = "model x: `base_url` must be"


@pytest.mark.parametrize(
    ("models", "worker", "key", "problem"),
    [
        (WORKER, "{agent: 'no_such_module:x'}", "2: workers.bob.agent", ""),
        (WORKER, "{agent: 'json:dumps'}", "2: workers.bob.agent", ""),
        (WORKER, "{kind: task, tools: ['json:dumps', 'json:no']}", "2: workers.bob.tools[1]", ""),
        (WORKER, "{kind: task, mcp: ['\"']}", "2: workers.bob.mcp[0]", ""),
        (WORKER, "{kind: taks}", "2: workers.bob.kind", ""),
        ("{worker: 'opnai:x'}", "{}", "1: models.worker", "model opnai:x: Unknown model: opnai:x"),
        ("{worker: {name: x, base_url: here}}", "{}", "1: models.worker", URL),
        (
            "{worker: {name: x, base_url: 'http://a:99999/v1'}}",
            "{}",
            "1: models.worker",
            f"{URL} like http://HOST:PORT/v1; is 'http://a:99999/v1'",
        ),
        ("{worker: ''}", "{}", "1: models.worker", "a model needs a name"),
        (
            "{worker: {name: 'openai:x', api_key_env: K}}",
            "{}",
            "1: models.worker",
            "model openai:x: `api_",
        ),
        ("{supervisor: 'openai:x'}", "{}", "1: models", "worker bob: no model; set "),
        ("{worker: none}", "{}", "1: models", "worker bob: no model; set "),
    ],
)
def test_what_a_worker_or_a_model_cannot_be_is_said_by_a_check_as_by_a_run(
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    models: str,
    worker: str,
    key: str,
    problem: str,
) -> None:
    monkeypatch.setenv("MIDWATCH_RUN__SANDBOX", "auto")
    task = "tasks: [{id: a, goal: x, acceptance: ['true']}]"
    Path("a.yaml").write_text(f"models: {models}\nworkers: {{bob: {worker}}}\n{task}\n")
    said = refused_now(capsys, "config", "check", "a.yaml")
    assert said.startswith(f"a.yaml:{key}: {problem}")
    told = refused_now(capsys, "run", "a.yaml", "--headless")
    assert said == f"a.yaml:{key}: {told}"


def test_a_check_asks_for_no_key(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    models = "{worker: 'openai:x', planner: {name: x, base_url: 'http://a/v1', api_key_env: NONE}}"
    Path("a.yaml").write_text(f"models: {models}\ntasks: [{{id: a, goal: x, acceptance: [x]}}]\n")
    assert printed_now(capsys, "config", "check", "a.yaml") == "a.yaml: ok\n"


def test_a_workspace_that_is_not_on_this_machine_is_warned_of_and_a_run_here_refuses_it(
    capsys: Capture,
) -> None:
    Path("here").mkdir()
    tasks = "".join(
        f"  - {{id: {id}, goal: x, acceptance: [x], workspace: {folder}}}\n"
        for id, folder in (("a", "here"), ("b", "/no/such"), ("c", "gone"), ("d", "gone"))
    )
    Path("a.yaml").write_text(f"models: {{worker: 'openai:x'}}\ntasks:\n{tasks}")
    said = [
        "a.yaml: task b: the workspace /no/such does not exist",
        f"a.yaml: task c: the workspace {Path.cwd()}/gone does not exist",
    ]
    assert main(["config", "check", "a.yaml"]) == 0
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("a.yaml: ok\n", [f"warning: {each}" for each in said])
    assert main(["config", "check", "a.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["problems"], found["warnings"]) == (True, [], said)
    assert refused_now(capsys, "run", "a.yaml", "--headless") == f"{said[0]}\n"


def test_a_limit_in_dollars_for_a_model_without_a_price_is_warned_of(capsys: Capture) -> None:
    workers = (
        "dear: {model: 'openai:gpt-5'}",
        "same: {model: {name: gpt-5, base_url: 'http://127.0.0.1:1/v1'}}",
        "new: {model: {name: 'openai:mute', base_url: 'http://127.0.0.1:1/v1'}}",
        "own: {model: 'ollama:qwen3:8b'}",
        "acp: {kind: opencode}",
    )
    more = "goal: x, acceptance: ['true'], budget: {cost_usd: 1}"
    names = (each.partition(":")[0] for each in workers)
    tasks = "".join(f"- {{id: {name}, worker: {name}, {more}}}\n" for name in names)
    Path("a.yaml").write_text(f"workers: {{{', '.join(workers)}}}\ntasks:\n{tasks}")
    said = [
        "new: no price is published for openai:mute, so the limit of $1.00 has no effect",
        "own: no price is published for ollama:qwen3:8b, so the limit of $1.00 has no effect",
    ]
    assert main(["config", "check", "a.yaml"]) == 0
    checked = "".join(f"warning: a.yaml: task {each}\n" for each in said)
    assert capsys.readouterr().err == checked
    assert main(["run", "a.yaml", "--dry-run"]) == 0
    assert capsys.readouterr().err == "".join(f"warning: {each}\n" for each in said)


def test_the_configuration_in_force_can_be_read_back(capsys: Capture) -> None:
    Path("a.yaml").write_text("mode: off\npolicy: {max_replans: 7}\n")
    assert main(["config", "show", "--config", "a.yaml"]) == 0
    Path("b.yaml").write_text(shown := capsys.readouterr().out)
    assert printed_now(capsys, "config", "show", "--config", "b.yaml") == shown
    assert "max_replans: 7" in shown


def test_the_last_configuration_that_is_named_wins_or_else_the_one_in_this_folder(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_settings(*words: str) -> dict[str, Any]:
        return json.loads(printed_now(capsys, "config", "show", "--json", *words))

    assert read_settings() == Settings().model_dump(mode="json")
    Path("midwatch.yaml").write_text("mode: off\n")
    assert read_settings()["mode"] == "off"
    Path("a.yaml").write_text("mode: off\nrun: {concurrency: 9}\n")
    Path("b.yaml").write_text("mode: advise\n")
    found = read_settings("--config", "a.yaml", "--config", "b.yaml")
    assert (found["mode"], found["run"]["concurrency"]) == ("advise", 9)
    monkeypatch.setenv("MIDWATCH_CONFIG", "b.yaml")
    assert read_settings()["mode"] == "advise"


def test_a_wrong_variable_exits_with_2_and_no_traceback(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_MODE", "[red]on[/red]")
    said = "environment: MIDWATCH_MODE: must be one of off, advise, act; is '[red]on[/red]'\n"
    assert refused_now(capsys, "config", "show") == said


def test_init_says_what_it_writes_and_that_is_right(capsys: Capture) -> None:
    files = ["new/folder/midwatch.yaml", "new/folder/tasks.yaml"]
    assert printed_now(capsys, "init", "new/folder") == (
        "".join(f"wrote {file}\n" for file in files)
        + "no test command was found: name the checks of your tasks in tasks.yaml\n"
        "the model is openai:gpt-5.2: OPENAI_API_KEY is set\n"
    )
    assert sorted(map(str, Path("new/folder").iterdir())) == files
    checked = "".join(f"{file}: ok\n" for file in files)
    assert printed_now(capsys, "config", "check", *files) == checked


def test_init_overwrites_nothing_and_a_dry_run_writes_nothing(capsys: Capture) -> None:
    assert printed_now(capsys, "init", "--dry-run").splitlines()[:3] == [
        "would write midwatch.yaml",
        "would write tasks.yaml",
        "the check is `go test ./...`, found in go.mod",
    ]
    below = "go.mod/below/midwatch.yaml cannot be written: Not a directory\n"
    assert refused_now(capsys, "init", "go.mod/below") == below
    Path("tasks.yaml").write_text("mine")
    for more in ([], ["--dry-run"]):
        said = "tasks.yaml exists already, so nothing was written\n"
        assert refused_now(capsys, "init", *more) == said
    assert sorted(file.name for file in Path().iterdir()) == ["go.mod", "tasks.yaml"]


def test_an_interrupted_command_exits_with_130() -> None:
    os.mkfifo("never.jsonl")
    child = subprocess.Popen([*MIDWATCH, "replay", "never.jsonl"], stderr=subprocess.PIPE)
    with child, Path("never.jsonl").open("w"):  # opened once the command has begun to read
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("> /dev/full", 1, "the output cannot be written: No space left on device\n"),
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
    ],
    ids=["a full disk", "no output", "no streams"],
)
def test_output_that_goes_nowhere_ends_a_command_without_a_traceback(
    ending: str, code: int, said: str
) -> None:
    line = f"{shlex.join(MIDWATCH)} config show {ending}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize(
    "words",
    matrix(
        *("config show", "status", "show fix", "show fix --json", "report", "replay ."),
        *("attach --headless", "attach a.jsonl --once", "monitor --json", "show --help"),
    ),
)
async def test_where_nobody_reads_on_the_exit_code_is_that_of_a_closed_pipe(
    words: str, journal: Journal, journal_file: Path, tmp_path: Path
) -> None:
    await new_attempt(journal, await new_task(journal))
    claude = DIALECTS["claude-code"]
    write_session(tmp_path / "a.jsonl", [*asked(claude), *loop(claude, 2)])
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed, TemporaryDirectory(prefix="mw-", dir="/tmp") as state:
        home = {"HOME": str(tmp_path), "MIDWATCH_STATE": state}
        environ = os.environ | home | {"MIDWATCH_JOURNAL": str(journal_file)}
        done = await asyncio.create_subprocess_exec(
            *MIDWATCH, *words.split(), stdout=closed, stderr=PIPE, env=environ, cwd=tmp_path
        )
        async with asyncio.timeout(300):
            _, errors = await done.communicate()
    assert (done.returncode, errors) == (141, b"")


INTERRUPTING = """
import atexit, os, signal, sys

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            interrupt()

moment = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
if moment == "the end":
    atexit.register(interrupt)
from midwatch_supervisor.cli import main
sys.exit(main())
"""
"""Interrupts itself where the first argument is imported, or once the command is over."""


@pytest.mark.parametrize(
    "moment_and_words",
    matrix(
        *("midwatch_supervisor.cli.app status", "cyclopts --help", "rich.console --help"),
        *("sqlalchemy status", "pydantic config show", "pydantic_ai demo --headless"),
        "midwatch_supervisor.cli.run.conduct demo --headless",
    ),
)
def test_an_interrupt_during_imports_leaves_no_traceback(moment_and_words: str) -> None:
    done = process(*moment_and_words.split(), program=INTERRUPTING)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_after_the_end_leaves_no_traceback() -> None:
    assert process("the end", "--version", program=INTERRUPTING).stderr == ""
