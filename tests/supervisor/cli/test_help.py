"""`midwatch --help`: the commands by what they are for; what a command imports."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access
from midwatch_supervisor.cli.app import COMMANDS, GROUPS
from midwatch_tests.command import MIDWATCH, printed_now, process

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


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_can_be_taught_the_commands(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    home, script = tmp_path / "home", tmp_path / "script"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    words = ("--install-completion", "--shell", shell)
    said = f"wrote {script}, for {shell}; no start-up file was changed\n"
    assert printed_now(capsys, *words, "--output", str(script)) == said
    assert list(home.iterdir()) == []
    text = script.read_text("utf-8")
    assert [name for group in GROUPS.values() for name in group if name not in text] == []
    if shell == "bash":
        assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
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


DEAR = ("pydantic_ai", "textual", "alembic", "dbos", "aiomqtt", "httpx", "psycopg", "harness")
STORED = ("sqlalchemy", "yaml", "pydantic")
WORKS = ("run", "demo", "resume", "node", "monitor", "submit")
"""Commands that do the work, with all that this takes."""
CONFIGURATION = ("midwatch_monitor.config.settings", "midwatch_monitor.config.tasks")
PROGRAM = """
import gc, os, sys
from midwatch_supervisor.cli import main
for words in sys.argv[1:]:
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit:
        pass
print("collects", gc.isenabled(), gc.get_freeze_count() > 0, os.environ["PYDANTIC_AI_NO_BANNER"])
print("imported", *sys.modules)
"""
"""Gives commands, one after the other."""


@pytest.mark.parametrize(
    ("commands", "more"),
    [
        (("--help", "--version"), (*STORED, "asyncio")),
        (tuple(f"{name} --help" for name in WORKS), STORED),
        (tuple(f"{name} --help" for name in COMMANDS), ()),
        (("status --journal {}", "status --json --journal {}"), CONFIGURATION),
    ],
    ids=["of all", "of the work", "of each", "status"],
)
def test_what_a_command_does_not_need_is_not_imported(
    tmp_path: Path, commands: tuple[str, ...], more: tuple[str, ...]
) -> None:
    journal = tmp_path / "journal.db"
    schema.open_store(journal, Access.CREATE).close()
    done = process(*(each.format(journal) for each in commands), program=PROGRAM, check=True)
    before, _, imported = done.stdout.rpartition("imported ")
    assert "midwatch_supervisor" in imported.split()
    assert {*imported.split()} & {*DEAR, *more} == set()
    # Amid imports, to look for garbage costs an eighth of a short command; no library advertises.
    assert before.endswith("collects True True 1\n")
