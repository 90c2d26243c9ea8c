"""Every timeline in `timelines/` says what the rules say."""

from pathlib import Path

import pytest

from midwatch_monitor.config.rules import LowConfidence, Rules
from midwatch_monitor.config.section import Length
from midwatch_monitor.errors import ConfigError
from midwatch_monitor.replay.timeline import Mismatch, check_timeline, read_timeline
from midwatch_monitor.rules import DETECTORS

HERE = Path(__file__).parent / "timelines"
TIMELINES = sorted(HERE.rglob("*.yaml"))


def write_timeline(folder: Path, text: str) -> Path:
    path = folder / "timeline.yaml"
    path.write_text(f"about: an example\n{text}")
    return path


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.stem)
def test_the_rules_say_what_the_timeline_says(path: Path) -> None:
    assert check_timeline(path) == ()


def test_every_rule_has_a_timeline() -> None:
    entries = [each for path in HERE.glob("*.yaml") for each in read_timeline(path).timeline]
    inner = [each for entry in entries for each in entry.of]
    firing = {alert.split()[0] for entry in (*entries, *inner) for alert in entry.firing}
    assert firing >= set(DETECTORS)


@pytest.mark.parametrize(("folder", "never"), [("healthy", True), ("stuck", False)])
def test_cases_are_judged_by_the_built_in_rules(folder: str, never: bool) -> None:
    # Read as lines: as YAML, they were read above.
    for path in (HERE / folder).glob("*.yaml"):
        keys = {line.partition(":")[0]: line for line in path.read_text().splitlines()}
        assert not keys.keys() & {"rules", "only"}
        assert (keys["alarm"] == "alarm: never") is never


def test_a_timeline_that_is_wrong_is_told_entry_by_entry(tmp_path: Path) -> None:
    path = write_timeline(
        tmp_path,
        "timeline:\n  - {kind: message, firing: [low_confidence warning]}\n  - {kind: message}\n",
    )
    assert check_timeline(path) == (
        Mismatch(entry=1, expected=("low_confidence warning",), found=()),
    )


def test_rounds_have_their_numbers_in_them(tmp_path: Path) -> None:
    path = write_timeline(
        tmp_path,
        "timeline:\n"
        "  - repeat: 2\n"
        "    of:\n"
        "      - {kind: message, firing: ['{n} then {left}']}\n"
        "      - {kind: message, repeat: 2, firing: ['{n}']}\n",
    )
    expected = [mismatch.expected for mismatch in check_timeline(path)]
    assert expected == [("1 then 1",), ("1",), ("2",), ("2 then 0",), ("1",), ("2",)]


@pytest.mark.parametrize(
    ("alarm", "wrong"),
    [
        ("3", None),
        ("2", ((4, "an alarm by step 2"))),
        ("never", ((4, "no alarm"))),
    ],
)
def test_an_alarm_counts_steps_and_a_mismatch_entries(
    tmp_path: Path, alarm: str, wrong: tuple[int, str] | None
) -> None:
    path = write_timeline(
        tmp_path,
        f"alarm: {alarm}\n"
        "timeline:\n"
        "  - {kind: state, reflect: true}\n"
        "  - {repeat: 2, kind: message}\n"
        "  - {kind: checkpoint, progress_percent: 1, confidence: 1}\n",
    )
    found = [(each.entry, each.expected[0]) for each in check_timeline(path)]
    assert found == ([wrong] if wrong else [])


def test_rules_in_force_hold_where_the_timeline_names_no_others(tmp_path: Path) -> None:
    rules = Rules(low_confidence=LowConfidence(below=50, hold=Length(steps=1, text="1")))
    path = write_timeline(
        tmp_path,
        "rules: {low_confidence: {hold: 0}}\n"
        "timeline:\n"
        "  - {kind: checkpoint, progress_percent: 1, confidence: 45}\n",
    )
    assert check_timeline(path) == ()
    (mismatch,) = check_timeline(path, rules)
    assert mismatch.found == ("low_confidence warning",)


def test_a_wrong_rule_of_a_timeline_is_named_with_its_line_and_the_nearest_key(
    tmp_path: Path,
) -> None:
    text = "rules: {low_confidence: {belo: 3}, cycle: 4}\ntimeline: [{kind: turn}]\n"
    with pytest.raises(ConfigError) as wrong:
        check_timeline(write_timeline(tmp_path, text))
    assert wrong.value.lines == (
        f"{tmp_path}/timeline.yaml:2: rules.low_confidence.belo: unknown key "
        "(did you mean `below`?)",
        f"{tmp_path}/timeline.yaml:2: rules.cycle: must be a mapping: `key: value`; is 4",
        f"{tmp_path}/timeline.yaml:3: timeline[0].kind: must be one of tool, message, checkpoint; "
        "is 'turn'",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "a: [",
        "about: no events\ntimeline: []",
        "about: x\ntimeline: [{kind: nothing}]",
        "about: x\ntimeline: [{repeat: 2, firing: [a b], of: [{kind: message}]}]",
        "about: x\nalarm: sometimes\ntimeline: [{kind: message}]",
        "about: x\nrules: {low_confidence: {blow: 1}}\ntimeline: [{kind: message}]",
    ],
)
def test_a_file_that_is_no_timeline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        check_timeline(path)
