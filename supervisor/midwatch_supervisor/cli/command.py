"""One command, from its words to its exit code."""

import sys
from collections.abc import Coroutine, Sequence
from inspect import iscoroutine
from typing import Any, cast

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
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.output import drop_output, write_error


def run_command(argv: Sequence[str] | None) -> int:
    """Run one command of these words, or of the process, and answer its exit code.

    Raises KeyboardInterrupt.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"]:  # a lone dash would be taken for an option
        words = ["/dev/stdin" if word == "-" else word for word in words]
    make_stderr_plain()
    try:
        refuse_unknown(words)
        result = _result(words)
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
    except BrokenPipeError:
        drop_output()  # whoever read it has gone, and needs no message
        return 1
    return result if isinstance(result, int) else 0


def _result(words: Sequence[str]) -> object:
    command, bound, _ = build().parse_args(words)
    answer = command(*bound.args, **bound.kwargs)
    if iscoroutine(answer):
        return INTERRUPTS.run(cast("Coroutine[Any, Any, object]", answer))
    return answer
