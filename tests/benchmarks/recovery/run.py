"""Faults that are known, played with the real machinery: what each way to supervise makes of them.

Run it with `uv run python tests/benchmarks/recovery/run.py [--json] [--seeds 2]`. With `--arms` and
`--faults` it plays some only, `--model openai:…` puts a real model in the script's place, and
`--supervisor openai:…` one in that of the policy table.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from arms import REQUESTS, SCRIPT, Arm, Bill, play
from cast import names
from facts import Facts
from report import as_json, as_text


def main(words: Sequence[str] | None = None) -> int:
    """Play all parts and print the report."""
    given = _arguments().parse_args(words)
    bills = [
        Bill(
            arm=Arm(arm),
            seed=seed,
            faults=tuple(given.faults),
            worker=given.model,
            supervisor=given.supervisor,
        )
        # The longest first, so that no process is left alone with them at the end.
        for arm in sorted(given.arms, key=[*Arm].index)
        for seed in range(1, given.seeds + 1)
    ]
    began = time.monotonic()
    arms: dict[str, list[Facts]] = {arm: [] for arm in given.arms}
    for bill, facts in zip(bills, _played(bills, given.processes), strict=True):
        arms[bill.arm.value] += facts
    seconds = time.monotonic() - began
    if given.json:
        report = as_json(
            arms, requests=REQUESTS, seeds=given.seeds, worker=given.model, seconds=seconds
        )
        print(json.dumps(report))
    else:
        real = given.model != SCRIPT
        print("\n".join(as_text(arms, requests=REQUESTS, worker=given.model, real=real)))
        print(f"\n{seconds:.0f} s, {given.seeds} seeds")
    return 0


def _played(bills: Sequence[Bill], processes: int) -> Iterator[list[Facts]]:
    if processes == 1:
        yield from map(_play, bills)
        return
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=processes, mp_context=spawned) as pool:
        yield from pool.map(_play, bills)


def _play(bill: Bill) -> list[Facts]:
    return asyncio.run(play(bill))


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=_seeds, default=2, help="how many seeds (2)")
    parser.add_argument("--arms", type=_list(tuple(Arm)), default=[*Arm], help="which arms")
    parser.add_argument("--faults", type=_list(names()), default=[], help="which faults")
    parser.add_argument("--model", default=SCRIPT, help="a real model as the worker")
    parser.add_argument("--supervisor", default="none", help="a real model as the supervisor")
    parser.add_argument(
        "--processes", type=int, default=min(4, os.cpu_count() or 1), help="at a time"
    )
    return parser


def _seeds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one seed")
    return number


def _list(known: Sequence[str]) -> Callable[[str], list[str]]:
    def split(text: str) -> list[str]:
        wanted = text.split(",")
        if wrong := [each for each in wanted if each not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {wrong}; known are {', '.join(known)}")
        return wanted

    return split


if __name__ == "__main__":
    raise SystemExit(main())
