"""`midwatch config`: is a file right, and what is in force."""

from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import App, Parameter

from midwatch_monitor.config.source import holds_tasks, load_settings, load_tasks
from midwatch_monitor.errors import ConfigError, FilePosition
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.tui.keys import check_console

app = App(name="config")


@app.command
def check(
    *files: Annotated[Path, Parameter(help="Configuration and task files.", required=True)],
    json: JsonOption = False,
) -> int:
    """Say whether configuration and task files are right, and everything that is wrong."""
    found = [(file, _problems(file)) for file in files]
    for file, problems in found:
        if json:
            write_json(
                {
                    "type": "config",
                    "file": str(file),
                    "ok": not problems,
                    "problems": [_fields(problem) for problem in problems],
                }
            )
        elif not problems:
            write_line(f"{file}: ok")
        else:
            for problem in problems:
                write_error(problem.line)
    return 2 if any(problems for _, problems in found) else 0


@app.command
def show(*, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Print the configuration in force, as YAML."""
    settings = settings_in_force(config).model_dump(mode="json")
    if json:
        write_json(settings)
    else:
        for line in yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).splitlines():
            write_line(line)


def _problems(file: Path) -> tuple[ConfigError, ...]:
    try:
        if holds_tasks(file):
            load_tasks(file)
        else:
            settings = load_settings([file], environ={})
            check_console(settings.console, FilePosition(file=file))
    except ConfigError as error:
        return (error, *error.others)
    return ()


def _fields(problem: ConfigError) -> dict[str, object]:
    return {
        "line": problem.place.line,
        "key": problem.key,
        "problem": problem.problem,
        "nearest": problem.nearest or None,
    }
