"""`midwatch rules`, through the command line."""

from json import loads
from pathlib import Path

import pytest

from midwatch_supervisor.cli import main
from midwatch_tests.command import objects, printed_now

RIGHT = """about: One report of little confidence is an alarm.
timeline:
  - {kind: checkpoint, progress_percent: 10, confidence: 20, firing: [low_confidence warning]}
"""
WRONG = """about: Nothing fires, says this.
timeline:
  - {kind: message}
  - {kind: checkpoint, progress_percent: 10, confidence: 20}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIDWATCH_CONFIG", raising=False)
    return tmp_path


def test_timelines_below_a_folder_are_tested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "lines" / "deep").mkdir(parents=True)
    (folder / "lines" / "b.yaml").write_text(RIGHT)
    (folder / "lines" / "deep" / "a.yml").write_text(WRONG)
    assert main(["rules", "test", "lines"]) == 1
    assert capsys.readouterr().out == (
        "lines/b.yaml: ok\n"
        "lines/deep/a.yml: entry 2: expected nothing; found low_confidence warning\n"
        "2 timelines, 1 failed\n"
    )
    assert main(["rules", "test", "lines", "--json"]) == 1
    assert objects(capsys)[1] == {
        "type": "timeline",
        "file": "lines/deep/a.yml",
        "ok": False,
        "mismatches": [{"entry": 2, "expected": [], "found": ["low_confidence warning"]}],
    }


def test_a_file_that_is_no_timeline_exits_with_2_and_stops_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.yaml").write_text("tasks: []\n")
    (folder / "b.yaml").write_text(RIGHT)
    assert main(["rules", "test", "a.yaml", "b.yaml"]) == 2
    out, err = capsys.readouterr()
    assert err == (
        "a.yaml: about: is missing\na.yaml: timeline: is missing\na.yaml:1: tasks: unknown key\n"
    )
    assert out == "b.yaml: ok\n2 timelines, 1 failed\n"


MISTAKEN = """about: Everything is wrong.
onyl: true
rules: {low_confidence: {belwo: 10}}
timeline:
  - {kind: checkpoint, progress_percent: 10, confidence: 20, fireing: [low_confidence warning]}
  - repeat: 3
    of:
      - {kind: tool, exit_code: "{n}"}
      - {kind: checkpoint, progress_percent: 110, confidence: "x{n}"}
  - {kind: state, conversation: true, reflect: true}
  - {kind: message, at: "9999-12-31T23:59:59Z"}
  - {at: never}
"""
MISTAKES = [
    "a.yaml:2: onyl: unknown key (did you mean `only`?)",
    "a.yaml:3: rules.low_confidence.belwo: unknown key (did you mean `below`?)",
    "a.yaml:5: timeline[0].fireing: unknown key (did you mean `firing`?)",
    "a.yaml:9: timeline[1].of[1].progress_percent: must be from 0 to 100; is 110",
    "a.yaml:9: timeline[1].of[1].confidence: must be a whole number; is 'x1'",
    "a.yaml:10: timeline[2].conversation: unknown key",
]


@pytest.mark.parametrize("json", [False, True])
def test_everything_that_is_wrong_in_a_timeline_is_told_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], *, json: bool
) -> None:
    (folder / "a.yaml").write_text(MISTAKEN)
    assert main(["rules", "test", "a.yaml", *["--json"] * json]) == 2
    said = capsys.readouterr()
    told = loads(said.out) if json else {"file": "a.yaml", "problems": said.err.splitlines()}
    *found, late, never = told["problems"]
    assert (told["file"], found) == ("a.yaml", MISTAKES)
    assert late.startswith("a.yaml:11: timeline[3].at: ")
    assert late.endswith("a time of the years 1970 to 8999")
    assert never.startswith("a.yaml:12: timeline[4].at: ")


def test_a_folder_without_timelines_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    assert main(["rules", "test", "empty"]) == 2
    assert capsys.readouterr() == ("", "there is no timeline below empty\n")


def test_timelines_are_tested_against_the_rules_in_force(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.yaml").write_text(RIGHT)
    (folder / "mine.yaml").write_text("rules: {low_confidence: {below: 10}}\n")
    assert main(["rules", "test", "a.yaml", "--config", "mine.yaml"]) == 1
    assert "found nothing" in capsys.readouterr().out


def test_rules_are_listed_with_what_they_see(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "midwatch.yaml").write_text(
        "rules: {repeated_call: {warn_after: 9, critical_after: 12}, cycle: {enabled: false}}\n"
    )
    out = printed_now(capsys, "rules", "list")
    assert (
        "repeated_call (repetition): notice_after 3, warn_after 9, critical_after 12\n"
        "    One call gives the same result several times in a row.\n"
    ) in out
    assert "cycle (repetition): off\n" in out


def test_what_a_rule_sees_is_told_in_whole_sentences_and_as_json_with_its_thresholds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", "list", "--json"]) == 0
    told = objects(capsys)
    assert told[1] == {
        "type": "rule",
        "rule": "low_confidence",
        "enabled": True,
        "evidence": "report",
        "sees": "The stated confidence of one checkpoint is low.",
        "thresholds": {"below": 30, "severity": "warning"},
    }
    out = printed_now(capsys, "rules", "list")
    sentences = [line["sees"] for line in told]
    assert [each for each in sentences if not (each.endswith(".") and f"    {each}\n" in out)] == []
