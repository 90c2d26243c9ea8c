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

GOAL = ModelRequest.user_text_prompt("Make it work.")

NUDGE = ModelRequest.user_text_prompt("[midwatch #7] Look elsewhere.")


def told_and_replied(first: ModelRequest, count: int) -> list[ModelMessage]:
    return [first, *([ModelResponse([])] * count)]


@pytest.mark.parametrize(
    ("given", "turn"), [(0, READ), (1, EDIT), (2, TEST), (3, EDIT), (4, TEST), (41, EDIT)]
)
def test_the_last_turns_of_a_phase_repeat(given: int, turn: Turn) -> None:
    assert next_turn(TWO_PHASES, told_and_replied(GOAL, given)) == turn


@pytest.mark.parametrize("before", [1, 2, 3, 20])
def test_guidance_begins_the_next_phase_wherever_the_last_one_was(before: int) -> None:
    lines = [*told_and_replied(GOAL, before), NUDGE]
    assert next_turn(TWO_PHASES, lines) == EDIT
    assert next_turn(TWO_PHASES, [*lines, ModelResponse([])]) == DONE


def test_a_reminder_is_no_guidance() -> None:
    lines = [
        *told_and_replied(GOAL, 1),
        ModelRequest.user_text_prompt("[midwatch] Please reflect."),
    ]
    assert next_turn(TWO_PHASES, lines) == EDIT


def test_the_same_guidance_given_twice_counts_once() -> None:
    script = Script(phases=(STUCK_PHASE, STUCK_PHASE, Phase(turns=(DONE,))))
    lines = [*told_and_replied(GOAL, 1), NUDGE, ModelResponse([]), NUDGE]
    assert next_turn(script, lines) == EDIT


def test_guidance_that_comes_with_the_first_prompt_belongs_to_it() -> None:
    assert next_turn(TWO_PHASES, [GOAL, NUDGE]) == READ
    assert next_turn(TWO_PHASES, [GOAL, NUDGE, ModelResponse([]), NUDGE]) == EDIT


def test_guidance_after_the_last_phase_changes_nothing() -> None:
    late = ModelRequest.user_text_prompt("[midwatch #8] Hurry.")
    lines = [*told_and_replied(GOAL, 1), NUDGE, ModelResponse([]), late]
    assert next_turn(TWO_PHASES, lines) == DONE


@pytest.mark.parametrize(("attempt", "turn"), [(1, READ), (2, TEST), (3, TEST)])
def test_a_later_attempt_has_its_own_phases(attempt: int, turn: Turn) -> None:
    goal = ModelRequest.user_text_prompt(
        f"Make it work.\nThis is attempt {attempt} of this task.\n"
    )
    assert next_turn(TWO_PHASES, [goal]) == turn


def test_without_phases_of_its_own_a_later_attempt_has_the_same() -> None:
    script = Script(phases=(STUCK_PHASE,))
    assert (
        next_turn(script, [ModelRequest.user_text_prompt("This is attempt 2 of this task")]) == READ
    )


TAUGHT = Script(
    phases=(STUCK_PHASE,),
    again=(Phase(turns=(TEST, DONE)),),
    taught=(Phase(turns=(EDIT, DONE)),),
    heeds=r"\(task fix, rejected by a person\b",
)

LESSON = "1. (task fix, rejected by a person; untested) Run the tests."


def test_a_lesson_that_it_heeds_changes_what_it_does() -> None:
    lines: list[ModelMessage] = [ModelRequest.user_text_prompt(f"Make it work.\n{LESSON}")]
    assert next_turn(TAUGHT, lines) == EDIT
    assert next_turn(TAUGHT, [*lines, ModelResponse([])]) == DONE


@pytest.mark.parametrize(
    "lesson",
    [
        "",
        "1. (task fix, rejected by the checks, or by how it ended) Run the tests.",
        "1. (task fixed, rejected by a person) Run the tests.",
    ],
    ids=["no lesson", "nobody said it", "another task's"],
)
def test_a_lesson_that_it_does_not_heed_changes_nothing(lesson: str) -> None:
    assert next_turn(TAUGHT, [ModelRequest.user_text_prompt(lesson)]) == READ


def test_a_lesson_that_comes_after_the_first_prompt_changes_nothing() -> None:
    lines = [*told_and_replied(GOAL, 1), ModelRequest.user_text_prompt(LESSON)]
    assert next_turn(TAUGHT, lines) == EDIT
    assert next_turn(TAUGHT, [*lines, ModelResponse([])]) == TEST


def test_a_later_attempt_has_its_own_phases_whatever_it_was_taught() -> None:
    assert (
        next_turn(
            TAUGHT, [ModelRequest.user_text_prompt(f"This is attempt 2 of this task\n{LESSON}")]
        )
        == TEST
    )


def test_a_script_that_can_be_taught_says_what_it_heeds() -> None:
    with pytest.raises(ValueError, match="must say which lesson it heeds"):
        Script(phases=(STUCK_PHASE,), taught=(STUCK_PHASE,))


def test_a_repeated_turn_counts_its_repetitions() -> None:
    turn = Turn(say="Try {n}.", calls=(Call(tool="edit", args='{"text":"round(x, {n})"}'),))
    script = Script(phases=(Phase(turns=(READ, turn)),))
    assert next_turn(script, told_and_replied(GOAL, 3)) == Turn(
        say="Try 3.", calls=(Call(tool="edit", args='{"text":"round(x, 3)"}'),)
    )


def test_a_turn_that_does_not_repeat_keeps_its_braces() -> None:
    turn = Turn(calls=(Call(tool="edit", args='{"text":"f\'{n}\'"}'),))
    script = Script(phases=(Phase(turns=(turn, DONE)),))
    assert next_turn(script, [GOAL]) == turn


@pytest.mark.parametrize(
    ("told", "turn"),
    [("0", READ), ("1", EDIT), ("2", TEST), ("9", TEST), ("1, turned down: 1 (nudge)", TEST)],
)
def test_the_counts_of_interventions_choose_the_answer(told: str, turn: Turn) -> None:
    script = Script(
        phases=tuple(Phase(turns=(each,)) for each in (READ, EDIT, TEST)), cue=Cue.COUNT
    )
    assert (
        next_turn(script, [ModelRequest.user_text_prompt(f"Interventions so far: {told}\n")])
        == turn
    )


def test_a_phase_cannot_repeat_more_turns_than_it_has() -> None:
    with pytest.raises(ValueError, match="repeat is 2, but there are 1 turns"):
        Phase(turns=(READ,), repeat=2)


def test_a_turn_says_or_calls_something() -> None:
    with pytest.raises(ValueError, match="must say or call"):
        Turn()
