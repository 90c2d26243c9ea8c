"""The command line: `midwatch`."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code: 2 for bad usage, 1 for any other failure.

    Without `argv` it is this process's own command, and Ctrl-C is taken at any moment of it.
    """
    # Whatever is imported up here is imported before Ctrl-C is taken.
    from midwatch_supervisor.cli.interrupts import INTERRUPTED, INTERRUPTS

    if argv is None:
        INTERRUPTS.take()
    try:
        from midwatch_supervisor.cli.command import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException:
        # An import that is interrupted may end with any error.
        if INTERRUPTS.came:
            return INTERRUPTED
        raise
