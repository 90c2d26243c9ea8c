"""Runs one command of an attempt and keeps what it leaves behind findable. A program, not a module.

Without a sandbox a process can leave its session, lose its parent and empty its environment; then
nothing tells whose it is. This process becomes the parent of such orphans (Linux only), and stays
as long as there are any: whoever ends an attempt finds it by its own environment, which the
command cannot change, and all below it. It ends with the command if nothing is left.

It must start fast, so it imports little and runs without site-packages.
"""

import ctypes
import os
import signal
import sys

_PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Run the command in this process's group; its exit code."""
    group = os.getpid()
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        os.setpgid(0, 0)  # the command's group is killed when its time is over: this stays
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _keep(command, group, writing)
        os._exit(0)
    os.close(writing)
    code = os.read(reading, 1)
    return code[0] if code else 128 + signal.SIGKILL


def _keep(command: list[str], group: int, writing: int) -> None:
    child = os.fork()
    if not child:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the command
        try:
            os.setpgid(0, group)
            os.execvp(command[0], command)  # noqa: S606 - it is the worker's command
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whoever reads the output waits until nobody can write to it
        os.dup2(null, stream)
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            return
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os.write(writing, bytes([code if code >= 0 else 128 - code]))
            os.close(writing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
