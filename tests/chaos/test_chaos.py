"""A short run of `chaos/run.py`, as people run it: parts of a small fleet are killed in turn."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from midwatch_tests import broker, database
from midwatch_tests.orphans import marked

pytestmark = pytest.mark.long  # a run takes minutes; single kills are tried everywhere

PROGRAM = Path(__file__).with_name("run.py")
SECONDS = 1800
"""More than the run allows itself: by then it has judged for itself whether it is too slow."""
MARK = "TEST_CHAOS_MARK"
"""In the environment of a run and of all that it starts."""


@pytest.fixture(scope="module")
def servers() -> None:
    """Skipped where a server is not installed, but not in CI."""
    missing = [
        name
        for name, found in (("mosquitto", broker.program()), ("PostgreSQL", database.programs()))
        if not found
    ]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def counts(servers: None) -> dict[str, Any]:
    """What came of it."""
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


def test_no_process_ends_by_itself_or_has_to_be_killed_in_the_end(counts: dict[str, Any]) -> None:
    processes = ("unexpected_exits", "had_to_be_killed", "left_behind")
    assert {name: counts[name] for name in processes} == {
        "unexpected_exits": {},
        "had_to_be_killed": [],
        "left_behind": 0,
    }


def test_half_of_the_hints_are_lost_meanwhile(counts: dict[str, Any]) -> None:
    hints = counts["hints"]
    assert 0.3 < hints["dropped"] / hints["seen"] < 0.7
    assert hints["repeated"] > 0


def pidfds(processes: Iterable[int]) -> Iterator[int]:
    for pid in processes:
        with suppress(ProcessLookupError):
            yield os.pidfd_open(pid)


def test_a_run_that_is_interrupted_ends_what_it_has_started(servers: None) -> None:
    mark = str(os.getpid())
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), "--attempts", "3", "--minutes", "2"],
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None
        assert any("3 nodes are there" in line for line in run.stderr)
        started = list(pidfds(marked(MARK, mark) - {run.pid}))
        assert len(started) >= 7  # two servers, three nodes, two monitors
        run.terminate()
        _, said = run.communicate(timeout=SECONDS)
    ended, _, _ = select.select(started, [], [], 0)
    assert ended == started
    for each in started:
        os.close(each)
    assert run.returncode == 130, said
    assert not marked(MARK, mark)
    shutil.rmtree(said.splitlines()[-1].removeprefix("interrupted; the logs are in "))
