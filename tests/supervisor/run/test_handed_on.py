"""What one task taught reaches the next one of its project: whoever plans it, whoever does it."""

import pytest
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import play
from midwatch_monitor.config.tasks import Role
from midwatch_stage.acting import DONE, put, script, task_file
from midwatch_stage.factories import call, turn
from midwatch_stage.harness import RunHarness

_planner_heard: list[str] = []


REPORT = call(
    "report_error",
    what_happened="The parser failed.",
    category="permanent",
    root_cause="the parser cuts long lines",
    change="split them first",
)
PUT = call("put", path="out.txt")
SCRIPTS = {"first": script(turn(REPORT, PUT), DONE), "second": script(turn(PUT), DONE)}
PLAN = {"steps": [{"title": "mend it", "files": ["out.txt"], "confidence": 80}]}


def model_for(role: Role, key: str) -> Model:
    if role is Role.WORKER:
        return play(SCRIPTS[key])

    async def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _planner_heard.append(ModelMessagesTypeAdapter.dump_json(messages).decode())
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, PLAN)])

    return FunctionModel(plan)


def tasks(more: str) -> str:
    goal = "acceptance: ['true'], goal: Mend the parser of"
    first = f"id: first, {goal} long lines., plan: [Mend it]"
    second = f"id: second, {goal} short lines., depends_on: [first], {more}"
    return task_file(__name__, first, second, tools=(put,), defaults="workspace: project")


@pytest.fixture(autouse=True)
def _project(harness: RunHarness) -> None:  # pyright: ignore[reportUnusedFunction]
    (harness.folder / "project").mkdir()
    _planner_heard.clear()


WENT = "- first (run 1): completed after 1 attempt, 3 steps"


async def test_who_begins_reads_how_a_similar_task_went(harness: RunHarness) -> None:
    assert await harness.run(tasks("plan: [Mend it too]")) == 0
    opening = await harness.prompt(2)
    assert WENT in opening
    assert "the parser cuts long lines" not in opening  # a worker's words, which nobody has read


async def test_who_plans_reads_how_a_similar_task_went(harness: RunHarness) -> None:
    assert await harness.run(tasks("plan: auto")) == 0
    (heard,) = _planner_heard
    assert WENT in heard
    assert "the parser cuts long lines" not in heard
