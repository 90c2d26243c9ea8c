"""Warnings before a run begins, while a person is still there to act on them."""

import asyncio
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from midwatch_agents.acp.presets import brings_model, speaks_acp
from midwatch_agents.models import has_price
from midwatch_agents.sandbox import OPEN, SandboxKind
from midwatch_monitor.errors import MidwatchError
from midwatch_supervisor.present.assignment import Assignment
from midwatch_supervisor.present.numbers import count_noun, dollars
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.workspaces.task_workspace import uncommitted_names
from midwatch_tools.git import is_repository

_NAMED = 3
"""Number of uncommitted files that are named."""
_FIRST_WORD = re.compile(r"\s*([A-Za-z0-9][\w.+-]*)(?=\s|$)")
"""Matches the first word of a command, if it is the plain name of a program."""
_OF_SHELL = frozenset(
    {
        *("alias", "case", "cd", "command", "eval", "exec", "exit", "export", "for", "if", "read"),
        *("set", "shift", "source", "time", "trap", "type", "ulimit", "umask", "unset", "until"),
        *("wait", "while"),
    }
)
"""Commands that the shell itself provides."""


def sandbox_words(sandbox_kind: SandboxKind, wanted: Sequence[Assignment] | None) -> str:
    """Say what workers' commands run in, and what that does not prevent.

    `None` if the tasks are not known yet.
    """
    if sandbox_kind is SandboxKind.NONE:
        return f"none ({OPEN})"
    specs = [spec for each in wanted or () for spec in (each.spec, *each.others.values())]
    known = wanted is not None and not any(map(speaks_acp, specs))
    also = "" if known else "; third-party agents also have the network and their own state"
    return (
        f"{sandbox_kind} (none of your files but the workspace, no network unless "
        f"`run.network`{also})"
    )


async def uncommitted_warnings(wanted: Sequence[Assignment], *, besides: Path) -> list[str]:
    """Return a sentence for each repository with uncommitted changes, which workers will not see.

    `besides` is the task file, which workers do not need.
    """
    sources = dict.fromkeys(each.workspace for each in wanted if each.workspace is not None)
    told: list[str] = []
    besides = await asyncio.to_thread(besides.absolute)
    for source in sources:
        if not await asyncio.to_thread(is_repository, source):
            continue
        try:
            found = await uncommitted_names(source)
        except MidwatchError:
            continue  # its first attempt reports the problem
        names = [name for name in found if source / name != besides]
        if names:
            more = ", …" if len(names) > _NAMED else ""
            told.append(
                f"{count_noun(len(names), 'uncommitted file')} in {source}: workers begin with the "
                f"last commit and do not see {'it' if len(names) == 1 else 'them'} "
                f"({', '.join(names[:_NAMED])}{more})"
            )
    return told


def task_warnings(wanted: Sequence[Assignment]) -> list[str]:
    """Return what will go wrong with tasks on this machine, whatever their workspaces are."""
    return [*missing_programs(wanted), *unknown_prices(wanted)]


def unknown_prices(wanted: Sequence[Assignment]) -> list[str]:
    """Return a warning for each model to which a task's limit in dollars cannot be applied."""
    return [
        f"{each.task.id}: no price is published for {model}, so the limit of ${dollars(limit)} has "
        "no effect"
        for each in wanted
        if (limit := each.task.budget.cost_usd) is not None
        for model in _unpriced_models(each)
    ]


def _unpriced_models(wanted: Assignment) -> list[str]:
    """Return the models of its workers without a published price; other makers' agents and
    ready-made ones are left out, because nobody knows their models here.
    """
    workers = {name: wanted.worker_spec(name) for name in (wanted.worker, *wanted.others)}
    models = (
        model
        for name, spec in workers.items()
        if not brings_model(spec)
        for model in (wanted.worker_model(name), *spec.other_models)
    )
    found = (model.name for model in models if model is not None and not has_price(model))
    return list(dict.fromkeys(found))


def missing_programs(wanted: Sequence[Assignment]) -> list[str]:
    """Return a warning for each check that cannot pass because its program is not installed."""
    commands = [(each.task.id, check) for each in wanted for check in each.task.acceptance]
    found = [
        (task, check, word[1])
        for task, check in commands
        if isinstance(check, str) and (word := _FIRST_WORD.match(check))
    ]
    return [
        f"{task}: no program {name} is on PATH, so its check fails: {brief(check, 80)}"
        for task, check, name in found
        if name not in _OF_SHELL and shutil.which(name) is None
    ]
