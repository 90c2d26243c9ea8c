"""Every command with its arguments and options, from the command line itself."""

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App

from midwatch_supervisor.cli.app import GROUPS, build
from midwatch_supervisor.cli.run.conduct import EXIT_CODES
from midwatch_tests.reference.source import table

_SHARED = 6
"""An option that so many commands have, with the same words, is explained once."""
_KINDS = {int: "integer", float: "number", str: "text", Path: "path", bool: ""}
Row = tuple[str, str, str, str]
Words = tuple[str, ...]


def commands(app: App | None = None, path: Words = ()) -> Iterator[tuple[Words, App]]:
    """Every command with its words after `midwatch`, in the order of the help."""
    top = build() if app is None else app
    names = COMMANDS if app is None else [name for name in top if name[0] not in "-_"]
    for name in names:
        yield (*path, name), top[name]
        yield from commands(top[name], (*path, name))


COMMANDS = [name for group in GROUPS.values() for name in group]


def commands_page() -> str:
    """`docs/reference/commands.md`."""
    found = {words: (app, _rows(app)) for words, app in commands()}
    counted = Counter(row for _, rows in found.values() for row in rows)
    shared = [row for row, count in counted.items() if count >= _SHARED]
    groups = {name: title for title, names in GROUPS.items() for name in names}
    parts = [
        "# Commands, with every option\n\n"
        "[commands.md](../commands.md) is the overview. `midwatch COMMAND --help` prints what "
        "this page says about one.\n\n"
        f"## Options of many commands\n\n{_table(shared)}"
        "## Exit codes\n\n"
        "Those of `midwatch run`, `demo` and `resume`. Every other command ends with 0, with 2 for "
        "wrong usage or configuration, or with 1 for any other failure, unless said below.\n\n"
    ]
    parts.append(table(("code", "meaning"), [(str(c), m) for c, m in EXIT_CODES.items()]))
    before = ""
    for words, (app, rows) in found.items():
        if groups[words[0]] != before:
            before = groups[words[0]]
            parts.append(f"## {before}\n\n")
        parts.append(_command(words, app, rows, shared))
    return "".join(parts).rstrip() + "\n"


def _command(words: Words, app: App, rows: list[Row], shared: list[Row]) -> str:
    own = [row for row in rows if row not in shared]
    also = ", ".join(row[0].split(",")[0] for row in rows if row in shared)
    about = inspect.getdoc(app.default_command) if app.default_command else app.help
    text = f"### midwatch {' '.join(words)}\n\n{about or app.help}\n\n"
    return text + (_table(own) if own else "") + (f"Also {also}.\n\n" if also else "")


def _table(rows: list[Row]) -> str:
    return table(("option", "takes", "default", "meaning"), rows)


def _rows(app: App) -> list[Row]:
    if app.default_command is None:
        return []
    return [
        _row(argument)
        for argument in _arguments(app)
        if argument.show and argument.parse and argument.names
    ]


def option_names(app: App) -> set[str]:
    """The options that a command takes, and those that every command has."""
    shared = {"--help", "--version", "--install-completion"}
    if app.default_command is None:
        return shared
    return shared | {name for argument in _arguments(app) for name in argument.names}


def _arguments(app: App) -> Iterable[Any]:
    """What a command takes, as it takes it: a command met on its own does not know what the whole
    command line says of every option.
    """
    return app.assemble_argument_collection(default_parameter=build().default_parameter)


def _row(argument: Any) -> Row:
    kind = argument.field_info.kind
    positional = kind is not inspect.Parameter.KEYWORD_ONLY and argument.required
    names = [name for name in argument.names if name != "*"]
    plain = positional or names[0].lstrip("-").isupper()
    shown = ", ".join(f"`{name.lstrip('-') if plain else name}`" for name in names)
    default = argument.field_info.default
    if argument.required:
        told = "required"
    else:
        unset = default is False or default in (None, "", (), inspect.Parameter.empty)
        told = "" if unset else f"`{default}`"
    return shown, _takes(argument.hint), told, argument.parameter.help or ""


def _takes(hint: Any) -> str:
    args = [each for each in get_args(hint) if each not in (type(None), ...)]
    if get_origin(hint) is Literal:
        return ", ".join(f"`{each}`" for each in args)
    if get_origin(hint) in (list, tuple):
        return f"{_takes(args[0])}, several"
    return _takes(args[0]) if args else _KINDS.get(hint, "text")
