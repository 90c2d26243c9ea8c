"""The building blocks of the configuration: sections, ranges, lengths, and refusals."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, ClassVar, cast, get_args
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

Percent = Annotated[int, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Window = Annotated[int, Field(ge=2, le=50)]
LONGEST_NAME = 80
"""Longest name of a task or a worker, in characters: tables are as wide as the longest."""
Name = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}$")]


class Refusal(ValueError):
    """What is wrong, and where below the validated value."""

    def __init__(self, problem: str, *, at: tuple[str | int, ...] = (), nearest: str = "") -> None:
        self.problem = problem
        self.at = at
        self.nearest = nearest
        super().__init__(problem)


def nearest_to(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, or nothing."""
    return next(iter(get_close_matches(word.lower(), list(known), n=1)), "")


def has_right_port(url: str) -> bool:
    """Whether the port of an address is valid, if it has one."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


class Section(BaseModel):
    """A part of the configuration: immutable, and unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
    )
    gone: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions that are accepted and ignored, with the reasons."""

    @model_validator(mode="before")
    @classmethod
    def _without_gone(cls, value: object) -> object:
        if not cls.gone or not isinstance(value, Mapping):
            return value
        found = cast("Mapping[str, object]", value)
        return {key: each for key, each in found.items() if key not in cls.gone}

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse `below: true`, which Python would take as 1."""
        if isinstance(value, bool) and info.field_name:
            wanted = cls.model_fields[info.field_name].annotation
            if not _accepts_kind(wanted, bool) and (
                _accepts_kind(wanted, int) or _accepts_kind(wanted, float)
            ):
                raise Refusal(f"must be a number; is {str(value).lower()}")
        return value


def _accepts_kind(annotation: object, kind: type) -> bool:
    return annotation is kind or any(_accepts_kind(part, kind) for part in get_args(annotation))


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_LONGEST = 3650 * 86_400.0
"""Seconds in ten years: adding this to a time must not leave the calendar."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Length:
    """A number of steps, or a number of seconds if `text` names a unit."""

    steps: int = 0
    seconds: float | None = None
    text: str = "0"

    def over(self, *, steps: int, since: datetime | None, now: datetime | None) -> bool:
        """Whether this much has passed; true for a length in time if a time is unknown."""
        if self.seconds is None:
            return steps >= self.steps
        if since is None or now is None:
            return True
        return (now - since).total_seconds() >= self.seconds


def parse_length(value: object) -> Length:
    """Parse `3` as three steps and `30s`, `5m`, `1h` as time; raises ValueError otherwise."""
    text = _text(value)
    if text.isdecimal():
        return Length(steps=int(text), text=text)
    return _parse_time(value, "write a number of steps (3) or a duration (30s, 5m, 1h)")


def parse_duration(value: object) -> Length:
    """Parse `30s`, `5m`, `1h` as time, and 0 as never; raises ValueError otherwise."""
    if _text(value) == "0":
        return Length()
    return _parse_time(value, "write a duration (30s, 5m, 1h), or 0 for never")


def _text(value: object) -> str:
    """Return a number or a text as text; empty for anything else."""
    plain = isinstance(value, int | str) and not isinstance(value, bool)
    return str(value).strip() if plain else ""


def _parse_time(value: object, advice: str) -> Length:
    """Return the time in a text, or a length as it is; raises ValueError with advice otherwise."""
    if isinstance(value, Length):
        return value
    match = _DURATION.fullmatch(_text(value))
    if match is None:
        raise ValueError(advice)
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > _LONGEST:
        raise ValueError("write at most ten years (3650d)")
    return Length(seconds=seconds, text=match[0])


def _write(value: Length) -> int | str:
    return value.steps if value.seconds is None else value.text


Span = Annotated[Length, BeforeValidator(parse_length), PlainSerializer(_write)]
"""A `Length` as written in YAML."""

Duration = Annotated[Length, BeforeValidator(parse_duration), PlainSerializer(_write)]
"""A duration as written in YAML; 0 means never."""

Seconds = Annotated[float, Field(gt=0, le=86_400)]
"""A positive number of seconds, up to a day."""
