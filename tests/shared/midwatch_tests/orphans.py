"""Processes that tests start end with them, even where the tests are killed.

Everything that a process of tests starts inherits a mark in its environment. A process beside it
waits for its end, and kills what has the mark then. Linux only, as the tests that kill are.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

_MARKS = "TESTS_OF_MIDWATCH"
"""Marks of tests and of tests that these have started, with a colon between them."""
_READY = b"ready\n"
_QUIET_LOOKS = 20
"""How many looks in a row, a tenth of a second apart, must find nothing.

One is not enough: a program that is just being executed has no environment yet.
"""


def end_orphans_with_this_process() -> None:
    """Let what this process starts from now on end with it."""
    if not Path("/proc/self/environ").exists():
        return
    mark = uuid4().hex
    child = subprocess.Popen(
        # With neither site packages nor an environment it begins at once, and has no mark.
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), mark],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    with child.stdout as said:
        if said.readline() != _READY:
            raise RuntimeError("nobody would end the processes that tests leave behind")
    # It outlives this process, and is nobody's to wait for.
    child.returncode = 0
    os.environ[_MARKS] = ":".join(filter(None, [os.environ.get(_MARKS), mark]))


def kill_marked(variable: str, mark: str) -> int:
    """Kill every process with that mark in a variable of its environment; how many there were."""
    found: set[int] = set()
    while new := marked(variable, mark) - found:
        for pid in new:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        found |= new
    return len(found)


def marked(variable: str, mark: str) -> set[int]:
    """All other processes with that mark in a variable of their environment."""
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                environ = (folder / "environ").read_bytes().split(b"\0")
                if any(_has(each, variable, mark) for each in environ):
                    found.add(int(folder.name))
    return found


def _has(setting: bytes, variable: str, mark: str) -> bool:
    name, _, value = setting.partition(b"=")
    return name == variable.encode() and mark.encode() in value.split(b":")


def _main(parent: int, mark: str) -> None:
    waiting = os.pidfd_open(parent)
    os.write(1, _READY)
    os.close(1)
    select.select([waiting], [], [])
    quiet = 0
    while quiet < _QUIET_LOOKS:
        quiet = 0 if kill_marked(_MARKS, mark) else quiet + 1
        time.sleep(0.1)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
