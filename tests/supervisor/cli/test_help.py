"""`midwatch --help`: the commands by what they are for; what a command imports."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access
from midwatch_stage.command import MIDWATCH, printed_now, process
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.app import COMMANDS, GROUPS

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("columns", [80, 40])
def test_the_groups_stand_in_their_order_with_all_their_commands(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = printed_now(capsys, "--help")
    assert max(map(len, out.splitlines())) <= columns
    panels = [part.partition(" ─")[0] for part in out.split("╭─ ")[1:]]
    assert panels == [*GROUPS, "Options"]
    for part, commands in zip(out.split("╭─ ")[1:], GROUPS.values(), strict=False):
        told = [line.split()[1] for line in part.splitlines() if line[:3] != "│  " and "│" in line]
        assert told == list(commands)


def test_two_commands_that_may_be_confused_say_what_tells_them_apart() -> None:
    said = {name: summary for group in GROUPS.values() for name, (_, summary) in group.items()}
    assert "console" in said["watch"]
    assert "service" in said["monitor"]
    assert "reflect" not in said


def test_the_shell_can_be_taught_the_commands(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script = tmp_path / "completion"
    words = ("--install-completion", "--shell", "bash", "--output", str(script))
    assert main(words) == 0
    capsys.readouterr()
    text = script.read_text("utf-8")
    commands = {name for group in GROUPS.values() for name in group}
    assert [name for name in commands if name not in text] == []
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_completion_script_in_a_named_file_leaves_the_start_up_files_alone(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    home, script = tmp_path / "home", tmp_path / "script"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    words = ("--install-completion", "--shell", shell)
    assert main([*words, "--output", str(script)]) == 0
    assert list(home.iterdir()) == []
    assert "midwatch" in script.read_text("utf-8")
    said = f"wrote {script}, for {shell}; no start-up file was changed\n"
    assert capsys.readouterr().out == said
    for change in ("its start-up file now loads it", "no start-up file was changed"):
        assert f", for {shell}; {change}\n" in printed_now(capsys, *words)
    assert "midwatch" in (home / f".{shell}rc").read_text("utf-8")


def test_a_shell_that_nothing_tells_is_to_be_named(tmp_path: Path) -> None:
    words = [*MIDWATCH, "--install-completion"]
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    ended = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    said = "cannot tell which shell this is: name it with --shell\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_takes_the_colours_out(
    tmp_path: Path, environ: dict[str, str], *, coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    words = [*MIDWATCH, "--help"]
    env = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "COLUMNS": "80", **environ}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        said = bytearray()
        with suppress(OSError):  # so Linux says that it is over
            while part := os.read(ours, 65536):
                said += part
        assert child.wait(60) == 0
    os.close(ours)
    assert (b"\x1b[36m" in said) is coloured


def test_a_folder_is_no_file_for_the_script_of_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--install-completion", "--shell", "bash", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} cannot be written: Is a directory\n"


def test_a_word_too_many_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fix", "again"]) == 2
    said = "too many arguments: again; --help shows what the command takes\n"
    assert capsys.readouterr().err == said


DEAR = ("pydantic_ai", "textual", "alembic", "dbos", "aiomqtt", "httpx", "psycopg", "harness")
WORKS = ("run", "demo", "resume", "node", "monitor", "submit")
"""Commands that do the work, with all that this takes."""
CONFIGURATION = ("midwatch_monitor.config.settings", "midwatch_monitor.config.tasks")
PROGRAM = """
import sys
from midwatch_supervisor.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("imported", *sys.modules)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("--help",), ("sqlalchemy", "asyncio", "yaml", "pydantic")),
        (("--version",), ("sqlalchemy", "asyncio", "yaml", "pydantic")),
        *(((name, "--help"), ("sqlalchemy", "yaml", "pydantic")) for name in WORKS),
        (("status",), CONFIGURATION),
        (("status", "--json"), CONFIGURATION),
    ],
)
def test_what_a_command_does_not_need_is_not_imported(
    tmp_path: Path, words: tuple[str, ...], more: tuple[str, ...]
) -> None:
    journal = tmp_path / "journal.db"
    schema.open_store(journal, Access.CREATE).close()
    place = ("--journal", str(journal)) if "status" in words else ()
    done = process(*words, *place, program=PROGRAM, check=True)
    imported = set(done.stdout.rpartition("imported ")[2].split())
    assert "midwatch_supervisor" in imported
    assert imported & {*DEAR, *more} == set()


def test_the_help_of_no_command_imports_what_only_its_work_needs() -> None:
    program = (
        "import sys; from midwatch_supervisor.cli import main\n"
        "for name in sys.argv[1:]:\n    main([name, '--help'])\n"
        "print('imported', *sys.modules)"
    )
    done = process(*COMMANDS, program=program, check=True)
    assert set(done.stdout.rpartition("imported ")[2].split()) & {*DEAR} == set()


def test_garbage_is_collected_again_once_the_command_runs() -> None:
    """Until then it is not: to look for garbage amid imports costs an eighth of a short command."""
    program = (
        "import atexit, gc, sys; from midwatch_supervisor.cli import main; "
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0)); "
        "sys.exit(main())"
    )
    done = process("config", "show", "--json", program=program, check=True)
    assert done.stdout.endswith("}\nTrue True\n")


def test_no_library_advertises_itself_in_the_log() -> None:
    program = (
        "import atexit, os, sys; from midwatch_supervisor.cli import main; "
        "atexit.register(lambda: print(os.environ['PYDANTIC_AI_NO_BANNER'])); "
        "sys.exit(main())"
    )
    done = process("--version", program=program, check=True)
    assert done.stdout.endswith("\n1\n")
