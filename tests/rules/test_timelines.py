"""Every timeline in this folder says what the rules say."""

from pathlib import Path

import pytest

from midwatch_monitor.errors import ConfigError
from midwatch_monitor.timeline import Mismatch, check_timeline

TIMELINES = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.stem)
def test_the_rules_say_what_the_timeline_says(path: Path) -> None:
    assert check_timeline(path) == ()


def test_a_timeline_that_is_wrong_is_told_entry_by_entry(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "about: wrong\n"
        "timeline:\n"
        "  - {kind: message, firing: [low_confidence warning]}\n"
        "  - {kind: message}\n"
    )
    assert check_timeline(path) == (
        Mismatch(entry=1, expected=("low_confidence warning",), found=()),
    )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "a: [",
        "about: no events\ntimeline: []",
        "about: x\ntimeline: [{kind: nothing}]",
        "about: x\nrules: {low_confidence: {blow: 1}}\ntimeline: [{kind: message}]",
    ],
)
def test_a_file_that_is_no_timeline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        check_timeline(path)
