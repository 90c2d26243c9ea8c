"""One run under the eye of every rule at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from midwatch_monitor.config.rules import LowConfidence, RepeatedCall, Rules
from midwatch_monitor.config.section import Length
from midwatch_monitor.errors import UsageError
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.records import Event, Severity, Step
from midwatch_monitor.replay.tune.choose import Comparison, compare
from midwatch_monitor.replay.tune.labels import Label, label_of, read_labels
from midwatch_monitor.replay.tune.runs import (
    AlarmFigures,
    AlarmMeter,
    AlarmTarget,
    MeasuredRun,
    RecordedRun,
    Rises,
    RunsByLength,
    first_alarms,
    measure,
)
from midwatch_monitor.replay.tune.threshold import with_levels
from midwatch_monitor.rules import rule_settings
from midwatch_tests.factories import reflecting, step

KEPT = ("repeated_call", "low_confidence")

OFF = Rules().model_copy(
    update={
        name: settings.model_copy(update={"enabled": name in KEPT})
        for name, settings in rule_settings(Rules()).items()
    }
)
"""Only the two rules that these runs are made for."""


def calls(count: int) -> list[Step]:
    """The same call with the same result, again and again."""
    return [step(n, "look", args="a.py", output="same") for n in range(1, count + 1)]


def report(number: int, confidence: int) -> Step:
    return reflecting(number, 10 * number, confidence)


def measured_run(*events: Event, rules: Rules = OFF) -> MeasuredRun:
    return measure(events, rules, remind_every=3)


def test_the_highest_level_so_far_is_kept_by_step() -> None:
    found = measured_run(*calls(3), report(4, 80), report(5, 20), report(6, 90), report(7, 10))
    assert found.steps == 7
    assert found.rises["repeated_call"][-2:] == ((2, 2), (3, 3))
    assert found.rises["low_confidence"] == ((4, -81), (5, -21), (7, -11))


@pytest.mark.parametrize(
    ("events", "step"), [(calls(3), None), (calls(5), 4), ([report(1, 29)], 1)]
)
def test_the_alarm_of_the_rules_as_configured_is_kept_with_it(
    events: Iterable[Event], step: int | None
) -> None:
    assert measured_run(*events).present == step


def test_hold_counts_for_alarms_and_not_for_levels() -> None:
    slow = RepeatedCall(notice_after=0, warn_after=4, hold=Length(steps=2))
    held = OFF.model_copy(update={"repeated_call": slow})
    found = measured_run(*calls(6), rules=held)
    assert found.present == 6
    assert (4, 4) in found.rises["repeated_call"]


def test_notices_that_agree_are_an_alarm_of_their_own() -> None:
    quiet = OFF.model_copy(
        update={
            "repeated_call": RepeatedCall(notice_after=2, warn_after=0, critical_after=0),
            "low_confidence": LowConfidence(severity=Severity.NOTICE),
        }
    )
    assert measured_run(*calls(2), report(3, 20), rules=quiet).agreed == 3
    alone = quiet.model_copy(update={"agreement": False})
    assert measured_run(*calls(2), report(3, 20), rules=alone).agreed is None


def test_each_level_gives_the_alarm_that_a_replay_gives() -> None:
    events = calls(8)
    rises = measured_run(*events).rises["repeated_call"]
    rules = [with_levels(OFF, {"repeated_call": level}) for _, level in rises]
    found = first_alarms(events, rules, remind_every=3)
    assert found == tuple(step for step, _ in rises)


def test_first_alarms_stop_reading_once_all_are_known() -> None:
    def endless_steps() -> Iterator[Step]:
        yield from calls(4)
        raise AssertionError("read on")

    assert first_alarms(endless_steps(), [OFF, OFF], remind_every=3) == (4, 4)


def run(
    *,
    resolved: bool | None = True,
    steps: int = 10,
    spent: bool = False,
    source: str = "",
    rises: Rises = (),
) -> RecordedRun:
    label = Label(path="", task="", source=source, resolved=resolved, spent=spent)
    measured = MeasuredRun(steps=steps, rises={"cycle": rises}, agreed=None, present=None)
    return RecordedRun(label=label, measured=measured)


def failed_run(*, steps: int = 10, source: str = "") -> RecordedRun:
    return run(resolved=False, steps=steps, source=source)


def as_separate_tasks(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """The same runs, each of a task of its own."""
    return [replace(each, label=replace(each.label, task=str(at))) for at, each in enumerate(runs)]


UNKNOWN = run(resolved=None, source="b")


@pytest.mark.parametrize(
    ("runs", "alarms", "lift"),
    [
        # Right or wrong where half fail.
        ([run(), failed_run()], (None, 5), 0.5),
        ([run(), failed_run()], (5, None), -0.5),
        # Only runs that were still going are peers, and only those of the same source.
        ([run(steps=4), failed_run(steps=9)], (None, 5), 0.0),
        ([run(steps=5), failed_run(steps=9)], (None, 5), 0.5),
        ([run(source="a"), failed_run(source="a"), failed_run(source="b")], (None, 5, 5), 0.25),
        # A source in which no run fails and a run of unknown end say nothing.
        ([run(source="a"), UNKNOWN, failed_run(source="b")], (5, 5, None), None),
    ],
)
def test_an_alarm_lifts_by_what_it_says_beyond_the_length_of_its_run(
    runs: Sequence[RecordedRun], alarms: tuple[int | None, ...], lift: float | None
) -> None:
    assert RunsByLength(runs, AlarmTarget.UNRESOLVED).lift(alarms) == lift


def drawn_interval(
    runs: Sequence[RecordedRun], alarms: Sequence[int | None], seed: int = 1
) -> Interval | None:
    by_length = RunsByLength(as_separate_tasks(runs), AlarmTarget.UNRESOLVED)
    by_length.draw(Random(seed))
    return by_length.interval(alarms)


def test_alarms_that_are_always_right_lift_beyond_chance_and_those_at_random_do_not() -> None:
    runs = [run()] * 20 + [failed_run()] * 20
    right = drawn_interval(runs, [None] * 20 + [5] * 20)
    chance = drawn_interval(runs, [5, None] * 20)
    assert right
    assert chance
    assert 0.3 < right.low < 0.5 < right.high < 0.7
    assert chance.low < 0 < chance.high


def test_the_same_seed_gives_the_same_interval() -> None:
    runs, alarms = [run(), failed_run()] * 10, [5, None, None, 5] * 5
    assert drawn_interval(runs, alarms) == drawn_interval(runs, alarms)
    assert drawn_interval(runs, alarms) != drawn_interval(runs, alarms, seed=2)


def test_runs_of_one_task_are_drawn_together() -> None:
    runs = [
        replace(each, label=replace(each.label, task="one")) for each in [run(), failed_run()] * 10
    ]
    by_length = RunsByLength(runs, AlarmTarget.UNRESOLVED)
    by_length.draw(Random(1))
    assert by_length.interval([None, 5] * 10) == Interval(low=0.5, high=0.5)


@pytest.mark.parametrize(("alarmed", "claimed"), [(4, False), (5, True)])
def test_fewer_than_five_alarms_claim_no_interval(alarmed: int, claimed: bool) -> None:
    runs = [run(), failed_run()] * 10
    alarms = [5] * alarmed + [None] * (20 - alarmed)
    assert (drawn_interval(runs, alarms) is not None) is claimed


@pytest.mark.parametrize(
    ("target", "found"),
    [(AlarmTarget.SPENT, [2, 2, 0, 0]), (AlarmTarget.UNRESOLVED, [2, 2, 2, 0])],
)
def test_a_run_out_of_budget_is_found_only_in_its_first_four_fifths(
    target: AlarmTarget, found: list[int]
) -> None:
    meter = AlarmMeter([run(), *[run(resolved=False, spent=True)] * 2], target, Random(1))
    assert [meter.count_found([step] * 3) for step in (1, 8, 9, None)] == found


def test_the_figures_of_alarms() -> None:
    runs = [run(), run(), failed_run(), failed_run(steps=20), run(resolved=None)]
    meter = AlarmMeter(runs, AlarmTarget.UNRESOLVED, Random(1))
    found = meter.figures([2, None, 4, 4, 1])
    assert (found.lift, found.delay) == pytest.approx((1 / 6, 0.3))
    assert found == AlarmFigures(
        resolved=Share(hits=1, of=2),
        found=Share(hits=2, of=2),
        unresolved=Share(hits=2, of=2),
        lift=found.lift,
        lift_interval=None,
        lift_unresolved=found.lift,
        delay=found.delay,
    )
    nothing = meter.figures([None] * 5)
    assert (nothing.lift, nothing.delay) == (None, None)


def write_table(folder: Path, *rows: str, head: str = "path,outcome") -> Path:
    file = folder / "index.csv"
    file.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return file


def label(path: str, task: str, **fields: Any) -> Label:
    return Label(path=path, task=task, **fields)


FULL = "model,path,outcome,task,source,exit_status"
STATUS = "path,outcome,exit_status"


@pytest.mark.parametrize(
    ("head", "row", "label"),
    [
        ("path,outcome", "runs/a.jsonl,resolved", label("runs/a.jsonl", "runs/a", resolved=True)),
        (
            FULL,
            "m,a.traj,unresolved,t,s,out",
            label("a.traj", "t", source="s", resolved=False, spent=True),
        ),
        (STATUS, "a/b,unknown,cost", label("a/b", "a/b", resolved=None, spent=True)),
        (STATUS, "a/b,unknown,exit_cost", label("a/b", "a/b", resolved=None)),
    ],
)
def test_a_row_needs_only_path_and_outcome_and_may_say_more(
    tmp_path: Path, head: str, row: str, label: Label
) -> None:
    labels = read_labels(write_table(tmp_path, row, head=head), spent=["out", "cost"])
    assert list(labels.by_path.values()) == [label]


@pytest.mark.parametrize(
    ("head", "row", "problem"),
    [
        ("path,result", "a,resolved", "missing column: outcome"),
        ("file,result", "a,resolved", "missing column: path, outcome"),
        ("path,outcome", "a,solved", "index.csv:2: outcome is 'solved', not one of resolved, un"),
        ("path,outcome", "a", "index.csv:2: outcome is ''"),
        ("path,outcome", ",resolved", "index.csv:2: the path is empty"),
        ("path,outcome", "a,resolved\n./a,resolved", "a is listed twice"),
    ],
)
def test_a_wrong_table_is_told_with_its_place(
    tmp_path: Path, head: str, row: str, problem: str
) -> None:
    with pytest.raises(UsageError) as error:
        read_labels(write_table(tmp_path, row, head=head))
    assert problem in str(error.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "index.csv"
    file.write_bytes(b"path,outcome\n\xff,resolved\n")
    with pytest.raises(UsageError, match="is not a CSV file in UTF-8"):
        read_labels(file)


@pytest.mark.parametrize(
    ("trace", "rows", "found"),
    [
        ("index/b.jsonl", ("a.jsonl", "b.jsonl"), "b.jsonl"),
        ("root/z/y/a.traj", ("x/y/a.traj", "z/y/a.traj"), "z/y/a.traj"),
        ("else/s1/a.jsonl", ("old/s1/a.traj",), "old/s1/a.traj"),
        ("else/s1/a.jsonl", ("s1/a.traj.json",), "s1/a.traj.json"),
        ("else/s1/a.jsonl", ("s1/a",), "s1/a"),
        ("else/s2/a.jsonl", ("s1/a",), None),
    ],
)
def test_a_trace_is_known_by_its_path_beside_the_table_or_below_a_root_or_by_two_parts_of_its_name(
    tmp_path: Path, trace: str, rows: tuple[str, ...], found: str | None
) -> None:
    (tmp_path / "index").mkdir()
    labels = read_labels(write_table(tmp_path / "index", *(f"{row},resolved" for row in rows)))
    label = label_of(tmp_path / trace, labels, [tmp_path / "root"])
    assert (label and label.path) == found


def test_a_name_that_fits_two_labels_is_refused(tmp_path: Path) -> None:
    labels = read_labels(write_table(tmp_path, "x/y/a.traj,resolved", "z/y/a.traj,resolved"))
    with pytest.raises(UsageError, match=r"matches several labels: x/y/a\.traj, z/y/a\.traj"):
        label_of(Path("/elsewhere/y/a.traj"), labels, [])


# -- whether some alarms are better than others, beyond noise ----------------------------------


def compare_alarms(
    runs: Sequence[RecordedRun],
    before: int,
    after: int,
    *,
    source: str | None = None,
    seed: int = 1,
) -> Comparison:
    """So many of the runs alarmed before, and so many after: always the first ones."""
    alarms = [[5 if at < many else None for at in range(len(runs))] for many in (before, after)]
    return compare(runs, AlarmTarget.UNRESOLVED, (alarms[0], alarms[1]), seed=seed, source=source)


FAILED = as_separate_tasks([failed_run(source="a")] * 40)
RESOLVED = as_separate_tasks([run()] * 40)


@pytest.mark.parametrize(
    ("runs", "before", "after", "better", "worse"),
    [
        (FAILED, 10, 20, True, False),
        (FAILED, 20, 10, False, True),
        (RESOLVED, 12, 2, True, False),
        (RESOLVED, 2, 12, False, True),
        (FAILED, 10, 11, False, False),  # one task more is noise
        ([failed_run()] * 20 + FAILED, 0, 20, False, False),  # all of one task
        (FAILED[:4], 0, 4, False, False),  # too few to be better, and enough to be worse
        (FAILED[:4], 4, 0, False, True),
        ([failed_run()] * 2, 2, 0, False, False),  # a single task
    ],
)
def test_what_is_better_or_worse_is_so_on_enough_tasks(
    runs: Sequence[RecordedRun], before: int, after: int, *, better: bool, worse: bool
) -> None:
    compared = compare_alarms(runs, before, after)
    assert (compared.better, compared.worse) == (better, worse)
    told = compared.resolved if runs is RESOLVED else compared.found
    assert [share.hits for share in (told.before, told.after)] == [before, after]


def test_a_difference_has_an_interval_where_there_are_several_tasks() -> None:
    noise = compare_alarms(FAILED, 10, 11).found.interval
    one = compare_alarms([failed_run()] * 2, 2, 0).found
    assert noise is not None
    assert noise.low <= 0 < noise.high
    assert (one.interval, compare_alarms([failed_run()] * 20 + FAILED, 0, 20).found.tasks) == (
        None,
        1,
    )
    assert compare_alarms(FAILED, 7, 7).found.interval == Interval(low=0.0, high=0.0)


def test_only_the_runs_of_a_source_are_compared() -> None:
    other = as_separate_tasks([failed_run(source="b")] * 40)
    assert compare_alarms([*other, *FAILED], 0, 40, source="a").found.after == Share(hits=0, of=40)
    assert compare_alarms([*other, *FAILED], 0, 40, source="b").found.after == Share(hits=40, of=40)


def test_the_same_seed_gives_the_same_comparison() -> None:
    assert compare_alarms(FAILED, 10, 14) == compare_alarms(FAILED, 10, 14)
    assert compare_alarms(FAILED, 10, 14) != compare_alarms(FAILED, 10, 14, seed=2)
