"""A tiny part of the recovery benchmark, run as its users run it, so that it cannot rot."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "recovery" / "run.py"


def report(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--json", "--seeds", "1", "--processes", "1", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_ladder_mends_what_can_be_mended_and_hands_over_the_rest() -> None:
    found = report("--arms", "ladder", "--faults", "environment")["arms"]["ladder"]
    promised = {"recovered": 1, "disturbed": 0, "handed_over_in_time": 1, "diagnosis_named": 2}
    assert {key: found[key] for key in promised} == promised


@pytest.mark.matrix
def test_a_real_model_can_take_the_place_of_the_script() -> None:
    # pydantic-ai's own test model calls every tool once and knows nothing: it recovers nothing.
    found = report("--arms", "none", "--faults", "claim", "--model", "test")
    assert found["worker"] == "test"
    assert found["arms"]["none"]["recoverable"] == 1
