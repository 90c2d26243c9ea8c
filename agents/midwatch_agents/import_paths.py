"""Objects that a task file names by their import path, `package.module:name`."""

import sys
from importlib import import_module
from pathlib import Path

from midwatch_monitor.errors import UsageError


def imported(path: str, what: str) -> object:
    """The object at an import path; `what` says in errors what it was for."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{what}: write {path!r} as package.module:name")
    _see_this_folder()
    try:
        module = import_module(module_name)
    except Exception as error:  # whatever a module of somebody else does while it is imported
        raise UsageError(
            f"{what}: {module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise UsageError(f"{what}: {module_name} has no {name!r}") from error


def _see_this_folder() -> None:
    """Let modules of the current folder be found, after all that is installed."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
