"""The supervisor is told what a stated confidence was worth, where that is known."""

from dataclasses import replace

from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.metrics.calibration import Calibration, Level
from midwatch_stage.factories import reflecting
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.prompt import render
from midwatch_tools.data_blocks import DataBlocks

BLOCKS = DataBlocks("0badcafe")
CASE = DecisionContext(
    policy=PolicySettings(),
    checkpoints=(reflecting(2, confidence=60), reflecting(4, confidence=80)),
    calibration=Calibration(attempts=23, levels=(Level(low=0, high=100, rate=0.55, weight=23),)),
)
TOLD = (
    "stated confidence 80 %; attempts of this model that said so succeeded about 55 % of the time "
    "(23 finished attempts)\n"
)


def test_the_last_stated_confidence_is_told_with_its_worth_before_all_data() -> None:
    text = render(CASE, 5000, BLOCKS)
    assert text.index(TOLD) < text.index("<data")


def test_a_model_without_a_calibration_changes_nothing() -> None:
    known, unknown = (
        render(each, 5000, BLOCKS) for each in (CASE, replace(CASE, calibration=None))
    )
    assert unknown == known.replace(TOLD, "")


def test_a_worker_that_never_reported_stated_nothing() -> None:
    assert "stated confidence" not in render(replace(CASE, checkpoints=()), 5000, BLOCKS)
