"""Keys of earlier versions: read, left out, and said."""

import logging
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings


def test_a_key_that_is_no_longer_used_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text("learning:\n  guidelines:\n    auto: true\n    min_runs: 2\n")
    with caplog.at_level(logging.WARNING):
        settings = load_settings([file], environ={})
    assert settings.learning.guidelines.min_runs == 2
    assert caplog.messages == [
        f"{file}:3: `learning.guidelines.auto` is no longer used: "
        "a person approves each new version"
    ]


def test_settings_that_an_earlier_version_stored_are_read() -> None:
    guidelines = '{"trial_minutes": 60, "regressions": 5}'
    stored = f'{{"learning": {{"guidelines": {guidelines}, "facts": {{"alike": 0.8}}}}}}'
    assert Settings.model_validate_json(stored) == Settings()


def test_the_names_of_failure_classes_with_words_are_taken_for_classes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("learning:\n  lessons:\n    failure_classes:\n      late: [too late]\n")
    assert load_settings([file], environ={}).learning.lessons.classes == ("late",)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "`learning.lessons.failure_classes` is no longer used" in said
    assert "`learning.lessons.classes`" in said
