"""The arguments of a tool call, as text for one line. Pure."""

from pydantic import TypeAdapter, ValidationError

_ARGUMENTS = TypeAdapter(dict[str, object])
_MAX_ARGS = 10_000
"""Characters of arguments that are parsed for a line."""


def arguments_text(args: str) -> str:
    """Return arguments for a line: only an object's set members, without the description of a
    command; a single one without its name.
    """
    try:
        found = _ARGUMENTS.validate_json(args) if len(args) <= _MAX_ARGS else {}
    except ValidationError:
        return args
    given = {name: value for name, value in found.items() if value not in (None, "")}
    if "command" in given:
        given.pop("description", None)
    if len(given) == 1:
        return str(*given.values())
    said = ", ".join(f"{name}: {value}" for name, value in given.items())
    return said or ("" if args == "{}" else args)
