"""What masking adds to a recorded step, beside what the rules take for it, in one run.

Run it with `uv run python tests/benchmarks/masking.py FOLDER [--steps 5000] [--rounds 5]`, where
FOLDER has recorded runs in any known format. The ratio compares; microseconds of two runs do not.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from midwatch_monitor.config.rules import Rules
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Step
from midwatch_monitor.secrets.masking import Masker, known_secrets
from midwatch_monitor.traces import find_traces, open_trace

Run = Sequence[Step]
ENVIRON = {f"PROVIDER_{n}_API_KEY": f"made-up-value-{n}" * 3 for n in range(5)}


def recorded(folder: Path, steps: int) -> list[Run]:
    """Whole runs, picked by lot, of that many steps together."""
    found = list(find_traces(folder))
    random.Random(1).shuffle(found)
    runs: list[Run] = []
    for path in found:
        if sum(map(len, runs)) >= steps:
            break
        runs.append([each for each in open_trace(path) if isinstance(each, Step)])
    return runs


def judged(runs: Sequence[Run]) -> None:
    """Let the rules judge every run."""
    for run in runs:
        judge = Judge(Rules(), worker="worker")
        for step in run:
            judge.observe(step)


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of it."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Print the best round of each, and what is masked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    runs = recorded(args.folder, args.steps)
    steps = [step for run in runs for step in run]
    masker = Masker(known_secrets(ENVIRON), b"key")
    rules = min(seconds(lambda: judged(runs)) for _ in range(args.rounds))
    masking = min(seconds(lambda: [*map(masker.record, steps)]) for _ in range(args.rounds))
    masked = sum(masker.record(step) is not step for step in steps)
    size = sum(len(step.args) + len(step.output) + len(step.text) for step in steps)
    print(f"{len(steps)} steps of {len(runs)} runs, {size / len(steps):.0f} characters each")
    print(f"rules {rules / len(steps) * 1e6:.1f} us a step")
    print(f"masking {masking / len(steps) * 1e6:.1f} us a step: {masking / rules:.0%} of the rules")
    print(f"{masked} steps have something masked")


if __name__ == "__main__":
    main()
