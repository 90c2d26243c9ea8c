"""The configuration, its rules, and the task file: every key with values, default and meaning."""

import inspect
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic import BeforeValidator, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from midwatch_monitor.config.policy import PolicyRow
from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.config.section import Section, parse_duration, parse_length
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import (
    BudgetSpec,
    Defaults,
    FileCheck,
    ModelSpec,
    PlanStepSpec,
    TaskFile,
    TaskSpec,
    WorkerSpec,
)
from midwatch_monitor.rules import EVIDENCE, rule_settings
from midwatch_tests.reference.source import attribute_docs, table

HEAD = ("key", "values", "default", "meaning")
_LONG = 100
"""Characters of a default, beyond which a page points to the commented file."""
_BARE: Mapping[Any, str] = {
    int: "integer",
    float: "number",
    str: "text",
    Path: "path",
    bool: "`true`, `false`",
    Any: "value",
}
_SHARED = ("enabled", "hold", "cooldown", "workers", "tools")


def configuration_page() -> str:
    """`docs/reference/configuration.md`."""
    parts = [
        "# Configuration\n\n"
        "Every key of `midwatch.yaml`. [configs/midwatch.yaml](../../configs/midwatch.yaml) gives "
        "the reasons for the defaults; [rules.md](rules.md) has the keys below `rules`, "
        "[tasks.md](tasks.md) those of task files. A variable sets a key, too: "
        "`MIDWATCH_RUN__CONCURRENCY=8` is `run.concurrency`; lists and mappings are JSON there. "
        "Later files override earlier ones, variables override files.\n\n"
    ]
    parts.append(table(HEAD, [_row(Settings, "mode", "")]))
    for path, section in _sections(Settings):
        parts.append(f"## {path}\n\n{_about(section)}\n\n{_table(section, f'{path}.')}")
        if path == "policy":
            parts.append(f"## policy.table\n\n{_about(PolicyRow)}\n\n{_table(PolicyRow, '')}")
    return "".join(parts).rstrip() + "\n"


def rules_page() -> str:
    """`docs/reference/rules.md`."""
    shared = _table(RuleSettings, "rules.RULE.")
    parts = [
        "# Rules\n\n"
        "Each rule looks for one kind of sign. `midwatch rules list` prints them with the "
        "thresholds in force; [detection.md](../detection.md) says what they find. Two notices "
        "that rest on different evidence make a warning.\n\n",
        table(HEAD, [_row(Rules, "agreement", "rules.")]),
        f"Every rule has these keys:\n\n{shared}",
    ]
    for name, settings in rule_settings(Rules()).items():
        rule = type(settings)
        keys = [
            key
            for key in rule.model_fields
            if key not in _SHARED
            or rule.model_fields[key].default != RuleSettings.model_fields[key].default
        ]
        rows = [_row(rule, key, f"rules.{name}.") for key in keys]
        evidence = f"Evidence: {EVIDENCE[name].value}."
        parts.append(f"## {name}\n\n{_about(rule)} {evidence}\n\n{table(HEAD, rows)}")
    return "".join(parts).rstrip() + "\n"


def tasks_page() -> str:
    """`docs/reference/tasks.md`."""
    parts = [
        "# Task files\n\nEvery key of the files that `midwatch run FILE` and `midwatch submit "
        "FILE` read. `midwatch config check FILE` says what is wrong in one.\n\n"
    ]
    for path, section in (
        ("", TaskFile),
        ("tasks", TaskSpec),
        ("defaults", Defaults),
        ("workers.NAME", WorkerSpec),
        ("models.ROLE", ModelSpec),
        ("budget", BudgetSpec),
        ("plan", PlanStepSpec),
        ("acceptance", FileCheck),
    ):
        head = f"## {path}\n\n{_about(section)}\n\n" if path else ""
        parts.append(head + _table(section, ""))
    return "".join(parts).rstrip() + "\n"


