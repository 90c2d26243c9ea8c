"""What a tool call returned, kept so that a crash does not make it happen twice."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_core import PydanticSerializationError

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.records import Result


class _Kept(BaseModel):
    how: Literal["returned", "retry", "failed"]
    value: JsonValue = None


_JSON = TypeAdapter[JsonValue](JsonValue)


def keep(
    call: str, *, returned: object = None, error: Exception | None = None
) -> tuple[Result, ...]:
    """The result of a call as the journal keeps it; nothing if it cannot be given again."""
    if not call:
        return ()
    try:
        if error is None:
            kept = _Kept(how="returned", value=_JSON.validate_python(returned, strict=True))
        elif isinstance(error, ModelRetry):
            kept = _Kept(how="retry", value=error.message)
        elif isinstance(error, ToolFailed):
            kept = _Kept(how="failed", value=str(error))
        else:
            return ()
        return (Result(call=call, body=kept.model_dump_json().encode()),)
    except (ValidationError, PydanticSerializationError):
        return ()  # not plain JSON: the tool is run again after a crash


class Remembered:
    """The kept results of an attempt, by tool call."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._bodies = {result.call: result.body for result in results}

    def __contains__(self, call: str) -> bool:
        return call in self._bodies

    def give(self, call: str) -> JsonValue:
        """Return, or raise, what the call came to the first time."""
        try:
            kept = _Kept.model_validate_json(self._bodies[call])
        except ValidationError:  # which says what stands there
            raise JournalCorruptError(f"the kept result of call {call!r} is none") from None
        if kept.how == "retry":
            raise ModelRetry(str(kept.value))
        if kept.how == "failed":
            raise ToolFailed(str(kept.value))
        return kept.value
