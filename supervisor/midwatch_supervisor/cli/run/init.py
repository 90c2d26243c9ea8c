"""`midwatch init`: a project's first two files."""

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_agents.model_choice import ModelChoice, choose_model
from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.output import require_absent, write_line, write_new
from midwatch_supervisor.cli.run.goal import ProjectCheck, find_check

_STARTERS = ("midwatch.yaml", "tasks.yaml")
_MODEL = "worker: openai:gpt-5-mini\n"
_TASKS = "tasks:\n"
_TESTS = """\
  - id: tests
    title: The tests pass
    goal: Make the project's tests pass. Change the code, and no test.
    # The project's own test command, found in {found_in}.
    acceptance:
      - {command}

"""
"""First task of a project whose test command was found."""


def init(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder to write to.")] = Path(),
    /,
    *,
    dry_run: Annotated[bool, Parameter(help="Only print what would be written.")] = False,
) -> None:
    """Write a commented configuration, and a task file with the project's own test command.

    Asks nothing and overwrites nothing.
    """
    targets = [folder / name for name in _STARTERS]
    for target in targets:
        require_absent(target)
    check, model = find_check(folder), _find_model()
    for target in targets:
        if not dry_run:
            write_new(target, _task_file_text(target.name, check, model), parents=True)
        write_line(f"{'would write' if dry_run else 'wrote'} {target}")
    if check is None:
        write_line("no test command was found: name the checks of your tasks in tasks.yaml")
    else:
        write_line(f"the check is `{check.command}`, found in {check.found_in}")
    if model is not None:
        write_line(f"the model is {model.name}: {model.why}")


def _find_model() -> ModelChoice | None:
    """Return a model that can be used on this machine, if there is one."""
    try:
        return choose_model(os.environ)
    except UsageError:
        return None


def _task_file_text(name: str, check: ProjectCheck | None, model: ModelChoice | None) -> str:
    text = files("midwatch_supervisor").joinpath("starter", name).read_text("utf-8")
    if check is not None:
        command = json.dumps(check.command, ensure_ascii=False)
        task = _TESTS.format(found_in=check.found_in, command=command)
        text = text.replace(_TASKS, _TASKS + task)
    return text if model is None else text.replace(_MODEL, f"worker: {json.dumps(model.name)}\n")
