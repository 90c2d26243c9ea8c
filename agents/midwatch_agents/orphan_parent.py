"""Runs one command of an attempt, and keeps its orphans findable. A program, not a module.

Without a sandbox, a process can leave its session, lose its parent and empty its environment; then
nothing shows which attempt it belongs to. This program becomes the parent of such orphans (Linux
only) and stays until they have ended. Whoever ends an attempt finds this program by its own
environment, which the command cannot change, and then all its descendants. It ends with the command
if no orphans are left.

It must start fast: each import costs every command of an attempt a millisecond or more.
"""

import ctypes
import os
import sys

_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL, _SIGPIPE, _DEFAULT = 9, 13, None


def main(command: list[str]) -> int:
    """Run the command in this process's group, and return its exit code."""
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        _run_command(command, os.getpgrp(), writing)
        os._exit(0)
    os.close(writing)
    code = os.read(reading, 1)
    return code[0] if code else 128 + _SIGKILL


def _run_command(command: list[str], group: int, writing: int) -> None:
    libc = ctypes.CDLL(None)
    os.setpgid(0, 0)  # a command that times out is killed with its group; this process survives
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        libc.signal(_SIGPIPE, _DEFAULT)  # Python ignores it, and so would the command
        _exec_command(command, group)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # readers of the output wait until nobody can write to it
        os.dup2(null, stream)
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            return
        if ended == child:
            _report_exit_code(writing, os.waitstatus_to_exitcode(status))


def _exec_command(command: list[str], group: int) -> None:
    try:
        os.setpgid(0, group)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _report_exit_code(writing: int, code: int) -> None:
    try:
        os.write(writing, bytes([code if code >= 0 else 128 - code]))
    except BrokenPipeError:  # the command timed out, and nobody is waiting
        return
    os.close(writing)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # there is nothing to clean up, and a normal exit takes longer
