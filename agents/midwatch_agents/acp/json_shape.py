"""Values of JSON that somebody else wrote, taken for what they should be, or for nothing. Pure."""

from collections.abc import Mapping, Sequence
from typing import cast


def members(value: object) -> Mapping[str, object]:
    """The members of an object; none of anything else."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def items(value: object) -> Sequence[object]:
    """The items of an array; none of anything else."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()
