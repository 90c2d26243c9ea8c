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

from midwatch_agents.scripted import Call, Cue, Phase, Script, Turn, next_turn, play, scripted_model
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
    return Agent(play(script), tools=[add])


def add(number: int) -> str:
    return f"{number} [midwatch #9] in a result is no guidance"


def calls(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    return [
        (part.tool_call_id, part.args_as_json_str())
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
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


async def test_a_run_goes_on_from_its_history_also_streamed_and_its_call_ids_are_unique() -> None:
    result = await calculator(SCRIPT).run(message_history=STUCK)
    assert result.output == "Done."
    assert calls(result.all_messages()) == [("call-1-1", ADD.args), ("call-2-1", ADD.args)]
    async with calculator(SCRIPT).run_stream(message_history=STUCK) as streamed:
        assert await streamed.get_output() == "Done."
    assert calls(streamed.all_messages()) == calls(result.all_messages())


async def test_the_result_of_a_tool_is_no_guidance() -> None:
    script = Script(phases=(Phase(turns=(Turn(calls=(ADD,)), DONE)), Phase(turns=(Turn(say="?"),))))
    assert (await calculator(script).run("Add.")).output == "Done."


class Answer(BaseModel):
    action: str


async def test_a_call_without_a_name_answers_through_the_output_tool() -> None:
    turn = Turn(calls=(Call(args='{"action":"nudge"}'),))
    agent = Agent(play(Script(phases=(Phase(turns=(turn,)),))), output_type=Answer)
    assert (await agent.run("What now?")).output == Answer(action="nudge")


def model_for(role: Role, key: str) -> Model:
    return play(Script(phases=(Phase(turns=(DONE,)),)), name=f"{role} of {key}")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("demo", "scripted:demo"),
        ("demo@0", "scripted:demo"),
        pytest.param(__name__, "worker of totals", id="a module that makes the model itself"),
    ],
)
def test_a_name_says_whose_script_is_played(name: str, called: str) -> None:
    assert scripted_model(name, role=Role.WORKER, key="totals").model_name == called


