"""`midwatch tune` over small recorded runs in Midwatch's own format."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from midwatch_monitor.config.source import load_settings
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


def lines(out: str) -> Iterator[dict[str, object]]:
    for line in out.splitlines():
        yield json.loads(line)


@pytest.mark.usefixtures("runs")
def test_each_threshold_is_an_object_and_the_proposal_is_scored_on_other_tasks(
    capsys: Capture,
) -> None:
    assert tune("--json") == 0
    told = list(lines(capsys.readouterr().out))
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
def test_the_proposal_is_a_configuration_that_gives_what_it_says(capsys: Capture) -> None:
    assert tune("--output", "proposal.yaml") == 0
    text = Path("proposal.yaml").read_text("utf-8")
    assert text[text.index("rules:") :] in capsys.readouterr().out
    files = [Path("midwatch.yaml"), Path("proposal.yaml")]
    rule = load_settings(files, environ={}).rules.repeated_call
    assert (rule.warn_after, rule.critical_after) == (3, 5)
    assert (
        "    # From here on: 0/30 (0.0 %, 0.0 to 11.4) of the resolved runs alarmed, 10/20 " in text
    )
    assert (
        main(["replay", "runs", "--config", *map(str, files[:1]), "--config", "proposal.yaml"]) == 0
    )
    out = capsys.readouterr().out
    assert out.count("  10  repeated_call: ") == 10


@pytest.mark.usefixtures("runs")
def test_the_table_shows_what_is_in_force_and_what_is_proposed(capsys: Capture) -> None:
    assert tune() == 0
    out, err = capsys.readouterr()
    assert "repeated_call (warn_after), chosen\n" in out
    (now,) = [line for line in out.splitlines() if line.endswith("  now")]
    (proposed,) = [line for line in out.splitlines() if line.endswith("  proposed")]
    assert now.split()[:2] == ["6", "0/30"]
    assert proposed.split()[:2] == ["3", "0/30"]
    assert "Better than what is configured" in out
    assert err == (
        "fewer than 10 runs ran out of budget: thresholds are chosen to find unresolved ones\n"
        "only one source: whether thresholds hold on another source is not tested\n"
    )


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
    assert "rules:" not in out
    written = Path("proposal.yaml").read_text("utf-8")
    assert "# - worse on other, on tasks that they were not chosen on: " in written
    assert "rules:" not in written
    assert main(["config", "check", "proposal.yaml"]) == 0


def test_a_task_is_never_chosen_on_where_it_is_judged_so_what_one_task_shows_is_noise(
    runs: Path, capsys: Capture
) -> None:
    index = runs.parent / "index.csv"
    rows = [row.split(",") for row in index.read_text().splitlines()]
    only = [[*row[:2], "hard", *row[3:]] for row in rows[-10:]]
    index.write_text("\n".join(map(",".join, (*rows[:-10], *only))) + "\n")
    assert tune("--json") == 0
    told = list(lines(capsys.readouterr().out))
    found = {line["what"]: line["found"] for line in told if line["type"] == "score"}
    assert (found["chosen_on"], found["other_tasks"]) == (10, 0)
    assert (told[-1]["better"], told[-1]["rules"]) == (False, {})
    assert "within noise: on tasks that they were not chosen on, " in str(told[-1]["refusals"])


def test_what_is_as_good_as_can_be_is_kept(runs: Path, capsys: Capture) -> None:
    (runs.parent / "midwatch.yaml").write_text(CONFIG.replace("warn_after: 6", "warn_after: 3"))
    assert tune("--output", "proposal.yaml") == 0
    assert "keep what you have" in capsys.readouterr().out
    assert (
        Path("proposal.yaml")
        .read_text("utf-8")
        .endswith("# Nothing to change: keep what you have.\n")
    )
    assert main(["config", "check", "proposal.yaml"]) == 0


def test_runs_out_of_budget_are_the_target_where_the_table_names_ten(
    runs: Path, capsys: Capture
) -> None:
    index = runs.parent / "index.csv"
    rows = index.read_text().splitlines()
    spent = [f"{row},{'out' if at > 40 else 'done'}" for at, row in enumerate(rows[1:], 1)]
    index.write_text("\n".join((f"{rows[0]},exit_status", *spent)) + "\n")
    assert tune("--json", "--spent", "out") == 0
    rows3 = [line for line in lines(capsys.readouterr().out) if line.get("threshold") == 3]
    (row,) = [line for line in rows3 if line.get("rule") == "repeated_call"]
    # Their third call comes at step 10 of 12: found, but too late.
    assert (row["target"], row["found"], row["targets"]) == ("spent", 0, 10)


def test_what_makes_the_figures_weak_is_told(runs: Path, capsys: Capture) -> None:
    index = runs.parent / "index.csv"
    rows = [row.replace(",task-", ",one,") for row in index.read_text().splitlines()[20:]]
    index.write_text("\n".join(("path,outcome,task", *rows)) + "\n")
    assert tune("--json") == 0
    out, err = capsys.readouterr()
    told = err.splitlines()
    assert told[:2] == [
        "traces without an outcome, left out: 19",
        "resolved runs: only 11, so the intervals are wide",
    ]
    assert told[-2:] == [
        "all tasks are in one fold: nothing can be held out",
        "no column source: whether thresholds hold on another source is not tested",
    ]
    assert list(lines(out))[-1]["better"] is None


def test_without_the_columns_each_run_is_a_task_and_all_are_one_source(
    runs: Path, capsys: Capture
) -> None:
    index = runs.parent / "index.csv"
    rows = [",".join(row.split(",")[:2]) for row in index.read_text().splitlines()]
    index.write_text("\n".join(rows) + "\n")
    assert tune() == 0
    out, err = capsys.readouterr()
    assert "no column task: every run counts as a separate task\n" in err
    assert "no column source: whether thresholds hold on another source is not tested\n" in err
    assert "By source" not in out


def test_a_source_is_left_untried_where_the_others_say_too_little(
    runs: Path, capsys: Capture
) -> None:
    write_runs(runs.parent, "other", resolved=[2] * 30, unresolved=[2] * 9)
    assert tune("--json") == 0
    out, err = capsys.readouterr()
    assert (
        "fewer than 10 runs unresolved outside mine: no thresholds are chosen without it\n" in err
    )
    told = list(lines(out))
    compared = [line for line in told if line["type"] == "comparison"]
    tried = [line["source"] for line in compared if line["what"] == "other_sources"]
    assert tried == [None, "other"]
    assert told[-1]["untried"] == ["mine"]


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
        (["--outcomes", "none.csv"], "none.csv cannot be read"),
        (["elsewhere"], "elsewhere does not exist"),
        (["midwatch.yaml"], "midwatch.yaml: not in a known trace format"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_printed(
    capsys: Capture, options: list[str], problem: str
) -> None:
    given = [] if "--outcomes" in options else ["--outcomes", "index.csv"]
    assert main(["tune", "runs", *given, *options]) == 2
    out, err = capsys.readouterr()
    assert (out, problem in err) == ("", True)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["path,result", "runs/0.jsonl,resolved"], "index.csv: missing column: outcome"),
        (
            ["path,outcome", "old/a.jsonl,resolved"],
            "was found (50 traces found)",
        ),
        (["path,outcome", "runs/0.jsonl,unresolved"], "no run is resolved, so no alarm could be"),
        (["path,outcome", "runs/0.jsonl,resolved"], "no run failed, so there is nothing to"),
    ],
)
def test_outcomes_that_tell_nothing_are_refused(
    runs: Path, capsys: Capture, rows: list[str], problem: str
) -> None:
    (runs.parent / "index.csv").write_text("\n".join(rows) + "\n")
    assert tune() == 2
    out, err = capsys.readouterr()
    assert (out, problem in err) == ("", True)


def test_one_run_is_not_counted_twice(runs: Path, capsys: Capture) -> None:
    copy = runs.parent / "copy" / "runs"
    copy.mkdir(parents=True)
    write_run(copy / "0.jsonl", repeats=2)
    assert main(["tune", "runs", "runs/0.jsonl", "--outcomes", "index.csv", "--json"]) == 0
    assert main(["tune", "runs", "copy", "--outcomes", "index.csv"]) == 2
    assert "both match runs/0.jsonl" in capsys.readouterr().err
