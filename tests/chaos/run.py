"""Three nodes, two monitors, sixty attempts, and everything that can be killed is killed in turn.

Run it with `uv run python tests/chaos/run.py [--json] [--minutes 4] [--attempts 60]
[--seed 1]`. It starts a PostgreSQL and a mosquitto of its own on loopback, ends all that it has
started, and prints what the journal and the processes tell afterwards.

Exit code 0 is for `right`: every task was completed, and nothing is wrong. 1 is for `wrong`:
something was lost, doubled, left out or failed, a process ended by itself or had to be killed when
it was told to end, or the run itself broke. 3 is for `too slow`: nothing is wrong, but work was
still getting on when the time was up. 130 is for a run that SIGINT or SIGTERM ended before its
time, of which nothing is told. All processes that it started have ended in any case.

Unless all is right, the folder with the logs is kept and named.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "shared"))

from chaos_run import LONGEST, LONGEST_SECONDS, ChaosRun, Outcome, Plan

from midwatch_tests.orphans import end_orphans_with_this_process
from midwatch_tests.verdict import Verdict


def main(words: Sequence[str] | None = None) -> int:
    """Run, and print what came of it."""
    given = _arguments().parse_args(words)
    end_orphans_with_this_process()
    folder = Path(tempfile.mkdtemp(prefix="midwatch-chaos-"))
    try:
        outcome = asyncio.run(_run(folder, given))
    except asyncio.CancelledError:
        sys.stderr.write(f"interrupted; the logs are in {folder}\n")
        return 130
    verdict = outcome.findings.verdict
    sys.stdout.write(_as_json(outcome) if given.json else _as_text(outcome))
    if verdict is Verdict.RIGHT:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        sys.stderr.write(f"the logs are in {folder}\n")
    return verdict.exit_code


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument(
        "--minutes",
        type=float,
        default=4.0,
        help="how long, about; work that still gets on by then is waited for, "
        f"{LONGEST:g} times as long and {LONGEST_SECONDS:g} s at most",
    )
    parser.add_argument("--attempts", type=int, default=60, help="tasks")
    parser.add_argument("--seed", type=int, default=1, help="of what goes wrong, and when")
    return parser


async def _run(folder: Path, given: argparse.Namespace) -> Outcome:
    own = asyncio.current_task()
    assert own is not None
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, own.cancel)
    plan = Plan(
        attempts=given.attempts,
        seconds=60.0 * given.minutes,
        seed=given.seed,
        quiet=given.json,
    )
    return await ChaosRun(folder=folder, plan=plan).perform()


def _figures(outcome: Outcome) -> dict[str, object]:
    findings = outcome.findings
    counts = findings.counts
    return {
        "verdict": findings.verdict,
        "faults": findings.faults,
        "attempts": counts.attempts,
        "ended_once": counts.ended_once,
        "doubled": len(counts.doubled),
        "lost_interventions": len(counts.lost_interventions),
        "doubled_interventions": len(counts.doubled_interventions),
        "sequence_gaps": len(counts.sequence_gaps),
        "kills": sum(outcome.kills.values()),
        "killed": outcome.kills,
        "cuts": outcome.cuts,
        "hints": outcome.hints,
        "tasks": counts.tasks,
        "completed": counts.completed,
        "failed": len(counts.failed),
        "lost": len(counts.lost),
        "unfinished": len(counts.unfinished),
        "restarted": counts.restarted,
        "moved": counts.moved,
        "escalated": counts.alerted,
        "interventions": counts.interventions,
        "delivered": counts.delivered,
        "operator_acts": outcome.acts,
        "unexpected_exits": findings.exits,
        "had_to_be_killed": findings.ended,
        "left_behind": findings.left,
        "seconds": round(outcome.seconds, 1),
    }


def _as_json(outcome: Outcome) -> str:
    return f"{json.dumps(_figures(outcome))}\n"


def _as_text(outcome: Outcome) -> str:
    findings = outcome.findings
    figures = {name: value for name, value in _figures(outcome).items() if name not in _APART}
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in figures.items()]
    lines += [f"UNFINISHED: {text}" for text in findings.counts.unfinished]
    lines += [f"WRONG: {fault}" for fault in findings.faults]
    lines.append(_LAST_WORDS[findings.verdict])
    return "\n".join(lines) + "\n"


_APART = ("verdict", "faults")
_LAST_WORDS = {
    Verdict.RIGHT: "all is right",
    Verdict.WRONG: "not all is right",
    Verdict.TOO_SLOW: "too slow: work was still getting on when the time was up",
}


if __name__ == "__main__":
    sys.exit(main())
