"""`midwatch config`: check files, and print the configuration in force."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, cast

import yaml
from cyclopts import App, Parameter
from pydantic import ValidationError

from midwatch_monitor.config.document import Document, dotted_path, read_document
from midwatch_monitor.config.settings import ConsoleSettings
from midwatch_monitor.config.source import load_settings, load_tasks
from midwatch_monitor.config.tasks import ModelSpec, Role, TaskFile, WorkerSpec
from midwatch_monitor.errors import ConfigError, FilePosition, UsageError
from midwatch_supervisor.cli.output import write_either, write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.tui.keys import check_console

app = App(name="config")


@app.command
def check(
    *files: Annotated[Path, Parameter(help="Configuration and task files.", required=True)],
    json: JsonOption = False,
) -> int:
    """Check configuration and task files, and print every error.

    A workspace that is not on this machine is only a warning: nodes may have it. So is a budget in
    dollars for a model without a published price.
    """
    found = [(file, _find_problems(file)) for file in files]
    for file, problems in found:
        warnings = [] if problems else _find_warnings(file)
        fields = {"problems": [*map(_problem_fields, problems)], "warnings": warnings}
        if json:
            write_json({"type": "config", "file": str(file), "ok": not problems, **fields})
            continue
        write_line(*[f"{file}: ok"] * (not problems))
        write_error(*(f"warning: {each}" for each in warnings), *(each.line for each in problems))
    return 2 if any(problems for _, problems in found) else 0


@app.command
def show(*, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Print the configuration in force, as YAML."""
    settings = settings_in_force(config).model_dump(mode="json")
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    write_either(settings, *text.splitlines(), json=json)


def _find_problems(file: Path) -> list[ConfigError]:
    document = read_document(file)
    found: list[ConfigError] = []
    try:
        if document.holds_tasks:
            found += _of_idle_workers(document, load_tasks(file))
        else:
            load_settings([file], environ={})
    except ConfigError as error:
        found += error, *error.others
    if document.holds_tasks:
        found += _of_workers(document)
    else:
        found += _of_console(document)
    return sorted(found, key=lambda error: error.place.line or 0)


def _find_warnings(file: Path) -> list[str]:
    """Return what is no error and yet may be wrong with a file, if it has no problems."""
    from midwatch_supervisor.cli.run.start_warnings import unknown_prices
    from midwatch_supervisor.present.assignment import assignments, workspace_problems

    if not read_document(file).holds_tasks:
        return []
    tasks = assignments(load_tasks(file), file.resolve().parent)
    prices = (f"{file}: task {each}" for each in unknown_prices(tasks))
    return [*workspace_problems(tasks, file=file), *prices]


def _of_workers(document: Document) -> Iterator[ConfigError]:
    """Yield errors for what workers name but is missing or cannot be imported, and for models that
    do not exist or cannot be used.
    """
    from midwatch_agents.models import check_model
    from midwatch_agents.worker import wrong_parts  # the import takes a second

    named = [(("models", role), model) for role, model in _mapping_at(document, "models").items()]
    for name, written in _mapping_at(document, "workers").items():
        with suppress(ValidationError):  # already reported
            spec = WorkerSpec.model_validate(written)
            for keys, error in wrong_parts(spec, name):
                yield _error_at(document, dotted_path(("workers", name, *keys)), str(error))
            named += [(("workers", name, "model"), spec.model)] if spec.model else []
            others = enumerate(spec.other_models)
            named += [(("workers", name, "other_models", at), model) for at, model in others]
    for keys, written in named:
        with suppress(ValidationError):
            try:
                check_model(ModelSpec.model_validate(written))
            except UsageError as error:
                yield _error_at(document, dotted_path(keys), str(error))


def _of_idle_workers(document: Document, file: TaskFile) -> list[ConfigError]:
    """Return errors for tasks' workers that have no model."""
    from midwatch_agents.worker import check_has_model

    found: dict[str, ConfigError] = {}
    for task in file.tasks:
        for name in (file.worker_of(task)[0], *task.other_workers):
            spec = file.workers.get(name) or WorkerSpec()
            try:
                check_has_model(spec, name, file.model_of(Role.WORKER, spec))
            except UsageError as error:
                found.setdefault(name, _error_at(document, "models", str(error)))
    return list(found.values())


def _of_console(document: Document) -> Iterator[ConfigError]:
    """Yield errors in the console's keys and theme."""
    with suppress(ValidationError):  # already reported
        console = ConsoleSettings.model_validate(_mapping_at(document, "console"))
        try:
            check_console(console)
        except ConfigError as error:
            for each in (error, *error.others):
                yield _error_at(document, each.key, each.problem, each.nearest)


def _error_at(document: Document, key: str, problem: str, nearest: str = "") -> ConfigError:
    lines = (line for keys, line in document.lines.items() if dotted_path(keys) == key)
    place = FilePosition(file=document.file, line=next(lines, None))
    return ConfigError(place, key, problem, nearest=nearest)


def _mapping_at(document: Document, key: str) -> dict[str, object]:
    value = document.data.get(key)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _problem_fields(problem: ConfigError) -> dict[str, object]:
    fields = {"line": problem.place.line, "key": problem.key, "problem": problem.problem}
    return {**fields, "nearest": problem.nearest or None}
