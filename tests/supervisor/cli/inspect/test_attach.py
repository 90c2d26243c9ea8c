"""`midwatch attach` as a person uses it."""

import asyncio
import json
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from midwatch_supervisor.cli import main
from midwatch_tests.collector import tool_span, tracing
from midwatch_tests.command import MIDWATCH, PROGRAM, ask, midwatch, process, refused
from midwatch_tests.foreign import FILES, asked, at, loop
from midwatch_tests.receivers import webhook
from midwatch_tests.sessions import DIALECTS, Line, Lines, write

CLAUDE = DIALECTS["claude-code"]
Capture = pytest.CaptureFixture[str]


def lately(*lines: Line) -> Lines:
    """The lines as if they were written now."""
    return at(datetime.now(UTC), lines)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with one session of Claude Code in it."""
    folder = tmp_path / "home"
    path = folder / FILES["claude-code"]
    path.parent.mkdir(parents=True)
    write(path, lately(*asked(CLAUDE), *loop(CLAUDE, 6)))
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder whose name is short enough for a socket, with the state and the journal."""
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as made:
        monkeypatch.setenv("MIDWATCH_STATE", made)
        monkeypatch.setenv("MIDWATCH_JOURNAL", f"{made}/j.db")
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        yield Path(made)


@pytest.mark.usefixtures("home", "named_by_the_environment")
async def test_once_takes_in_what_there_is_judges_it_and_says_what_would_help_to_reach_it(
    capsys: Capture,
) -> None:
    told = await ask(capsys, "attach", "--once")
    assert [each["step"] for each in told if each["type"] == "step"] == [1, 2, 3, 4, 5, 6]
    assert "error_streak" in {each.get("rule") for each in told}
    assert "nudge" not in {each.get("action") for each in told}  # it would reach nobody
    again = [each["type"] for each in await ask(capsys, "attach", "--once")]
    assert "step" not in again
    assert await refused(capsys, "tell", "repo-s1", "Read the error.") == (
        "repo-s1#1: somebody else started it: it is only watched; none of its hooks has called "
        "Midwatch: `midwatch hook install claude-code` installs them for its next session, or says "
        "why they may not be called\n"
    )


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (CLAUDE.said("I give up.", ""), "nobody continued it for an hour"),
        ([], "nothing was heard from it for an hour before it was watched"),
    ],
)
@pytest.mark.usefixtures("named_by_the_environment")
async def test_a_session_of_last_night_has_its_own_times_and_calls_nobody(
    home: Path, capsys: Capture, last: Lines, reason: str
) -> None:
    path, night = home / FILES["claude-code"], datetime.now(UTC) - timedelta(hours=13)
    write(path, at(night, [*asked(CLAUDE), *loop(CLAUDE, 10), *last]))
    os.utime(path, (night.timestamp(), night.timestamp()))
    told = await ask(capsys, "attach", "--once", "--since", "20")
    times = [datetime.fromisoformat(str(each["at"])) for each in told]
    assert {each - times[0] for each in times} == {timedelta(), timedelta(hours=1)}
    assert abs(times[0] - night) < timedelta(seconds=1)
    assert told[-1]["reason"] == reason
    (stands,) = await ask(capsys, "status")
    assert (stands["needs_person"], stands["stands"]) == (False, "ended")
    assert datetime.fromisoformat(str(stands["started_at"])) == times[0]


@pytest.mark.usefixtures("home", "named_by_the_environment")
async def test_what_is_asked_about_a_session_that_was_taken_in_once_needs_a_person(
    home: Path, capsys: Capture
) -> None:
    write(home / FILES["claude-code"], lately(*asked(CLAUDE), *loop(CLAUDE, 10)))
    assert await midwatch("attach", "--once") == 0
    (told,) = await ask(capsys, "status")
    assert (told["needs_person"], told["waits_for"][:23]) == (True, "an answer where it runs")


@pytest.mark.usefixtures("home", "named_by_the_environment")
async def test_status_shows_the_sessions_of_a_day_together(home: Path, capsys: Capture) -> None:
    other = home / FILES["codex"]
    other.parent.mkdir(parents=True)
    write(other, lately(*asked(DIALECTS["codex"]), *loop(DIALECTS["codex"], 1)))
    began = at(datetime.now(UTC) - timedelta(days=3), [*asked(CLAUDE), *loop(CLAUDE, 1)])
    write(home / FILES["claude-code"], [*began, *lately(*loop(CLAUDE, 5, first=2))])
    assert await midwatch("attach", "--once") == 0
    told = await ask(capsys, "status")
    assert [each["steps"] for each in told] == [6, 1]


@pytest.mark.parametrize("name", ["cloud-code", "pipe"])
async def test_an_unknown_program_is_refused_with_those_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert "claude-code, codex, gemini, qwen" in await refused(capsys, "attach", name)


