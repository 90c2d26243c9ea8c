"""What every part of the configuration is made of: sections, ranges, and how a value is refused."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, ClassVar, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Percent = Annotated[int, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Window = Annotated[int, Field(ge=2, le=50)]


class Refusal(ValueError):
    """What is wrong, and where below the validated value it stands."""

    def __init__(self, problem: str, *, at: tuple[str | int, ...] = (), nearest: str = "") -> None:
        self.problem = problem
        self.at = at
        self.nearest = nearest
        super().__init__(problem)


def nearest_to(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or nothing."""
    return next(iter(get_close_matches(word.lower(), list(known), n=1)), "")


class Section(BaseModel):
    """A part of the configuration: an unknown key is an error, and nothing changes it later."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
    )
    gone: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions that are read and left out, each with the reason."""

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
        """Refuse `below: true`, which Python would count as 1."""
        if isinstance(value, bool) and info.field_name:
            wanted = cls.model_fields[info.field_name].annotation
            if not _takes(wanted, bool) and (_takes(wanted, int) or _takes(wanted, float)):
                raise Refusal(f"must be a number; is {str(value).lower()}")
        return value


def _takes(annotation: object, kind: type) -> bool:
    return annotation is kind or any(_takes(part, kind) for part in get_args(annotation))
