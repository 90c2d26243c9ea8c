"""Loads the configuration: defaults, files in order, the environment."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from midwatch_monitor.config.document import Document, Keys, dotted_path, read_document
from midwatch_monitor.config.problem import Origins, Scope, ValueOrigin
from midwatch_monitor.config.rules import Graded, Rules, RuleSettings
from midwatch_monitor.config.section import Refusal, Section, has_right_port, nearest_to
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import TaskFile, contradictions
from midwatch_monitor.errors import ConfigError, FilePosition

log = logging.getLogger(__name__)

_PREFIX = "MIDWATCH_"
ENVIRONMENT = FilePosition(file=Path("environment"))
"""Stands for the environment where the file of a value is expected."""


def variables(environ: Mapping[str, str]) -> dict[Keys, ValueOrigin]:
    """Return the settings in environment variables, by their keys.

    A name without `__` sets nothing (`MIDWATCH_CONFIG` is no setting), except `MIDWATCH_MODE`.
    """
    return {
        keys: ValueOrigin(place=ENVIRONMENT, key=name)
        for name in environ
        if name.startswith(_PREFIX)
        and (keys := tuple(name.removeprefix(_PREFIX).lower().split("__")))
        and (len(keys) > 1 or keys == ("mode",))
    }


def read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of those variables, nested as in a file. Lists and mappings are in JSON."""
    names = [origin.key for origin in variables(environ).values()]
    if not names:
        return {}
    # This import takes a sixth of a second, and most processes have no such variable.
    from pydantic_settings import BaseSettings, EnvSettingsSource

    class Model(Settings, BaseSettings):
        """The settings in the form that pydantic-settings needs; never instantiated."""

    class Source(EnvSettingsSource):
        def _load_env_vars(self) -> Mapping[str, str | None]:
            return {name.lower(): environ[name] for name in names}

        def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
            try:
                return super().decode_complex_value(field_name, field, value)
            except ValueError:
                return value  # not JSON: the model says what is expected there

    return Source(Model, env_prefix=_PREFIX, env_nested_delimiter="__")()


def load_settings(files: Sequence[Path], *, environ: Mapping[str, str]) -> Settings:
    """Load the configuration: the defaults, overridden by the files in order, then by the
    environment.

    Mappings are merged key by key, anything else is replaced; a key without a value changes
    nothing. Raises ConfigError with the first problem, in the order of the files, and with the
    others.
    """
    documents = [read_document(file) for file in files]
    data = cast("dict[str, object]", Settings().model_dump(mode="json"))
    origins: dict[Keys, ValueOrigin] = {}
    for document in documents:
        data = _merge(data, document.data)
        origins |= origins_of(document)
    overrides, named = read_environment(environ), variables(environ)
    data = _merge(data, overrides)
    origins |= named
    for keys, origin in named.items():
        for end in range(1, len(keys)):
            origins.setdefault(keys[:end], origin)
    errors = [error for document in documents for error in document.problems]
    errors += _unknown_sections(named, overrides)
    scope = Scope(model=Settings, origins=origins, otherwise=ENVIRONMENT)
    settings = None
    try:
        settings = Settings.model_validate(data)
        errors += map(scope.refused, _wrong_values(settings))
    except ValidationError as found:
        errors += scope.errors(found)
    errors += _override_errors(data["rules"], origins)
    if errors or settings is None:
        _raise_first(errors, [*files, ENVIRONMENT.file])
    for keys, origin in origins.items():
        if why := _reason_dropped(keys):
            log.warning("%s: `%s` is no longer used: %s", origin.place, dotted_path(keys), why)
    return settings


def _reason_dropped(keys: Keys) -> str:
    """Return why a key of an earlier version is no longer used; empty for any other key."""
    section: type[Section] | None = Settings
    for key in keys[:-1]:
        field = section.model_fields.get(str(key)) if section else None
        kind = field.annotation if field else None
        section = kind if isinstance(kind, type) and issubclass(kind, Section) else None
    return section.gone.get(str(keys[-1]), "") if section else ""


def load_tasks(file: Path, text: str | None = None) -> TaskFile:
    """Load a task file, or its text; then `file` only names it.

    Raises ConfigError with the first problem, and with the others.
    """
    document = read_document(file, text)
    data = {key: value for key, value in document.data.items() if not _is_blank(key, value)}
    if not data and not document.problems:
        raise ConfigError(FilePosition(file=file), "", "is empty: a task file names its `tasks`")
    origins = _task_origins(document)
    scope = Scope(model=TaskFile, origins=origins, otherwise=FilePosition(file=file))
    tasks, errors = None, list(document.problems)
    try:
        tasks = TaskFile.model_validate(data)
    except ValidationError as found:
        # An unreadable value is not a missing one.
        errors += [error for error in scope.errors(found) if data or not document.problems]
        said = {error.key for error in errors}
        told = map(scope.refused, contradictions(data))
        errors += [error for error in told if error.key not in said]
    if errors or tasks is None:
        _raise_first(_without_repeats(errors), [file])
    return tasks


