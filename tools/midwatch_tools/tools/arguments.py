"""Types of the tools' arguments: checked here, but plain in the schema that a model is sent.

A schema costs tokens in every request, and servers of local models turn it into a grammar, which
fails on references, nested objects and long limits. So it contains only names and types; the model
learns what is wrong with a value when it sends one.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaMode, JsonSchemaValue
from pydantic_ai.tools import GenerateToolJsonSchema
from pydantic_core.core_schema import CoreSchema, WithDefaultSchema

from midwatch_monitor.records import Cause, Certainty, CheckpointDecision, Claim, ClaimState

_TEXT = WithJsonSchema({"type": "string"})
_WHOLE = WithJsonSchema({"type": "integer"})
_NUMBER = WithJsonSchema({"type": "number"})
_TEXTS = WithJsonSchema({"type": "array", "items": {"type": "string"}})


def _one_of(kind: type[StrEnum]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": [each.value for each in kind]})


def _null_as(default: object) -> Callable[[object], object]:
    """Return a validator that treats `null` as left out: many models send that."""
    return lambda value: default if value is None else value


_NONE_IS_EMPTY = BeforeValidator(_null_as(()))

PercentArgument = Annotated[int, Field(ge=0, le=100), _WHOLE]
CountArgument = Annotated[int, Field(ge=0, le=1_000_000_000), BeforeValidator(_null_as(0)), _WHOLE]
AmountArgument = Annotated[
    float, Field(ge=0, le=1_000_000, allow_inf_nan=False), BeforeValidator(_null_as(0.0)), _NUMBER
]
Estimate = Annotated[Annotated[int, Field(ge=0)] | None, _WHOLE]

TextArgument = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000), _TEXT
]
Note = Annotated[str, StringConstraints(max_length=4000), BeforeValidator(_null_as("")), _TEXT]
Strings = Annotated[tuple[str, ...], Field(max_length=100), _NONE_IS_EMPTY, _TEXTS]
"""Texts of any kind; empty if left out."""
Texts = Annotated[tuple[TextArgument, ...], Field(min_length=1, max_length=30), _TEXTS]
SomeTexts = Annotated[tuple[TextArgument, ...], Field(max_length=30), _NONE_IS_EMPTY, _TEXTS]

_Path = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Paths = Annotated[tuple[_Path, ...], Field(max_length=20), _NONE_IS_EMPTY, _TEXTS]
_Tag = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, min_length=1, max_length=40)
]
Tags = Annotated[tuple[_Tag, ...], Field(max_length=8), _NONE_IS_EMPTY, _TEXTS]
Value = Annotated[
    str | dict[str, JsonValue] | list[JsonValue] | int | float | bool,
    BeforeValidator(_null_as("")),
    _TEXT,
]
"""Data as JSON text. Models also send it as JSON, which is accepted."""

CourseArgument = Annotated[CheckpointDecision, _one_of(CheckpointDecision)]
Category = Annotated[Cause, _one_of(Cause)]
CertaintyArgument = Annotated[Certainty, _one_of(Certainty)]

_BECAUSE = " because "


def _parse_claim(said: object) -> object:
    """Parse a claim such as `unproven: it works there because nobody could look`, if it is text."""
    if not isinstance(said, str):
        return said
    state, _, what = said.partition(":")
    name = state.strip().strip("`*").lower()
    if name not in {each.value for each in ClaimState} or not what.strip():
        names = ", ".join(f"`{each}:`" for each in ClaimState)
        raise ValueError(f"a claim begins with one of {names} and goes on with what is so")
    if name == ClaimState.PASSED:
        return {"what": what.strip(), "state": name}
    what, _, reason = what.partition(_BECAUSE)
    return {"what": what.strip(), "state": name, "reason": reason.strip()}


def _check_claim(claim: Claim) -> Claim:
    if not claim.what.strip() or len(claim.what) > 500 or len(claim.reason) > 2000:
        raise ValueError("a claim has 1 to 500 characters, and its reason up to 2,000")
    return claim


Claims = Annotated[
    tuple[Annotated[Claim, BeforeValidator(_parse_claim), AfterValidator(_check_claim)], ...],
    Field(max_length=30),
    _NONE_IS_EMPTY,
    _TEXTS,
]


class FlatSchema(GenerateToolJsonSchema):
    """Leaves out what a model does not need: defaults, and the ban on other parameters."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of the value without its default."""
        return self.generate_inner(schema["schema"])

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        whole = super().generate(schema, mode)
        whole.pop("additionalProperties", None)
        return whole
