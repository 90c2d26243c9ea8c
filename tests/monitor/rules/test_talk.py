"""What is said to people and to other agents, and what searches look for."""

import json
from dataclasses import replace

import pytest

from midwatch_monitor.records import Edit, Step, StepKind
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


def turn(text: str) -> Step:
    return Step(number=1, kind=StepKind.MESSAGE, text=text)


def call(tool: str, output: str = "", **args: str) -> Step:
    return Step(number=1, kind=StepKind.TOOL, tool=tool, args=json.dumps(args), output=output)


def stale(*steps: Step) -> list[bool]:
    heard = RecentWords()
    return [heard.stale(step) for step in steps]


PLAN = "The plan is to order the parts on Monday and to build on Tuesday."


def test_a_turn_with_hardly_a_new_word_is_stale() -> None:
    assert stale(turn(PLAN), turn("So we order on Monday and build on Tuesday.")) == [False, True]


def test_a_turn_with_a_new_number_is_not_stale() -> None:
    assert stale(turn(f"{PLAN} It takes 3 days."), turn(f"{PLAN} It takes 4 days."))[1] is False


def test_a_turn_about_something_else_is_not_stale() -> None:
    assert stale(turn(PLAN), turn("Who has keys for the shelves upstairs?"))[1] is False


def test_a_long_question_asked_again_is_stale_whatever_was_answered() -> None:
    asked = (
        "Please look for the names of all members of the board at the time of the first offering"
    )
    one, other = (call("surfer", found, instruction=asked) for found in ("a page", "another site"))
    assert stale(one, other) == [False, True]


def test_a_short_question_is_new_where_its_answer_is() -> None:
    one = call("surfer", "paraffin, six horses", task="Find out: fuel")
    other = call("surfer", "a scan in the museum", task="Find out: manual")
    assert stale(one, other) == [False, False]


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


def test_a_courtesy_says_nothing_new() -> None:
    assert stale(turn("Many thanks, wonderful!"), turn("Thanks for the 3 reviews of yours."))[0]


def test_a_nod_or_a_vote_is_an_answer() -> None:
    assert stale(turn("SQLite."), turn("SQLite."), turn("For SQLite.")) == [False, False, False]


def test_who_speaks_and_to_whom_is_no_part_of_what_is_said() -> None:
    turns = [turn(f"Ava (to chat_manager):\n\n{said}") for said in ("Blue", "Red, warm", "Green")]
    assert stale(*turns) == [False, False, False]


def test_numbers_of_thoughts_and_of_plans_only_count_them() -> None:
    thoughts = (call("think", thought="I mend the corner of the mesh", n=str(n)) for n in (1, 2))
    assert stale(*thoughts) == [False, True]


def test_to_ask_for_the_next_part_is_new_whatever_the_answers_count() -> None:
    parts = (call("delegate", "4 and 5 are done, 6 too", task=f"part {n}") for n in (3, 4, 5))
    assert stale(*parts) == [False, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry, this cannot be refunded.",
        "Do you confirm the exchange?",
        "I wait for the offer.",
        "The next step is the edit.",
    ],
)
def test_words_that_refuse_ask_wait_or_announce_put_off(text: str) -> None:
    assert puts_off(turn(text))
    assert puts_off(call("respond", content=text))


def test_a_result_puts_nothing_off() -> None:
    assert not puts_off(turn("The lamp is exchanged, reference 70."))


@pytest.mark.parametrize("tool", ["TodoWrite", "write_todos", "update_plan", "task_ledger"])
def test_a_plan_is_known_by_the_name_of_its_tool(tool: str) -> None:
    assert plans(call(tool))


def test_a_plan_is_known_by_the_name_of_its_file() -> None:
    note = replace(call("write_file"), edits=(Edit(path="docs/PLAN.md"),))
    page = replace(call("write_file"), edits=(Edit(path="docs/planets.md"),))
    assert (plans(note), plans(page), plans(call("explain"))) == (True, False, False)


@pytest.mark.parametrize("tool", ["think", "sequentialthinking", "scratchpad", "update_plan"])
def test_thoughts_are_known_by_the_name_of_their_tool(tool: str) -> None:
    assert to_oneself(tool)


@pytest.mark.parametrize("tool", ["explain_code", "search_airplanes", "get_reason", "planets"])
def test_a_tool_whose_name_only_holds_such_a_word_notes_no_thought(tool: str) -> None:
    assert not to_oneself(tool)
