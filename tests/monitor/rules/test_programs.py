"""What a command tells by its words."""

import pytest

from midwatch_monitor.rules.act import NO_COMMAND, Check, CommandFacts, command_facts, runs_tests


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ls", NO_COMMAND),
        ("pytest -q", CommandFacts(Check.TESTS)),
        ("echo the latest\ncat log", NO_COMMAND),
        ("python a.py", CommandFacts(Check.RUN)),
        ("git checkout a.py", CommandFacts(reverts=("a.py",))),
        ("git switch main", CommandFacts(swaps=True)),
        ("sleep 5; Make test", CommandFacts(Check.TESTS, sleeps=True)),
    ],
)
def test_a_command_tells_what_it_is(line: str, told: CommandFacts) -> None:
    assert command_facts(line) == told


@pytest.mark.parametrize("line", ["go test ./...", "PyTest", "npm run my-test", "./gradlew aTest"])
def test_tests_are_found_on_any_line_of_a_long_script(line: str) -> None:
    script = "\n".join(["echo of 3 latest words"] * 100 + [line] + ["cat a"] * 100)
    assert (command_facts(script).check, command_facts(line).check) == (Check.TESTS, Check.TESTS)


def test_a_runner_and_its_argument_stand_on_one_line() -> None:
    assert command_facts("go \ntest x").check is Check.NONE


@pytest.mark.parametrize(
    ("tool", "line", "runs"),
    [("bash", "pytest", True), ("run_tests", "", True), ("run_tests", "ls", False)],
)
def test_of_a_tool_with_a_command_the_command_says_whether_it_tests(
    tool: str, line: str, runs: bool
) -> None:
    assert runs_tests(tool, line) is runs