def _is_blank(key: str, value: object) -> bool:
    """Whether it is an optional part with all its content commented out."""
    return value is None and key in {"defaults", "models", "workers"}


def _without_repeats(errors: list[ConfigError]) -> list[ConfigError]:
    """Return each problem once: a wrong default is found again in every task that inherits it."""
    seen: dict[str, ConfigError] = {}
    for error in errors:
        seen.setdefault(error.line, error)
    return list(seen.values())


def _raise_first(errors: list[ConfigError], files: Sequence[Path]) -> NoReturn:
    """Raise the first problem in the order of the files, carrying the others."""
    order = {file: at for at, file in reversed(list(enumerate(files)))}
    raise ConfigError.of(
        sorted(errors, key=lambda error: (order.get(error.place.file, 0), error.place.line or 0))
    )


def origins_of(document: Document) -> dict[Keys, ValueOrigin]:
    """Return the origin of each value of a file."""
    return {
        keys: ValueOrigin(place=FilePosition(file=document.file, line=line))
        for keys, line in document.lines.items()
    }


def _task_origins(document: Document) -> dict[Keys, ValueOrigin]:
    """Return the origins of a task file, with inherited values leading to their default."""
    origins = origins_of(document)
    own = dict(origins)
    tasks = document.data.get("tasks")
    for at in range(len(cast("list[object]", tasks)) if isinstance(tasks, list) else 0):
        for keys, origin in own.items():
            if keys[0] == "defaults" and len(keys) > 1 and ("tasks", at, keys[1]) not in own:
                place = ValueOrigin(place=origin.place, key=dotted_path(keys))
                origins.setdefault(("tasks", at, *keys[1:]), place)
    return origins


def _merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Merge `over` into `base`, mapping by mapping; an empty value leaves a mapping as it is."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            result[key] = _merge(cast("dict[str, object]", below), cast("dict[str, object]", value))
        elif not (isinstance(below, dict) and value is None):
            result[key] = value
    return result


def _unknown_sections(named: Origins, overrides: Mapping[str, object]) -> list[ConfigError]:
    """Return variables that name no section, which the environment's reader ignores."""
    sections = list(Settings.model_fields)
    return [
        ConfigError(
            origin.place, origin.key, "unknown key", nearest=nearest_to(str(keys[0]), sections)
        )
        for keys, origin in named.items()
        if keys[0] not in overrides
    ]


def _unreachable_errors(rule: RuleSettings, usual: RuleSettings, scope: Scope) -> list[ConfigError]:
    if not (isinstance(rule, Graded) and isinstance(usual, Graded)):
        return []
    return [scope.refused(each, below=scope.prefix) for each in rule.unreachable(usual)]


_PLACEHOLDER = re.compile(r"\{(?!attempt\})[^{}]*\}")


def _wrong_values(settings: Settings) -> Iterator[Refusal]:
    """Return values that can never work. Not in Settings, which must read those of older runs."""
    for found in _PLACEHOLDER.findall(settings.notify.link):
        yield Refusal(f"only {{attempt}} is filled in, not {found}", at=("notify", "link"))
    targets = settings.notify.targets.items()
    addresses: dict[Keys, str] = {
        ("fleet", "broker", "url"): settings.fleet.broker.url,
        ("telemetry", "endpoint"): settings.telemetry.endpoint,
        **{("notify", "targets", name, "webhook"): each.webhook for name, each in targets},
    }
    for keys, url in addresses.items():
        if not has_right_port(url):
            yield Refusal("must have a port from 1 to 65535, or none", at=keys)


def _override_errors(written: object, origins: Origins) -> list[ConfigError]:
    """Return faults of otherwise valid thresholds: of several together, or for single workers and
    tools.
    """
    errors: list[ConfigError] = []
    rules = cast("dict[str, object]", written) if isinstance(written, dict) else {}
    for name, field in Rules.model_fields.items():
        kind = field.annotation
        if not (isinstance(kind, type) and issubclass(kind, RuleSettings)):
            continue
        try:
            rule = kind.model_validate(rules.get(name))
        except ValidationError:
            continue
        scope = Scope(model=kind, origins=origins, otherwise=ENVIRONMENT, prefix=("rules", name))
        errors += _unreachable_errors(rule, kind(), scope)
        for tool, changes in rule.tools.items():
            of_tool = replace(scope, prefix=(*scope.prefix, "tools", tool))
            theirs = kind.model_validate({**rule.model_dump(), **changes, "tools": {}})
            errors += _unreachable_errors(theirs, rule, of_tool)
        for worker, own in rule.workers.items():
            prefix = ("rules", name, "workers", worker)
            scope = Scope(model=kind, origins=origins, otherwise=ENVIRONMENT, prefix=prefix)
            try:
                theirs = kind.model_validate({**rule.model_dump(), **own, "workers": {}})
                errors += _unreachable_errors(theirs, rule, scope)
            except ValidationError as found:
                errors += scope.errors(found)
            if "workers" in own:
                at = origins.get((*prefix, "workers"), ValueOrigin(place=ENVIRONMENT))
                errors.append(
                    ConfigError(at.place, ".".join(prefix), "has no `workers` of its own")
                )
    return errors
