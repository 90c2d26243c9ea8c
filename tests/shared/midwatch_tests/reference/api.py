"""The Python API: what may be imported, with signatures and docstrings."""

import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, cast

from pydantic import BaseModel

from midwatch_tests.reference.source import attribute_docs, attributes, signature, table

API: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "midwatch_tools": {"Watch": ("__init__",)},
    "midwatch_monitor.config.settings": {"Settings": (), "Mode": ()},
    "midwatch_monitor.config.source": {"load_settings": (), "load_tasks": ()},
    "midwatch_monitor.config.tasks": {"TaskFile": ()},
    "midwatch_monitor.records": {
        **dict.fromkeys(("Alert", "AlertKey", "AlertState", "Severity", "Resolution"), ()),
        **dict.fromkeys(("Step", "StepKind", "Edit", "Checkpoint", "CheckpointDecision"), ()),
        **dict.fromkeys(("Judgement", "Movement", "Fault", "Entry"), ()),
    },
    "midwatch_monitor.judge": {"Judge": ("__init__", "observe", "end")},
    "midwatch_monitor.journal": {
        "Journal": ("open_to_read", "runs", "tasks", "attempts", "entries", "close")
    },
    "midwatch_monitor.bus": {"Bus": ("publish", "subscribe"), "LocalBus": ()},
}
"""The documented names of each module, of a class with the methods that are for users."""

_ABOUT = """\
# Python

What your programs may import; everything else may change without notice. Everything is typed. An
agent needs only `from midwatch_tools import Watch`; the rest is for callbacks, and for programs
that read a journal or judge steps. The README shows
[how to begin](../README.md#an-agent-of-your-own); the tree of errors is in
[errors.py](../monitor/midwatch_monitor/errors.py).

"""


def api_page() -> str:
    """`docs/api.md`."""
    parts = [_ABOUT]
    for module, names in API.items():
        about = inspect.getdoc(import_module(module)) or ""
        parts.append(f"## {module}\n\n{about}\n\n")
        for name, methods in names.items():
            parts.append(f"### {name}\n\n{''.join(_told(documented(module, name), methods))}")
    return "".join(parts).rstrip() + "\n"


def documented(module: str, name: str) -> Any:
    """What a name of the page means."""
    return getattr(import_module(module), name)


def _told(thing: Any, methods: tuple[str, ...]) -> Iterator[str]:
    if isinstance(thing, type):
        yield from _told_of_class(cast("type[object]", thing), methods)
    else:
        yield f"```python\n{signature(thing)}\n```\n\n{_prose(thing)}\n\n"


def _told_of_class(thing: type[object], methods: tuple[str, ...]) -> Iterator[str]:
    yield f"{_prose(thing)}\n\n"
    if issubclass(thing, Enum):
        docs = attribute_docs(thing)
        yield table(("value", "meaning"), [(f"`{e.value}`", docs.get(e.name, "")) for e in thing])
    elif _is_record(thing):
        rows = [(f"`{name}`", f"`{said}`", doc) for name, said, doc in attributes(thing)]
        yield table(("field", "type", "meaning"), rows)
    elif issubclass(thing, BaseModel):
        page = "tasks" if thing.__name__ == "TaskFile" else "configuration"
        yield f"Its keys are in [reference/{page}.md](reference/{page}.md).\n\n"
    for method in methods:
        yield f"```python\n{signature(thing, method)}\n```\n\n"
        if prose := _prose(getattr(thing, method)):
            yield f"{prose}\n\n"


def _is_record(thing: type[object]) -> bool:
    """Whether a class is a dataclass itself, and not by its base."""
    return "__dataclass_fields__" in vars(thing)


def _prose(thing: Any) -> str:
    """A docstring, its arguments as a list."""
    if not thing.__doc__:
        return ""
    text, _, args = inspect.cleandoc(thing.__doc__).partition("\nArgs:\n")
    items: list[str] = []
    for line in args.splitlines():
        if line.startswith("        "):
            items[-1] += f" {line.strip()}"
        else:
            name, _, said = line.strip().partition(": ")
            items.append(f"- `{name}`: {said}")
    return "\n".join([text, *items]) if items else text