@pytest.mark.usefixtures("home", "named_by_the_environment")
async def test_once_says_where_it_has_found_no_session(tmp_path: Path, capsys: Capture) -> None:
    (empty := tmp_path / "empty").mkdir()
    (named := tmp_path / "named").touch()
    assert await midwatch("attach", "codex", str(empty), str(named), "--once") == 0
    assert f"No recent session of codex, {empty}; " in capsys.readouterr().err
    assert await midwatch("attach", str(named), "--once") == 0
    told = capsys.readouterr().err
    assert f"{named} holds no session of a known program" in told
    assert "lately" not in told
    (empty / "event-0-a.json").write_text('{"kind": "MessageEvent"}')
    assert await midwatch("attach", str(empty), "--once", "--since", "24") == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"No recent session of {empty}",
        f"{empty} cannot be followed: `midwatch replay` reads files of openhands",
    ]


@pytest.mark.usefixtures("home", "named_by_the_environment")
@pytest.mark.parametrize("broken", ["the folder", "the socket"])
def test_where_hooks_cannot_be_heard_it_says_what_to_do(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, broken: str
) -> None:
    folder = state / "new"
    if broken == "the folder":
        folder.touch()
    else:
        (folder / "hook.sock").mkdir(parents=True)
    monkeypatch.setenv("MIDWATCH_STATE", str(folder))
    assert main(["attach", "--once"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"cannot listen for hooks in {folder} (")
    assert said.endswith("): set MIDWATCH_STATE to a writable folder of yours\n")


async def watching(*words: str) -> tuple[Process, Callable[[str], Awaitable[str]]]:
    """An `attach` in a process, and what waits for a line of it that holds some text."""
    process = await asyncio.create_subprocess_exec(*MIDWATCH, "attach", *words, stdout=PIPE)
    out = process.stdout
    assert out is not None

    async def until(text: str) -> str:
        async with asyncio.timeout(300):
            while text not in (line := (await out.readline()).decode()):
                assert line
            return line

    return process, until


async def stop_process(process: Process) -> int | None:
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    return process.returncode


@pytest.mark.parametrize(
    ("hooked", "said"),
    [
        pytest.param(
            False,
            "Midwatch only reads them; `midwatch hook install AGENT` lets you guide and stop its "
            "next sessions",
            marks=pytest.mark.matrix,
        ),
        (
            True,
            "Those of claude-code can be guided and stopped through their hooks; the others are "
            "only read",
        ),
    ],
)
async def test_it_says_whom_one_can_guide_and_watches_until_it_is_told_to_stop(
    home: Path, state: Path, hooked: bool, said: str
) -> None:
    if hooked:
        assert await midwatch("hook", "install", "claude-code", "--yes") == 0
    process, until = await watching("--headless")
    await until("")
    assert await until("") == f"{said}\n"
    await until("step 6,")
    with (home / FILES["claude-code"]).open("a") as file:
        for each in loop(CLAUDE, 1, first=7):
            file.write(json.dumps(each) + "\n")
    await until("step 7,")
    assert await stop_process(process) == 0


@pytest.mark.usefixtures("home", "named_by_the_environment")
def test_it_does_not_outlive_what_watches() -> None:
    program = (
        "from midwatch_supervisor.sessions.session_watch import SessionWatch\n"
        "async def run(self): raise RuntimeError('broken')\n"
        f"SessionWatch.run = run\n{PROGRAM}"
    )
    done = process("attach", "--headless", program=program, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("  RuntimeError: broken\n")


@pytest.mark.usefixtures("home", "named_by_the_environment")
async def test_who_is_away_is_told_of_a_session_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "key-of-the-hook")
    async with webhook() as receiver:
        target = f"{{webhook: '{receiver.url}', secret_env: HOOK}}"
        config = tmp_path / "midwatch.yaml"
        config.write_text(f"notify: {{targets: {{team: {target}}}}}\n")
        for _ in range(2):
            assert await midwatch("attach", "--once", "--json", "--config", str(config)) == 0
    assert "firing warning error_streak" in {each["text"] for each in receiver.items}
    assert len(receiver.bodies) == 1


@pytest.mark.matrix
@pytest.mark.usefixtures("home", "state")
async def test_agents_that_send_spans_are_watched_beside_another_attach() -> None:
    files, until_read = await watching("--headless")
    taking, until = await watching("otlp", "--headless", "--port", "0")
    try:
        await until_read("claude-code")
        url = (await until("spans to ")).partition("spans to ")[2].partition(";")[0]
        assert url.startswith("http://127.0.0.1:")
        await asyncio.to_thread(_send, url)
        await until("repeated_call")
    finally:
        codes = [await stop_process(each) for each in (files, taking)]
    assert codes[1] == 0


def _send(url: str) -> None:
    exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=60)
    with tracing(exporter) as tracer:
        for _ in range(6):
            tool_span(tracer, "look_up", "{}", "not found")


async def test_spans_cannot_be_taken_in_once_nor_at_a_port_in_use(
    capsys: Capture, journal_file: Path
) -> None:
    assert "--once" in await refused(capsys, "attach", "otlp", "--once")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        place = ("--journal", str(journal_file), "--headless")
        assert await midwatch("attach", "otlp", "--port", port, *place) == 2
    assert f"127.0.0.1:{port}" in capsys.readouterr().err
