"""Every command that a page shows is one that Midwatch takes, and is run where it can be."""

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from cyclopts import CoercionError, CycloptsError, MissingArgumentError

from midwatch_agents.hooks.adapters import ADAPTERS
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Ending
from midwatch_supervisor.cli.app import COMMANDS, build
from midwatch_tests.command import midwatch
from midwatch_tests.harness import PastAttempts
from midwatch_tests.page_blocks import NOW, ROOT, blocks, commands, shell, spans
from midwatch_tests.reference.commands import commands as every_command
from midwatch_tests.reference.commands import option_names
from midwatch_tests.sessions import claude_line, write

TERMINAL = "works until it is told to stop; its own tests start it"
MACHINES = "needs a database and several machines; tests/supervisor/fleet has them"
DEMO = "takes half a minute; tests/supervisor/demo/test_demo.py runs it"
DATABASE = "postgresql://midwatch@hub.example.org/midwatch"
NOT_RUN = {
    "midwatch demo": DEMO,
    "midwatch demo --headless": DEMO,
    "midwatch run fix the failing tests --check pytest -q": "needs a model's key",
    "midwatch merge fix-the-failing-tests": "takes what that run has made",
    "midwatch attach": TERMINAL,
    "midwatch attach claude-code ~/runs": TERMINAL,
    "midwatch attach --headless": TERMINAL,
    "midwatch run try.yaml --headless": "test_page_code.py runs it with its scripts",
    "midwatch watch": TERMINAL,
    "midwatch attach otlp": "listens until told to stop; test_attach.py has one",
    "midwatch mcp --http 8765 --token-file ~/.midwatch-token": "serves; test_transports.py has one",
    "midwatch hook install claude-code": "asks at a terminal; test_hook.py has one",
    "midwatch approve 41": "needs a worker that asks; test_approval.py has one",
    "midwatch reject 41 --comment Move it instead.": "needs a worker that asks, too",
    "midwatch node --slots 4": MACHINES,
    "midwatch monitor": MACHINES,
    "midwatch nodes": MACHINES,
    "midwatch submit tasks.yaml": MACHINES,
    "midwatch submit tasks.yaml --dry-run": MACHINES,
    "midwatch submit /opt/midwatch-source/configs/fleet/trial.yaml": MACHINES,
    f"midwatch db copy .midwatch/journal.db {DATABASE}": MACHINES,
    "midwatch config check /etc/midwatch/midwatch.yaml": "where the page put the file as root",
}
"""Commands of Midwatch that no test here runs, with the reason."""

ROOT_ONLY = "changes a machine, as its administrator"
HERE = "works on this repository; .ci/run or its own test does it"
OTHERS = {
    **dict.fromkeys(("apt-get", "systemctl", "useradd", "install", "ln", "cp"), ROOT_ONLY),
    **dict.fromkeys(("cd", "cat", "echo", "export", "set", ".", "grep"), "the shell's own"),
    **dict.fromkeys(("createuser", "createdb", "dropdb", "psql"), ROOT_ONLY),
    **dict.fromkeys(("pg_dump", "pg_restore", "chown", "chmod"), ROOT_ONLY),
    **dict.fromkeys(("openssl", "mosquitto_passwd", "mosquitto_sub"), "needs a broker's machine"),
    **dict.fromkeys(("git", "pip", "npm", "python3"), "takes packages or code from elsewhere"),
    **dict.fromkeys(("python", "opentelemetry-instrument"), "test_recipes.py has a stand-in"),
    **dict.fromkeys(("pytest", "coverage", "uv", ".ci/run"), HERE),
}
"""Programs of others that pages call, with the reason why no test here runs them."""

