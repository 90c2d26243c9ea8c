"""Ctrl-C ends a command without a traceback, whatever it is doing at that moment."""

import subprocess
from pathlib import Path

import pytest

from midwatch_stage.command import process
from midwatch_stage.matrix import matrix

PROGRAM = """
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


def interrupted(moment: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return process(moment, *words, program=PROGRAM, cwd=folder)


@pytest.mark.parametrize(
    "moment_and_words",
    matrix(
        ("midwatch_supervisor.cli.app", ("status",)),
        ("cyclopts", ("--help",)),
        ("rich.console", ("--help",)),
        ("sqlalchemy", ("status",)),
        ("pydantic", ("config", "show")),
        ("pydantic_ai", ("demo", "--headless")),
        ("midwatch_supervisor.cli.run.conduct", ("demo", "--headless")),
    ),
)
def test_an_interrupt_during_imports_leaves_no_traceback(
    tmp_path: Path, moment_and_words: tuple[str, tuple[str, ...]]
) -> None:
    moment, words = moment_and_words
    done = interrupted(moment, *words, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_after_the_end_leaves_no_traceback(tmp_path: Path) -> None:
    done = interrupted("the end", "--version", folder=tmp_path)
    assert done.stderr == ""
