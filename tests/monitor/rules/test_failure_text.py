"""Whether an act failed, how, and whether the surroundings are to blame."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import Step, StepKind
from midwatch_monitor.rules.failure_text import (
    count_failing,
    environment_obstacle,
    failure_line,
    found_nothing_by_exit_code,
    has_failed,
    signature,
)
from midwatch_stage.factories import step as make_step


def of(output: str, exit_code: int | None = None) -> int:
    """The signature of a step that gave this output."""
    return signature(
        Step(number=1, kind=StepKind.TOOL, tool="bash", output=output, exit_code=exit_code)
    )


def step(
    output: str = "", *, ok: bool | None = None, exit_code: int | None = None, tool: str = "shell"
) -> Step:
    return Step(number=1, kind=StepKind.TOOL, tool=tool, ok=ok, exit_code=exit_code, output=output)


@pytest.mark.parametrize(
    ("ok", "exit_code", "fails"),
    [
        (None, None, None),
        (True, None, False),
        (False, None, True),
        (None, 0, False),
        (None, 2, True),
        (True, 2, True),
        (False, 0, True),
    ],
)
def test_an_act_fails_by_its_exit_code_or_by_its_own_word(
    ok: bool | None, exit_code: int | None, fails: bool | None
) -> None:
    assert has_failed(step(ok=ok, exit_code=exit_code)) is fails


@pytest.mark.parametrize(
    "output",
    [
        "Traceback (most recent call last):\n  x",
        "ValueError: no",
        "E       AssertionError: no",
        "bash: foo: command not found",
        "=== 1 failed, 2 passed ===",
        "make: *** [all] Error 1",
        "error: no such option",
        "3 failing",
    ],
)
def test_words_count_only_where_no_exit_code_says_otherwise(output: str) -> None:
    """That a tool returned says nothing of what it ran."""
    assert has_failed(step(output)) is True
    assert has_failed(step(output, exit_code=0)) is False
    assert has_failed(step(output, ok=True)) is True


@pytest.mark.parametrize(
    ("line", "fails"),
    [
        ("pytest -q", False),
        ("pytest -q 2>&1 | tail -5", True),
        ("cd a && make -j4 | tee build.log", True),
        ("python a.py || true", True),
        ("set -o pipefail; pytest | tail", False),
        ("cat old.log | tail -5", False),
        ("make && cat old.log | grep FAILED", False),
        ("pytest | tail; ls", False),
    ],
)
def test_words_count_where_the_exit_code_of_a_check_is_lost(line: str, *, fails: bool) -> None:
    told = make_step(1, "bash", args=line, output="FAILED a.py::t - KeyError", exit_code=0, ok=True)
    assert has_failed(told) is fails
    assert has_failed(replace(told, output="3 passed")) is False


@pytest.mark.parametrize("output", ["0 failed", "no errors", "12 passed", "its error is gone"])
def test_words_that_tell_of_no_failure_leave_it_open(output: str) -> None:
    assert has_failed(step(output)) is None


@pytest.mark.parametrize("tool", ["read_file", "grep", "view", "web_search", "list_files"])
def test_what_a_tool_only_shows_is_no_failure_of_its_own(tool: str) -> None:
    assert has_failed(step("ValueError: no", tool=tool)) is None


@pytest.mark.parametrize(
    ("line", "output", "exit_code", "no"),
    [
        ("grep -r foo .", "a: warning", 1, True),
        ("/usr/bin/rg foo", "x", 1, True),
        ("git diff --exit-code", "+1", 1, True),
        ("pytest", "", 1, True),
        ("pytest", "1 failed", 1, False),
        ("grep foo nothing", "grep: nothing: No such file or directory", 2, False),
        ("grep foo a", "", 0, False),
    ],
)
def test_a_search_that_finds_nothing_only_says_no(
    line: str, output: str, exit_code: int, no: bool
) -> None:
    assert found_nothing_by_exit_code(step(output, exit_code=exit_code), line) is no


def test_a_failure_is_the_same_wherever_its_line_has_moved() -> None:
    one, other = (
        "a.py:10: error: bad\nValueError: line 10",
        "a.py:12: error: bad\nValueError: line 11",
    )
    assert 0 != of(one) == of(other)


def test_a_failure_is_the_same_however_long_it_took() -> None:
    assert of("=== 2 failed in 0.31s ===") == of("=== 2 failed in 1.02s ===")


def test_one_failure_fewer_is_another_failure() -> None:
    assert of("3 failed") != of("2 failed")


def test_what_does_not_speak_of_the_failure_does_not_count() -> None:
    assert of("collected 5\nValueError: no") == of("collected 9\nValueError: no")


def test_an_output_that_tells_of_no_failure_has_no_signature() -> None:
    assert (of("all is well"), of("", 1), failure_line("")) == (0, 0, "")


def test_where_only_the_exit_code_tells_the_end_of_the_output_is_the_failure() -> None:
    assert 0 != of("expected 42 got 41", 1) == of("expected 42 got 41", 1)
    assert of("expected 42 got 41", 1) != of("expected 42 got 40", 1)


def test_a_short_answer_that_says_an_error_is_the_failure() -> None:
    def answer(output: str) -> int:
        return signature(step(output, ok=True, tool="book_room"))

    assert 0 != answer("conflict: room taken") == answer("conflict: room taken")
    assert answer("conflict: room taken") != answer("conflict: nobody can come")
    assert answer("booked") == 0


def test_people_are_told_the_last_line_that_speaks_of_a_failure() -> None:
    assert failure_line("KeyError: a\nsome more\nValueError: b\nthe end") == "ValueError: b"


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("bash: javac: command not found", "missing program javac"),
        ("/bin/sh: 1: cargo: not found", "missing program cargo"),
        ("mkdir: cannot create '/x': Permission denied", "permission"),
        ("curl: (7) Connection refused", "network"),
        ("Temporary failure in name resolution", "network"),
        ("write: No space left on device", "disk"),
        ("fork: Cannot allocate memory", "memory"),
        ("HTTP 401 Unauthorized", "credentials"),
        ("JAVA_HOME is not set", "environment"),
        ("ValueError: no", ""),
    ],
)
def test_an_obstacle_in_the_surroundings_is_named(output: str, what: str) -> None:
    assert environment_obstacle(output) == what


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("=== 3 failed, 2 passed ===", 3),
        ("FAILED (failures=2, errors=1)", 2),
        ("Tests: 4 tests failed", 4),
        ("Found 12 errors", 12),
        ("0 failed", 0),
        ("ran 40\n1 error\n3 failed\ndone in 5 s", 3),
        ("12\nfailed", None),
        ("it broke", None),
    ],
)
def test_failures_are_counted_where_the_output_counts_them(output: str, count: int | None) -> None:
    assert count_failing(output) == count


@pytest.mark.parametrize(
    "output",
    [
        "Error: order 7 not found",
        '{"success": false, "reason": "closed"}',
        '{"error": "the date is in the past"}',
        "502 Bad Gateway",
        "net::ERR_CONNECTION_RESET",
        "Object is locked by user BATCH01",
        "Please enter a valid phone number.",
        "Please try again. Select all squares with boats",
        "conflict: the room is taken",
        "bounced by claims: not ours",
    ],
)
def test_an_answer_that_tells_of_an_error_is_a_failure(output: str) -> None:
    assert has_failed(step(output, tool="update_order", ok=True)) is True


@pytest.mark.parametrize(
    "output",
    [
        '{"error": null, "status": "ok"}',
        "Failed: 0, passed: 12",
        "500 rows were imported",
        "The session begins at nine, in the room of the server team.",
    ],
)
def test_an_answer_that_tells_of_none_is_no_failure(output: str) -> None:
    assert has_failed(step(output, tool="update_order", ok=True)) is False


def test_what_is_pending_has_not_failed_whatever_the_exit_code() -> None:
    assert has_failed(step("lint pass\nunit pending", tool="pr_checks", exit_code=8)) is None
    assert has_failed(step("lint fail\nunit pass", tool="pr_checks", exit_code=1)) is True
