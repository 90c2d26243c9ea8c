"""Where a script stands follows from the history alone."""

import pytest

from midwatch_agents.scripted import Call, Cue, Line, Phase, Replied, Script, Told, Turn, next_turn

READ, EDIT, TEST = (Turn(calls=(Call(tool=tool),)) for tool in ("read", "edit", "test"))
DONE = Turn(say="Done.")
STUCK = Phase(turns=(READ, EDIT, TEST), repeat=2)
SCRIPT = Script(phases=(STUCK, Phase(turns=(EDIT, DONE))), again=(Phase(turns=(TEST, DONE)),))
GOAL = Told(text="Make it work.")
NUDGE = Told(text="[midwatch #7] Look elsewhere.")


def told_and_replied(first: Told, count: int) -> list[Line]:
    return [first, *([Replied()] * count)]


@pytest.mark.parametrize(
    ("given", "turn"), [(0, READ), (1, EDIT), (2, TEST), (3, EDIT), (4, TEST), (41, EDIT)]
)
def test_the_last_turns_of_a_phase_repeat(given: int, turn: Turn) -> None:
    assert next_turn(SCRIPT, told_and_replied(GOAL, given)) == turn


@pytest.mark.parametrize("before", [1, 2, 3, 20])
def test_guidance_begins_the_next_phase_wherever_the_last_one_was(before: int) -> None:
    lines = [*told_and_replied(GOAL, before), NUDGE]
    assert next_turn(SCRIPT, lines) == EDIT
    assert next_turn(SCRIPT, [*lines, Replied()]) == DONE


def test_a_reminder_is_no_guidance() -> None:
    lines = [*told_and_replied(GOAL, 1), Told(text="[midwatch] Please reflect.")]
    assert next_turn(SCRIPT, lines) == EDIT


def test_the_same_guidance_given_twice_counts_once() -> None:
    script = Script(phases=(STUCK, STUCK, Phase(turns=(DONE,))))
    lines = [*told_and_replied(GOAL, 1), NUDGE, Replied(), NUDGE]
    assert next_turn(script, lines) == EDIT


def test_guidance_that_comes_with_the_first_prompt_belongs_to_it() -> None:
    assert next_turn(SCRIPT, [GOAL, NUDGE]) == READ
    assert next_turn(SCRIPT, [GOAL, NUDGE, Replied(), NUDGE]) == EDIT


def test_guidance_after_the_last_phase_changes_nothing() -> None:
    late = Told(text="[midwatch #8] Hurry.")
    lines = [*told_and_replied(GOAL, 1), NUDGE, Replied(), late]
    assert next_turn(SCRIPT, lines) == DONE


@pytest.mark.parametrize(("attempt", "turn"), [(1, READ), (2, TEST), (3, TEST)])
def test_a_later_attempt_has_its_own_phases(attempt: int, turn: Turn) -> None:
    goal = Told(text=f"Make it work.\nThis is attempt {attempt} of this task.\n")
    assert next_turn(SCRIPT, [goal]) == turn


def test_without_phases_of_its_own_a_later_attempt_has_the_same() -> None:
    script = Script(phases=(STUCK,))
    assert next_turn(script, [Told(text="This is attempt 2 of this task")]) == READ


TAUGHT = Script(
    phases=(STUCK,),
    again=(Phase(turns=(TEST, DONE)),),
    taught=(Phase(turns=(EDIT, DONE)),),
    heeds=r"\(task fix, rejected by a person\b",
)
LESSON = "1. (task fix, rejected by a person; untested) Run the tests."


def test_a_lesson_that_it_heeds_changes_what_it_does() -> None:
    lines: list[Line] = [Told(text=f"Make it work.\n{LESSON}")]
    assert next_turn(TAUGHT, lines) == EDIT
    assert next_turn(TAUGHT, [*lines, Replied()]) == DONE


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
    assert next_turn(TAUGHT, [Told(text=lesson)]) == READ


def test_a_lesson_that_comes_after_the_first_prompt_changes_nothing() -> None:
    lines = [*told_and_replied(GOAL, 1), Told(text=LESSON)]
    assert next_turn(TAUGHT, lines) == EDIT
    assert next_turn(TAUGHT, [*lines, Replied()]) == TEST


def test_a_later_attempt_has_its_own_phases_whatever_it_was_taught() -> None:
    assert next_turn(TAUGHT, [Told(text=f"This is attempt 2 of this task\n{LESSON}")]) == TEST


def test_a_script_that_can_be_taught_says_what_it_heeds() -> None:
    with pytest.raises(ValueError, match="must say which lesson it heeds"):
        Script(phases=(STUCK,), taught=(STUCK,))


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


@pytest.mark.parametrize(("count", "turn"), [(0, READ), (1, EDIT), (2, TEST), (9, TEST)])
def test_the_count_of_interventions_chooses_the_answer(count: int, turn: Turn) -> None:
    script = Script(
        phases=tuple(Phase(turns=(each,)) for each in (READ, EDIT, TEST)), cue=Cue.COUNT
    )
    assert next_turn(script, [Told(text=f"Interventions so far: {count}\n")]) == turn


def test_a_phase_cannot_repeat_more_turns_than_it_has() -> None:
    with pytest.raises(ValueError, match="repeat is 2, and there are 1 turns"):
        Phase(turns=(READ,), repeat=2)


def test_a_turn_says_or_calls_something() -> None:
    with pytest.raises(ValueError, match="must say or call"):
        Turn()
