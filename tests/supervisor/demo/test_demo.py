"""`midwatch demo` keeps its contract: real work, real trouble, real recoveries, one line each."""

import json
import os
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from midwatch_supervisor.cli import main
from midwatch_tests.command import objects, process

Line = dict[str, Any]

FIELDS = {
    "task": {"status", "title", "reason", "acceptance"},
    "attempt": {"id", "status", "worker", "model", "reason", "ending"},
    "step": {"step", "kind", "tool", "args", "ok", "output"},
    "checkpoint": {"step", "progress_percent", "confidence", "decision", "blockers"},
    "alert": {"rule", "state", "severity", "step", "value", "summary", "evidence"},
    "escalation": {"id", "state", "rules"},
    "decision": {"escalation", "action", "by", "diagnosis", "message", "rationale"},
    "intervention": {"id", "action", "by", "outcome", "state"},
}
SUM = {"id", "task", "status", "attempts", "alerts", "interventions", "recovered", "acceptance"}


def demo(folder: Path) -> list[Line]:
    """The lines of one run of the demo in a folder."""
    done = process("demo", "--headless", "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("files", "environ", "said"),
    [
        ({"journal.db": "no journal"}, {"MIDWATCH_JOURNAL": "journal.db"}, "is not a journal"),
        pytest.param(
            {"midwatch.yaml": "notify: {targets: {x: {url: 'foo://x'}}}"},
            {},
            "foo://",
            marks=pytest.mark.matrix,
        ),
        pytest.param(
            {},
            {"MIDWATCH_JOURNAL": "postgresql://ann@127.0.0.1:1/db"},
            "could not be reached",
            marks=pytest.mark.matrix,
        ),
        ({}, {"PATH": "nowhere"}, "git is not installed"),
    ],
)
def test_a_demo_that_cannot_start_leaves_nothing_behind(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environ = {**os.environ, "MIDWATCH_JOURNAL__PATIENCE_SECONDS": "0", **environ}
    done = process("demo", "--headless", cwd=tmp_path, env=environ)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert {each.name for each in tmp_path.iterdir()} == files.keys()


def prove_all_went_well(done: Line) -> None:
    """Every task is completed, and enough was wrong on the way."""
    assert (done["type"], done["exit_code"]) == ("done", 0)
    tasks = done["tasks"]
    assert {task["status"] for task in tasks} == {"completed"}
    assert all(task["acceptance"]["passed"] == task["acceptance"]["total"] > 0 for task in tasks)
    assert sum(task["interventions"] for task in tasks) >= 3
    assert sum(task["recovered"] for task in tasks) >= 2


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Line]]:
    """The demo in a new folder that is no repository."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, demo(folder)


def test_every_line_says_what_it_is_of_what_and_when(first: tuple[Path, list[Line]]) -> None:
    folder, (begun, *lines, done) = first
    assert begun.keys() == {"type", "at", "run", "tasks", "journal"}
    assert (begun["type"], begun["run"], begun["tasks"]) == ("run", 1, 6)
    assert Path(begun["journal"]).is_relative_to(folder)
    assert done.keys() == {"type", "at", "run", "exit_code", "tasks"}
    assert all(task.keys() == SUM for task in done["tasks"])
    prove_all_went_well(done)
    names = {task["task"] for task in done["tasks"]}
    assert {line["type"] for line in lines} >= FIELDS.keys()
    assert not {"run", "done"} & {line["type"] for line in lines}
    for line in lines:
        assert line.keys() >= {"type", "at", "task", "attempt"}, line
        assert line.keys() >= FIELDS.get(line["type"], set()), line
        assert line["task"] in names
        assert line["at"].endswith("Z")
        assert isinstance(line["attempt"], int) or line["type"] == "task"
        if line["type"] == "attempt":
            assert line["id"] == line["attempt"]
            assert line["number"] >= 1


def test_the_sums_are_those_of_the_lines_and_of_the_report(
    first: tuple[Path, list[Line]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, (_, *lines, done) = first
    acts = [line for line in lines if line["type"] == "intervention"]
    delivered = {(each["task"], each["id"]) for each in acts if each["state"] == "delivered"}
    recovered = {(each["task"], each["id"]) for each in acts if each["outcome"] == "recovered"}
    counts = Counter(task for task, _ in delivered), Counter(task for task, _ in recovered)
    tasks = {task["id"]: task for task in done["tasks"]}
    for name, task in tasks.items():
        assert [task["interventions"], task["recovered"]] == [each[name] for each in counts]
    journal = str(folder / ".midwatch" / "journal.db")
    capsys.readouterr()
    assert main(["report", "--run", "1", "--json", "--journal", journal]) == 0
    found = objects(capsys)
    fields = ("status", "attempts", "interventions", "recovered")
    told = {
        line["task"]: [line[each] for each in fields] for line in found if line["type"] == "task"
    }
    assert told == {name: [task[each] for each in fields] for name, task in tasks.items()}
    alarms = {line["rule"] for line in found if line["type"] == "detection"} - {None}
    alerts = [line for line in lines if line["type"] == "alert"]
    assert (
        min(len(alarms), len({each["rule"] for each in alerts if each["state"] == "firing"})) >= 4
    )
    assert "resolved" in {each["state"] for each in alerts}


def test_each_task_has_its_trouble_and_what_ends_it(first: tuple[Path, list[Line]]) -> None:
    fired, acts = defaultdict[str, set[str]](set), defaultdict[str, list[str]](list)
    for line in first[1]:
        if line["type"] == "alert" and line["state"] == "firing" and line["severity"] != "notice":
            fired[line["task"]].add(line["rule"])
        if line["type"] == "intervention" and (line["state"], line["outcome"]) == (
            "delivered",
            None,
        ):
            acts[line["task"]].append(line["action"])
    assert fired.keys() == acts.keys() == {"totals", "delivery", "shipping", "labels"}
    # On a slow machine more fires before guidance comes.
    assert fired["totals"] >= {"redundant_steps"}
    assert fired["delivery"] >= {"declining_confidence", "stalled_progress"}
    assert fired["shipping"] >= {"explicit_escalation", "multiple_blockers"}
    assert fired["labels"] >= {"missed_checkpoint"}
    assert acts.pop("delivery") == ["replan", "restart"]
    assert list(acts.values()) == [["nudge"]] * 3


@pytest.mark.matrix
def test_it_runs_again_in_the_same_folder_though_that_is_a_repository_now(
    first: tuple[Path, list[Line]],
) -> None:
    folder, lines = first
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    again = demo(folder)
    prove_all_went_well(again[-1])
    ids = [{line["id"] for line in run if line["type"] == "attempt"} for run in (lines, again)]
    assert ids[0].isdisjoint(ids[1])
    projects = sorted(path.name for path in (folder / ".midwatch" / "demo").iterdir())
    assert projects == ["midwatch-demo-1", "midwatch-demo-2"]
    assert said_by_git(folder, "status", "--porcelain") == ""
    assert said_by_git(folder, "branch", "--list") == ""


def said_by_git(folder: Path, *command: str) -> str:
    done = subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout
