"""A program that is one node after the other, each in a process of its own.

It reads lines `FOLDER NODE SECONDS PUSH` and answers each with the exit code of a node that began
the run in that folder, or went on with it, until the end; negative for the signal that ended it.
The worker's tool `die` kills the node where the folder holds a file `die-NODE`. Processes are
forked from this one, which has imported all that they need.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import Role, TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Entry, holder_of
from midwatch_supervisor.fleet.queue.submission import pin_commits
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct, load_run
from midwatch_supervisor.workspaces.snapshot_store import SnapshotStore


async def put(ctx: RunContext[object], path: str, text: str) -> str:
    """Write a file."""
    folder = Path(await ctx.workspace.working_dir())
    await asyncio.to_thread(_write, folder / path, text)
    return f"wrote {path}"


def _write(file: Path, text: str) -> None:
    with Path("acts.log").open("a") as log:
        log.write(f"{file.name}\n")
    file.write_text(text)


def die() -> str:
    """Kill this node where that is wanted."""
    if Path(f"die-{os.environ.get('NODE', '')}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def script_for(role: Role, key: str) -> Script:
    """Two files one after the other, named after the task, and then the end of a node."""

    def write(number: int) -> Turn:
        args = f'{{"path": "{key}-{number}.txt", "text": "{key} {number}"}}'
        return Turn(calls=(Call(tool="put", args=args),))

    turns = (write(1), write(2), Turn(calls=(Call(tool="die"),)), Turn(say="Done."))
    return Script(phases=(Phase(turns=turns),))


async def work(journal: Journal, node: str, home: Path, tasks: str, settings: Settings) -> int:
    """Begin the run, or resume it."""
    if runs := await journal.runs():
        resources, jobs = await load_run(journal, runs[0], home=home, learning=RunLearning)
    else:
        file = TaskFile.model_validate(yaml.safe_load(tasks))
        wanted = await pin_commits(assignments(file, home.parent))
        resources, jobs = await begin_run(
            journal, wanted, source="", settings=settings, home=home, learning=RunLearning
        )
    store = SnapshotStore(journal=journal, home=home, node=node, settings=settings.fleet)
    holder = holder_of(node, "1")
    resources = replace(resources, snapshot_store=store, node=node, holder=holder)
    return await conduct(resources, jobs, _ignore)


async def _ignore(entries: Sequence[Entry]) -> None:
    return


def run_node(folder: str, name: str, seconds: str, push: str) -> int:
    """Run one node."""
    os.environ["NODE"] = name
    os.chdir(folder)
    settings = Settings(
        monitor=MonitorSettings(poll_seconds=0.05, outcome_after=1000),
        run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=1),
        fleet=FleetSettings(save_seconds=float(seconds), push=push == "push"),
    )
    home, tasks = Path(f"home-{name}").resolve(), Path("tasks.yaml").read_text()

    async def run() -> int:
        async with await Journal.open("journal.db") as journal:
            return await work(journal, name, home, tasks, settings)

    return asyncio.run(run())


def run_in_fork(*words: str) -> int:
    """The exit code of a process that is a node; negative for the signal that ended it."""
    process = os.fork()
    if process == 0:
        code = 70
        try:
            code = run_node(*words)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main() -> None:
    """Answer one line after the other."""
    for line in sys.stdin:
        sys.stdout.write(f"{run_in_fork(*line.rsplit(maxsplit=3))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
