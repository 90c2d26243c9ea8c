"""Whether an act failed, how, and whether the surroundings are to blame."""

from dataclasses import replace

import pytest

from midwatch_monitor.records import Step
from midwatch_monitor.rules.failure_text import (
    count_failing,
    environment_obstacle,
    failure_line,
    found_nothing_by_exit_code,
    has_failed,
    signature,
)
from midwatch_tests.factories import step as make_step


def step(
    output: str = "", *, ok: bool | None = None, exit_code: int | None = None, tool: str = "shell"
) -> Step:
    return make_step(1, tool, ok=ok, exit_code=exit_code, output=output)


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
        *("Traceback (most recent call last):\n  x", "ValueError: no"),
        *("E       AssertionError: no", "bash: foo: command not found"),
        *("=== 1 failed, 2 passed ===", "make: *** [all] Error 1", "error: no such option"),
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


@pytest.mark.parametrize(
    "said",
    [
        *map(step, ("0 failed", "no errors", "12 passed", "its error is gone")),
        step("lint pass\nunit pending", tool="pr_checks", exit_code=8),
        # What a tool only shows is no failure of its own.
        *(step("ValueError: no", tool=tool) for tool in ("read_file", "grep", "web_search")),
    ],
)
def test_words_that_tell_of_no_failure_leave_it_open(said: Step) -> None:
    assert has_failed(said) is None


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


def signature_of(output: str, exit_code: int | None = None) -> int:
    """The signature of a step that gave this output."""
    return signature(step(output, exit_code=exit_code))


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        pytest.param(
            signature_of("a.py:10: error: bad\nValueError: line 10"),
            signature_of("a.py:12: error: bad\nValueError: line 11"),
            signature_of("a.py:12: error: bad\nValueError: row 11"),
            id="wherever its line has moved",
        ),
        pytest.param(
            signature_of("= 2 failed in 0.31s ="),
            signature_of("= 2 failed in 1.02s ="),
            signature_of("= 1 failed in 1.02s ="),
            id="however long it took",
        ),
        pytest.param(
            signature_of("collected 5\nValueError: no"),
            signature_of("collected 9\nValueError: no"),
            0,
            id="whatever else is said",
        ),
        pytest.param(
            signature_of("expected 42 got 41", 1),
            signature_of("expected 42 got 41", 1),
            signature_of("expected 42 got 40", 1),
            id="by its end where only the exit code tells",
        ),
        pytest.param(
            signature(step("conflict: room taken", ok=True, tool="book_room")),
            signature(step("conflict: room taken", ok=True, tool="book_room")),
            signature(step("conflict: nobody can come", ok=True, tool="book_room")),
            id="by a short answer that says an error",
        ),
    ],
)  # fmt: skip
def test_a_failure_is_the_same(one: int, same: int, other: int) -> None:
    assert 0 != one == same != other


def test_an_output_that_tells_of_no_failure_has_no_signature() -> None:
    assert (signature_of("all is well"), signature_of("", 1), failure_line("")) == (0, 0, "")
    assert signature(step("booked", ok=True, tool="book_room")) == 0


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
    ("output", "fails"),
    [
        ("Error: order 7 not found", True),
        ('{"success": false, "reason": "closed"}', True),
        ('{"error": "the date is in the past"}', True),
        ("502 Bad Gateway", True),
        ("net::ERR_CONNECTION_RESET", True),
        ("Object is locked by user BATCH01", True),
        ("Please enter a valid phone number.", True),
        ("Please try again. Select all squares with boats", True),
        ("conflict: the room is taken", True),
        ("bounced by claims: not ours", True),
        ('{"error": null, "status": "ok"}', False),
        ("Failed: 0, passed: 12", False),
        ("500 rows were imported", False),
        ("The session begins at nine, in the room of the server team.", False),
    ],
)
def test_an_answer_may_tell_of_an_error(output: str, fails: bool) -> None:
    assert has_failed(step(output, tool="update_order", ok=True)) is fails
