"""A thousand attempts at once on one machine, against the same work one attempt after the other.

Run it with `uv run python tests/benchmarks/thousand.py [--json] [--attempts 1000] [--steps 4]`.
With the defaults it takes about two minutes on two cores that have nothing else to do. That is
one measurement of each kind, of short attempts; `--steps 12 --rounds 3` gives the median of three,
of longer ones, in ten minutes and more.

Everything is real but the model, which follows a script: the Watch, the recorder with all rules,
the journal in SQLite, the bus. What is compared is CPU time per step (all threads of the process),
measured in turns; each measurement is a process of its own. `untuned` is Python's garbage
collector as it comes, `tuned` as `midwatch run` and `midwatch node` set it.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic_ai import Agent
from shared import arguments, new_attempts, show

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import Attempt, Change, Plan, PlanStep
from midwatch_supervisor.run.launch import collect_garbage_seldom
from midwatch_tools.attempt_watch import AttemptWatch

OUTPUT = "line of output\n" * 90
"""About 1.3 kB, the mean of what tools of real coding agents return."""
PLAN = Plan(steps=(PlanStep(title="do it"),))
SETTINGS = Settings.model_validate({"plan": {"require_check": False}})


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print the ratios."""
    given = _arguments().parse_args(words)
    if given.alone:
        print(asyncio.run(_cost(given.attempts, given.width, given.steps, tuned=given.tuned)))
        return 0
    found = {
        name: _ratio(given.attempts, given.steps, given.rounds, tuned=name == "tuned")
        for name in ("untuned", "tuned")
    }
    figures = {
        f"{name}_{what}": round(value, 3)
        for name, ratio in found.items()
        for what, value in (
            ("one_ms", ratio.one),
            ("many_ms", ratio.many),
            ("ratio", ratio.many / ratio.one),
        )
    }
    figures["gain"] = round(found["untuned"].many / found["tuned"].many, 3)
    show(figures, as_json=given.json)
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = arguments((__doc__ or "").partition("\n")[0], attempts=1000, steps=4, rounds=1)
    for name in ("--alone", "--tuned"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--width", type=int, default=1, help=argparse.SUPPRESS)
    return parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Milliseconds of CPU time per step."""

    one: float
    many: float


def _ratio(attempts: int, steps: int, rounds: int, *, tuned: bool) -> Ratio:
    one: list[float] = []
    many: list[float] = []
    for _ in range(rounds):
        # A fifth of the attempts is enough where they come one after the other.
        one.append(_measured(max(1, attempts // 5), 1, steps, tuned=tuned))
        many.append(_measured(attempts, attempts, steps, tuned=tuned))
    return Ratio(one=statistics.median(one), many=statistics.median(many))


def _measured(attempts: int, width: int, steps: int, *, tuned: bool) -> float:
    """In a process of its own, so that no measurement inherits another's garbage."""
    words = ["--alone", "--attempts", str(attempts), "--width", str(width), "--steps", str(steps)]
    done = subprocess.run(
        [sys.executable, __file__, *words, *(["--tuned"] if tuned else [])],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


async def _cost(attempts: int, width: int, steps: int, *, tuned: bool) -> float:
    """Milliseconds of CPU time per step of `attempts` attempts, `width` of them at once."""
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.open(Path(folder) / "journal.db") as journal:
            begun = await new_attempts(journal, attempts + 1)
            bus = LocalBus()
            if tuned:
                collect_garbage_seldom()
            await _work(journal, bus, begun[0], steps)  # everything is imported and cached
            began = time.process_time()
            for at in range(1, attempts + 1, width):
                together = begun[at : at + width]
                await asyncio.gather(*(_work(journal, bus, each, steps) for each in together))
            return 1000 * (time.process_time() - began) / (attempts * steps)


async def _work(journal: Journal, bus: LocalBus, attempt: Attempt, steps: int) -> None:
    """One attempt from its claim to the last word of its model."""
    recorder = await Recorder.claim(
        journal=journal,
        bus=bus,
        attempt=attempt,
        settings=SETTINGS,
        holder="benchmark",
        clock=lambda: datetime.now(UTC),
    )
    begun = Change(reflect=True, plan_step=1, plan_steps=1, revision=0)
    await recorder.record(working_transition(), PLAN, begun)
    agent = Agent(play(_script(steps)), tools=[look])
    watch = AttemptWatch(recorder, settings=SETTINGS, bus=bus)
    await agent.run("Do it.", capabilities=[watch])
    if recorder.last_step < steps:
        raise RuntimeError(f"only {recorder.last_step} of {steps} steps were recorded")


def look(at: int) -> str:
    """Look at something."""
    return f"{at}: {OUTPUT}"


def _script(steps: int) -> Script:
    """Looks at something new in each step, and reports in every fourth."""
    turns = tuple(_turn(number, steps) for number in range(1, steps + 1))
    return Script(phases=(Phase(turns=(*turns, Turn(say="Done."))),))


def _turn(number: int, steps: int) -> Turn:
    if number % 4:
        return Turn(calls=(Call(tool="look", args=f'{{"at": {number}}}'),))
    progress = 100 * number // steps
    args = f'{{"progress_percent": {progress}, "confidence": 80, "decision": "continue"}}'
    return Turn(calls=(Call(tool="reflect", args=args),))


if __name__ == "__main__":
    sys.exit(main())
