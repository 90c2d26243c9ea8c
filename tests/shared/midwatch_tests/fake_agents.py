"""Fake agents that speak ACP as workers of a run."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midwatch_agents.sandbox import MARK
from midwatch_monitor import records as r
from midwatch_monitor.config.settings import Mode
from midwatch_tests.harness import RunHarness

GREETS = {"write": "hello.txt", "text": "hello"}
TASKS = """
workers: {{fake: {{kind: acp, command: {command}, {more}}}}}
models: {{supervisor: none, worker: none}}
tasks: [{{id: hello, goal: Write hello.txt., worker: fake, acceptance: [test -f hello.txt],
  budget: {{requests: null}}}}]  # what waits makes steps, and more of them on a slow machine
"""
Fake = Callable[..., str]


def fake_in(folder: Path) -> Fake:
    """Writes task files for a fake agent, whose script lies in a folder."""

    def written(*acts: dict[str, Any], more: str = "", **script: Any) -> str:
        file = folder / "script.json"
        file.write_text(json.dumps({"acts": acts, **script}))
        command = [sys.executable, "-m", "midwatch_agents.acp.fake_agent", str(file)]
        return TASKS.format(command=json.dumps(command), more=more)

    return written


async def together(run: Awaitable[int], person: Awaitable[None]) -> int:
    """The exit code of a run that a person speaks to."""
    code, _ = await asyncio.gather(run, person)
    return code


async def waits(harness: RunHarness, *, attempt: int | None = None) -> bool:
    """Whether the attempt waits for a person."""
    last = await harness.last(r.AttemptTransition, attempt=attempt)
    return last.lifecycle is r.Lifecycle.INPUT_REQUIRED


def beside(harness: RunHarness, tasks: str) -> str:
    """The tasks, and one beside them that is at work until it hears `Enough.`.

    No rule judges, that nobody speaks to it before.
    """
    harness.set(mode=Mode.OFF)
    other = harness.folder / "other.json"
    works = {"until": "Enough\\.", "acts": [{"run": "date +%N"}, {"wait": 0.3}]}
    other.write_text(json.dumps({"acts": [works, GREETS]}))
    waits = "{id: other, goal: Wait., worker: other, acceptance: [':'], budget: {requests: null}}"
    tasks = tasks.replace("tasks: [", f"tasks: [{waits}, ")
    command = json.dumps([sys.executable, "-m", "midwatch_agents.acp.fake_agent", str(other)])
    return tasks.replace("workers: {", f"workers: {{other: {{kind: acp, command: {command}}}, ")


def alive(harness: RunHarness) -> list[str]:
    """The processes that bear the mark of an attempt of this run."""
    return [*_alive(harness).values()]


def pids(harness: RunHarness, of: str) -> list[int]:
    """The ids of those whose command contains a text."""
    return [pid for pid, command in _alive(harness).items() if of in command]


def _alive(harness: RunHarness) -> dict[int, str]:
    marked = f"{MARK}={harness.home}".encode()
    found: dict[int, str] = {}
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and marked in (each / "environ").read_bytes():
                found[int(each.name)] = (each / "cmdline").read_text()
        except OSError:
            continue
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an agent asks, where it stands in the journal."""

    id: int
    attempt: r.Attempt
    request: r.PermissionRequest


async def questions(harness: RunHarness) -> list[Asked]:
    """All that was asked so far."""
    return [
        Asked(
            id=each.id,
            attempt=await harness.journal.attempt(each.attempt or 0),
            request=each.record,
        )
        for each in await harness.journal.entries()
        if isinstance(each.record, r.PermissionRequest)
    ]


async def question(harness: RunHarness, number: int = 1) -> Asked:
    """So many questions, once they are there: the last of them."""

    async def there() -> bool:
        return len(await questions(harness)) >= number

    await harness.until(there)
    return (await questions(harness))[number - 1]


async def enough(harness: RunHarness, asked: Asked) -> None:
    """Let the task beside it end."""
    nudge = r.Intervention(action=r.Action.NUDGE, by=r.Actor.OPERATOR, message="Enough.")
    await harness.say(nudge, attempt=3 - asked.attempt.id)
