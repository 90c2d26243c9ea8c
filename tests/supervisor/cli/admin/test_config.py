"""The installed command, as a process."""

import os
import signal
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from midwatch_stage.command import MIDWATCH, printed_now
from midwatch_supervisor.cli import main


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed_now(capsys, "--version") == f"{version('midwatch')}\n"


def test_a_wrong_variable_exits_with_2_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_MODE", "[red]on[/red]")
    assert main(["config", "show"]) == 2
    said = "environment: MIDWATCH_MODE: must be one of off, advise, act; is '[red]on[/red]'\n"
    assert tuple(capsys.readouterr()) == ("", said)


def test_the_configuration_can_be_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("mode: off\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIDWATCH_CONFIG", "a.yaml")
    assert printed_now(capsys, "config", "show").startswith("mode: 'off'\n")


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" config show | true', "sh", *MIDWATCH],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""


def test_an_interrupted_command_exits_with_130(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "never.jsonl")
    argv = [*MIDWATCH, "replay", str(pipe)]
    child = subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=tmp_path)
    with child, pipe.open("w"):  # opened once the command has begun to read
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (130, b"")
