"""What scores of a trial come to, and which tasks can be done again."""

from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor.config.learning import GuidelinesSettings
from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.records import TrialScore
from midwatch_supervisor.learning.retrial import again
from midwatch_supervisor.learning.trial import judged, repeatable
from midwatch_supervisor.present.assignment import Assignment


def scores(*pairs: tuple[float, float]) -> list[TrialScore]:
    return [
        TrialScore(task=f"t{number}", before=before, after=after)
        for number, (before, after) in enumerate(pairs, 1)
    ]


def assignment(*, depends_on: tuple[str, ...] = (), **more: object) -> Assignment:
    task = TaskSpec(id="fix", goal="x", acceptance=("true",), max_attempts=3, depends_on=depends_on)
    whole = Assignment(
        task=task, worker="w", spec=WorkerSpec(), models={}, workspace=None, project="shop"
    )
    return whole.model_copy(update=more)


@pytest.mark.parametrize(
    ("pairs", "adopted", "reason"),
    [
        ([], False, "there is no finished task with acceptance checks to try it on"),
        ([(0.5, 0.55)], True, "a mean gain of 0.05 over 1 finished tasks, none worse"),
        ([(0.5, 0.54)], False, "a mean gain of 0.04, and 0.05 is needed"),
        ([(0.0, 1.0), (1.0, 1.0)], True, "a mean gain of 0.50 over 2 finished tasks, none worse"),
        ([(0.0, 1.0), (1.0, 0.9)], False, "worse at t2"),
        ([(1.0, 1.0)], False, "a mean gain of 0.00, and 0.05 is needed"),
    ],
)
def test_a_version_is_adopted_for_a_gain_with_none_worse(
    pairs: list[tuple[float, float]], adopted: bool, reason: str
) -> None:
    assert judged(scores(*pairs), GuidelinesSettings()) == (adopted, reason)


def test_a_task_is_done_again_once_with_its_text_and_nothing_is_learned_from_it() -> None:
    trial = again(assignment(), "Run the test first.")
    assert (trial.guidelines, trial.project, trial.task.max_attempts) == (
        "Run the test first.",
        "",
        1,
    )
    assert again(assignment(), "").guidelines == ""  # none, and not those in force


@pytest.mark.parametrize(
    ("more", "can"),
    [
        ({}, True),
        ({"depends_on": ("other",)}, False),
        ({"parent": "whole"}, False),
        ({"provisional": True}, False),
        ({"workspace": Path("/nowhere/at/all")}, False),
    ],
)
def test_only_what_stands_by_itself_and_is_still_there_can_be_done_again(
    more: dict[str, Any], can: bool
) -> None:
    assert repeatable(assignment(**more)) is can
