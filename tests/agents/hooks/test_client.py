"""What a hook hands over, what it is answered, and what it does where nobody answers."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from midwatch_agents.hooks.client import MAX_PAYLOAD, hand_over
from midwatch_agents.hooks.inbox import INBOX, SOCKET, take_inbox

NOW = 1_000_000.0
EVENT = b'{"session_id":"s","hook_event_name":"Stop"}'
LINE = b'{"v":1,"agent":"codex","event":%b}' % EVENT


@contextmanager
def answer_one_hook(folder: Path, answer: bytes = b"") -> Generator[list[bytes]]:
    """One connection: its line is noted, and answered; without an answer it is left waiting."""
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as pool:
        listener.bind(str(folder / SOCKET))
        listener.listen()
        listener.settimeout(20)
        lines: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                lines.append(stream.readline())
                if answer:
                    connection.sendall(answer)
                stream.read()  # until the hook has gone

        served = pool.submit(serve)
        yield lines
        served.result(20)


@contextmanager
def hung_listener(folder: Path) -> Generator[socket.socket]:
    """A listener that takes no connection; the system takes them for it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen()
        yield listener


def hook(folder: Path, payload: bytes = EVENT, now: float = NOW) -> str:
    return hand_over("codex", payload, folder=folder, now=now)


def test_what_the_listener_answers_is_printed(folder: Path) -> None:
    with answer_one_hook(folder, b'{"print":"{\\"a\\":1}"}\n') as lines:
        assert hook(folder) == '{"a":1}'
    assert lines == [LINE + b"\n"]
    assert list(take_inbox(folder)) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"{}\n",
        b'{"print":1}\n',
        b'{"print":"x"}',
        b"\xff\n",
        b'{"print":"%b"}\n' % (b"x" * (1 << 20)),
    ],
)
def test_a_damaged_answer_is_none(folder: Path, answer: bytes) -> None:
    with answer_one_hook(folder, answer) as lines:
        assert hook(folder) == ""
    assert len(lines) == 1
    assert list(take_inbox(folder)) == []


def test_an_event_over_several_lines_is_sent_in_one_whatever_the_name_of_the_agent(
    folder: Path,
) -> None:
    event = b'\n{\r\n "session_id": "a\\nb"\n}\n'
    hand_over('a"\n}', event, folder=folder, now=NOW)
    (line,) = take_inbox(folder)
    assert json.loads(line) == {"v": 1, "agent": 'a"\n}', "event": {"session_id": "a\nb"}}


def test_of_an_event_that_is_too_long_the_ends_of_its_texts_are_sent(folder: Path) -> None:
    output = f"begin{'x' * MAX_PAYLOAD}end"
    hook(folder, json.dumps({"tool_use_id": "c1", "tool_response": {"stdout": output}}).encode())
    (line,) = take_inbox(folder)
    event = json.loads(line)["event"]
    kept = event["tool_response"]["stdout"]
    assert (event["tool_use_id"], kept[:6], kept[-4:]) == ("c1", "beginx", "xend")
    assert "x\n[8126472 characters left out]\nx" in kept
    assert len(line) < 1 << 20


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[1]",
        b"no JSON",
        b'{"a":1} {"b":2}',
        b'{"a":"\xff"}',
        b'{"a":"\n"}',
        b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"a":' + b"1" * 10_000 + b"}",
        b'{"a":[' + b"1," * (MAX_PAYLOAD // 2) + b"1]}",
    ],
    ids=range(9),
)
def test_of_what_is_no_event_the_size_is_told(folder: Path, payload: bytes) -> None:
    assert hook(folder, payload) == ""
    (line,) = take_inbox(folder)
    assert json.loads(line) == {"v": 1, "agent": "codex", "damaged": True, "size": len(payload)}


def test_where_nobody_listens_any_more_events_wait_in_the_inbox(folder: Path) -> None:
    assert [hook(folder), hook(folder)] == ["", ""]
    with hung_listener(folder):  # and leaves its socket
        pass
    assert hook(folder) == ""
    assert list(take_inbox(folder)) == [LINE, LINE, LINE]


def test_of_an_event_with_a_transcript_only_where_that_is_waits(folder: Path) -> None:
    transcript = folder / "session.jsonl"
    event = {
        "session_id": "s",
        "cwd": "/repo",
        "hook_event_name": "PostToolUse",
        "transcript_path": str(transcript),
        "tool_response": "long",
    }
    hook(folder, json.dumps(event).encode())
    transcript.touch()
    hook(folder, json.dumps(event).encode())
    whole, short = (json.loads(line)["event"] for line in take_inbox(folder))
    assert whole == event
    assert short == {key: value for key, value in event.items() if key != "tool_response"}


def test_a_listener_that_was_late_twice_is_not_asked_for_thirty_seconds(folder: Path) -> None:
    with hung_listener(folder) as listener:
        hook(folder)
        hook(folder)
        hook(folder, now=NOW + 29)
        assert list(take_inbox(folder)) == [LINE]
        hook(folder, now=NOW + 30)
        hook(folder, now=NOW + 59)
        assert list(take_inbox(folder)) == [LINE]
        listener.settimeout(0)
        asked = 0
        while True:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                break
            asked += 1
    assert asked == 3


def test_a_listener_that_begins_anew_is_asked_at_once(folder: Path) -> None:
    with hung_listener(folder):
        hook(folder)
        hook(folder)
    (folder / SOCKET).unlink()
    with answer_one_hook(folder, b'{"print":"here"}\n'):
        assert hook(folder) == "here"


def test_an_answer_in_time_makes_up_for_a_late_one(folder: Path) -> None:
    def answer_second() -> None:
        """The first connection that waits is the one that was given up."""
        listener.settimeout(20)
        listener.accept()[0].close()
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b'{"print":"x"}\n')
            connection.recv(1 << 16)

    with hung_listener(folder) as listener:
        hook(folder)
        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(answer_second)
            assert hook(folder) == "x"
            answering.result(20)
        hook(folder)
        hook(folder)
        assert list(take_inbox(folder)) == []


AS_NOBODY = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setuid(65534)
listener.listen()
print(flush=True)
connection, _ = listener.accept()
print(len(connection.recv(100)))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not hasattr(socket, "SO_PEERCRED"), reason="only root can be another user"
)
def test_a_listener_of_another_user_is_told_nothing(folder: Path) -> None:
    words = [sys.executable, "-c", AS_NOBODY, str(folder / SOCKET)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as listener:
        assert listener.stdout
        assert listener.stdout.readline() == b"\n"
        assert hook(folder) == ""
        assert listener.stdout.readline() == b"0\n"
    assert list(take_inbox(folder)) == [LINE]


def test_an_existing_folder_keeps_its_mode_and_its_new_files_are_private(folder: Path) -> None:
    folder.chmod(0o1777)
    hook(folder)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert (folder / INBOX).stat().st_mode & 0o777 == 0o600
