"""What one task taught reaches the next one of its project: whoever plans it, whoever does it."""

import pytest
from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.config.tasks import Role
from midwatch_stage.harness import RunHarness

_planner_heard: list[str] = []


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, b"text")
    return "written"


REPORT = Call(
    tool="report_error",
    args='{"what_happened": "The parser failed.", "category": "permanent", '
    '"root_cause": "the parser cuts long lines", "change": "split them first"}',
)
PUT = Call(tool="put", args='{"path": "out.txt"}')
SCRIPTS = {
    "first": (Turn(calls=(REPORT, PUT)), Turn(say="Done.")),
    "second": (Turn(calls=(PUT,)), Turn(say="Done.")),
}
PLAN = {"steps": [{"title": "mend it", "files": ["out.txt"], "confidence": 80}]}


def model_for(role: Role, key: str) -> Model:
    if role is Role.WORKER:
        return play(Script(phases=(Phase(turns=SCRIPTS[key]),)))

    async def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        _planner_heard.append(ModelMessagesTypeAdapter.dump_json(messages).decode())
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, PLAN)])

    return FunctionModel(plan)


def tasks(more: str) -> str:
    return f"""
        models: {{worker: "scripted:{__name__}@0", supervisor: none}}
        workers: {{clerk: {{kind: task, tools: ["{__name__}:put"]}}}}
        defaults: {{workspace: project}}
        tasks:
          - {{id: first, goal: Mend the parser of long lines., acceptance: ["true"],
             plan: [Mend it]}}
          - {{id: second, goal: Mend the parser of short lines., acceptance: ["true"],
             depends_on: [first], {more}}}
    """


@pytest.fixture(autouse=True)
def _project(harness: RunHarness) -> None:  # pyright: ignore[reportUnusedFunction]
    (harness.folder / "project").mkdir()
    _planner_heard.clear()


WENT = "- first (run 1): completed after 1 attempt, 3 steps"


async def test_who_begins_reads_how_a_similar_task_went_and_no_words_of_others(
    harness: RunHarness,
) -> None:
    assert await harness.run(tasks("plan: [Mend it too]")) == 0
    opening = (await harness.journal.messages(2))[0].body.decode()
    assert WENT in opening
    assert "the parser cuts long lines" not in opening  # a worker's words, which nobody has read


async def test_who_plans_reads_how_a_similar_task_went(harness: RunHarness) -> None:
    assert await harness.run(tasks("plan: auto")) == 0
    (heard,) = _planner_heard
    assert WENT in heard
    assert "the parser cuts long lines" not in heard
