"""What all rules cost on recorded runs, normalising counted in, beside another checkout.

Run it with `uv run python tests/benchmarks/rules_cost.py FOLDER --beside CHECKOUT`, where FOLDER
has recorded runs in any known format, and CHECKOUT is, for example, a worktree of the last release.
Each of the two reads the runs in a process of its own and then judges them all, in turns, as often
as `--pairs` says. The time is CPU time, and the ratio is what compares: the machine's clock changes
by half.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from midwatch_tests.rounds import alternate

ROOT = Path(__file__).parents[2]


class Checkout:
    """A checkout that judges the runs whenever it is asked to."""

    def __init__(self, root: Path, folder: Path) -> None:
        environ = {**os.environ, "PYTHONPATH": str(root / "monitor")}
        command = [sys.executable, __file__, str(folder), "--serve"]
        self._process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    async def rate(self) -> float:
        """Steps a second of CPU time in one round."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(await asyncio.to_thread(self._process.stdout.readline))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def serve(folder: Path) -> None:
    """For each line that comes, judge all runs with the code that is on the path."""
    from midwatch_monitor.config.rules import Rules
    from midwatch_monitor.judge import Judge
    from midwatch_monitor.records import Step
    from midwatch_monitor.traces import find_traces, open_trace

    traces = map(open_trace, find_traces(folder))
    runs = [[each for each in trace if isinstance(each, Step)] for trace in traces]
    rules, steps = Rules(), sum(map(len, runs))
    for _ in sys.stdin:
        began = time.process_time()
        for run in runs:
            judge = Judge(rules)
            for step in run:
                judge.observe(step)
        print(steps / (time.process_time() - began), flush=True)


async def measure(folder: Path, other: Path, pairs: int) -> Sequence[str]:
    """What to print."""
    here, beside = Checkout(ROOT, folder), Checkout(other, folder)
    try:
        rounds = await alternate({"here": here.rate, "beside": beside.rate}, pairs)
    finally:
        here.close()
        beside.close()
    middle, low, high = rounds.ratio("beside", "here")
    return (
        f"here {1e6 / rounds.rate('here'):.1f} us a step",
        f"beside {1e6 / rounds.rate('beside'):.1f} us a step",
        f"here / beside: {middle:.2f}, from {low:.2f} to {high:.2f} in {pairs} pairs",
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beside", type=Path, default=ROOT)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.folder)
    else:
        print(*asyncio.run(measure(given.folder, given.beside, given.pairs)), sep="\n")


if __name__ == "__main__":
    main()
