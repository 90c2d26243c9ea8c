"""The same act is the same number, and so is the same result."""

import json
from dataclasses import replace

import pytest

from midwatch_monitor.records import Step
from midwatch_monitor.rules.identity import (
    LOOKED_AT,
    SHORT,
    answer,
    command,
    digest,
    identify,
    only_waits,
    result,
    shell_call,
    tool_traits,
)
from midwatch_tests.factories import step as call


def step(tool: str = "shell", **args: object) -> Step:
    return call(tool=tool, args=json.dumps(args, sort_keys=True), ok=None)


def result_of(done: Step, *, precise: bool = True) -> int:
    return result(done, answer(done, precise=precise))


def act_number(done: Step) -> int:
    return identify(done, command(done))


def output_step(text: str, *, digest: str = "") -> Step:
    return call(tool="t", output=text, output_digest=digest)


def test_an_act_is_its_tool_with_its_arguments_and_its_path() -> None:
    one, same, *others = (
        act_number(call(number, tool, args=args, path=path))
        for number, (tool, args, path) in enumerate(
            [("a", "b", ""), ("a", "b", ""), ("a", "c", ""), ("ab", "", ""), ("a", "b", "p")]
        )
    )
    assert one == same
    assert len({one, *others}) == 4


@pytest.mark.parametrize("key", ["description", "thought"])
def test_an_argument_that_only_says_why_does_not_count(key: str) -> None:
    one, other = (step("read_file", path="a.py", **{key: why}) for why in ("first", "again"))
    assert act_number(one) == act_number(other)
    assert act_number(one) != act_number(step("read_file", path="b.py", **{key: "first"}))


@pytest.mark.parametrize(
    ("tool", "args", "line"),
    [
        ("shell", {"command": "ls"}, "ls"),
        ("anything", {"cmd": "ls"}, "ls"),
        ("anything", {"script": "ls"}, "ls"),
        ("shell", {"command": ["ls", "a b"]}, "ls 'a b'"),
        ("shell", {"command": ["bash", "-lc", "cd x && ls"]}, "cd x && ls"),
        ("shell", {"command": ["/bin/sh", "-c", "ls", "name"]}, "/bin/sh -c ls name"),
        ("shell", {"command": ["python", "-c", "print()"]}, "python -c 'print()'"),
        ("shell", {"command": []}, ""),
        ("shell", {"command": {"line": "ls"}}, ""),
        ("shell", {"path": "ls"}, ""),
        ("terminal", {"input": "ls"}, "ls"),
        ("anything", {"input": "ls"}, ""),
    ],
)
def test_a_command_is_found_under_its_usual_names(
    tool: str, args: dict[str, object], line: str
) -> None:
    assert command(step(tool, **args)) == line


@pytest.mark.parametrize(
    ("tool", "args", "line"),
    [
        ("bash", "ls -l", "ls -l"),
        ("Terminal", "ls -l", "ls -l"),
        ("t", "ls -l", ""),
        ("t", '{"command": ', ""),
        ("t", '{"command": "ls"} and more', ""),
    ],
)
def test_plain_arguments_are_a_command_only_of_a_shell(tool: str, args: str, line: str) -> None:
    assert command(call(tool=tool, args=args)) == line


@pytest.mark.parametrize(
    ("done", "waits"),
    [
        (step("sleep"), True),
        (step("wait_for_output"), True),
        (step("BashOutput"), True),
        (step("ask_user"), True),
        (step("browser_wait"), True),
        (step(command="sleep 30"), True),
        (step(command=" sleep 2.5m ; "), True),
        (step("waiter"), False),
        (step(command="sleep 5 && pytest"), False),
        (step(command="cat sleep"), False),
        (step("await2"), False),
    ],
)
def test_an_act_waits_that_only_lets_time_pass(done: Step, waits: bool) -> None:
    assert only_waits(done) is waits


def test_to_wait_longer_before_it_makes_an_act_no_other_one() -> None:
    one, same, other = (
        act_number(step(command=line))
        for line in ("tail -2 a.log", "sleep 120 && tail -2 a.log", "sleep 9; tail -3 a.log")
    )
    assert one == same != other