OPTIONS_OF_OTHERS = {"--snapshot-update", "--ff", "--lf"}
"""Of pytest and of git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCommand:
    """A command of a block, with the page that shows it."""

    page: Path
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        return " ".join(self.words)


SHOWN = [
    ShownCommand(page=page, words=tuple(words))
    for page in NOW
    for language, text in blocks(page)
    if language in ("sh", "console")
    for words in commands(shell(language, text))
]
OURS = [each for each in SHOWN if each.words[0] == "midwatch"]
RECIPES = ROOT / "docs" / "recipes"
"""Pages that tests/supervisor/cli/test_recipes.py follows from their first command to the last."""
RUN = {
    page: [each.words[1:] for each in OURS if each.page == page and each.line not in NOT_RUN]
    for page in NOW
    if page.parent != RECIPES
}


def refusal(words: list[str]) -> str:
    """Why the command line does not take words in which capitals stand for a value."""
    words = [each.strip("[]").removesuffix("…").rstrip(",") or "…" for each in words]
    if words[:1] == ["hook"] and words[1:] and words[1] in ("AGENT", *ADAPTERS):
        return ""  # is called by an agent, and never gets to the command line
    if words == ["COMMAND", "--help"]:
        return ""
    if words[0] not in COMMANDS and words[0][0] != "-":
        return f"there is no command {words[0]}"
    words = ["/dev/stdin" if each == "-" else each for each in words]  # as `cli.app` does
    try:
        build().parse_args(words, exit_on_error=False, print_error=False)
    except MissingArgumentError:
        return ""  # the page names the command without all that it takes
    except CoercionError as error:
        value = error.token.value if error.token else ""
        known = build().parse_commands(words)[0]
        return "" if value.isupper() or " ".join(known) == " ".join(words) else str(error)
    except CycloptsError as error:
        return str(error)
    return ""


def followed_recipes() -> set[str]:
    """The recipes that their test names."""
    source = (ROOT / "tests" / "supervisor" / "cli" / "test_recipes.py").read_text("utf-8")
    return set(re.findall(r'recipe\("([\w-]+)"', source))


@pytest.mark.parametrize("page", NOW, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_is_one_that_midwatch_takes(page: Path) -> None:
    said = [list(each.words[1:]) for each in OURS if each.page == page]
    said += [shlex.split(text)[1:] for text in spans(page) if text.startswith("midwatch ")]
    wrong = {" ".join(words): why for words in said if (why := refusal(words))}
    assert wrong == {}


def test_a_wrong_command_would_be_found() -> None:
    assert refusal(["stauts"])
    assert refusal(["status", "--everything"])
    assert refusal(["lessons", "lsit"])
    assert refusal(["diff", "--everything"])
    assert refusal(["status", "--run", "seven"])
    assert not refusal(["status", "--run", "N"])
    assert not refusal(["cancel", "TASK…"])


def test_every_command_that_is_not_run_has_a_reason_and_is_shown() -> None:
    assert set(NOT_RUN) - {each.line for each in OURS} == set()
    assert {page.stem for page in RECIPES.iterdir()} == followed_recipes()
    programs = {each.words[0] for each in SHOWN} - {"midwatch"}
    assert programs ^ set(OTHERS) == set()


def test_every_option_that_a_text_names_is_one_of_a_command() -> None:
    known = {name for _, app in every_command() for name in option_names(app)}
    named = {
        (page.name, match[0])
        for page in NOW
        for text in spans(page)
        if (match := re.match(r"--[a-z-]+", text))
    }
    assert len(named) > 20
    assert {each for each in named if each[1] not in known | OPTIONS_OF_OTHERS} == set()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages speak of: configurations, sessions, recorded runs."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    session = [claude_line("user", "Mend it."), claude_line("assistant", "It is done.")]
    for name in (".claude/projects/-repo/s1", *(f"runs/s{number}" for number in range(4))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / f"{name}.jsonl", session)
    ends = [f"runs/s{n}.jsonl,{'un' * (n % 2)}resolved,task-{n // 2}\n" for n in range(4)]
    (tmp_path / "outcomes.csv").write_text("path,outcome,task\n" + "".join(ends))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MIDWATCH_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page", [p for p, lines in RUN.items() if lines], ids=lambda p: p.relative_to(ROOT).as_posix()
)
async def test_the_commands_of_a_page_work_in_its_order(
    page: Path,
    scratch: Path,
    journal: Journal,
    journal_file: Path,
    past: PastAttempts,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MIDWATCH_JOURNAL", str(journal_file))
    await past.end(await past.attempt(task="totals"), Ending.DONE)
    for words in RUN[page]:
        code = await midwatch(*(each.replace("~", str(scratch)) for each in words))
        said = capsys.readouterr()
        assert code == 0, f"midwatch {' '.join(words)}: {said.err}"
        if "--json" in words:
            assert [json.loads(line)["type"] for line in said.out.splitlines()]
