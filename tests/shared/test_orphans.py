"""What tests have started ends with them, even where they are killed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CASE = Path(__file__).with_name("endless_case.py")
SECONDS = 120
"""Far more than it takes."""

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


@pytest.mark.matrix
def test_a_monitor_that_a_test_has_started_ends_when_the_tests_are_killed() -> None:
    command = (sys.executable, "-m", "pytest", "-n0", "-q", "-s", "-p", "no:cacheprovider", CASE)
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as tests:
        assert tests.stderr is not None
        monitor = os.pidfd_open(int(tests.stderr.readline()))
        tests.kill()
    ended, _, _ = select.select([monitor], [], [], SECONDS)
    os.close(monitor)
    assert ended


def test_what_a_process_of_tests_has_left_ends_with_it_and_nothing_else_does() -> None:
    program = (
        "import subprocess, sys\n"
        "from midwatch_tests.orphans import end_orphans_with_this_process\n"
        "words = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "before = subprocess.Popen(words, start_new_session=True)\n"
        "end_orphans_with_this_process()\n"
        "after = subprocess.Popen(words, start_new_session=True)\n"
        "print(before.pid, after.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with _started(program) as tests:
        assert tests.stdout is not None
        before, after = [os.pidfd_open(int(pid)) for pid in tests.stdout.readline().split()]
        tests.kill()
    ended, _, _ = select.select([after], [], [], SECONDS)
    assert ended
    still, _, _ = select.select([before], [], [], 0)
    assert not still
    signal.pidfd_send_signal(before, signal.SIGKILL)
    os.close(before)
    os.close(after)


def test_what_is_still_being_started_when_the_tests_are_killed_ends_as_well() -> None:
    program = (
        "import os, subprocess, sys\n"
        "from midwatch_tests.orphans import end_orphans_with_this_process\n"
        "bare = dict(os.environ)\n"
        "end_orphans_with_this_process()\n"
        "[(name, value)] = set(os.environ.items()) - set(bare.items())\n"
        "start = 'read line; sleep 0.3; exec env \"$0\" sleep 600'\n"
        "words = ['sh', '-c', start, f'{name}={value}']\n"
        "late = subprocess.Popen(words, env=bare, stdin=subprocess.PIPE)\n"
        "print(late.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with _started(program) as tests:
        assert tests.stdout is not None
        late = os.pidfd_open(int(tests.stdout.readline()))
        tests.kill()
    ended, _, _ = select.select([late], [], [], SECONDS)
    os.close(late)
    assert ended


def _started(program: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "shared")}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
