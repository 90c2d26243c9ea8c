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

sys.path.append(str(Path(__file__).parents[1] / "stage"))

import case

from midwatch_stage.orphans import end_orphans_with_this_process

Row = dict[str, Any]


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
        with case.serving() as url:
            for role, count in wanted.items():
                for number in range(count):
                    add(file, one(role, url, Path(folder) / f"{role}{number}"))
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    sys.stdout.write("".join(f"{line}\n" for line in table(rows)))


def add(file: Path, row: Row) -> None:
    """Keep a row."""
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def one(role: str, url: str, folder: Path) -> Row:
    """One run, as the table counts it."""
    began = time.monotonic()
    seen = case.work(url, folder) if role == "worker" else case.supervise(url, folder)
    return {"role": role, "seconds": round(time.monotonic() - began), **figures(seen)}


def figures(seen: case.RunResult) -> Row:
    """What is kept of a run."""
    names = "code errors ending requests limit crashed accepted calls failed_calls went_round"
    more = "alarms decisions delivered lost"
    return {name: getattr(seen, name) for name in f"{names} {more}".split()}


def table(rows: list[Row]) -> list[str]:
    """The rows, counted, in Markdown."""
    worker = [row for row in rows if row["role"] == "worker"]
    supervisor = [row for row in rows if row["role"] == "supervisor"]
    return [
        f"| the model as the worker | of {len(worker)} runs |",
        "|---|---|",
        *(f"| {what} | {count} |" for what, count in as_worker(worker)),
        "",
        f"| the model as the supervisor | of {len(supervisor)} runs |",
        "|---|---|",
        *(f"| {what} | {count} |" for what, count in as_supervisor(supervisor)),
    ]


def as_worker(rows: list[Row]) -> list[tuple[str, int]]:
    """What happened where it worked."""
    return [
        ("crashed", count(rows, lambda row: row["crashed"])),
        ("used more requests than the budget has", over_budget(rows)),
        ("used the whole budget", count(rows, lambda row: row["requests"] == row["limit"])),
        ("called no tool at all", count(rows, lambda row: not row["calls"])),
        (
            "made a call that failed or had a wrong form",
            count(rows, lambda row: row["failed_calls"]),
        ),
        (
            "went round: four equal calls with equal results",
            count(rows, lambda row: row["went_round"]),
        ),
        ("of these, alarmed", count(rows, lambda row: row["went_round"] and row["alarms"])),
        ("alarmed without that", count(rows, lambda row: row["alarms"] and not row["went_round"])),
        ("was told something by the policy", count(rows, lambda row: row["delivered"])),
        ("left an escalation undecided", count(rows, lambda row: row["lost"])),
        ("passed the acceptance check", count(rows, lambda row: row["accepted"])),
        ("was called completed without that", count(rows, unearned)),
    ]


def as_supervisor(rows: list[Row]) -> list[tuple[str, int]]:
    """What happened where it supervised a worker that goes round."""
    return [
        ("crashed", count(rows, lambda row: row["crashed"])),
        ("the worker used more requests than the budget has", over_budget(rows)),
        ("the worker was found", count(rows, lambda row: row["alarms"])),
        ("the model decided once or more", count(rows, lambda row: "supervisor" in deciders(row))),
        ("the model could not, and the policy decided", count(rows, refused)),
        ("left an escalation undecided", count(rows, lambda row: row["lost"])),
        ("ended as stuck before the budget did", count(rows, lambda row: row["ending"] == "stuck")),
    ]


def count(rows: list[Row], happened: Callable[[Row], object]) -> int:
    """In how many runs it happened."""
    return sum(bool(happened(row)) for row in rows)


def over_budget(rows: list[Row]) -> int:
    """Runs whose worker used more than it had."""
    return count(rows, lambda row: row["requests"] > row["limit"])


def unearned(row: Row) -> bool:
    """Whether a task was completed that no check had passed."""
    return row["ending"] == "done" and not row["accepted"]


def deciders(row: Row) -> list[str]:
    """Who decided."""
    return [by for by, _, _ in row["decisions"]]


def refused(row: Row) -> bool:
    """Whether an answer of the model did not fit, or did not come, and the policy decided."""
    return any(
        by == "policy" and f"the model {case.MODEL} failed" in why
        for by, _, why in row["decisions"]
    )


if __name__ == "__main__":
    main()
