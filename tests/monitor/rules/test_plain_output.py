"""What agents' programs put around an output is no part of it."""

import json

import pytest

from midwatch_monitor.rules.plain_output import unwrap
from midwatch_tests.factories import message, step

LONG = json.dumps({"ok": True, "data": "x" * 30_000})
"""Too long to be read at each step."""


def plain_output(output: str) -> str:
    return unwrap(step(tool="look_up", output=output)).output


@pytest.mark.parametrize(
    "output",
    [
        "no such order",
        '[{"type": "text", "text": "no such order"}]',
        '{"content": [{"type": "text", "text": "no such order"}]}',
        '{"output": "no such order", "metadata": {"exit_code": 1, "duration_seconds": 0.4}}',
        '{"ok": true, "data": "no such order"}',
        "status: OK\nresult: no such order\ntook_ms: 36",
        "Command executed.\nOutput:\nno such order",
        "no such order\n[The command completed with exit code 1.]\n[Current working directory: /w]",
        "Command: look 7\nDirectory: /w\nStdout: no such order\nStderr: (empty)\nExit Code: 1",
        json.dumps([{"type": "text", "text": '{"ok": true, "data": "no such order"}'}]),
    ],
)
def test_the_same_answer_is_the_same_in_whatever_it_is_wrapped(output: str) -> None:
    assert plain_output(output) == "no such order"


def test_an_object_that_wraps_nothing_but_two_streams_gives_both() -> None:
    assert plain_output('{"stdout": "a\\n", "stderr": "b", "exit_code": 1}') == "a\nb"


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{",
        "[1, 2]",
        "[]",
        '[{"id": 7}]',
        '{"status": "open", "result": 7}',
        '{"data": "a", "name": "b"}',
        '{"data": "a", "result": "b"}',
        '{"ok": false, "data": "closed"}',
        '{"status": "error", "result": "closed"}',
        "status: ERROR\nresult: closed\ntook_ms",
        '{"error": "closed", "data": ""}',
        "Commands are listed here",
        "[" * 2000,
        LONG,
    ],
)
def test_what_says_more_than_its_content_stays_as_it_is(output: str) -> None:
    assert plain_output(output) == output


def test_words_of_people_are_never_unwrapped() -> None:
    turn = message(text='{"ok": true, "data": "x"}', output='{"ok": true, "data": "x"}')
    assert unwrap(turn) is turn
