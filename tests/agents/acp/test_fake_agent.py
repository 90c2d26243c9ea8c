"""The agent without a model, as a program that a person starts."""

import subprocess
import sys
from pathlib import Path

import pytest

FAKE = [sys.executable, "-m", "midwatch_agents.acp.fake_agent"]


def started(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([*FAKE, *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_it_says_how_it_is_called() -> None:
    code, out, err = started("--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: python -m midwatch_agents.acp.fake_agent [-h] SCRIPT.json\n")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "cannot be read as JSON: [Errno 2] No such file or directory"),
        ("{", "cannot be read as JSON: Expecting property name"),
        ("[]", "must be an object with a list of `acts`"),
        ('{"acts": {}}', "must be an object with a list of `acts`"),
    ],
)
def test_a_script_that_is_none_is_told_in_a_sentence(
    tmp_path: Path, script: str | None, problem: str
) -> None:
    file = tmp_path / "script.json"
    if script is not None:
        file.write_text(script)
    code, out, err = started(str(file))
    assert (code, out, len(err.splitlines())) == (2, "", 2)
    assert f"{file} {problem}" in err


def test_it_wants_a_script() -> None:
    code, _, err = started()
    assert (code, len(err.splitlines())) == (2, 2)
