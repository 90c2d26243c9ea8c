"""Timelines: what the rules should say of a short run, written down as YAML.

    about: Confidence under 30 % alarms, at 30 % it does not.
    rules: {low_confidence: {below: 30, hold: 0}}
    timeline:
      - {kind: checkpoint, progress_percent: 10, confidence: 30}
      - {kind: checkpoint, progress_percent: 20, confidence: 29, firing: [low_confidence warning]}

`rules` is as in the configuration file, and what is absent keeps its default; `only: true` turns
off the rules that it does not name, and agreement. Each entry is a line of the trace format.
Steps without a number are numbered on. `firing` lists what fires after the entry, as
`rule severity` or `rule severity subject`; without it nothing does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, Field, ValidationError

from midwatch_monitor.config.rules import Rules, Section
from midwatch_monitor.errors import ConfigError, Place
from midwatch_monitor.judge import Judge
from midwatch_monitor.rules import rule_settings
from midwatch_monitor.traces.native import STATE, parse
from midwatch_monitor.words import Alert, Change


class Entry(Section):
    """One event of a timeline, with what fires after it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    firing: tuple[str, ...] = ()

    @property
    def line(self) -> dict[str, object]:
        """The event as a line of the trace format."""
        return dict(self.model_extra or {})


class Timeline(Section):
    """A run and what the rules should say of it."""

    about: str
    """What it shows, in a sentence."""
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])
    only: bool = False
    """Whether rules that are not named are off."""
    worker: str = ""
    timeline: tuple[Entry, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """An entry, counted from 1, after which something else fires than was written down."""

    entry: int
    expected: tuple[str, ...]
    found: tuple[str, ...]


def read_timeline(path: Path) -> Timeline:
    """A timeline from its file. Raises ConfigError if it is none."""
    try:
        raw: object = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Timeline.model_validate(raw)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(Place(file=path), "", f"not a timeline: {error}") from error


def check_timeline(path: Path) -> tuple[Mismatch, ...]:
    """Where the rules say something else than a timeline does. Raises ConfigError for a bad one."""
    timeline = read_timeline(path)
    try:
        judge = Judge(_rules(timeline), worker=timeline.worker)
        return tuple(_play(timeline, judge))
    except ValidationError as error:
        raise ConfigError(Place(file=path), "rules", str(error)) from error
    except ValueError as error:
        raise ConfigError(Place(file=path), "timeline", str(error)) from error


def _rules(timeline: Timeline) -> Rules:
    if not timeline.only:
        return Rules.model_validate(timeline.rules)
    off = {name: {"enabled": False} for name in rule_settings(Rules())}
    return Rules.model_validate({"agreement": False, **off, **timeline.rules})


def _play(timeline: Timeline, judge: Judge) -> Iterator[Mismatch]:
    step, plan_step = 0, 1
    for number, entry in enumerate(timeline.timeline, start=1):
        numbered: dict[str, object] = {} if entry.line.get("kind") == STATE else {"step": step + 1}
        event = parse({**numbered, **entry.line}, plan_step)
        if isinstance(event, str):
            raise ValueError(f"entry {number}: {event}")
        if isinstance(event, Change):
            plan_step = event.plan_step or plan_step
        else:
            step = event.number
        judge.observe(event)
        found = tuple(sorted(_write(alert) for alert in judge.firing))
        expected = tuple(sorted(entry.firing))
        if found != expected:
            yield Mismatch(entry=number, expected=expected, found=found)


def _write(alert: Alert) -> str:
    return " ".join(part for part in (alert.key.rule, alert.severity, alert.key.subject) if part)
