"""What the originals got wrong in their rules, one test for each requirement they taught."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.errors import ConfigError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder, working_transition
from midwatch_monitor.records import (
    Alert,
    Attempt,
    Change,
    Checkpoint,
    CheckpointDecision,
    Edit,
    Event,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.replay.replay import Replay

Claim = Callable[..., Awaitable[Recorder]]

SEED = load_settings([Path(__file__).parents[3] / "configs" / "seed.yaml"], environ={})
OFFERED = Change(reflect=True, plan_step=1, plan_steps=3, lifecycle=Lifecycle.WORKING)


def told(checkpoint: Checkpoint) -> Step:
    return Step(number=0, kind=StepKind.CHECKPOINT, tool="reflect", checkpoint=checkpoint)


def confident(*values: int) -> list[Step]:
    """Reports that gain, with these confidences."""
    return [
        told(Checkpoint(progress_percent=10 * number, confidence=value))
        for number, value in enumerate(values, start=1)
    ]


def progressing(*values: int, plan_step: int = 1) -> list[Step]:
    return [
        told(Checkpoint(progress_percent=value, confidence=80, plan_step=plan_step))
        for value in values
    ]


def blocked(count: int) -> list[Step]:
    blockers = tuple(f"blocker {number}" for number in range(count))
    return [told(Checkpoint(progress_percent=10, confidence=80, blockers=blockers))]


def decided(course: CheckpointDecision) -> list[Step]:
    return [told(Checkpoint(progress_percent=10, confidence=80, decision=course))]


def written(count: int, *, same: bool = False, path: str = "a.py") -> list[Step]:
    return [
        Step(
            number=0,
            kind=StepKind.TOOL,
            tool="write_file",
            args=f'{{"path": "{path}", "text": "{0 if same else number}"}}',
            path=path,
            ok=True,
            edits=()
            if same and number
            else (Edit(path=path, digest=f"content {number}", before=f"content {number - 1}"),),
        )
        for number in range(count)
    ]


def looked(count: int) -> list[Step]:
    return [
        Step(number=0, kind=StepKind.TOOL, tool="read_file", args=f"{n}", request=n, ok=True)
        for n in range(1, count + 1)
    ]


def fired(events: Iterable[Event], settings: Settings = SEED) -> list[str]:
    """The rules that fire in replay, in order, each time."""
    return [alert.key.rule for alert in _replayed(events, settings)]


def _replayed(events: Iterable[Event], settings: Settings) -> list[Alert]:
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
        decided(CheckpointDecision.ESCALATE),
        decided(CheckpointDecision.PIVOT),
    ),
    ("low_confidence", confident(29), confident(30)),
    ("declining_confidence", confident(80, 70, 60), confident(80, 70, 61)),
    ("multiple_blockers", blocked(3), blocked(2)),
    ("stalled_progress", progressing(0, 0, 0), progressing(0, 0)),
    ("repeated_edits", written(5), written(4)),
]


@pytest.mark.parametrize(("rule", "over", "under"), BOUNDARIES, ids=[row[0] for row in BOUNDARIES])
async def test_requirement_1_the_six_rules_of_the_seed_say_the_same_live_and_in_replay(
    rule: str, over: Sequence[Step], under: Sequence[Step],
    claim: Claim, journal: Journal, attempt: Attempt, at: datetime,
) -> None:  # fmt: skip
    recorder = await claim(SEED)
    await recorder.record(OFFERED, *over)
    live = [
        entry.record
        for entry in await journal.entries(attempt=attempt.id)
        if isinstance(entry.record, Alert)
    ]
    replayed = [replace(alert, since_at=at, at=at) for alert in _replayed(over, SEED)]
    assert live == replayed
    assert [alert.key.rule for alert in live] == [rule]
    assert fired(under) == []


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        (progressing(60, 60, 60), ["stalled_progress"]),
        (progressing(100, 100, 100), []),
        ([*progressing(60, 60), Change(plan_step=2), *progressing(60, plan_step=2)], []),
        ([*progressing(60, 60), *decided(CheckpointDecision.PIVOT), *progressing(60)], []),
        ([*progressing(60, 60), Change(revision=1), *progressing(60)], []),
    ],
    ids=["at 60", "at 100", "across a plan step", "across a pivot", "across a revision"],
)
def test_requirement_2_a_stall_is_found_where_it_is_one(
    events: Sequence[Event], rules: list[str]
) -> None:
    assert fired(events) == rules


def test_requirement_2_a_stall_has_a_window_of_its_own() -> None:
    rules = {"stalled_progress": {"window": 5}, "declining_confidence": {"window": 3}}
    settings = Settings.model_validate({"rules": {**rules, "agreement": False}})
    assert "stalled_progress" not in fired(progressing(60, 60, 60, 60), settings)
    assert "stalled_progress" in fired(progressing(60, 60, 60, 60, 60), settings)


def test_requirement_3_a_growing_list_of_files_done_is_no_repeated_edit() -> None:
    reports = [
        told(Checkpoint(progress_percent=10 * n, confidence=80, files_done=("a.py",) * n))
        for n in range(1, 8)
    ]
    assert fired(reports) == []
    assert fired(written(5)) == ["repeated_edits"]
    assert fired(written(5, same=True)) == []


def test_requirement_4_a_worker_without_any_checkpoint_is_found() -> None:
    assert "missed_checkpoint" in fired(looked(40), Settings())


def test_requirement_4_a_parked_worker_is_not_flagged() -> None:
    parked = Change(lifecycle=Lifecycle.INPUT_REQUIRED)
    run = Replay(Settings())
    for event in (OFFERED, *looked(2), parked):
        run.observe(event)
    assert run.firing == ()


def test_requirement_6_a_finding_is_raised_once_and_hides_no_other() -> None:
    events = [told(Checkpoint(progress_percent=n, confidence=10)) for n in (10, 20, 30, 40)]
    low = fired(events)
    assert low == ["low_confidence"]
    hindered = Checkpoint(progress_percent=20, confidence=10, blockers=("a", "b", "c"))
    alerts = _replayed([events[0], told(hindered), *events[2:]], SEED)
    assert {alert.key.rule for alert in alerts} == {"low_confidence", "multiple_blockers"}
    assert {alert.severity for alert in alerts} == {Severity.WARNING}


async def test_requirement_7_a_new_attempt_begins_with_clean_windows_and_keeps_the_history(
    claim: Claim, journal: Journal, attempt: Attempt
) -> None:
    first = await claim(SEED)
    await first.record(working_transition(), OFFERED, *progressing(0, 0))
    second = await journal.add_attempt(
        task=attempt.task,
        number=2,
        worker=attempt.worker,
        model=attempt.model,
        node=attempt.node,
        workspace=attempt.workspace,
        at=attempt.started_at,
    )
    successor = await claim(SEED, of=second)
    await successor.record(working_transition(), OFFERED, *progressing(0))
    assert successor.firing == ()
    kept = [each for each in await journal.entries(attempt=attempt.id) if _is_report(each.record)]
    assert len(kept) == 2


def _is_report(record: object) -> bool:
    return isinstance(record, Step) and record.checkpoint is not None


def test_requirement_13_every_threshold_is_read_checked_and_known(tmp_path: Path) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text("rules: {low_confidence: {below: 55}}\n", encoding="utf-8")
    assert "low_confidence" in fired(confident(54), load_settings([file], environ={}))
    for wrong in ("rules: {low_confidence: {belo: 55}}", "rules: {low_confidence: {below: 155}}"):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError):
            load_settings([file], environ={})
