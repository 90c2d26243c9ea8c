"""The configurations that come with Midwatch."""

import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import cast

from midwatch_monitor.config.document import read_document
from midwatch_monitor.config.rules import (
    DecliningConfidence,
    ExplicitEscalation,
    LowConfidence,
    MultipleBlockers,
    RepeatedEdits,
    Rules,
    StalledProgress,
)
from midwatch_monitor.config.section import Length
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings, load_tasks
from midwatch_monitor.records import Severity
from midwatch_monitor.rules import rule_settings

CONFIGS = Path(__file__).parents[2] / "configs"
SEED = CONFIGS / "seed.yaml"
NOW = Length()
SEED_RULES = (
    "explicit_escalation",
    "low_confidence",
    "declining_confidence",
    "multiple_blockers",
    "stalled_progress",
    "repeated_edits",
)
LATER = {
    name: type(settings)
    for name, settings in rule_settings(Rules()).items()
    if name not in SEED_RULES
}


def keys(value: object) -> object:
    """The keys of a mapping, all the way down."""
    if not isinstance(value, dict):
        return None
    return {name: keys(below) for name, below in cast("dict[str, object]", value).items()}


def test_the_commented_file_equals_the_built_in_defaults() -> None:
    assert load_settings([CONFIGS / "midwatch.yaml"], environ={}) == Settings()


def test_the_commented_file_names_every_key_in_order() -> None:
    data = read_document(CONFIGS / "midwatch.yaml").data
    assert list(data) == list(Settings.model_fields)
    assert keys(data) == keys(Settings().model_dump(mode="json"))


def test_every_key_of_the_commented_file_has_its_comment_or_its_rules() -> None:
    lines = (CONFIGS / "midwatch.yaml").read_text("utf-8").splitlines()
    shared = {"enabled", "hold", "cooldown", "workers", "tools", "severity"}
    shared |= {"critical_after", "warn_after"}
    shared |= {*Settings().policy.rules, *Settings().secrets.patterns}
    bare = [
        line.strip()
        for before, line in pairwise(lines)
        if line.strip()[:1] not in ("", "#")
        and not before.strip().startswith("#")
        and line.strip().partition(":")[0] not in shared
    ]
    assert bare == []


def test_the_seed_is_the_originals_numbers() -> None:
    six = Rules(
        agreement=False,
        explicit_escalation=ExplicitEscalation(severity=Severity.CRITICAL, hold=NOW, cooldown=NOW),
        low_confidence=LowConfidence(below=30, severity=Severity.WARNING, hold=NOW, cooldown=NOW),
        declining_confidence=DecliningConfidence(
            window=3, drop=20, severity=Severity.WARNING, hold=NOW, cooldown=NOW
        ),
        multiple_blockers=MultipleBlockers(
            count=3, severity=Severity.WARNING, hold=NOW, cooldown=NOW
        ),
        stalled_progress=StalledProgress(
            window=3, min_gain=1, severity=Severity.CRITICAL, hold=NOW, cooldown=NOW
        ),
        repeated_edits=RepeatedEdits(
            notice_after=0,
            warn_after=0,
            critical_after=5,
            return_weight=1,
            movement_resets=False,
            hold=NOW,
            cooldown=NOW,
        ),
    )
    later = {name: rule(enabled=False, hold=NOW, cooldown=NOW) for name, rule in LATER.items()}
    assert load_settings([SEED], environ={}).rules == six.model_copy(update=later)


def test_the_seed_ticks_and_reminds_like_the_original() -> None:
    settings = load_settings([SEED], environ={})
    assert (settings.monitor.tick_seconds, settings.reflect.remind_every) == (30.0, 3)


def test_the_seed_says_its_numbers_even_where_they_are_the_defaults() -> None:
    said = cast("dict[str, object]", read_document(SEED).data["rules"])
    assert set(said) == set(Rules.model_fields)


STARTER = Path(str(files("midwatch_supervisor"))) / "starter"
_VALUE = re.compile(r"^( *)# (\w+): (?=\S)", re.M)
"""A value of the starter that is commented out; prose has no single word before a colon."""


def leaves(value: object, at: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    """The values of a mapping, all the way down, by their keys."""
    if not isinstance(value, dict):
        return {at: value}
    below = cast("dict[str, object]", value).items()
    return {keys: leaf for name, each in below for keys, leaf in leaves(each, (*at, name)).items()}


def test_every_value_that_the_starter_comments_out_is_the_default(tmp_path: Path) -> None:
    text = (STARTER / "midwatch.yaml").read_text("utf-8")
    values, count = _VALUE.subn(r"\1\2: ", text)
    (tmp_path / "midwatch.yaml").write_text(values)
    said = leaves(read_document(tmp_path / "midwatch.yaml").data)
    defaults = leaves(Settings().model_dump(mode="json"))
    assert count > 10
    assert said == {keys: defaults.get(keys, "no such key") for keys in said}
    assert len(said) == count + 1  # `mode` alone is no comment


def test_the_starter_as_it_stands_changes_nothing() -> None:
    assert load_settings([STARTER / "midwatch.yaml"], environ={}) == Settings()


def test_the_starter_tasks_work_on_the_folder_they_are_in() -> None:
    tasks = load_tasks(STARTER / "tasks.yaml").tasks
    assert [(task.id, task.workspace) for task in tasks] == [("readme", "."), ("review", ".")]
