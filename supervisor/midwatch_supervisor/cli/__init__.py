"""The command line: `midwatch`."""

import sys
from collections.abc import Sequence

from cyclopts import CycloptsError

from midwatch_monitor.errors import (
    ConfigError,
    JournalAccessError,
    MidwatchError,
    SandboxError,
    TraceError,
    UsageError,
)
from midwatch_supervisor.cli.app import build, refuse_unknown
from midwatch_supervisor.cli.fleet.log import make_stderr_plain
from midwatch_supervisor.cli.output import drop_output, write_error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code: 2 for bad usage, 1 for any other failure."""
    words = list(sys.argv[1:] if argv is None else argv)
    make_stderr_plain()
    try:
        refuse_unknown(words)
        result = build()(words)
        sys.stdout.flush()
    except CycloptsError as error:
        write_error(str(error))
        return 2
    except ConfigError as error:
        for line in error.lines:
            write_error(line)
        return 2
    except MidwatchError as error:
        write_error(str(error))
        asked = isinstance(error, UsageError | TraceError | JournalAccessError | SandboxError)
        return 2 if asked else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()  # whoever read it has gone, and needs no message
        return 1
    return result if isinstance(result, int) else 0
