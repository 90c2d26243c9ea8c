"""What the originals got wrong in their rules, one test for each requirement they taught."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.errors import ConfigError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import working_transition
from midwatch_monitor.records import (
    Alert,
    Attempt,
    Change,
    CheckpointDecision,
    Event,
    Lifecycle,
    Step,
)
from midwatch_monitor.replay.replay import Replay
from midwatch_tests.factories import edit, reflecting, step
from midwatch_tests.reading import records_of
from midwatch_tests.worker import Claim

SEED = load_settings([Path(__file__).parents[3] / "configs" / "seed.yaml"], environ={})
OFFERED = Change(reflect=True, plan_step=1, plan_steps=3, lifecycle=Lifecycle.WORKING)


def confidence_reports(*values: int) -> list[Step]:
    """Reports that gain, with these confidences."""
    return [reflecting(0, 10 * number, value) for number, value in enumerate(values, start=1)]


def progress_reports(*values: int, plan_step: int = 1) -> list[Step]:
    return [reflecting(0, value, 80, plan_step=plan_step) for value in values]


def blocker_report(count: int) -> list[Step]:
    return [reflecting(0, 10, 80, blockers=tuple(f"blocker {n}" for n in range(count)))]


def decision_report(course: CheckpointDecision) -> list[Step]:
    return [reflecting(0, 10, 80, decision=course)]


def writing_steps(count: int, *, same: bool = False) -> list[Step]:
    edits = [edit("a.py", f"content {n}", before=f"content {n - 1}") for n in range(count)]
    return [
        step(
            *(0, "write_file"),
            args=f'{{"path": "a.py", "text": "{0 if same else n}"}}',
            path="a.py",
            edits=() if same and n else (edits[n],),
        )
        for n in range(count)
    ]


def reading_steps(count: int) -> list[Step]:
    return [step(0, "read_file", args=f"{n}", request=n) for n in range(1, count + 1)]


def firing_rules(events: Iterable[Event], settings: Settings = SEED) -> list[str]:
    """The rules that fire in replay, in order, each time."""
    return [alert.key.rule for alert in _replay(events, settings)]


def _replay(events: Iterable[Event], settings: Settings) -> list[Alert]:
    run, number, alerts = Replay(settings), 0, list[Alert]()
    for event in (OFFERED, *events):
        if isinstance(event, Step):
            number += 1
            event = replace(event, number=number)
        alerts += run.observe(event)[0]
    return alerts


BOUNDARIES = [
    (
        "explicit_escalation",
        decision_report(CheckpointDecision.ESCALATE),
        decision_report(CheckpointDecision.PIVOT),
    ),
    ("low_confidence", confidence_reports(29), confidence_reports(30)),
    ("declining_confidence", confidence_reports(80, 70, 60), confidence_reports(80, 70, 61)),
    ("multiple_blockers", blocker_report(3), blocker_report(2)),
    ("stalled_progress", progress_reports(0, 0, 0), progress_reports(0, 0)),
    ("repeated_edits", writing_steps(5), writing_steps(4)),
]


@pytest.mark.parametrize(("rule", "over", "under"), BOUNDARIES, ids=[row[0] for row in BOUNDARIES])
async def test_requirement_1_the_six_rules_of_the_seed_say_the_same_live_and_in_replay(
    rule: str, over: Sequence[Step], under: Sequence[Step],
    claim: Claim, journal: Journal, at: datetime,
) -> None:  # fmt: skip
    recorder = await claim(SEED)
    await recorder.record(OFFERED, *over)
    live = await records_of(journal, Alert)
    assert live == [replace(alert, since_at=at, at=at) for alert in _replay(over, SEED)]
    assert [alert.key.rule for alert in live] == [rule]
    assert firing_rules(under) == []


OTHER_STEP = (Change(plan_step=2), *progress_reports(60, plan_step=2))
GROWING = [reflecting(0, 10 * n, 80, files_done=("a.py",) * n) for n in range(1, 8)]
LOW = [reflecting(0, n, 10) for n in (10, 20, 30, 40)]
HINDERED = reflecting(0, 20, 10, blockers=("a", "b", "c"))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        (progress_reports(60, 60, 60), ["stalled_progress"]),
        (progress_reports(100, 100, 100), []),
        ([*progress_reports(60, 60), *OTHER_STEP], []),
        (
            [
                *progress_reports(60, 60),
                *decision_report(CheckpointDecision.PIVOT),
                *progress_reports(60),
            ],
            [],
        ),
        ([*progress_reports(60, 60), Change(revision=1), *progress_reports(60)], []),
        (GROWING, []),
        (writing_steps(5), ["repeated_edits"]),
        (writing_steps(5, same=True), []),
        (LOW, ["low_confidence"]),
        ([LOW[0], HINDERED, *LOW[2:]], ["low_confidence", "multiple_blockers"]),
    ],
    ids=[
        "requirement 2: a stall at 60",
        "requirement 2: none at 100",
        "requirement 2: none across a plan step",
        "requirement 2: none across a pivot",
        "requirement 2: none across a revision",
        "requirement 3: a growing list of files done is no repeated edit",
        "requirement 3: five edits are",
        "requirement 3: five times the same content is none",
        "requirement 6: a finding is raised once",
        "requirement 6: and hides no other",
    ],
)
def test_what_fires_under_the_seeds_numbers(events: Sequence[Event], rules: list[str]) -> None:
    assert firing_rules(events) == rules


def test_requirement_2_a_stall_has_a_window_of_its_own() -> None:
    rules = {"stalled_progress": {"window": 5}, "declining_confidence": {"window": 3}}
    settings = Settings.model_validate({"rules": {**rules, "agreement": False}})
    assert "stalled_progress" not in firing_rules(progress_reports(60, 60, 60, 60), settings)
    assert "stalled_progress" in firing_rules(progress_reports(60, 60, 60, 60, 60), settings)


def test_requirement_4_who_never_reports_is_found_and_who_is_parked_is_not() -> None:
    assert "missed_checkpoint" in firing_rules(reading_steps(40), Settings())
    run = Replay(Settings())
    for event in (OFFERED, *reading_steps(2), Change(lifecycle=Lifecycle.INPUT_REQUIRED)):
        run.observe(event)
    assert run.firing == ()


async def test_requirement_7_a_new_attempt_begins_with_clean_windows_and_keeps_the_history(
    claim: Claim, journal: Journal, attempt: Attempt
) -> None:
    first = await claim(SEED)
    await first.record(working_transition(), OFFERED, *progress_reports(0, 0))
    whose = {"worker": "coder", "model": "m", "node": "here", "workspace": "/w"}
    second = await journal.add_attempt(task=attempt.task, number=2, at=attempt.started_at, **whose)
    successor = await claim(SEED, of=second)
    await successor.record(working_transition(), OFFERED, *progress_reports(0))
    assert successor.firing == ()
    steps = await records_of(journal, Step, attempt.id)
    assert [each.checkpoint is not None for each in steps] == [True, True]


def test_requirement_13_every_threshold_is_read_checked_and_known(tmp_path: Path) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text("rules: {low_confidence: {below: 55}}\n", encoding="utf-8")
    assert "low_confidence" in firing_rules(
        confidence_reports(54), load_settings([file], environ={})
    )
    for wrong in ("rules: {low_confidence: {belo: 55}}", "rules: {low_confidence: {below: 155}}"):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError):
            load_settings([file], environ={})
