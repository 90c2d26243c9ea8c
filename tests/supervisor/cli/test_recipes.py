"""Each recipe of the documentation is followed word by word in an empty folder, and does it.

Stand-ins play the models, Claude Code and Codex (an agent that speaks ACP), and the instrumented
program (a real exporter of OpenTelemetry); all else is real.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from typing import TypeVar

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Intervention, Lifecycle, TaskTransition
from midwatch_tests.model_server import calling, looping, saying, serving
from midwatch_tests.ports import free_port
from midwatch_tests.receivers import webhook
from midwatch_tests.recipe import Recipe, recipe

pytestmark = pytest.mark.long

T = TypeVar("T")
WRONG = "def cents(amount):\n    return int(amount * 100)\n"
RIGHT = "def cents(amount):\n    return int(amount * 100 + 0.5)\n"
CHECK = "python3 -m unittest tests.test_rounding"
TEST = """
import unittest
from rounding import cents

class Rounding(unittest.TestCase):
    def test_half_a_cent(self):
        self.assertEqual(cents(0.29), 29)
"""
MENDS = {"write": "rounding.py", "text": RIGHT}
TELLS = {"write": "CHANGELOG.md", "text": "Cents are rounded.\n"}
CIRCLES = {
    "until": "Do not run it again|Describe the rounding",
    "acts": [{"run": CHECK}, {"wait": 0.3}],
}
"""What a worker does that runs a failing test until it is told that this does not help."""
SPANS = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from midwatch_tests.collector import tool_span, tracing
with tracing(OTLPSpanExporter(timeout=10), "weather") as tracer:
    for _ in range(6):
        tool_span(tracer, "look_up", '{"city": "Oslo"}', "no answer")
"""


@pytest.fixture
def empty_folder(tmp_path: Path) -> Path:
    (made := tmp_path / "empty").mkdir()
    return made


def make_repository(folder: Path) -> None:
    """Make a folder a repository with a function that rounds wrongly."""
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_rounding.py").write_text(TEST)
    (folder / "rounding.py").write_text(WRONG)
    person = "git config user.email ada@example.org && git config user.name Ada"
    commit = f"git init -q && {person} && git add . && git commit -qm Begin"
    subprocess.run(["bash", "-c", commit], cwd=folder, check=True)


def add_stand_in(followed: Recipe, name: str, *acts: object) -> None:
    """An agent that speaks ACP and does this. In the sandbox it writes beside its script."""
    script = followed.programs / "script.json"
    script.write_text(json.dumps({"acts": acts}))
    begin = f"exec {sys.executable} -m midwatch_agents.acp.fake_agent"
    followed.program(name, f"cp {script} /tmp/script.json && {begin} /tmp/script.json")


async def read_records(location: str, kind: type[T]) -> list[T]:
    """All that a journal holds of one kind."""
    async with await Journal.open_to_read(location) as journal:
        found = [each.record async for each in journal.all_entries()]
    return [each for each in found if isinstance(each, kind)]


async def wait_until(happened: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait for what other processes do."""
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(200):
        while not (await now if isawaitable(now := happened()) else now):
            await nothing.wait(0.2)


@pytest.mark.usefixtures("bubblewrap")
async def test_claude_code_overnight_with_a_ladder(empty_folder: Path) -> None:
    make_repository(empty_folder)
    async with recipe("claude-code-overnight", empty_folder) as followed:
        add_stand_in(followed, "claude-agent-acp", CIRCLES, MENDS)
        await followed.follow()
        (nudge,) = await read_records(str(empty_folder / ".midwatch" / "journal.db"), Intervention)
    assert nudge.action is Action.NUDGE
    assert (empty_folder / "rounding.py").read_text() == RIGHT  # it was merged


async def test_an_agent_of_my_own(empty_folder: Path) -> None:
    calls = [calling("look_up", '{"city": "Oslo"}', f"c-{n}") for n in range(100)]
    nudged = "Stop repeating it"
    async with serving(*calls, saying("It is cold."), by_turn=True, until=nudged) as model:
        key = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        async with recipe("pydantic-ai-agent", empty_folder, **key) as followed:
            followed.swaps = {"openai:gpt-5": "openai-chat:gpt-4o"}
            await followed.follow()
    _, printed, status, shown = followed.said
    assert "It is cold." in printed
    assert "repeated_call" in printed
    assert "ended" in status
    assert "nudge by policy: delivered" in shown
    assert nudged in json.dumps(model.asked[-1]["messages"][-3:])


async def test_a_program_that_sends_spans(empty_folder: Path) -> None:
    port = str(free_port())
    shared = str(Path(__file__).parents[2] / "shared")
    async with recipe("langgraph", empty_folder, PYTHONPATH=shared) as followed:
        followed.swaps = {"4318": port, "otlp --headless": f"otlp --headless --port {port}"}
        (empty_folder / "agent.py").write_text(SPANS)
        followed.program("opentelemetry-instrument", 'exec "$@"')
        await followed.follow()
    assert any(f"spans to http://127.0.0.1:{port}" in each for each in followed.said)
    assert "weather-" in followed.said[-1]
    assert "stuck" in followed.said[-1]


@pytest.mark.matrix
@pytest.mark.usefixtures("bubblewrap")
async def test_a_fleet_of_codex_workers(empty_folder: Path, tmp_path: Path, postgres: str) -> None:
    (shop := tmp_path / "shop").mkdir()
    make_repository(shop)
    async with recipe("codex-fleet", empty_folder) as followed:
        followed.swaps = {
            "postgresql://midwatch@hub.example.org/midwatch": postgres,
            "https://git.example.org/shop.git": shop.as_uri(),
        }
        add_stand_in(followed, "codex-acp", CIRCLES, MENDS, TELLS)

        async def is_over() -> bool:
            ends = [e for e in await read_records(postgres, TaskTransition) if e.lifecycle.over]
            assert {each.lifecycle for each in ends} <= {Lifecycle.COMPLETED}
            return len(ends) == 2

        followed.before = {"midwatch status": lambda: wait_until(is_over)}
        await followed.follow()
        acts = {each.action for each in await read_records(postgres, Intervention)}
    assert acts == {Action.NUDGE}


async def test_called_on_the_phone(empty_folder: Path) -> None:
    (empty_folder / "tasks.yaml").write_text("""
models: {worker: {name: "openai-chat:gpt-4o"}, supervisor: none}
tasks: [{id: rounding, goal: Mend it., acceptance: ["false"], budget: {requests: 1000}}]
""")
    async with webhook() as phone, serving(*looping(1000)) as model:
        key = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        sandbox = {"MIDWATCH_RUN__SANDBOX": "off", "MIDWATCH_POLICY__LADDER": '["ask_operator"]'}
        async with recipe("phone", empty_folder, **key, **sandbox) as followed:
            followed.swaps = {"ntfys://ntfy.sh/a-topic-that-nobody-guesses": phone.ntfy}
            followed.beside = ("run",)
            asked = list[int]()

            async def wait_for_call() -> None:
                await wait_until(
                    lambda: any(b"waits for an answer" in each for each in phone.bodies)
                )
                asked.append(len(model.asked))

            followed.before = {"midwatch tell": wait_for_call}
            await followed.follow()
            await wait_until(lambda: len(model.asked) > asked[0])
    assert b"this is a test" in phone.bodies[0]
    assert "Round half up" in json.dumps(model.asked[asked[0]]["messages"][-2:])
