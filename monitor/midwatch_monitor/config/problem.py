"""Turns pydantic's findings into errors that a person can act on: the line, the key, the range."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from midwatch_monitor.config.document import Keys, dotted_path
from midwatch_monitor.config.section import Refusal, nearest_to
from midwatch_monitor.errors import ConfigError, FilePosition

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text (quote it if it looks like a number)",
    "tuple": "a list",
    "model": "a mapping: `key: value`",
    "model_attributes": "a mapping: `key: value`",
    "dict": "a mapping: `key: value`",
}
_BOUNDS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
_NAME = "may have letters (a-z, A-Z), digits, `.`, `_` and `-`, at most 80, a letter or digit first"

_BROKER = (
    "must be mqtt://HOST:PORT, or mqtts://HOST:PORT for TLS, and nothing else; the account is "
    "`username` and `password_file`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrigin:
    """Where a value comes from."""

    place: FilePosition
    key: str = ""
    """Its name for its author, if that is not its path: an environment variable."""


Origins = Mapping[Keys, ValueOrigin]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What was validated: which model, at which keys, and written by whom."""

    model: type[BaseModel]
    origins: Origins
    otherwise: FilePosition
    """The origin of values that nobody wrote."""
    prefix: Keys = ()

    def errors(self, found: ValidationError) -> list[ConfigError]:
        """Return all findings, in pydantic's order."""
        details = found.errors(include_url=False)
        return [
            self._config_error(detail)
            for detail in details
            if not _follows_from_items(detail) and not _is_other_branch(detail, details)
        ]

    def _config_error(self, detail: ErrorDetails) -> ConfigError:
        path = self._path(detail["loc"])
        if refused := _refusal(detail):
            return self.refused(refused, below=path)
        problem, nearest = self._problem(detail, path)
        origin = self._origin(path)
        if detail["type"] == "missing":
            path = (*path, detail["loc"][-1])
        return ConfigError(origin.place, origin.key or dotted_path(path), problem, nearest=nearest)

    def refused(self, refusal: Refusal, *, below: Keys = ()) -> ConfigError:
        """Return the error of a refusal, which names its place below those keys."""
        path = (*below, *refusal.at)
        origin = self._origin(path)
        key = origin.key or dotted_path(path)
        return ConfigError(origin.place, key, refusal.problem, nearest=refusal.nearest)

    def _path(self, loc: tuple[int | str, ...]) -> Keys:
        """Return the keys that somebody wrote; pydantic also names members of unions."""
        path = self.prefix
        for part in loc:
            if (*path, part) in self.origins:
                path = (*path, part)
        return path

    def _origin(self, path: Keys) -> ValueOrigin:
        for end in range(len(path), 0, -1):
            if origin := self.origins.get(path[:end]):
                return origin
        return ValueOrigin(place=self.otherwise)

    def _problem(self, detail: ErrorDetails, path: Keys) -> tuple[str, str]:
        kind, value = detail["type"], detail["input"]
        own = path[len(self.prefix) :]
        if kind == "extra_forbidden":
            return "unknown key", nearest_to(str(detail["loc"][-1]), _keys(self.model, own[:-1]))
        if kind in {"enum", "literal_error"}:
            words = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
            listed = ", ".join(words)
            return f"must be one of {listed}; is {_show_value(value)}", nearest_to(
                str(value), words
            )
        if kind in _BOUNDS:
            return f"must be {_range_text(self.model, own)}; is {_show_value(value)}", ""
        return _plain_problem(detail), ""


def error_line(details: Iterable[ErrorDetails]) -> str:
    """Return what pydantic found in one line, without the values: it may go to logs, and a worker
    or a model may have written them."""
    return "; ".join(map(_without_value, details))


def _without_value(detail: ErrorDetails) -> str:
    place, text = ".".join(map(str, detail["loc"])), detail["msg"].removeprefix("Value error, ")
    return f"{place}: {text}" if place else text


def _plain_problem(detail: ErrorDetails) -> str:
    kind, value = detail["type"], detail["input"]
    match kind:
        case "missing":
            return "is missing"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case "too_long":
            return f"must have at most {detail.get('ctx', {}).get('max_length')} items"
        case "finite_number":
            return "must be a finite number"
        case "string_pattern_mismatch":
            return _pattern_problem(detail)
        case "value_error":
            return f"{detail['ctx']['error']}; is {_show_value(value)}"  # pyright: ignore[reportTypedDictNotRequiredAccess]
        case _:
            expected = _EXPECTED.get(re.sub(r"_(type|parsing|from_float|parsing_size)$", "", kind))
            return f"must be {expected}; is {_show_value(value)}" if expected else detail["msg"]


def _pattern_problem(detail: ErrorDetails) -> str:
    value = detail["input"]
    if "mqtt" not in str(detail.get("ctx", {}).get("pattern")):
        return f"{_NAME}; is {_show_value(value)}"
    # Text before an @ may be a password, and is not repeated.
    return _BROKER if "@" in str(value) else f"{_BROKER}; is {_show_value(value)}"


def _is_other_branch(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Whether a list was also tried as one of some words, although its items have errors."""
    if detail["type"] != "literal_error" or not isinstance(detail["input"], list | tuple):
        return False
    above = detail["loc"][:-1]
    return any(each["loc"][: len(above)] == above for each in details if each is not detail)


def _follows_from_items(detail: ErrorDetails) -> bool:
    """Whether a list is too short only because its items were refused."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _refusal(detail: ErrorDetails) -> Refusal | None:
    error = detail.get("ctx", {}).get("error")
    return error if isinstance(error, Refusal) else None


def _show_value(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:57]}…"


def _keys(model: type[BaseModel], path: Keys) -> list[str]:
    """Return the permitted keys of the mapping at `path`."""
    return [key for node in _nodes(model, path) for key in node.get("properties", {})]


def _range_text(model: type[BaseModel], path: Keys) -> str:
    """Return the range of the number at `path`, in words."""
    for node in _nodes(model, path):
        low, high = node.get("minimum"), node.get("maximum")
        above = node.get("exclusiveMinimum")
        if low is not None and high is not None:
            return f"from {low} to {high}"
        parts = (
            f"above {above:g}" if above is not None else "",
            f"at least {low:g}" if low is not None else "",
            f"at most {high:g}" if high is not None else "",
        )
        if any(parts):
            return " and ".join(part for part in parts if part)
    return "in range"


def _nodes(model: type[BaseModel], path: Keys) -> list[dict[str, Any]]:
    """Return the nodes of the model's JSON Schema at `path`, one for each member of a union."""
    schema = model.model_json_schema()
    nodes = list(_members(schema, schema))
    for part in path:
        nodes = [
            member
            for node in nodes
            if (below := _node_below(node, part)) is not None
            for member in _members(schema, below)
        ]
    return nodes


def _members(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in node:
        yield from _members(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
        return
    for union in ("anyOf", "oneOf", "allOf"):
        for member in node.get(union, ()):
            yield from _members(schema, member)
    yield node


def _node_below(node: dict[str, Any], part: str | int) -> dict[str, Any] | None:
    if isinstance(part, int):
        found = node.get("items")
    else:
        # Keys with a required form: any of them.
        shaped = next(iter(node.get("patternProperties", {}).values()), None)
        others = node.get("additionalProperties") or shaped
        found = node.get("properties", {}).get(part, others)
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]
