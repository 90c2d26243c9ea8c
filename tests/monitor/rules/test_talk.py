"""What is said to people and to other agents, and what searches look for."""

import json
from dataclasses import replace

import pytest

from midwatch_monitor.records import Step
from midwatch_monitor.rules.speech import (
    RecentWords,
    declines,
    plans,
    puts_off,
    searches,
    speaker,
    speaks,
    to_oneself,
)
from midwatch_tests.factories import edit, message, step


def turn(text: str) -> Step:
    return message(text=text)


def call(tool: str, output: str = "", **args: str) -> Step:
    return step(tool=tool, args=json.dumps(args), output=output, ok=None)


PLAN = "The plan is to order the parts on Monday and to build on Tuesday."
ASKED = "Please look for the names of all members of the board at the time of the first offering"
AVA = "Ava (to chat_manager):\n\n"


@pytest.mark.parametrize(
    ("steps", "stale"),
    [
        pytest.param(
            [turn(PLAN), turn("So we order on Monday and build on Tuesday.")], [False, True],
            id="hardly a new word",
        ),
        pytest.param(
            [turn(f"{PLAN} It takes 3 days."), turn(f"{PLAN} It takes 4 days.")], [False] * 2,
            id="a new number",
        ),
        pytest.param(
            [turn(PLAN), turn("Who has keys for the shelves upstairs?")], [False] * 2,
            id="something else",
        ),
        pytest.param(
            [call("surfer", found, instruction=ASKED) for found in ("a page", "another site")],
            [False, True], id="a long question asked again, whatever was answered",
        ),
        pytest.param(
            [
                call("surfer", "paraffin, six horses", task="Find out: fuel"),
                call("surfer", "a scan in the museum", task="Find out: manual"),
            ],
            [False] * 2, id="a short question with a new answer",
        ),
        pytest.param([turn("Many thanks, wonderful!")], [True], id="a courtesy"),
        pytest.param([*map(turn, ("SQLite.", "SQLite.", "For it."))], [False] * 3, id="votes"),
        pytest.param(
            [turn(AVA + said) for said in ("Blue", "Red, warm", "Green")], [False] * 3,
            id="who speaks and to whom is not said",
        ),
        pytest.param(
            [call("think", thought="I mend the corner of the mesh", n=n) for n in "12"],
            [False, True], id="numbers of thoughts only count them",
        ),
        pytest.param(
            [call("delegate", "4 and 5 are done, 6 too", task=f"part {n}") for n in (3, 4, 5)],
            [False] * 3, id="the next part",
        ),
    ],
)  # fmt: skip
def test_a_turn_that_says_nothing_new_is_stale(steps: list[Step], stale: list[bool]) -> None:
    heard = RecentWords()
    assert [heard.stale(each) for each in steps] == stale


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Customer: a wedding", "Customer"),
        ("[Finance] I approve.", "Finance"),
        ("Ava (to chat_manager):\n\nI suggest a headline.", "Ava"),
        ("**Reviewer**: The name says nothing.", "Reviewer"),
        ("<Ms Weller> It was hit by a van.", "Ms Weller"),
        ("Billing says: It is your number.", "Billing"),
        ("Ava -> Ben: the draft is ready", "Ava"),
        ("I will now run the tests.", ""),
        ("To summarise, the parser must accept it: all of it.", ""),
    ],
)
def test_who_speaks_stands_before_the_turn(text: str, expected: str) -> None:
    assert speaker(text) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (turn("hm"), True),
        (call("respond", content="Hello"), True),
        (call("surfer", instruction="Look"), True),
        (call("Task", prompt="Look"), True),
        (call("read_file", path="a.py"), False),
        (call("bash", command="ls"), False),
    ],
)
def test_words_are_turns_and_calls_of_tools_for_words(step: Step, expected: bool) -> None:
    assert speaks(step) is expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (call("delegate", "Unfortunately access was denied.", task="Deploy"), True),
        (call("delegate", "The roll-out could not be completed.", task="Deploy"), True),
        (call("delegate", "Deployed to all three servers.", task="Deploy"), False),
        (call("respond", "I cannot find my order.", content="Which one?"), False),
        (call("read_file", "raise ValueError('failed')", path="a.py"), False),
    ],
)
def test_another_agent_may_say_that_it_did_not_succeed(step: Step, expected: bool) -> None:
    assert declines(step) is expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (call("bash", command="grep -rn quota src"), True),
        (call("Grep", pattern="quota"), True),
        (call("search_dir", term="quota"), True),
        (call("bash", command="ruff check a.py"), False),
    ],
)
def test_searches_are_known_by_their_tool_or_command(step: Step, expected: bool) -> None:
    assert searches(step) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am sorry, this cannot be refunded.", True),
        ("Do you confirm the exchange?", True),
        ("I wait for the offer.", True),
        ("The next step is the edit.", True),
        ("The lamp is exchanged, reference 70.", False),
    ],
)
def test_words_that_refuse_ask_wait_or_announce_put_off(text: str, expected: bool) -> None:
    assert puts_off(turn(text)) is puts_off(call("respond", content=text)) is expected


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        *(
            (call(tool), True)
            for tool in ("TodoWrite", "write_todos", "update_plan", "task_ledger")
        ),
        (call("explain"), False),
        (replace(call("write_file"), edits=(edit("docs/PLAN.md"),)), True),
        (replace(call("write_file"), edits=(edit("docs/planets.md"),)), False),
    ],
)
def test_a_plan_is_known_by_the_name_of_its_tool_or_its_file(planned: Step, expected: bool) -> None:
    assert plans(planned) is expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        *((tool, True) for tool in ("think", "sequentialthinking", "scratchpad", "update_plan")),
        *((tool, False) for tool in ("explain_code", "search_airplanes", "get_reason", "planets")),
    ],
)
def test_thoughts_are_known_by_the_name_of_their_tool(tool: str, expected: bool) -> None:
    assert to_oneself(tool) is expected
