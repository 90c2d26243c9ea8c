"""`midwatch hook AGENT`: passes one event of an agent to the listener, and prints its answer.

The agent waits for this process: it imports only the standard library, ends within four seconds
with exit code 0 whatever happens, and prints only the answer or the names of known agents.

A connection carries one line each way. Request: `{"v":1,"agent":AGENT,"event":OBJECT}`, or
`{"v":1,"agent":AGENT,"damaged":true,"size":BYTES}` for input that is not a JSON object or that
exceeds 8 MiB even with its long texts cut. Answer, within 0.4 s and at most 1 MiB:
`{"print":TEXT}`, with `"keep":true` for an event that the listener does not watch, which then goes
into the inbox. Finally, an empty line confirms that the answer came in time and is printed.
"""

import json
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

from midwatch_agents.hooks.inbox import put_in_inbox, socket_path, state_folder

KNOWN = "claude-code", "codex", "gemini", "qwen"
"""The names of the adapters, which are not imported here."""
MAX_PAYLOAD = 8 << 20
MAX_ANSWER = 1 << 20
"""Longest line, in bytes, without its newline."""
CONNECT_SECONDS, ANSWER_SECONDS = 0.1, 0.4
ABSENT_SECONDS = 30
"""Seconds for which a listener that was late twice in a row is not asked, if it does not ask for
it by touching its socket."""
_MOST_TEXT = 1 << 18
"""Characters kept of each text in an event of more than `MAX_PAYLOAD` bytes."""
_LATE = ".late"
_END_SECONDS = 4
"""Agents are configured to wait five seconds."""
_KEPT = (
    *("hook_event_name", "session_id", "transcript_path", "cwd"),
    *("agent_id", "agent_transcript_path"),
)
"""Fields that are kept of an event whose transcript has the rest."""


def run_hook(agent: str) -> int:
    """Read an event from stdin, pass it on and print the answer; the exit code is always 0."""
    try:
        signal.signal(signal.SIGALRM, _exit_process)
        signal.setitimer(signal.ITIMER_REAL, _END_SECONDS)
        folder, payload = state_folder(os.environ, Path.home()), sys.stdin.buffer.read()
        if agent not in KNOWN:
            known = f"midwatch hook: there are no hooks for {agent!r}; known: {', '.join(KNOWN)}\n"
            os.write(2, known.encode("utf-8", "replace"))
            return 0
        text = hand_over(agent, payload, folder=folder, now=time.time())
        _print(text.encode("utf-8", "replace"))
    except BaseException:  # no failure of ours may fail the agent's step
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _exit_process(*_: object) -> None:
    os._exit(0)


def _print(answer: bytes) -> None:
    """Print without `sys.stdout`: if the reader is gone, flushing it would change the exit code."""
    while answer:
        answer = answer[os.write(1, answer) :]


def hand_over(agent: str, payload: bytes, *, folder: Path, now: float) -> str:
    """Pass an event to the listener; return the answer for the agent, empty for none.

    `now` is in seconds since 1970. If nobody listens, the event goes into the inbox, or only a
    reference to its transcript if that can be read. Raises OSError if `folder` is unusable.
    """
    event, size = _object(payload), len(payload)
    if event is not None and size > MAX_PAYLOAD:
        payload = json.dumps(event).encode()
        event = event if len(payload) <= MAX_PAYLOAD else None
    path = socket_path(folder)
    if path is not None and not _listener_absent(path, now):
        answer = _request_answer(path, _line(agent, payload, event, size))
        if answer is not None:
            _record_lateness(path, now, late=not answer)
            said = _object(answer) or {}
            if said.get("keep") is not True:
                text = said.get("print")
                return text if isinstance(text, str) else ""
    put_in_inbox(folder, _line(agent, payload, _shorten_event(event), size))
    return ""


def _object(payload: bytes) -> dict[str, object] | None:
    if payload.lstrip()[:1] != b"{":
        return None
    try:
        long = len(payload) > MAX_PAYLOAD
        return json.loads(payload.decode(), object_hook=_cut_texts if long else None)
    except (ValueError, RecursionError):
        return None


def _cut_texts(fields: dict[str, object]) -> dict[str, object]:
    """Return the value without the middle of long texts."""
    return {
        name: _cut_middle(each) if isinstance(each, str) else each for name, each in fields.items()
    }


def _cut_middle(text: str) -> str:
    left_out, half = len(text) - _MOST_TEXT, _MOST_TEXT // 2
    if left_out <= 0:
        return text
    return f"{text[:half]}\n[{left_out} characters left out]\n{text[-half:]}"


def _line(agent: str, payload: bytes, event: dict[str, object] | bytes | None, size: int) -> bytes:
    start = b'{"v":1,"agent":%b,' % json.dumps(agent).encode()
    if event is None:
        return start + b'"damaged":true,"size":%d}\n' % size
    if isinstance(event, dict):
        # Line breaks are between tokens only: JSON does not allow them inside texts.
        event = payload.translate(None, b"\r\n")
    return b'%b"event":%b}\n' % (start, event)


def _shorten_event(event: dict[str, object] | None) -> dict[str, object] | bytes | None:
    """Return the event as JSON; if its transcript can be read, without what that also contains."""
    transcript = event.get("transcript_path") if event else None
    if not event or not isinstance(transcript, str) or "\0" in transcript:
        return event
    if not os.path.isfile(transcript) or not os.access(transcript, os.R_OK):  # noqa: PTH113
        return event
    return json.dumps({key: event[key] for key in _KEPT if key in event}).encode()


def _request_answer(path: Path, line: bytes) -> bytes | None:
    """Return the answer's line; empty if late, `None` if the request was not taken as a whole."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(os.fsencode(path))
            if not _is_ours(connection, path):
                return None
            connection.settimeout(ANSWER_SECONDS)
            connection.sendall(line)
        except OSError:
            return None
        try:
            with connection.makefile("rb") as stream:
                answer = stream.readline(MAX_ANSWER + 1)
        except OSError:
            return b""
        if not answer.endswith(b"\n"):
            return b""
        with suppress(OSError):
            connection.sendall(b"\n")
        return answer


def _is_ours(connection: socket.socket, path: Path) -> bool:
    """Whether this user is listening. If the system does not say, the socket's owner decides."""
    peer = peer_of(connection)
    return (path.lstat().st_uid if peer is None else peer[1]) == os.geteuid()


def peer_of(connection: socket.socket) -> tuple[int, int] | None:
    """Return the process and the user at the other end; `None` if the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    found = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", found)
    return process, user


def _listener_absent(path: Path, now: float) -> bool:
    """Whether the listener was recently late twice in a row."""
    times, at = _lateness(path)
    return times >= 2 and 0 <= now - at < ABSENT_SECONDS


def _record_lateness(path: Path, now: float, *, late: bool) -> None:
    """Count a late answer, or reset the count. Raises OSError."""
    noted = path.with_suffix(_LATE)
    if late:
        noted.touch(0o600)
        noted.write_text(f"{_lateness(path)[0] + 1} {now} {path.stat().st_mtime_ns}", "ascii")
    else:
        noted.unlink(missing_ok=True)


def _lateness(path: Path) -> tuple[int, float]:
    """Return how often in a row the listener was late, and when last.

    What was noted before the socket was made or touched does not count.
    """
    try:
        times, at, of = path.with_suffix(_LATE).read_text("ascii").split()
        return (int(times), float(at)) if int(of) == path.stat().st_mtime_ns else (0, 0.0)
    except (OSError, ValueError):
        return 0, 0.0
