"""What one task taught reaches the next one: whoever plans it or does it, and the rules.

They do not go by the confidence of a model whose confidence proved to be worth nothing.
"""

from datetime import datetime

import pytest
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.scripted import play
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Alert, Change, Ending
from midwatch_tests.acting import DONE, put, script, task_file
from midwatch_tests.command import new_attempt, new_task
from midwatch_tests.factories import call, commit, ended, reflecting, turn
from midwatch_tests.harness import RunHarness

_planner_heard: list[str] = []


REPORT = call(
    "report_error",
    what_happened="The parser failed.",
    category="permanent",
    root_cause="the parser cuts long lines",
    change="split them first",
)
PUT = call("put", path="out.txt")
DOUBT = call("reflect", progress_percent=10, confidence=10, decision="continue")
SCRIPTS = {
    "first": script(turn(REPORT, PUT), DONE),
    "second": script(turn(PUT), DONE),
    "unsure": script(turn(DOUBT), DONE),
}
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


MODEL = f"scripted:{__name__}@0"
UNSURE = task_file(__name__, 'id: unsure, goal: Look., acceptance: ["true"], max_attempts: 1')


async def add_past_attempts(harness: RunHarness, at: datetime) -> None:
    """Forty attempts of the model, of which every other one succeeded, whatever it stated."""
    journal = harness.journal
    for number in range(40):
        task = await new_task(journal, f"t{number}", at=at)
        attempt = await new_attempt(journal, task, at=at, worker="worker", model=MODEL)
        records = (
            reflecting(1, 40, 60 + 10 * (number // 2 % 4)),
            ended(Ending.STUCK if number % 2 else Ending.DONE),
        )
        await journal.commit(commit(attempt, *records))


@pytest.mark.parametrize(
    ("worked", "useful", "rules", "silenced"),
    [
        (False, 0.7, ["low_confidence"], []),
        (True, 0.7, [], [False]),
        (True, 0.5, ["low_confidence"], []),
    ],
    ids=["without a track record", "confidence worth nothing", "as much as the settings ask for"],
)
async def test_low_confidence_is_an_alarm_unless_it_proved_to_be_worth_nothing(
    worked: bool, useful: float, rules: list[str], silenced: list[bool],
    harness: RunHarness, at: datetime,
) -> None:  # fmt: skip
    harness.set(reflect=ReflectSettings(useful_confidence=useful))
    if worked:
        await add_past_attempts(harness, at)
    assert await harness.run(UNSURE) == 0
    assert [each.key.rule for each in await harness.told(Alert)][:1] == rules
    told = [each.confidence_counts for each in await harness.told(Change)]
    assert [each for each in told if each is not None] == silenced