def test_what_is_made_again_is_the_same_under_another_number() -> None:
    said = ("created contact 33071", "created contact 33403")
    made = [replace(step("crm_add", name="A"), output=each) for each in said]
    counted = ("33071 contacts", "33403 contacts")
    asked = [replace(step("crm_count", name="A"), output=each) for each in counted]
    assert result_of(made[0]) == result_of(made[1])
    assert result_of(asked[0]) != result_of(asked[1])


def test_what_was_kept_is_told_by_its_name() -> None:
    one, other = (
        replace(step("push"), output=f"main -> {name}") for name in ("9cbf116", "d0e25c7")
    )
    assert answer(one) == answer(other)
    assert answer(one, whole=tool_traits("push").stores_work) != answer(
        other, whole=tool_traits("push").stores_work
    )


def test_a_result_is_what_came_of_it_without_what_differs_between_runs() -> None:
    assert result_of(output_step("2 failed in 0.31s")) == result_of(
        output_step("2 failed in 1.02s\n")
    )
    assert result_of(output_step("2 failed in 0.31s")) != result_of(
        output_step("3 failed in 0.31s")
    )


def test_a_short_result_is_masked_even_where_that_is_not_asked_for() -> None:
    short = [output_step("x" * (SHORT - 10) + end) for end in (" 1 s", " 2 s")]
    long = [output_step("x" * SHORT + end) for end in (" 1 s", " 2 s")]
    assert len({result_of(each, precise=False) for each in short}) == 1
    assert len({result_of(each, precise=False) for each in long}) == 2
    assert len({result_of(each) for each in long}) == 1


def test_a_result_without_text_is_known_by_the_digest_of_the_whole() -> None:
    one, same, other = (result_of(output_step("", digest=each)) for each in ("d", "d", "e"))
    assert 0 != one == same != other
    assert (result_of(output_step("")), result_of(output_step(" \n"))) == (0, 0)


def test_a_long_result_is_compared_by_its_head_and_its_tail() -> None:
    assert result_of(output_step("a" + "x" * 50_000 + "b")) == result_of(
        output_step("a" + "x" * 60_000 + "b")
    )
    assert result_of(output_step("a" + "x" * 50_000 + "b")) != result_of(
        output_step("a" + "x" * 50_000 + "c")
    )
    assert result_of(output_step("x" * LOOKED_AT)) != result_of(output_step("x" * (LOOKED_AT - 1)))


ARGUMENTS: dict[str, object] = {
    "path": "ä b.py",
    "limit": 20,
    "all": True,
    "ratio": 1.5,
    "none": None,
    "at": [1, {"b": "x  y", "a": 2}],
}


def test_an_act_is_the_digest_of_its_tool_and_its_arguments_as_sorted_json() -> None:
    written = json.dumps(ARGUMENTS, sort_keys=True)
    assert act_number(step("read", **ARGUMENTS)) == digest(f"read\0\0{written}\0")


def test_the_order_and_the_white_space_of_arguments_make_no_other_act() -> None:
    args = json.dumps(dict(reversed(ARGUMENTS.items())), indent=2, ensure_ascii=False) + "\n"
    assert act_number(call(tool="read", args=args)) == act_number(step("read", **ARGUMENTS))


@pytest.mark.parametrize("other", [True, 1.0, "1", None, [1]])
def test_another_kind_of_value_is_another_act(other: object) -> None:
    assert act_number(step("read", at=other)) != act_number(step("read", at=1))


@pytest.mark.parametrize("args", [{"command": "ls", "timeout": 5}, {"path": "a"}])
def test_arguments_that_were_read_before_need_not_be_read_again(args: dict[str, object]) -> None:
    done = step("bash", **args)
    line, arguments = shell_call(done)
    assert identify(done, line, arguments) == identify(done, line)


def test_a_digest_is_the_same_in_every_process() -> None:
    assert digest("pytest") == 0x8DC8_DC38_8C11_60C7
    assert digest("\ud800") != digest("")
