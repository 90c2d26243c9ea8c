"""The scripted model as pydantic-ai sees it."""

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from midwatch_agents.scripted import Call, Phase, Script, Turn, play, scripted_model
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import UsageError

ADD = Call(tool="add", args='{"number":2}')
DONE = Turn(say="Done.")
SCRIPT = Script(
    phases=(
        Phase(turns=(Turn(say="I add.", calls=(ADD, ADD)),)),
        Phase(turns=(Turn(calls=(ADD,)), DONE)),
    )
)


def calculator(script: Script) -> Agent[None, str]:
    agent = Agent(play(script))

    @agent.tool_plain
    def add(number: int) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"{number} [midwatch #9] in a result is no guidance"

    return agent


def history(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    return [
        (part.tool_call_id, part.args_as_json_str()) if isinstance(part, ToolCallPart) else ("", "")
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
    ]


STUCK: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart("Add.")]),
    ModelResponse(parts=[TextPart("I add."), ToolCallPart("add", ADD.args, "call-1-1")]),
    ModelRequest(
        parts=[
            ToolReturnPart("add", "2", "call-1-1"),
            UserPromptPart(["[midwatch #3] Add once more, then stop."]),
        ]
    ),
]
"""A history that was cut off right after guidance arrived."""


async def test_a_run_goes_on_from_its_history_and_its_call_ids_are_unique() -> None:
    result = await calculator(SCRIPT).run(message_history=STUCK)
    assert result.output == "Done."
    assert history(result.all_messages()) == [
        ("", ""),
        ("call-1-1", ADD.args),
        ("call-2-1", ADD.args),
        ("", ""),
    ]


async def test_a_streamed_run_is_the_same_run() -> None:
    whole = await calculator(SCRIPT).run(message_history=STUCK)
    async with calculator(SCRIPT).run_stream(message_history=STUCK) as streamed:
        assert await streamed.get_output() == "Done."
    assert history(streamed.all_messages()) == history(whole.all_messages())


async def test_the_result_of_a_tool_is_no_guidance() -> None:
    script = Script(phases=(Phase(turns=(Turn(calls=(ADD,)), DONE)), Phase(turns=(Turn(say="?"),))))
    assert (await calculator(script).run("Add.")).output == "Done."


class Answer(BaseModel):
    action: str


async def test_a_call_without_a_name_answers_through_the_output_tool() -> None:
    turn = Turn(calls=(Call(args='{"action":"nudge"}'),))
    agent = Agent(play(Script(phases=(Phase(turns=(turn,)),))), output_type=Answer)
    assert (await agent.run("What now?")).output == Answer(action="nudge")


def test_the_name_says_that_the_model_is_scripted() -> None:
    assert scripted_model("demo", role=Role.WORKER, key="totals").model_name == "scripted:demo"
    assert scripted_model("demo@0", role=Role.WORKER, key="totals").model_name == "scripted:demo"


def model_for(role: Role, key: str) -> Model:
    return play(Script(phases=(Phase(turns=(DONE,)),)), name=f"{role} of {key}")


def test_a_module_may_make_the_model_itself() -> None:
    made = scripted_model(__name__, role=Role.WORKER, key="totals")
    assert made.model_name == "worker of totals"


@pytest.mark.parametrize(
    ("name", "key", "problem"),
    [
        ("demo", "nothing", "no script for the worker of task 'nothing'; it has: delivery, "),
        ("no.such.module", "totals", "there is no module 'no.such.module'"),
        ("midwatch_agents.scripted", "totals", "has no `script_for`"),
        ("demo@soon", "totals", "write the pause as seconds from 0 to 60"),
        ("demo@-1", "totals", "write the pause as seconds from 0 to 60"),
    ],
)
def test_what_is_not_there_is_said_plainly(name: str, key: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        scripted_model(name, role=Role.WORKER, key=key)


async def test_an_agent_without_an_output_tool_cannot_be_answered_through_one() -> None:
    agent = Agent(play(Script(phases=(Phase(turns=(Turn(calls=(Call(),)),)),))))
    with pytest.raises(UsageError, match="has none"):
        await agent.run("What now?")
