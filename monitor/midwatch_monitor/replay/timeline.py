"""Timelines: short runs written in YAML, with what the rules should say about them.

    about: Confidence under 30 % alarms, at 30 % it does not.
    rules: {low_confidence: {below: 30, hold: 0}}
    timeline:
      - {kind: checkpoint, progress_percent: 10, confidence: 30}
      - {kind: checkpoint, progress_percent: 20, confidence: 29, firing: [low_confidence warning]}

`rules` is as in the configuration file, with defaults for what is absent; `only: true` turns off
agreement and the rules that it does not name. Each entry is a line of the trace format. Steps
without a number continue the numbering. `firing` lists what fires after the entry, as
`rule severity` or `rule severity subject`; without it, nothing does. An entry with only a time,
`{at: "2026-01-01T00:30:00Z", firing: [silence warning]}`, says that nothing happened until then.

A longer run only says whether a warning or a critical alert fires at all: `alarm: never`, or
`alarm: 12` for one that fires by step 12. Repeated entries are written once:

    alarm: 8
    timeline:
      - repeat: 4
        of:
          - {kind: tool, tool: edit_file, path: a.py, edit: true, content_digest: "a{n}"}
          - {kind: tool, tool: run_tests, exit_code: 1, output: "1 failed in 0.{n}s"}

In their texts, `{n}` is the round, from 1, and `{left}` the number of rounds left. A single entry
can have `repeat`, too.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from midwatch_monitor.config.document import Document, Keys, read_document
from midwatch_monitor.config.problem import Scope
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.section import Refusal, Section, nearest_to
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import origins_of
from midwatch_monitor.errors import ConfigError, FilePosition
from midwatch_monitor.records import Alert, Step
from midwatch_monitor.replay.replay import Replay
from midwatch_monitor.rules import rule_settings
from midwatch_monitor.traces.native import STATE, LineReader, line_keys, line_model

BUILT_IN = Rules()


class TimelineEntry(Section):
    """One event of a timeline and what fires after it, or several and how often they repeat."""

    model_config = ConfigDict(extra="allow", frozen=True)

    firing: tuple[str, ...] = ()
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    of: tuple["TimelineEntry", ...] = ()

    @property
    def line(self) -> dict[str, object]:
        """The event as a line of the trace format."""
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if self.of and (self.model_extra or self.firing):
            raise ValueError("an entry with `of` can have no other key than `repeat`")
        return self


class Timeline(Section):
    """A run and what the rules should say about it."""

    about: str
    """What it shows, in one sentence."""
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])
    only: bool = False
    """Whether rules that are not named are off."""
    worker: str = ""
    alarm: Literal["never"] | Annotated[int, Field(ge=1)] | None = None
    """The step by which an alarm must fire; replaces what fires after each entry."""
    timeline: tuple[TimelineEntry, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """An entry after which the rules say something else; counted from 1, each round counts."""

    entry: int
    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What fires after an entry, and what should fire."""

    entry: int
    step: int
    expected: tuple[str, ...]
    told: tuple[Alert, ...]
    """What fired or rose with the entry; it may have ended already."""
    firing: tuple[Alert, ...]

    @property
    def found(self) -> tuple[str, ...]:
        return tuple(sorted(_alert_text(alert) for alert in self.firing))

    @property
    def alarm(self) -> bool:
        return any(alert.severity.alarm for alert in (*self.told, *self.firing))


def read_timeline(path: Path, rules: Rules = BUILT_IN) -> Timeline:
    """Read a timeline from a file. Raises ConfigError with everything that is wrong in it."""
    document = read_document(path)
    data, only = document.data, document.data.get("only") is True
    given = data.get("rules")
    named = cast("dict[str, Any]", given) if isinstance(given, dict) else {}  # else refused as well
    wrong = document.problems or sorted(
        (
            *_errors(lambda: Timeline.model_validate(data), _scope(Timeline, document)),
            *_errors(
                lambda: _changed_rules(named, rules, only=only), _scope(Rules, document, "rules")
            ),
            *_of_entries(document),
        ),
        key=lambda error: error.place.line or 0,
    )
    if wrong:
        raise ConfigError.of(wrong)
    return Timeline.model_validate(document.data)


def _errors(validate: Callable[[], object], scope: Scope) -> list[ConfigError]:
    try:
        validate()
    except ValidationError as found:
        return scope.errors(found)
    return []


def _of_entries(document: Document) -> Iterator[ConfigError]:
    """Yield the errors of lines not in the trace format. Unknown keys count: they may be typos."""
    whole = _scope(Timeline, document)
    for path, line in _trace_lines(document.data.get("timeline"), ("timeline",)):
        model = line_model(STATE if _tells_only_time(line) else line.get("kind"))
        scope, known = replace(whole, model=model, prefix=path), line_keys(model)
        for key in (each for each in line if each not in known):
            nearest = nearest_to(key, {*known, *TimelineEntry.model_fields})
            yield scope.refused(Refusal("unknown key", at=(key,), nearest=nearest), below=path)
        given = {key: value for key, value in line.items() if value is not None}
        filled = {"step": 1, "plan_step": 1, **given}
        yield from _errors(partial(model.model_validate, filled), scope)


