"""Runs with a real, very weak model, and a table of what happened.

`uv run --group real-model python tests/real_model/run.py [--worker 25] [--supervisor 25]
[--rows FILE]`. A row is added to FILE after each run, and what stands there counts in the table.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

import case

from midwatch_tests.orphans import end_orphans_with_this_process

Row = dict[str, Any]
KEPT = (
    "code errors ending requests limit has_crashed is_accepted calls failed_calls goes_round "
    "alarms decisions delivered_actions lost_escalations"
)
"""Of what a run has come to."""


def main() -> None:
    """Do the runs, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worker", type=int, default=25, help="runs with the model as the worker")
    parser.add_argument("--supervisor", type=int, default=25, help="as the supervisor")
    parser.add_argument("--rows", type=Path, help="a file that keeps a line for each run")
    given = parser.parse_args()
    end_orphans_with_this_process()
    wanted = {"worker": given.worker, "supervisor": given.supervisor}
    with tempfile.TemporaryDirectory() as folder:
        file = given.rows or Path(folder) / "rows.jsonl"
        with case.serve_model() as url:
            for role, count in wanted.items():
                for number in range(count):
                    row = make_row(role, url, Path(folder) / f"{role}{number}")
                    with file.open("a", encoding="utf-8") as kept:
                        kept.write(json.dumps(row) + "\n")
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    sys.stdout.write("".join(f"{line}\n" for line in table(rows)))


def make_row(role: str, url: str, folder: Path) -> Row:
    """One run, as the table counts it."""
    began = time.monotonic()
    seen = case.work(url, folder) if role == "worker" else case.supervise(url, folder)
    kept = {name: getattr(seen, name) for name in KEPT.split()}
    return {"role": role, "seconds": round(time.monotonic() - began), **kept}


def table(rows: list[Row]) -> list[str]:
    """The rows, counted, in Markdown."""
    lines: list[str] = []
    for role, counted in {"worker": WORKER, "supervisor": SUPERVISOR}.items():
        of = [row for row in rows if row["role"] == role]
        lines += [f"| the model as the {role} | of {len(of)} runs |", "|---|---|"]
        lines += [f"| {what} | {sum(map(bool, map(so, of)))} |" for what, so in counted.items()]
        lines.append("")
    return lines[:-1]


def model_has_failed(row: Row) -> bool:
    """Whether an answer of the model did not fit, or did not come, and the policy decided."""
    failed = f"the model {case.MODEL} failed"
    return any(by == "policy" and failed in why for by, _, why in row["decisions"])


WORKER: dict[str, Callable[[Row], object]] = {
    "crashed": lambda row: row["has_crashed"],
    "used more requests than the budget has": lambda row: row["requests"] > row["limit"],
    "used the whole budget": lambda row: row["requests"] == row["limit"],
    "called no tool at all": lambda row: not row["calls"],
    "made a call that failed or had a wrong form": lambda row: row["failed_calls"],
    "went round: four equal calls with equal results": lambda row: row["goes_round"],
    "of these, alarmed": lambda row: row["goes_round"] and row["alarms"],
    "alarmed without that": lambda row: row["alarms"] and not row["goes_round"],
    "was told something by the policy": lambda row: row["delivered_actions"],
    "left an escalation undecided": lambda row: row["lost_escalations"],
    "passed the acceptance check": lambda row: row["is_accepted"],
    "was called completed without that": lambda row: (
        row["ending"] == "done" and not row["is_accepted"]
    ),
}
"""What happened where it worked."""
SUPERVISOR: dict[str, Callable[[Row], object]] = {
    "crashed": lambda row: row["has_crashed"],
    "the worker used more requests than the budget has": lambda row: row["requests"] > row["limit"],
    "the worker was found": lambda row: row["alarms"],
    "the model decided once or more": lambda row: (
        "supervisor" in [by for by, *_ in row["decisions"]]
    ),
    "the model could not, and the policy decided": model_has_failed,
    "left an escalation undecided": lambda row: row["lost_escalations"],
    "ended as stuck before the budget did": lambda row: row["ending"] == "stuck",
}
"""What happened where it supervised a worker that goes round."""


if __name__ == "__main__":
    main()