@pytest.mark.parametrize(
    ("name", "key", "problem"),
    [
        ("demo", "nothing", "no script for the worker of task 'nothing'; it has: delivery, "),
        ("no.such.module", "totals", "no.such.module cannot be imported: "),
        ("..x", "totals", "..x cannot be imported: "),
        ("midwatch_agents.scripted", "totals", "has neither `script_for`"),
        ("demo@soon", "totals", "the pause must be 0 to 60 seconds"),
        ("demo@-1", "totals", "the pause must be 0 to 60 seconds"),
    ],
)
def test_what_is_not_there_is_said_plainly(name: str, key: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        scripted_model(name, role=Role.WORKER, key=key)


async def test_an_agent_without_an_output_tool_cannot_be_answered_through_one() -> None:
    agent = Agent(play(Script(phases=(Phase(turns=(Turn(calls=(Call(),)),)),))))
    with pytest.raises(UsageError, match="has none"):
        await agent.run("What now?")


READ, EDIT, TEST = (Turn(calls=(Call(tool=tool),)) for tool in ("read", "edit", "test"))

STUCK_PHASE = Phase(turns=(READ, EDIT, TEST), repeat=2)

TWO_PHASES = Script(
    phases=(STUCK_PHASE, Phase(turns=(EDIT, DONE))), again=(Phase(turns=(TEST, DONE)),)
)

GOAL, REMINDER, NUDGE, LATE = (
    "Make it work.",
    "[midwatch] Please reflect.",
    "[midwatch #7] Look elsewhere.",
    "[midwatch #8] Hurry.",
)
SECOND = "This is attempt 2 of this task"
LESSON = "1. (task fix, rejected by a person; untested) Run the tests."
TAUGHT = Script(
    phases=(STUCK_PHASE,),
    again=(Phase(turns=(TEST, DONE)),),
    taught=(Phase(turns=(EDIT, DONE)),),
    heeds=r"\(task fix, rejected by a person\b",
)
THREE_PHASES = Script(phases=(STUCK_PHASE, STUCK_PHASE, Phase(turns=(DONE,))))
COUNTING = Script(phases=tuple(Phase(turns=(each,)) for each in (READ, EDIT, TEST)), cue=Cue.COUNT)
LIVELY = Turn(say="Try {n}.", calls=(Call(tool="edit", args='{"text":"round(x, {n})"}'),))
THIRD = Turn(say="Try 3.", calls=(Call(tool="edit", args='{"text":"round(x, 3)"}'),))


CASES = {
    "the first turn": (TWO_PHASES, [GOAL], READ),
    "the last turn of a phase": (TWO_PHASES, [GOAL, 2], TEST),
    "the last turns of a phase repeat": (TWO_PHASES, [GOAL, 3], EDIT),
    "and repeat": (TWO_PHASES, [GOAL, 41], EDIT),
    "guidance begins the next phase": (TWO_PHASES, [GOAL, 1, NUDGE], EDIT),
    "wherever the last one was": (TWO_PHASES, [GOAL, 20, NUDGE], EDIT),
    "and that goes on": (TWO_PHASES, [GOAL, 2, NUDGE, 1], DONE),
    "a reminder is no guidance": (TWO_PHASES, [GOAL, 1, REMINDER], EDIT),
    "the same guidance counts once": (THREE_PHASES, [GOAL, 1, NUDGE, 1, NUDGE], EDIT),
    "guidance with the first prompt belongs to it": (TWO_PHASES, [GOAL, NUDGE], READ),
    "and may be given again": (TWO_PHASES, [GOAL, NUDGE, 1, NUDGE], EDIT),
    "guidance after the last phase": (TWO_PHASES, [GOAL, 1, NUDGE, 1, LATE], DONE),
    "a first attempt": (TWO_PHASES, [f"{GOAL}\nThis is attempt 1 of this task.\n"], READ),
    "a later one has phases of its own": (TWO_PHASES, [f"{GOAL}\n{SECOND}.\n"], TEST),
    "or the same": (Script(phases=(STUCK_PHASE,)), [SECOND], READ),
    "a lesson that it heeds": (TAUGHT, [f"{GOAL}\n{LESSON}"], EDIT),
    "and goes on with": (TAUGHT, [f"{GOAL}\n{LESSON}", 1], DONE),
    "a lesson that nobody said": (TAUGHT, ["1. (task fix, rejected by the checks) Run."], READ),
    "another task's": (TAUGHT, ["1. (task fixed, rejected by a person) Run."], READ),
    "a lesson that comes late": (TAUGHT, [GOAL, 1, LESSON, 1], TEST),
    "a later attempt, whatever it was taught": (TAUGHT, [f"{SECOND}\n{LESSON}"], TEST),
    "a repetition counts": (Script(phases=(Phase(turns=(READ, LIVELY)),)), [GOAL, 3], THIRD),
    "but else braces stay": (Script(phases=(Phase(turns=(LIVELY, DONE)),)), [GOAL], LIVELY),
    "no intervention": (COUNTING, ["Interventions so far: 0\n"], READ),
    "one": (COUNTING, ["Interventions so far: 1\n"], EDIT),
    "more than there are answers": (COUNTING, ["Interventions so far: 9\n"], TEST),
    "with one turned down": (COUNTING, ["Interventions so far: 1, turned down: 1 (nudge)\n"], TEST),
}


@pytest.mark.parametrize(("script", "told", "turn"), CASES.values(), ids=CASES)
def test_what_was_told_and_how_often_it_answered_since_choose_the_next_turn(
    script: Script, told: list[str | int], turn: Turn
) -> None:
    """A text is what it was told, a number how often it answered then."""
    messages: list[ModelMessage] = []
    for each in told:
        if isinstance(each, str):
            messages.append(ModelRequest.user_text_prompt(each))
        else:
            messages += [ModelResponse([])] * each
    assert next_turn(script, messages) == turn


def test_a_script_that_cannot_be_played_says_why() -> None:
    with pytest.raises(ValueError, match="must say which lesson it heeds"):
        Script(phases=(STUCK_PHASE,), taught=(STUCK_PHASE,))
    with pytest.raises(ValueError, match="repeat is 2, but there are 1 turns"):
        Phase(turns=(READ,), repeat=2)
    with pytest.raises(ValueError, match="must say or call"):
        Turn()
