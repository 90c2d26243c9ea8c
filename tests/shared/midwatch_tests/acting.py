"""What scripted workers do: their turns, tools that many have, and the task files of their runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic_ai import RunContext

from midwatch_agents.scripted import Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_tests.factories import call, turn

DONE = turn(say="Done.")
REPORT = call(
    "report_error",
    what_happened="The file held the wrong word.",
    category="permanent",
    root_cause="I took the wrong word from the goal.",
    change="I write the word one.",
)
"""What a second attempt has to call before anything else."""


def script(*turns: Turn, again: Sequence[Turn] = ()) -> Script:
    """These turns; `again` are those of later attempts, if they are other ones."""
    later = (Phase(turns=tuple(again)),) if again else ()
    return Script(phases=(Phase(turns=turns),), again=later)


def putting(path: str, text: str) -> Turn:
    """A call of the tool `put`."""
    return turn(call("put", path=path, text=text))


async def put(ctx: RunContext[object], path: str, text: str = "text") -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, text.encode())
    return "written"


async def gate(ctx: RunContext[object], leaves: str = "") -> str:
    """Leave a file, if one is named, and wait until there is a file `go` beside the run's home."""
    folder = Path(await ctx.workspace.working_dir())
    if leaves:
        (folder / leaves).write_text("here")
    nothing = LocalBus().subscribe()
    while not (folder.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "open"


def task_file(
    module: str, *tasks: str, tools: Sequence[Callable[..., object]] = (), defaults: str = ""
) -> str:
    """Tasks, each as what stands between braces, for a worker that plays a module's scripts."""
    named = [f"{tool.__module__}:{tool.__name__}" for tool in tools]
    return f"""
        models: {{worker: "scripted:{module}@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: {named}}}}}
        defaults: {{{defaults}}}
        tasks: [{", ".join(f"{{{task}}}" for task in tasks)}]
    """


def agent_file(module: str, agent: str, more: str = "max_attempts: 1") -> str:
    """The task `fix` for an agent of a module."""
    return f"""
        models: {{worker: none}}
        workers: {{coder: {{agent: "{module}:{agent}"}}}}
        tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], {more}}}]
    """
