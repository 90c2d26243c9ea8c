"""What `Watch` adds to a pydantic-ai step: the same scripted agent, watched and not, in pairs.

Run it with `uv run python tests/benchmarks/watch_overhead.py [--steps 100] [--pairs 31]`. Ratios of
one run compare; milliseconds of two runs do not, because the machine's clock does not stand still.

The steps of this agent follow each other in milliseconds, and the watch asks for guidance four
times a second, and commits twice, at most. A step of a real agent takes seconds: then it is once a
request each, which is some two milliseconds more.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from shared import arguments, compared, show

from midwatch_monitor.journal import Journal
from midwatch_tests.rounds import alternate
from midwatch_tools import Watch

OUTPUT = "line of output\n" * 90
"""About 1.3 kB, the mean of what tools of real coding agents return."""


def agent(steps: int) -> Agent[None, str]:
    """An agent that calls one tool `steps` times, each time with other arguments."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        done = len(messages) // 2
        if done >= steps:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("work", {"i": done})])

    made = Agent(FunctionModel(answer))

    @made.tool_plain
    async def work(i: int) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"{i}: {OUTPUT}"

    return made


async def rate(steps: int, watch: Watch | None) -> float:
    """Steps a second of CPU time in one whole run, the journal's threads included."""
    began = time.process_time()
    capabilities = [] if watch is None else [watch]
    await agent(steps).run(
        "go", capabilities=capabilities, usage_limits=UsageLimits(request_limit=None)
    )
    return steps / (time.process_time() - began)


def weight(journal: Path) -> int:
    """Bytes on disk, what SQLite has not merged yet included."""
    return sum(each.stat().st_size for each in journal.parent.glob(f"{journal.name}*"))


async def measure(steps: int, pairs: int) -> dict[str, object]:
    """CPU time watched by plain, and what a step takes in the journal."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "root").mkdir()
        path = Path(folder) / "journal.db"
        async with await Journal.open(path):
            pass
        watch = Watch(journal=str(path), root=Path(folder) / "root")
        ways = {"plain": lambda: rate(steps, None), "watched": lambda: rate(steps, watch)}
        rounds = await alternate(ways, pairs)
        size = await asyncio.to_thread(weight, path)
    bytes_a_step = round(size / (steps * (pairs + 1)))
    return compared("cpu", rounds, "plain", "watched") | {"journal_bytes_a_step": bytes_a_step}


if __name__ == "__main__":
    given = arguments(__doc__, steps=100, pairs=31).parse_args()
    show(asyncio.run(measure(given.steps, given.pairs)), as_json=given.json)
