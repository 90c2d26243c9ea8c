"""Labels of recorded runs: how the CSV is read, and which label is a trace's."""

from pathlib import Path

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.replay.tune.labels import Label, label_of, read_labels


def table(folder: Path, *rows: str, head: str = "path,outcome") -> Path:
    file = folder / "index.csv"
    file.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return file


def test_a_row_needs_only_path_and_outcome(tmp_path: Path) -> None:
    labels = read_labels(table(tmp_path, "runs/a.jsonl,resolved"))
    assert list(labels.by_path.values()) == [
        Label(path="runs/a.jsonl", task="runs/a", source="", resolved=True, spent=False)
    ]


def test_a_row_may_say_more_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    head = "model,path,outcome,task,source,exit_status"
    file = table(tmp_path, "m,a.traj,unresolved,t1,s1,exit_cost", head=head)
    (label,) = read_labels(file).by_path.values()
    assert label == Label(path="a.traj", task="t1", source="s1", resolved=False, spent=True)


@pytest.mark.parametrize(("status", "spent"), [("out", True), ("cost", True), ("exit_cost", False)])
def test_which_exit_status_is_out_of_budget_is_told(
    tmp_path: Path, status: str, spent: bool
) -> None:
    file = table(tmp_path, f"a.traj,unknown,{status}", head="path,outcome,exit_status")
    (label,) = read_labels(file, spent=["out", "cost"]).by_path.values()
    assert (label.resolved, label.spent) == (None, spent)


@pytest.mark.parametrize(
    ("head", "row", "problem"),
    [
        ("path,result", "a,resolved", "there is no column outcome"),
        ("file,result", "a,resolved", "there is no column path and no column outcome"),
        ("path,outcome", "a,solved", "index.csv:2: outcome is 'solved'; it is one of resolved, un"),
        ("path,outcome", "a", "index.csv:2: outcome is ''"),
        ("path,outcome", ",resolved", "index.csv:2: the path is empty"),
        ("path,outcome", "a,resolved\n./a,resolved", "a is there twice"),
    ],
)
def test_a_wrong_table_is_told_with_its_place(
    tmp_path: Path, head: str, row: str, problem: str
) -> None:
    with pytest.raises(UsageError) as error:
        read_labels(table(tmp_path, row, head=head))
    assert problem in str(error.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "index.csv"
    file.write_bytes(b"path,outcome\n\xff,resolved\n")
    with pytest.raises(UsageError, match="is no CSV in UTF-8"):
        read_labels(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_labels(tmp_path / "none.csv")


def test_a_trace_is_known_by_its_path_beside_the_table(tmp_path: Path) -> None:
    labels = read_labels(table(tmp_path, "a.jsonl,resolved", "b.jsonl,unresolved"))
    found = label_of(tmp_path / "b.jsonl", labels, [])
    assert found is not None
    assert found.path == "b.jsonl"


def test_a_trace_is_known_by_its_path_below_a_root(tmp_path: Path) -> None:
    labels = read_labels(table(tmp_path, "x/y/a.traj,resolved", "z/y/a.traj,resolved"))
    root = Path("/elsewhere")
    found = label_of(root / "z" / "y" / "a.traj", labels, [root])
    assert found is not None
    assert found.path == "z/y/a.traj"


@pytest.mark.parametrize("row", ["old/s1/a.traj", "s1/a.traj.json", "s1/a"])
def test_a_trace_is_known_by_the_last_two_parts_without_the_ending(
    tmp_path: Path, row: str
) -> None:
    labels = read_labels(table(tmp_path, f"{row},resolved"))
    assert label_of(Path("/elsewhere/s1/a.jsonl"), labels, []) is not None
    assert label_of(Path("/elsewhere/s2/a.jsonl"), labels, []) is None


def test_a_name_that_fits_two_labels_is_refused(tmp_path: Path) -> None:
    labels = read_labels(table(tmp_path, "x/y/a.traj,resolved", "z/y/a.traj,resolved"))
    with pytest.raises(UsageError, match=r"may be any of x/y/a\.traj, z/y/a\.traj"):
        label_of(Path("/elsewhere/y/a.traj"), labels, [])
