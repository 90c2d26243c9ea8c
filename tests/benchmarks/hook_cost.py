"""What a hook costs an agent: the CPU of `midwatch hook` by that of a Python that does nothing.

Run it with `uv run python tests/benchmarks/hook_cost.py [--pairs 20]`. Nobody listens, so the event
goes to the inbox. The ratio of one run compares; milliseconds of two runs do not, because the
machine's clock does not stand still. The modules' bytecode is kept from the first pair on.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

EVENT = b'{"session_id":"s","hook_event_name":"PreToolUse","tool_input":{"command":"ls"}}'
HOOK = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"


def seconds(words: Sequence[str], state: str) -> float:
    """CPU seconds of one process, the system's for it included."""
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ["MIDWATCH_STATE"] = state
    subprocess.run([sys.executable, *words], input=EVENT, env=environ, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(pairs: int) -> None:
    """Print the median of both, and of the ratio of each pair."""
    bare: list[float] = []
    called: list[float] = []
    with tempfile.TemporaryDirectory() as state:
        for _ in range(pairs + 1):
            bare.append(seconds(["-c", "pass"], state))
            called.append(seconds(["-c", HOOK, "hook", "claude-code"], state))
    ratios = [hook / nothing for hook, nothing in zip(called[1:], bare[1:], strict=True)]
    print(f"CPU of a hook / of `python -c pass`, {pairs} pairs: {statistics.median(ratios):.2f}")
    print(f"range {min(ratios):.2f} to {max(ratios):.2f}")
    print(f"a hook: {statistics.median(called[1:]) * 1000:.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    measure(parser.parse_args().pairs)