def _trace_lines(entries: object, at: Keys) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Yield the trace lines as in the first round, with their positions."""
    listed = cast("list[object]", entries) if isinstance(entries, list) else []
    for number, written in enumerate(listed):
        with suppress(ValidationError):  # already reported
            entry = TimelineEntry.model_validate(written)
            if entry.of:
                yield from _trace_lines(
                    cast("dict[str, object]", written)["of"], (*at, number, "of")
                )
            else:
                yield (*at, number), cast("dict[str, Any]", _fill_numbers(entry.line, "1", "0"))


def _scope(model: type[BaseModel], document: Document, *prefix: str) -> Scope:
    whole = FilePosition(file=document.file)
    return Scope(model=model, origins=origins_of(document), otherwise=whole, prefix=prefix)


def check_timeline(path: Path, rules: Rules = BUILT_IN) -> tuple[Mismatch, ...]:
    """Return where the rules disagree with a timeline. Raises ConfigError for an invalid one.

    `rules` apply where the timeline does not name any.
    """
    timeline = read_timeline(path, rules)
    try:
        settings = Settings(rules=_changed_rules(timeline.rules, rules, only=timeline.only))
        moments = tuple(_play(timeline, Replay(settings, worker=timeline.worker)))
    except ValidationError as error:
        raise ConfigError.of(_scope(Rules, read_document(path), "rules").errors(error)) from error
    except ValueError as error:
        raise ConfigError(FilePosition(file=path), "timeline", str(error)) from error
    return tuple(
        _entry_mismatches(moments)
        if timeline.alarm is None
        else _alarm_mismatches(moments, timeline.alarm)
    )


def _changed_rules(named: dict[str, Any], rules: Rules, *, only: bool) -> Rules:
    """Return the rules as a timeline changes them, or only the named. Raises ValidationError."""
    if only:
        off = {name: {"enabled": False} for name in rule_settings(rules)}
        return Rules.model_validate({"agreement": False, **off, **named})
    merged = dict(named)
    for name, settings in rule_settings(rules).items():
        if isinstance(own := named.get(name, {}), dict):
            merged[name] = {**settings.model_dump(exclude_unset=True), **own}
    return Rules.model_validate({"agreement": rules.agreement, **merged})


def _play(timeline: Timeline, run: Replay) -> Iterator[_Moment]:
    reader, step = LineReader(), 0
    entries = (each for entry in timeline.timeline for each in _unroll(entry))
    for number, entry in enumerate(entries, start=1):
        numbered: dict[str, object] = {} if entry.line.get("kind") == STATE else {"step": step + 1}
        line = entry.line
        event = reader.read(
            {"kind": STATE, **line} if _tells_only_time(line) else {**numbered, **line}
        )
        if isinstance(event, str):
            raise ValueError(f"entry {number}: {event}")
        if isinstance(event, Step):
            step = event.number
        told = run.look(event.at) if _tells_only_time(line) else run.observe(event)[0]
        expected = tuple(sorted(entry.firing))
        yield _Moment(entry=number, step=step, expected=expected, told=told, firing=run.firing)


def _tells_only_time(line: dict[str, object]) -> bool:
    """Whether an entry only says that time has passed."""
    return line.keys() == {"at"}


def _unroll(entry: TimelineEntry) -> Iterator[TimelineEntry]:
    """Yield every round of an entry, with the numbers of the innermost round in its texts."""
    inner = [one for each in entry.of for one in _unroll(each)] if entry.of else [entry]
    if "repeat" not in entry.model_fields_set:
        yield from inner
        return
    for n in range(1, entry.repeat + 1):
        for one in inner:
            told = {"firing": list(one.firing), **one.line}
            yield TimelineEntry.model_validate(_fill_numbers(told, str(n), str(entry.repeat - n)))


def _fill_numbers(value: object, n: str, left: str) -> object:
    if isinstance(value, str):
        return value.replace("{n}", n).replace("{left}", left)
    if isinstance(value, list):
        return [_fill_numbers(each, n, left) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {key: _fill_numbers(each, n, left) for key, each in items}
    return value


def _entry_mismatches(moments: tuple[_Moment, ...]) -> Iterator[Mismatch]:
    for each in moments:
        if each.found != each.expected:
            yield Mismatch(entry=each.entry, expected=each.expected, found=each.found)


def _alarm_mismatches(
    moments: tuple[_Moment, ...], wanted: int | Literal["never"]
) -> Iterator[Mismatch]:
    first = next((each for each in moments if each.alarm), None)
    if wanted == "never":
        if first is not None:
            yield Mismatch(entry=first.entry, expected=("no alarm",), found=first.found)
    elif first is None or first.step > wanted:
        last = first or moments[-1]
        expected = (f"an alarm by step {wanted}",)
        yield Mismatch(entry=last.entry, expected=expected, found=last.found)


def _alert_text(alert: Alert) -> str:
    return " ".join(part for part in (alert.key.rule, alert.severity, alert.key.subject) if part)
