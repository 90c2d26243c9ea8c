"""The installed command, as a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from midwatch_supervisor.cli import main


def midwatch(*argv: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from midwatch_supervisor.cli import main; main(['--help']); "
        "heavy = {'pydantic', 'pydantic_ai', 'textual', 'sqlalchemy', 'alembic', 'yaml'}; "
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "replay" in done.stdout


def test_the_version_is_that_of_the_distribution(tmp_path: Path) -> None:
    from importlib.metadata import version

    done = midwatch("--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{version('midwatch')}\n")


@pytest.mark.parametrize(
    ("text", "code"), [("mode: off\n", 0), ("mode: of\n", 2), ("tasks: []\n", 2)]
)
def test_a_check_exits_with_0_or_2(tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert main(["config", "check", str(tmp_path / "a.yaml")]) == code


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
    assert main(["config", "show"]) == 0
    assert capsys.readouterr().out.startswith("mode: 'off'\n")


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    code = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -c "$1" config show | true', sys.executable, code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""


def test_an_interrupted_command_exits_with_130(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "never.jsonl")
    code = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, "replay", str(pipe)]
    child = subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=tmp_path)
    with child, pipe.open("w"):  # opened once the command has begun to read
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=300)
    assert (child.returncode, err) == (130, b"")
