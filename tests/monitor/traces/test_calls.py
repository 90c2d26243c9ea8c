"""Calls that wait for their results."""

from midwatch_monitor.records import Edit, Step, StepKind
from midwatch_monitor.traces.foreign import MAX_OPEN, Calls


def step(tool: str, number: int = 0) -> Step:
    return Step(number=number, kind=StepKind.TOOL, tool=tool)


def opened(*keys: str) -> Calls:
    calls = Calls()
    for key in keys:
        assert list(calls.open(key, step(key))) == []
    return calls


def test_steps_are_numbered_in_the_order_of_completion() -> None:
    calls = opened("a", "b")
    assert calls.close("b") == step("b")
    assert calls.numbered(step("b")) == step("b", 1)
    assert list(calls.rest()) == [step("a", 2)]


def test_what_an_unanswered_call_changed_is_not_known() -> None:
    calls = Calls()
    edited = Step(number=0, kind=StepKind.TOOL, tool="a", edits=(Edit(path="a.py"),))
    assert list(calls.open("a", edited)) == []
    assert list(calls.rest()) == [step("a", 1)]


def test_the_oldest_call_gives_up_when_too_many_wait() -> None:
    calls = opened(*(f"c{number}" for number in range(MAX_OPEN)))
    assert list(calls.open("last", step("last"))) == [step("c0", 1)]
    assert calls.close("c0") is None
    assert calls.close("last") == step("last")


def test_calls_without_a_key_wait_one_at_a_time() -> None:
    calls = opened("")
    assert not calls.knows("")
    assert list(calls.open("", step("b"))) == [step("", 1)]
    assert calls.close("") == step("b")


def test_a_call_is_known_while_it_waits_and_afterwards() -> None:
    calls = opened("a")
    assert (calls.knows("a"), calls.knows("b")) == (True, False)
    calls.close("a")
    assert calls.knows("a")
