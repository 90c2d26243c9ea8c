"""`midwatch tune` over small recorded runs in Midwatch's own format."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from midwatch_stage.command import objects, printed_now
from midwatch_supervisor.cli import main

Capture = pytest.CaptureFixture[str]

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
    """Of 30 resolved runs none repeats a call more than twice; of 20 others half do five times."""
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path, "mine", resolved=[2] * 30, unresolved=[2] * 10 + [5] * 10)
    (tmp_path / "midwatch.yaml").write_text(CONFIG)
    return tmp_path / "runs"


def tune(*more: str) -> int:
    return main(["tune", "runs", "--outcomes", "index.csv", *more])


@pytest.mark.usefixtures("runs")
def test_each_threshold_is_an_object_and_the_proposal_is_scored_on_other_tasks(
    capsys: Capture,
) -> None:
    assert tune("--json") == 0
    told = objects(capsys)
    rows = {
        line["threshold"]: line
        for line in told
        if line["type"] == "threshold" and line["rule"] == "repeated_call"
    }
    found = {at: (row["resolved_alarmed"], row["found"]) for at, row in rows.items() if at != 1}
    assert found == {2: (30, 20), 3: (0, 10), 4: (0, 10), 5: (0, 10), 6: (0, 0)}
    proposed = {key: rows[3][key] for key in ("key", "resolved", "targets", "lift", "delay")}
    assert list(proposed.values()) == ["warn_after", 30, 20, 0.6, 0.8333]
    assert (rows[3]["chosen"], rows[6]["present"]) == (True, True)
    scores = [
        (line["what"], line["resolved_alarmed"], line["found"])
        for line in told
        if line["type"] == "score"
    ]
    assert scores == [
        *(("present", 0, 0), ("agreement", 0, 0), ("chosen_on", 0, 10), ("other_tasks", 0, 10))
    ]
    compared = [line for line in told if line["type"] == "comparison"]
    assert [(line["what"], line["source"]) for line in compared] == [
        ("chosen_on", None),
        ("other_tasks", None),
    ]
    assert [compared[1][key] for key in ("found_before", "found_after", "found_of")] == [0, 10, 20]
    assert isinstance(compared[1]["found_difference_low"], float)
    proposal = told[-1]
    assert (proposal["type"], proposal["better"]) == ("proposal", True)
    assert proposal["rules"] == {"repeated_call": {"warn_after": 3, "critical_after": 5}}


@pytest.mark.usefixtures("runs")
def test_the_table_shows_what_is_in_force_and_the_proposal_is_a_configuration_that_gives_it(
    capsys: Capture,
) -> None:
    assert tune("--output", "proposal.yaml") == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "fewer than 10 runs ran out of budget: thresholds are chosen to find unresolved ones",
        "only one source: whether thresholds hold on another source is not tested",
    ]
    assert "repeated_call (warn_after), chosen\n" in out
    (now,) = [line for line in out.splitlines() if line.endswith("  now")]
    (proposed,) = [line for line in out.splitlines() if line.endswith("  proposed")]
    assert now.split()[:2] == ["6", "0/30"]
    assert proposed.split()[:2] == ["3", "0/30"]
    assert "Better than what is configured" in out
    text = Path("proposal.yaml").read_text("utf-8")
    assert text[text.index("rules:") :] in out
    told = "    # From here on: 0/30 (0.0 %, 0.0 to 11.4) of the resolved runs alarmed, 10/20 "
    assert told in text
    configs = ("--config", "midwatch.yaml", "--config", "proposal.yaml")
    assert printed_now(capsys, "replay", "runs", *configs).count("  10  repeated_call: ") == 10


@pytest.mark.usefixtures("runs")
def test_what_holds_on_every_source_is_proposed_and_each_is_shown(capsys: Capture) -> None:
    write_runs(Path(), "other", resolved=[2] * 30, unresolved=[2] * 10 + [5] * 10)
    assert tune() == 0
    out, err = capsys.readouterr()
    assert "source" not in err
    assert out.count("\n  mine ") == out.count("\n  other ") == 3
    assert "chosen the same way without the source judged: 0/60" in out
    assert "Better than what is configured, beyond noise, on tasks that they were not" in out
    assert out.endswith(
        "    warn_after: 3\n    # Not measured by itself: keeps its distance "
        "from the warning.\n    critical_after: 5\n"
    )


@pytest.mark.usefixtures("runs")
def test_what_is_worse_on_one_source_is_not_proposed(capsys: Capture) -> None:
    write_runs(Path(), "other", resolved=[5] * 8 + [2] * 22, unresolved=[])
    write_runs(Path(), "third", resolved=[2] * 100, unresolved=[])
    assert tune("--max-false-alarms", "10", "--output", "proposal.yaml") == 0
    out = capsys.readouterr().out
    assert "Nothing is proposed: keep what you have.\n- worse on other, on tasks that they" in out
    assert "resolved runs alarmed 0.0 % to 20.0 % of 30 (difference +10.0 to +33.3)" in out
    assert "  chosen, not proposed\n" in out
    written = Path("proposal.yaml").read_text("utf-8")
    assert "# - worse on other, on tasks that they were not chosen on: " in written
    assert "rules:" not in out + written
    assert main(["config", "check", "proposal.yaml"]) == 0


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
    def spent(row: list[str], at: int) -> list[str]:
        return [*row, "out" if at > 40 else "done" if at else "exit_status"]

    rewrite(runs, spent)
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
