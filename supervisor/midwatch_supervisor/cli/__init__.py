"""The command line: `midwatch`."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 2 for bad usage, 1 for any other failure.

    Without `argv`, runs the command of this process and handles Ctrl-C throughout.
    """
    words = sys.argv[1:] if argv is None else argv
    if _is_hook(words):
        from midwatch_agents.hooks.client import run_hook

        return run_hook(words[1])
    # Everything imported here is imported before Ctrl-C is handled.
    from midwatch_supervisor.cli.interrupts import INTERRUPTED, INTERRUPTS

    if argv is None:
        INTERRUPTS.take()
        os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # the banner would appear in the log
        gc.disable()  # imports leave little garbage; `run_command` turns it on again
    try:
        if argv is None:
            _announce(words)
        from midwatch_supervisor.cli.app import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException:
        # An interrupted import may raise any error.
        if INTERRUPTS.came:
            return INTERRUPTED
        raise


def _is_hook(words: Sequence[str]) -> bool:
    """Return whether an agent calls this as a hook and waits for the answer.

    A person at a terminal gets the command line instead, and so does anybody who passes more than a
    name or misspells `install`: no agent has a name that close to it.
    """
    if len(words) != 2 or words[0] != "hook" or words[1][:1] == "-" or os.isatty(0):
        return False
    # A name with all letters of `install`, or all but one, is a typo of it.
    return len(set("install") - set(words[1])) > 1


def _announce(words: Sequence[str]) -> None:
    """Announce the console right away: importing its libraries takes a second or more.

    If it cannot start, only the command says why.
    """
    if words[:1] != ["watch"] or {"-h", "--help"} & set(words):
        return
    web = "--web" in words
    if web and find_spec("textual_serve") is None:
        return
    seen = web or (sys.stderr.isatty() and "TEXTUAL_DRIVER" not in os.environ)
    if seen and _has_journal(words):
        what = "the console's server; its address follows" if web else "the console"
        sys.stderr.write(f"Starting {what}…\n")


def _has_journal(words: Sequence[str]) -> bool:
    """Return whether the journal that a command names may exist; a URL is not contacted."""
    from midwatch_tools.journal_location import journal_location

    start = "--journal="
    named = [
        word.removeprefix(start)
        for before, word in pairwise(words)
        if before == "--journal" or word.startswith(start)
    ]
    try:
        location = journal_location(named[-1] if named else None, os.environ, Path.cwd())
    except OSError:  # this folder is gone
        return False
    return "://" in location or os.path.exists(location)  # noqa: PTH110 — raises nothing