def undocumented() -> list[str]:
    """Keys without a docstring that says what they mean."""
    of = [*(section for _, section in _sections(Settings)), PolicyRow, TaskFile, TaskSpec, Defaults]
    of += [WorkerSpec, ModelSpec, BudgetSpec, PlanStepSpec, FileCheck]
    of += [type(each) for each in rule_settings(Rules()).values()]
    return [
        f"{section.__name__}.{name}"
        for section in of
        for name, field in section.model_fields.items()
        if _section(field) is None and not _docs(section).get(name)
    ]


def _sections(of: type[Section], path: str = "") -> Iterator[tuple[str, type[Section]]]:
    """The sections below one but the rules, depth first."""
    for name, field in of.model_fields.items():
        section = _section(field)
        if section is not None and section is not Rules:
            yield path + name, section
            yield from _sections(section, f"{path}{name}.")


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _docs(section: type[Section]) -> dict[str, str]:
    return attribute_docs(TaskSpec if section is Defaults else section)


def _about(section: type[Section]) -> str:
    return inspect.cleandoc(section.__doc__ or "")


def _table(section: type[Section], prefix: str) -> str:
    names = [
        name
        for name, field in section.model_fields.items()
        if _section(field) in (None, BudgetSpec, Defaults)
    ]
    return table(HEAD, [_row(section, name, prefix) for name in names])


def _row(section: type[Section], name: str, prefix: str) -> tuple[str, str, str, str]:
    field = section.model_fields[name]
    meaning = _docs(section).get(name, "")
    return f"`{prefix}{name}`", _values(field.annotation, field.metadata), _default(field), meaning


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined or value is None or value in ("", (), {}):
        return ""
    if isinstance(value, Section):
        return "see there"
    said: object = TypeAdapter[Any](field.rebuild_annotation()).dump_python(value, mode="json")
    text = said if isinstance(said, str) else json.dumps(said)
    file = "[the commented file](../../configs/midwatch.yaml)"
    return f"`{text}`" if len(text) <= _LONG else file


def _values(kind: Any, metadata: list[Any]) -> str:
    """What may stand there, in words."""
    for each in metadata:
        if isinstance(each, BeforeValidator) and each.func in (parse_length, parse_duration):
            steps = each.func is parse_length
            return "steps (`3`) or time (`30s`)" if steps else "time (`30s`, `24h`), or `0`"
    if get_origin(kind) is Annotated:
        inner, *more = get_args(kind)
        return _values(inner, [*metadata, *more])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{each.value}`" for each in kind)
    if isinstance(kind, type) and issubclass(kind, Section):
        return "a mapping"
    if get_args(kind):
        return _of_several(kind, metadata)
    limits = _range(metadata)
    return f"{_BARE[kind]}{', ' if limits else ''}{limits}"


def _of_several(kind: Any, metadata: list[Any]) -> str:
    args = [each for each in get_args(kind) if each is not NoneType]
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            return " or ".join(dict.fromkeys(_values(each, metadata) for each in args))
        case origin if origin is Literal:
            return ", ".join(f"`{each}`" for each in args)
        case origin if origin is dict:
            return f"mapping: {_values(args[0], [])} to {_values(args[1], [])}"
        case _:
            return f"list of: {_values(args[0], [])}"


def _range(metadata: list[Any]) -> str:
    flat = [part for each in metadata for part in getattr(each, "metadata", [each])]
    least = [f"from {each.ge:,}" for each in flat if isinstance(each, Ge)]
    least += [f"more than {each.gt:,}," for each in flat if isinstance(each, Gt)]
    most = [f"to {each.le:,}" for each in flat if isinstance(each, Le)]
    most += [f"less than {each.lt:,}" for each in flat if isinstance(each, Lt)]
    most += [f"at most {each.max_length:,} characters" for each in flat if isinstance(each, MaxLen)]
    return " ".join([*least, *most]).rstrip(",")
