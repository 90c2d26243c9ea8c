"""A short storm over a small fleet: `chaos/run.py`, which has the long one, as people run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from midwatch_stage import broker, database

PROGRAM = Path(__file__).parent / "chaos" / "run.py"
SECONDS = 400
"""Far more than it takes, on a machine that does much else."""


@pytest.fixture(scope="module")
def counts() -> dict[str, Any]:
    """What came of it. Skipped where a server is not installed, but not in CI."""
    missing = [
        name
        for name, found in (("mosquitto", broker.program()), ("PostgreSQL", database.programs()))
        if not found
    ]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    words = ("--json", "--minutes", "0.7", "--attempts", "12")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def test_every_attempt_ends_once_whatever_is_killed(counts: dict[str, Any]) -> None:
    assert counts["attempts"] == counts["ended_once"] >= counts["tasks"] == 12
    assert counts["completed"] == 12
    assert counts["kills"] >= 4


def test_nothing_is_doubled_lost_or_left_out(counts: dict[str, Any]) -> None:
    wrong = ("doubled", "lost_interventions", "doubled_interventions", "sequence_gaps")
    assert {name: counts[name] for name in wrong} == dict.fromkeys(wrong, 0)


def test_half_of_the_hints_are_lost_meanwhile(counts: dict[str, Any]) -> None:
    hints = counts["hints"]
    assert 0.3 < hints["dropped"] / hints["seen"] < 0.7
    assert hints["repeated"] > 0
