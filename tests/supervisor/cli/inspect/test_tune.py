"""`midwatch tune` over small recorded runs in Midwatch's own format.

What it tells stands in `tune.txt` beside this file; `MIDWATCH_UPDATE=1` writes it anew.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from midwatch_supervisor.cli import main
from midwatch_tests.command import objects, printed_now

Capture = pytest.CaptureFixture[str]
TEXT = Path(__file__).with_name("tune.txt")

CONFIG = """
rules:
  agreement: false
  repeated_call: {notice_after: 0, warn_after: 6, critical_after: 8}
  redundant_steps: {enabled: false}
  cycle: {enabled: false}
  fruitless_steps: {enabled: false}
"""


def look(step: int, output: str) -> str:
    line = {"step": step, "kind": "tool", "tool": "look", "args": "a.py", "output": output}
    return json.dumps(line) + "\n"


def write_run(file: Path, *, repeats: int, steps: int = 12) -> None:
    """A run that ends with so many calls that give the same."""
    outputs = [f"news {'abcdefghijkl'[at]}" for at in range(steps - repeats)] + ["old"] * repeats
    file.write_text("".join(look(step, output) for step, output in enumerate(outputs, 1)))


def write_runs(
    folder: Path, source: str, *, resolved: Sequence[int], unresolved: Sequence[int]
) -> None:
    """Runs of a source, by how often each repeats its last call, added to the table."""
    (folder / "runs").mkdir(exist_ok=True)
    table = folder / "index.csv"
    rows = table.read_text().splitlines() if table.exists() else ["path,outcome,task,source"]
    ends = [("resolved", each) for each in resolved] + [("unresolved", each) for each in unresolved]
    for number, (outcome, repeats) in enumerate(ends, len(rows) - 1):
        write_run(folder / "runs" / f"{number}.jsonl", repeats=repeats)
        rows.append(f"runs/{number}.jsonl,{outcome},task-{number % 15},{source}")
    table.write_text("\n".join(rows) + "\n")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_runs(tmp_path)


def make_runs(folder: Path) -> Path:
    """Of 30 resolved runs none repeats a call more than twice; of 20 others half do five times."""
    write_runs(folder, "mine", resolved=[2] * 30, unresolved=[2] * 10 + [5] * 10)
    (folder / "midwatch.yaml").write_text(CONFIG)
    return folder / "runs"


def tune(*more: str) -> int:
    return main(["tune", "runs", "--outcomes", "index.csv", *more])


FINDS = [2] * 10 + [5] * 10
SCENES: dict[str, tuple[dict[str, tuple[list[int], list[int]]], tuple[str, ...]]] = {
    "one source, as objects": ({}, ("--json",)),
    "one source": ({}, ()),
    "what holds on every source": ({"other": ([2] * 30, FINDS)}, ()),
    "what is worse on one source": (
        {"other": ([5] * 8 + [2] * 22, []), "third": ([2] * 100, [])},
        ("--max-false-alarms", "10"),
    ),
}
"""More sources with how often their resolved and unresolved runs repeat a call, and options."""


def test_each_threshold_what_is_proposed_and_what_is_not_are_told_as_the_golden_file_says(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ""
    for number, (name, (sources, options)) in enumerate(SCENES.items()):
        (folder := tmp_path / f"{number}").mkdir()
        monkeypatch.chdir(folder)
        make_runs(folder)
        for source, (resolved, unresolved) in sources.items():
            write_runs(folder, source, resolved=resolved, unresolved=unresolved)
        assert tune("--output", "proposal.yaml", *options) == 0
        out, err = capsys.readouterr()
        text = Path("proposal.yaml").read_text("utf-8")
        found += f"## {name}\n{out}\n{err}\n{text}\n"
        assert main(["config", "check", "proposal.yaml"]) == 0
        capsys.readouterr()
    if os.environ.get("MIDWATCH_UPDATE"):
        TEXT.write_text(found, encoding="utf-8")
    assert found == TEXT.read_text(encoding="utf-8")


@pytest.mark.usefixtures("runs")
def test_the_proposal_is_a_configuration_that_gives_what_it_says(capsys: Capture) -> None:
    assert tune("--output", "proposal.yaml") == 0
    configs = ("--config", "midwatch.yaml", "--config", "proposal.yaml")
    assert printed_now(capsys, "replay", "runs", *configs).count("  10  repeated_call: ") == 10


def rewrite(runs: Path, change: Callable[[list[str], int], list[str]]) -> None:
    """Write the table anew, each row changed; the number of the heads is 0."""
    index = runs.parent / "index.csv"
    rows = [row.split(",") for row in index.read_text().splitlines()]
    index.write_text("".join(f"{','.join(change(row, at))}\n" for at, row in enumerate(rows)))


def test_what_one_task_shows_is_noise_on_the_tasks_that_were_not_chosen_on(
    runs: Path, capsys: Capture
) -> None:
    rewrite(runs, lambda row, at: [*row[:2], "hard", *row[3:]] if at > 40 else row)
    assert tune("--json") == 0
    told = objects(capsys)
    found = {line["what"]: line["found"] for line in told if line["type"] == "score"}
    assert (found["chosen_on"], found["other_tasks"]) == (10, 0)
    assert (told[-1]["better"], told[-1]["rules"]) == (False, {})
    assert "within noise: on tasks that they were not chosen on, " in str(told[-1]["refusals"])


def test_runs_out_of_budget_are_the_target_where_the_table_names_ten(
    runs: Path, capsys: Capture
) -> None:
    def add_exit_status(row: list[str], at: int) -> list[str]:
        return [*row, "out" if at > 40 else "done" if at else "exit_status"]

    rewrite(runs, add_exit_status)
    assert tune("--json", "--spent", "out") == 0
    rows3 = [line for line in objects(capsys) if line.get("threshold") == 3]
    (row,) = [line for line in rows3 if line.get("rule") == "repeated_call"]
    # Their third call comes at step 10 of 12: found, but too late.
    assert (row["target"], row["found"], row["targets"]) == ("spent", 0, 10)


def test_what_makes_the_figures_weak_is_told(runs: Path, capsys: Capture) -> None:
    write_runs(runs.parent, "other", resolved=[2] * 30, unresolved=[2] * 9)
    assert tune("--json") == 0
    out, err = capsys.readouterr()
    few = "fewer than 10 runs unresolved outside mine: no thresholds are chosen without it"
    assert few in err.splitlines()
    *_, proposal = map(json.loads, out.splitlines())
    assert proposal["untried"] == ["mine"]
    rewrite(runs, lambda row, at: row[:2])
    assert tune() == 0
    out, err = capsys.readouterr()
    assert "no column task: every run counts as a separate task\n" in err
    assert "no column source: whether thresholds hold on another source is not tested\n" in err
    assert "By source" not in out


def test_that_nothing_can_be_held_out_and_that_traces_have_no_outcome_is_told(
    runs: Path, capsys: Capture
) -> None:
    rows = ["path,outcome,task", *(f"runs/{at}.jsonl,resolved,one" for at in range(19, 30))]
    rows += [f"runs/{at}.jsonl,unresolved,one" for at in range(30, 50)]
    (runs.parent / "index.csv").write_text("\n".join(rows))
    assert tune("--json") == 0
    out, err = capsys.readouterr()
    first, second, _, *last = err.splitlines()
    assert first == "traces without an outcome, left out: 19"
    assert second == "resolved runs: only 11, so the intervals are wide"
    assert "all tasks are in one fold: nothing can be held out" in last
    assert json.loads(out.splitlines()[-1])["better"] is None


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-false-alarms", "0"], "--max-false-alarms: 0 is not a percentage above 0"),
        (["--max-false-alarms", "101"], "--max-false-alarms: 101 is not a percentage above 0"),
        (["--max-false-alarms", "nan"], "--max-false-alarms: nan is not a percentage above 0"),
        (["--folds", "1"], "--folds: 1 is not from 2 to 50"),
        (["--format", "yaml"], "no trace format is called 'yaml'"),
        (["--output", "midwatch.yaml"], "midwatch.yaml exists already, so nothing was written"),
        (["elsewhere"], "elsewhere does not exist"),
        (["midwatch.yaml"], "midwatch.yaml: not in a known trace format"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_printed(
    capsys: Capture, options: list[str], problem: str
) -> None:
    assert tune(*options) == 2
    out, err = capsys.readouterr()
    assert (out, problem in err) == ("", True)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("old/a.jsonl,resolved", "was found (50 traces found)"),
        ("runs/0.jsonl,unresolved", "no run is resolved, so no alarm could be"),
        ("runs/0.jsonl,resolved", "no run failed, so there is nothing to"),
    ],
)
def test_outcomes_that_tell_nothing_are_refused(
    runs: Path, capsys: Capture, row: str, problem: str
) -> None:
    (runs.parent / "index.csv").write_text(f"path,outcome\n{row}\n")
    assert tune() == 2
    out, err = capsys.readouterr()
    assert (out, problem in err) == ("", True)


def test_one_run_is_not_counted_twice(runs: Path, capsys: Capture) -> None:
    copy = runs.parent / "copy" / "runs"
    copy.mkdir(parents=True)
    write_run(copy / "0.jsonl", repeats=2)
    assert tune("runs/0.jsonl", "--json") == 0
    assert tune("copy") == 2
    assert "both match runs/0.jsonl" in capsys.readouterr().err
